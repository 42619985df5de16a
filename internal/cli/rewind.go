package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
)

const rewindUsage = "usage: cinch rewind [--session ID] [--to CHECKPOINT [--dry-run] [--no-shell] [--force]]"

// rewind lists the checkpoints of a session, or takes files back to one.
func (p *program) rewind(args []string) int {
	var session string
	r := checkpoint.Rewind{Shell: true, Undo: "undo-" + strings.ToLower(rand.Text()[:8])}
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if (name == "--session" || name == "--to") && !joined {
			if len(args) == 0 {
				return p.fail(usagef("%s", rewindUsage))
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "--session":
			session = value
		case "--to":
			r.To = value
		case "--dry-run":
			r.Dry = true
		case "--no-shell":
			r.Shell = false
		case "--force":
			r.Force = true
		default:
			return p.fail(usagef("%s", rewindUsage))
		}
	}
	dir, err := p.checkpoints(session)
	if err != nil {
		return p.fail(err)
	}
	s, err := checkpoint.Open(dir)
	if err != nil {
		return p.fail(err)
	}
	defer s.Close()
	if r.To == "" {
		fmt.Fprintf(p.stdout, "session %s, %d bytes kept\n", filepath.Base(dir), s.Size())
		for _, pt := range s.Points() {
			fmt.Fprintf(p.stdout, "%s  %s  %d files  %s\n", pt.ID, pt.At.Format(time.DateTime), pt.Files, termsafe.String(pt.Label))
		}
		return 0
	}
	rep, err := s.Rewind(r)
	if err != nil {
		return p.fail(err)
	}
	p.rewound(r, rep)
	return 0
}

func (p *program) rewound(r checkpoint.Rewind, rep checkpoint.Report) {
	would := ""
	if r.Dry {
		would = "would be "
	}
	for _, c := range rep.Changes {
		fmt.Fprintf(p.stdout, "%s%s: %s (changed by a %s, +%d -%d)\n", would, c.How, termsafe.String(c.Path), c.By, c.Insertions, c.Deletions)
	}
	for _, k := range rep.Kept {
		fmt.Fprintf(p.stdout, "kept: %s: %s\n", termsafe.String(k.Path), termsafe.String(k.Why))
	}
	for _, l := range rep.Links {
		fmt.Fprintf(p.stdout, "kept: %s: it is a link, or lies behind one\n", termsafe.String(l))
	}
	for _, f := range rep.Shell {
		fmt.Fprintf(p.stdout, "kept: %s: a command changed it\n", termsafe.String(f))
	}
	if !r.Dry && len(rep.Changes) > 0 {
		fmt.Fprintf(p.stdout, "to undo this: cinch rewind --to %s\n", r.Undo)
	}
}

// checkpoints is the store of a session, or of the one that used its last.
func (p *program) checkpoints(session string) (string, error) {
	base := filepath.Join(p.sandboxOptions().Config, "cinch", "checkpoints")
	if session != "" {
		if session != filepath.Base(session) || session == ".." {
			return "", usagef("%q is no session", session)
		}
		dir := filepath.Join(base, session)
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("session %s has no checkpoints", session)
		}
		return dir, nil
	}
	list, _ := os.ReadDir(base)
	newest, at := "", time.Time{}
	for _, e := range list {
		fi, err := os.Stat(filepath.Join(base, e.Name(), "index.jsonl"))
		if err == nil && fi.ModTime().After(at) {
			newest, at = filepath.Join(base, e.Name()), fi.ModTime()
		}
	}
	if newest == "" {
		return "", errors.New("there are no checkpoints; sessions make them, print runs only with CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true")
	}
	return newest, nil
}

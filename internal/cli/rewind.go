package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/checkpoint"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

const rewindUsage = "usage: cinch rewind [--session ID] [--to CHECKPOINT [--conversation | --both] [--dry-run] [--no-shell] [--force]]"

// A rewindRequest is the command line of rewind.
type rewindRequest struct {
	checkpoint.Rewind
	session            string
	code, conversation bool
}

func parseRewind(args []string) (rewindRequest, error) {
	r := rewindRequest{code: true}
	r.Shell, r.Undo = true, "undo-"+strings.ToLower(rand.Text()[:8])
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if (name == "--session" || name == "--to") && !joined {
			if len(args) == 0 {
				return r, usagef("%s", rewindUsage)
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "--session":
			r.session = value
		case "--to":
			r.To = value
		case "--conversation":
			r.code, r.conversation = false, true
		case "--both":
			r.code, r.conversation = true, true
		case "--dry-run":
			r.Dry = true
		case "--no-shell":
			r.Shell = false
		case "--force":
			r.Force = true
		default:
			return r, usagef("%s", rewindUsage)
		}
	}
	if r.To == "" && r.conversation {
		return r, usagef("%s", rewindUsage)
	}
	return r, nil
}

// rewind lists the checkpoints of a session, or takes its files, the
// conversation or both back to one.
func (p *program) rewind(args []string) int {
	r, err := parseRewind(args)
	if err != nil {
		return p.fail(err)
	}
	dir, err := p.checkpoints(r.session)
	if err != nil {
		return p.fail(err)
	}
	s, err := checkpoint.Open(dir)
	if err != nil {
		return p.fail(err)
	}
	defer s.Close()
	if r.To == "" {
		p.listCheckpoints(s, filepath.Base(dir))
		return 0
	}
	r.To = pointNamed(s.Points(), r.To)
	if r.conversation { // first: it changes nothing that is there
		if err := p.rewindConversation(filepath.Base(dir), r.To, r.Dry); err != nil {
			return p.fail(err)
		}
	}
	if !r.code {
		return 0
	}
	rep, err := s.Rewind(r.Rewind)
	if err != nil {
		return p.fail(err)
	}
	p.rewound(r.Rewind, rep)
	return 0
}

func (p *program) listCheckpoints(s *checkpoint.Store, session string) {
	text := map[string]string{}
	if _, l, err := p.conversation(session); err == nil {
		for _, q := range l.Prompts {
			text[q.UUID] = strings.Join(strings.Fields(q.Text), " ")
		}
	}
	fmt.Fprintf(p.stdout, "session %s, %d bytes kept\n", termsafe.String(session), s.Size())
	for i, pt := range s.Points() {
		label := pt.Label
		if label == "" {
			label = text[pt.ID]
		}
		if r := []rune(label); len(r) > 60 {
			label = string(r[:60]) + "…"
		}
		fmt.Fprintf(p.stdout, "%3d  %s  %s  %d files  %s\n", i+1, termsafe.String(pt.ID), pt.At.Format(time.DateTime), pt.Files, termsafe.String(label))
	}
}

// pointNamed is the id that to means: a place in the list, or an id.
func pointNamed(points []checkpoint.Point, to string) string {
	if n, err := strconv.Atoi(to); err == nil && n >= 1 && n <= len(points) {
		return points[n-1].ID
	}
	return to
}

// conversation is the transcript of a session, and where it is.
func (p *program) conversation(session string) (path string, l *transcript.Loaded, err error) {
	ctx, cancel := within(30 * time.Second)
	defer cancel()
	found, err := transcript.NewStore(p.sandboxOptions().Config).Find(ctx, session)
	if err != nil {
		return "", nil, err
	}
	l, err = transcript.Load(found.Path, transcript.LoadOptions{})
	return found.Path, l, err
}

// rewindConversation makes a copy of the conversation that ends before a
// prompt. The session itself stays, so there is nothing to be undone.
func (p *program) rewindConversation(session, prompt string, dry bool) error {
	path, l, err := p.conversation(session)
	if err != nil {
		return err
	}
	at := -1
	for i, q := range l.Prompts {
		if q.UUID == prompt {
			at = i
		}
	}
	if at < 0 {
		return fmt.Errorf("%s is no prompt of session %s", prompt, session)
	}
	fmt.Fprintf(p.stdout, "the prompt was: %s\n", termsafe.String(l.Prompts[at].Text))
	switch {
	case at == 0:
		fmt.Fprintln(p.stdout, "nothing comes before it: begin a new session")
		return nil
	case dry:
		fmt.Fprintf(p.stdout, "would be made: a session that ends before it; %s stays as it is\n", session)
		return nil
	}
	id := frame.UUID()
	if err := transcript.ForkBefore(path, filepath.Join(filepath.Dir(path), id+filepath.Ext(path)), prompt); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "to go on before it: cinch --resume %s\nto go on after all: cinch --resume %s\n", id, session)
	return nil
}

func (p *program) rewound(r checkpoint.Rewind, rep checkpoint.Report) {
	would := ""
	if r.Dry {
		would = "would be "
	}
	by := map[checkpoint.Who]string{
		checkpoint.Tool: "changed by a tool", checkpoint.Shell: "changed while a command ran", checkpoint.Undo: "changed by going back",
	}
	for _, c := range rep.Changes {
		fmt.Fprintf(p.stdout, "%s%s: %s (%s, +%d -%d)\n", would, c.How, termsafe.String(c.Path), by[c.By], c.Insertions, c.Deletions)
	}
	for _, k := range rep.Kept {
		fmt.Fprintf(p.stdout, "kept: %s: %s\n", termsafe.String(k.Path), termsafe.String(k.Why))
	}
	for _, l := range rep.Links {
		fmt.Fprintf(p.stdout, "kept: %s: it is a link, or lies behind one\n", termsafe.String(l))
	}
	for _, f := range rep.Shell {
		fmt.Fprintf(p.stdout, "kept: %s: it changed while a command ran\n", termsafe.String(f))
	}
	for _, g := range rep.Gaps {
		fmt.Fprintf(p.stdout, "not undone: %s\n", termsafe.String(g))
	}
	if len(rep.Changes)+len(rep.Kept)+len(rep.Links)+len(rep.Shell) == 0 {
		fmt.Fprintln(p.stdout, "no file is different from what it was then")
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

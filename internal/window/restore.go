package window

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
)

// What comes back after a summary, at most. The figures are those of the
// reference.
const (
	restoredFiles = 5
	fileTokens    = 5000 // of one file; of a larger one only the path
	skillTokens   = 5000 // of one skill
	skillsTokens  = 25_000
)

// A Restore reads anew what a summary must not lose. Nil fields have nothing
// to give back.
type Restore struct {
	// Opening returns the notes that open a conversation, read anew.
	Opening func(ctx context.Context) []agent.Block
	// FS is the file system, rooted at "/". Nil: files are named only.
	FS fs.FS
	// Allowed reports whether the model may read the file now. Nil: yes.
	Allowed func(path string) bool
	// Skills are the bodies of the skills that h has invoked (see Invoked),
	// newest first: Kind is the name.
	Skills func(ctx context.Context, h []agent.Message) []Note
	// Plan and Tasks are the plan file and the task list.
	Plan, Tasks func() string
	// Pins are facts that the person wants kept through every summary.
	Pins func() []string
}

// Around returns what stands around the summary of h.
func (r Restore) Around(ctx context.Context, h []agent.Message) compact.Restored {
	var out compact.Restored
	if r.Opening != nil {
		out.Opening = r.Opening(ctx)
	}
	var notes []Note
	if r.Pins != nil {
		if pins := r.Pins(); len(pins) > 0 {
			notes = append(notes, Note{NotePins, "The user pinned these facts. They hold until unpinned:\n- " + strings.Join(pins, "\n- ")})
		}
	}
	if r.Plan != nil {
		if p := strings.TrimSpace(r.Plan()); p != "" {
			notes = append(notes, Note{"plan", "The plan that you work by:\n\n" + p})
		}
	}
	if r.Tasks != nil {
		if t := strings.TrimSpace(r.Tasks()); t != "" {
			notes = append(notes, Note{"tasks", "The task list as it is now:\n\n" + t})
		}
	}
	if r.Skills != nil {
		for _, s := range ClipSkills(r.Skills(ctx, h)) {
			notes = append(notes, Note{NoteSkills, skillHead + s.Kind + skillTail + s.Text})
		}
	}
	notes = append(notes, r.files(compact.RecentFiles(h, restoredFiles))...)
	out.Behind = Remind(notes...)
	return out
}

// ClipSkills returns skills, newest first, cut to 5,000 tokens each and 25,000
// together; what does not fit is left out.
func ClipSkills(skills []Note) []Note {
	var out []Note
	left := skillsTokens * 4
	for _, s := range skills {
		most := min(skillTokens*4, left)
		if len(s.Text) > most {
			if most < 400 {
				break
			}
			for most > 0 && !utf8.RuneStart(s.Text[most]) {
				most--
			}
			s.Text = s.Text[:most] + "\n[The rest of this skill is left out here.]"
		}
		left -= len(s.Text)
		out = append(out, s)
	}
	return out
}

// files shows the files as they are now. Those that are large, gone or not to
// be read are named.
func (r Restore) files(paths []string) []Note {
	var notes []Note
	var named []string
	for _, p := range paths {
		if text, ok := r.file(p); ok {
			notes = append(notes, Note{NoteFile, fmt.Sprintf("You worked with %s. It reads now:\n%s", p, numbered(text))})
		} else {
			named = append(named, p)
		}
	}
	if len(named) > 0 {
		notes = append(notes, Note{NoteFile, "You also worked with these files. Read them again if you need them:\n- " + strings.Join(named, "\n- ")})
	}
	return notes
}

func (r Restore) file(p string) (string, bool) {
	name := strings.TrimPrefix(path.Clean(p), "/")
	if r.FS == nil || !fs.ValidPath(name) || r.Allowed != nil && !r.Allowed(p) {
		return "", false
	}
	fi, err := fs.Stat(r.FS, name)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > fileTokens*4 {
		return "", false
	}
	f, err := r.FS.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, fileTokens*4+1))
	if err != nil || len(raw) > fileTokens*4 || !utf8.Valid(raw) || slices.Contains(raw, 0) {
		return "", false
	}
	return string(raw), true
}

// numbered shows text as the Read tool does.
func numbered(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%d\t%s\n", i+1, strings.TrimSuffix(line, "\r"))
	}
	return b.String()
}

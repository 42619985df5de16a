package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/linkpath"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
	"github.com/seed-eb844fcb/cinch/internal/session"
	"github.com/seed-eb844fcb/cinch/internal/window"
)

// maxMention bounds the text of one file that a prompt mentions with @.
const maxMention = 100 << 10

// mentions attaches the files that a prompt names by @path, and the resources
// that it names by @server:uri.
func (a *App) mentions(ctx context.Context, p agent.Prompt) session.Expansion {
	plain := session.Expansion{Messages: []agent.Message{{UUID: p.UUID, Role: agent.User, Origin: p.Origin, Meta: p.Meta, Blocks: p.Blocks}}}
	if a.env.on("CLAUDE_CODE_DISABLE_ATTACHMENTS") || p.Meta {
		return plain
	}
	var notes []window.Note
	var more []agent.Block
	for _, path := range mentioned(agent.TextOf(p.Blocks)) {
		if text, bs, ok := a.attachResource(ctx, path); ok {
			notes = append(notes, window.Note{Kind: window.NoteFile, Text: text})
			more = append(more, bs...)
			continue
		}
		full := path
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			full = filepath.Join(a.home, rest)
		} else if !filepath.IsAbs(path) {
			full = filepath.Join(a.cwd(), path)
		}
		if text, ok := a.attach(path, full); ok {
			notes = append(notes, window.Note{Kind: window.NoteFile, Text: text})
		}
	}
	if len(notes) > 0 {
		plain.Messages[0].Blocks = append(append(window.Remind(notes...), more...), p.Blocks...)
	}
	return plain
}

// attachResource is the text of a resource that was mentioned as server:uri,
// and its other blocks; ok is false if it is none.
func (a *App) attachResource(ctx context.Context, mention string) (text string, more []agent.Block, ok bool) {
	if !strings.Contains(mention, ":") || len(a.gate.Policy().Removed([]string{mcp.ReadResource})) > 0 {
		return "", nil, false
	}
	bs, server, uri, found, err := a.mcp.Attach(ctx, mention)
	if !found {
		return "", nil, false
	}
	what := "The user mentions the resource " + uri + " of the MCP server " + server + ". "
	if err != nil {
		a.note("warning", "@"+mention+" could not be read: "+err.Error())
		return what + "It could not be read: " + err.Error(), nil, true
	}
	return what + "It holds:\n" + agent.TextOf(bs), others(bs), true
}

// attach is the text that stands for a mentioned path; ok is false if it is
// no file or directory that may be shown.
func (a *App) attach(name, full string) (text string, ok bool) {
	if a.denied(full) {
		return "", false
	}
	for _, p := range linkpath.Targets(full) {
		if a.denied(p) {
			return "", false
		}
	}
	fi, err := os.Stat(full)
	if err != nil {
		return "", false
	}
	switch {
	case fi.IsDir():
		entries, err := os.ReadDir(full)
		if err != nil {
			return "", false
		}
		var b strings.Builder
		for i, e := range entries {
			if i == 1000 {
				b.WriteString("…\n")
				break
			}
			b.WriteString(e.Name())
			if e.IsDir() {
				b.WriteByte('/')
			}
			b.WriteByte('\n')
		}
		return "The user mentions the directory " + name + ". It holds:\n" + b.String(), true
	case !fi.Mode().IsRegular():
		return "", false
	case fi.Size() > maxMention:
		return "The user mentions the file " + full + ". It is too long to be shown here: read what you need of it.", true
	}
	data, err := os.ReadFile(full)
	if err != nil || strings.IndexByte(string(data), 0) >= 0 {
		return "The user mentions the file " + full + ", which is no text: use Read if you need it.", err == nil
	}
	a.files.Viewed(full)
	return "The user mentions the file " + full + ". It holds:\n" + strings.ToValidUTF8(string(data), "\ufffd"), true
}

// mentioned returns the paths after an @ at the start of a word, each once.
// @"a path" may hold spaces.
func mentioned(text string) []string {
	var out []string
	seen := map[string]bool{}
	for i := 0; i < len(text); i++ {
		if text[i] != '@' || i > 0 && !unicode.IsSpace(rune(text[i-1])) && text[i-1] != '(' {
			continue
		}
		rest := text[i+1:]
		var path string
		if strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				continue
			}
			path = rest[1 : 1+end]
		} else {
			path = rest
			if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
				path = rest[:end]
			}
			path = strings.TrimRight(path, ".,;:!?)'\"")
		}
		if path != "" && !seen[path] {
			seen[path] = true
			out = append(out, path)
		}
	}
	return out
}

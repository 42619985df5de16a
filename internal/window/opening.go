package window

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
)

// Kinds of notes, as agent.Text.Note holds them.
const (
	NoteInstructions = "instructions"
	NoteGit          = "git"
	NoteEnvironment  = "environment"
	NoteTools        = "tools"
	NoteAgents       = "agents"
	NoteSkills       = "skills"
	NoteMemory       = "memory"
	NoteDate         = "date"
	NoteMode         = "mode"
	NoteFile         = "file"
	NoteReminder     = "reminder"
	NotePins         = "pins" // what the person wants kept; never snipped
)

// An Opening is what a conversation starts with, apart from the prompt.
type Opening struct {
	// Memory holds the instruction files. Nil for none.
	Memory *memory.Set
	// Git describes the state of the repository, or returns "" outside of
	// one. It has its own clock. Nil: no such note.
	Git         func(ctx context.Context) string
	Environment Environment
	Deferred    []string // names of deferred tools
	Agents      []agent.AgentInfo
	Skills      string // the listing, made by its owner
	// More are further notes (hook output, mode, …).
	More []Note
}

// An Environment is where a session runs.
type Environment struct {
	Cwd      string
	Dirs     []string // further working directories
	Repo     bool     // Cwd is inside a git repository
	Platform string   // linux, darwin, windows
	OS       string   // name and release
	Shell    string
	Model    string
	Date     string // 2006-01-02
}

// A Note is a text for the model with the kind that tells notes apart.
type Note struct{ Kind, Text string }

// Blocks returns the notes for the first user message, before the prompt, in
// an order that puts what differs least first. Each is an *agent.Text with
// Note set; empty ones are left out.
func (o Opening) Blocks(ctx context.Context) []agent.Block {
	notes := []Note{{NoteInstructions, instructions(o.Memory)}}
	if o.Git != nil {
		notes = append(notes, Note{NoteGit, gitNote(o.Git(ctx))})
	}
	notes = append(notes,
		Note{NoteEnvironment, o.Environment.String()},
		Note{NoteTools, deferredNote(o.Deferred)},
		Note{NoteAgents, agentsNote(o.Agents)},
		Note{NoteSkills, o.Skills},
		Note{NoteMemory, memoryNote(o.Memory)})
	notes = append(notes, o.More...)
	return Remind(notes...)
}

// Remind returns the blocks of notes. They are wrapped, so that the model
// takes them neither for the person's words nor for a question; blank ones
// are left out.
func Remind(notes ...Note) []agent.Block {
	var bs []agent.Block
	for _, n := range notes {
		text := strings.TrimSpace(n.Text)
		if text == "" {
			continue
		}
		if n.Kind == "" {
			n.Kind = NoteReminder
		}
		// Text from files must not be able to end the note it stands in.
		text = strings.ReplaceAll(text, "</system-reminder", "<\\/system-reminder")
		bs = append(bs, &agent.Text{Text: "<system-reminder>\n" + text + "\n</system-reminder>", Note: n.Kind})
	}
	return bs
}

// instructions is the note that holds all instruction files.
func instructions(s *memory.Set) string {
	if s == nil {
		return ""
	}
	var b strings.Builder
	files, _ := s.Loaded()
	for _, f := range files {
		if f.Kind == memory.Auto || strings.TrimSpace(f.Text) == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("# Instructions\n\nThe user, their organisation and this project keep these instructions for every conversation. " +
				"Follow them where they apply. Where two disagree, the one further down is closer to the task at hand; " +
				"what the user says in the conversation stands above them.\n")
		}
		writeFile(&b, f)
	}
	return b.String()
}

// Joined is the note for instruction files that join later, because of what
// was read or because they changed.
func Joined(files []memory.File) []agent.Block {
	var b strings.Builder
	for _, f := range files {
		if strings.TrimSpace(f.Text) == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("These instructions belong to what you have just read and apply from here on.\n")
		}
		writeFile(&b, f)
	}
	return Remind(Note{NoteInstructions, b.String()})
}

func writeFile(b *strings.Builder, f memory.File) {
	fmt.Fprintf(b, "\nContents of %s (%s):\n\n%s\n", f.Path, origin(f), strings.TrimRight(f.Text, "\n"))
	if f.Cut != "" {
		fmt.Fprintf(b, "[%s]\n", f.Cut)
	}
}

// origin says whose file it is, so that the model can weigh it.
func origin(f memory.File) string {
	s := "the project's instructions, checked in"
	switch f.Kind {
	case memory.Managed:
		s = "set by the organisation"
	case memory.User:
		s = "the user's own, for all projects"
	case memory.Local:
		s = "the user's own, for this project, not checked in"
	}
	if f.Parent != "" {
		s += ", imported by " + f.Parent
	}
	if len(f.Globs) > 0 {
		s += ", for " + strings.Join(f.Globs, ", ")
	}
	return s
}

// memoryNote tells of the automatic memory: its index, or that it is empty.
func memoryNote(s *memory.Set) string {
	if s == nil || s.AutoDir == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Memory\n\nThe directory %s keeps what you learn about this project and its user from one conversation to the next. "+
		"One file holds one fact, with the fields name, description and type (user, feedback, project or reference) in its frontmatter; "+
		"MEMORY.md there is the index, one line for each. Read a file when its line is to the point, and check it against what you see: it may be old. "+
		"Write only what will matter again and cannot be read from the code. Correct what turns out wrong.\n", s.AutoDir)
	files, _ := s.Loaded()
	for _, f := range files {
		if f.Kind == memory.Auto {
			writeAuto(&b, f)
			return b.String()
		}
	}
	b.WriteString("\nThere is nothing in it yet.\n")
	return b.String()
}

func writeAuto(b *strings.Builder, f memory.File) {
	fmt.Fprintf(b, "\nContents of %s (your own notes from earlier conversations):\n\n%s\n", f.Path, strings.TrimRight(f.Text, "\n"))
	if f.Cut != "" {
		fmt.Fprintf(b, "[%s]\n", f.Cut)
	}
}

func gitNote(state string) string {
	if strings.TrimSpace(state) == "" {
		return ""
	}
	return "# Git\n\nThe repository as it was when the conversation began. This is not kept up to date; ask git for what is now.\n\n" + strings.TrimSpace(state)
}

// String describes e for the model, one fact a line.
func (e Environment) String() string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("Working directory", e.Cwd)
	if e.Cwd != "" {
		line("Git repository", map[bool]string{true: "yes", false: "no"}[e.Repo])
	}
	line("Further working directories", strings.Join(e.Dirs, ", "))
	line("Platform", e.Platform)
	line("System", e.OS)
	line("Shell", e.Shell)
	line("Model", e.Model)
	line("Date", e.Date)
	if b.Len() == 0 {
		return ""
	}
	return "# Environment\n\n" + b.String()
}

func deferredNote(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "# Tools by name\n\nThese tools exist, but their definitions are not loaded. Load those you need with ToolSearch " +
		"(query \"select:NAME,NAME\", or words to search for) before you call them.\n\n" + strings.Join(names, "\n")
}

func agentsNote(agents []agent.AgentInfo) string {
	if len(agents) == 0 {
		return ""
	}
	agents = slices.Clone(agents)
	slices.SortFunc(agents, func(a, b agent.AgentInfo) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString("# Sub-agents\n\nKinds that the Agent tool can start:\n\n")
	for _, a := range agents {
		fmt.Fprintf(&b, "- %s: %s\n", a.Name, strings.Join(strings.Fields(a.Description), " "))
	}
	return b.String()
}

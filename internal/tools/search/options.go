// Package search holds the tools Glob and Grep.
//
// It owns the walk over a tree, the ignore rules, and the search engine that
// stands in where ripgrep is not installed; both engines give the same answer.
// It does not decide whether a directory may be searched: Inspect names it,
// and the caller decides.
package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/safefile"
)

// Options are what the tools stand on.
type Options struct {
	// Cwd returns the directory that relative paths start in. Required.
	Cwd func() string
	// Home replaces a leading "~/" in a path. Empty leaves such paths alone.
	Home string
	// Deny reports files and directories that must not be searched or listed.
	// It is asked with absolute paths, concurrently. May be nil.
	Deny func(path string) bool
	// Ripgrep is the path of rg. Empty uses the built-in engine.
	Ripgrep string
	// Exec runs a program in dir, its output going to stdout as it comes. An
	// error from stdout ends the program. code is the exit status; err
	// reports a program that did not start or was killed. Needed with Ripgrep.
	Exec func(ctx context.Context, dir string, argv []string, stdout io.Writer) (code int, stderr []byte, err error)
	// HideDot makes Glob leave out names with a leading dot that the pattern
	// does not spell out.
	HideDot bool
	// Ignore makes Glob respect .gitignore.
	Ignore bool
	// Timeout bounds one call. 0 is 20 seconds for Glob and a minute for Grep.
	Timeout time.Duration
}

// New returns Glob and Grep.
func New(o Options) []agent.Tool {
	if o.Deny == nil {
		o.Deny = func(string) bool { return false }
	}
	if o.Exec == nil {
		o.Ripgrep = ""
	}
	s := &searcher{o}
	return []agent.Tool{&globTool{s}, &grepTool{s}}
}

// searcher is what both tools have in common.
type searcher struct{ o Options }

// abs returns the absolute form of a path; "" is the working directory.
func (s *searcher) abs(path string) (string, error) {
	if path == "" {
		path = "."
	}
	abs, err := safefile.Abs(path, s.o.Cwd(), s.o.Home)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", path, err)
	}
	return abs, nil
}

// effects names the directories or files that a search reads, at both ends of
// every link.
func (s *searcher) effects(paths []string) (agent.Effects, error) {
	e := agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}
	seen := map[string]bool{}
	for _, p := range paths {
		names, err := safefile.Resolve(p)
		if err != nil {
			return agent.Effects{}, err
		}
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				e.Subjects = append(e.Subjects, agent.Subject{Kind: agent.SubjectRead, Value: n})
			}
		}
	}
	return e, nil
}

// target resolves a path that Inspect has named. One that leads elsewhere by
// now was not approved.
func (s *searcher) target(c agent.Call, path string) (real string, err error) {
	names, err := safefile.Resolve(path)
	if err != nil {
		return "", err
	}
	real = names[len(names)-1]
	for _, n := range names {
		if s.o.Deny(n) {
			return "", refuse("%s may not be searched: a permission rule denies it.", path)
		}
	}
	if len(c.Effects.Subjects) == 0 {
		return real, nil
	}
	for _, sub := range c.Effects.Subjects {
		if sub.Value == real {
			return real, nil
		}
	}
	return "", refuse("%s leads elsewhere than when this call was approved (now %s). Make the call again if that is right.", path, real)
}

func (s *searcher) isDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("The directory %s does not exist. The working directory is %s.", path, s.o.Cwd())
	case err != nil:
		return err
	case !info.IsDir():
		return refuse("%s is not a directory. Give the directory to look in as path, and names in pattern.", path)
	}
	return nil
}

// shown returns a path as results name it: relative to the working directory
// if it lies in there.
func (s *searcher) shown(path string) string {
	if rel, ok := strings.CutPrefix(path, strings.TrimSuffix(s.o.Cwd(), string(filepath.Separator))+string(filepath.Separator)); ok && rel != "" {
		return rel
	}
	return path
}

// visible writes a path so that it stays one line.
func visible(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return strconv.Quote(path)
	}
	return path
}

// comparePaths orders paths as a walk in alphabetical order meets them.
func comparePaths(a, b string) int {
	return strings.Compare(strings.ReplaceAll(filepath.ToSlash(a), "/", "\x00"), strings.ReplaceAll(filepath.ToSlash(b), "/", "\x00"))
}

// refuse words a failure that lies in the call. compat: the tag is what
// clients and models know such failures by.
func refuse(format string, args ...any) error {
	return errors.New("<tool_use_error>" + fmt.Sprintf(format, args...) + "</tool_use_error>")
}

// decode reads a tool's input and words what is wrong with it.
func decode(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			return fmt.Errorf("the parameter %s must not be a %s", t.Field, t.Value)
		}
		return err
	}
	return nil
}

// The schemas have the reference's property order; the words are ours.

var globSpec = agent.Spec{
	Name: "Glob",
	Description: `Finds files by name. Returns paths, the most recently changed first, at most 100.

- pattern is a glob such as "**/*.go", "src/**/*.{ts,tsx}" or "docs/*.md"; ** stands for any number of directories. Names in brackets, such as app/[id], are found as they are.
- Files in .gitignore are found too; the data of version control systems is not. Links are not followed.
- To find files by what they hold, use Grep.`,
	Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"pattern":{"description":"The glob pattern to match paths with","type":"string"},` +
		`"path":{"description":"The directory to look in; the working directory if left out","type":"string"}},` +
		`"required":["pattern"],"additionalProperties":false}`),
}

var grepSpec = agent.Spec{
	Name: "Grep",
	Description: `Searches the content of files with a regular expression, in the syntax of ripgrep: "log.*Error", "func\\s+\\w+". Literal braces need a backslash: interface\{\}.

- Searches path, a file or a directory, below which files in .gitignore and binary files are left out. glob and type narrow the files.
- output_mode: files_with_matches (the default) lists files, the most recently changed first; content shows matching lines; count shows how many lines match in each file.
- Lines are searched one by one; set multiline for patterns that span lines.
- Results end after head_limit entries; offset skips the first ones, to go on.`,
	Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"pattern":{"description":"The regular expression to search for","type":"string"},` +
		`"path":{"description":"The file or directory to search; the working directory if left out","type":"string"},` +
		`"glob":{"description":"Only files whose name or path matches, such as \"*.js\" or \"src/**/*.{ts,tsx}\"; a leading ! excludes","type":"string"},` +
		`"output_mode":{"description":"What to return","type":"string","enum":["content","files_with_matches","count"]},` +
		`"-B":{"description":"Lines to show before each match (content)","type":"number"},` +
		`"-A":{"description":"Lines to show after each match (content)","type":"number"},` +
		`"-C":{"description":"The same as context","type":"number"},` +
		`"context":{"description":"Lines to show before and after each match (content)","type":"number"},` +
		`"-n":{"description":"Show line numbers (content); on unless set to false","type":"boolean"},` +
		`"-i":{"description":"Ignore case","type":"boolean"},` +
		`"-o":{"description":"Show only what matches, not whole lines (content)","type":"boolean"},` +
		`"type":{"description":"Only files of this type: go, js, py, rust, java …","type":"string"},` +
		`"head_limit":{"description":"Entries to return: lines, files or counts; 250 if left out, 0 for all","type":"number"},` +
		`"offset":{"description":"Entries to skip first","type":"number"},` +
		`"multiline":{"description":"Let patterns span lines; a dot then matches line ends too","type":"boolean"}},` +
		`"required":["pattern"],"additionalProperties":false}`),
}

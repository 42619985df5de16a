package shell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

const (
	// profileLimit bounds the run of the user's profile, profileWait what the
	// first command waits for it; profileFresh is how long it need not run
	// again.
	profileLimit = 10 * time.Second
	profileWait  = time.Second
	profileFresh = time.Hour
	// maxSnapshot bounds what each command has to read.
	maxSnapshot = 512 << 10
)

// A profile is what the user's shell profile adds to a shell: functions,
// aliases, options, and directories of programs. It is learned from a login
// shell, beside the first command; a profile that takes long does not hold
// that command up, which then uses what an earlier session learned. What was
// learned within the hour is used without asking a shell if the files it came
// from are the same: a profile may well take a second to run.
type profile struct {
	b    *bash
	file string // the snapshot that commands source
	once sync.Once
	done chan struct{} // closed when snap and path are set

	snap string // file, or "" if there is nothing to source
	dirs []string
}

func newProfile(b *bash) *profile {
	p := &profile{b: b, done: make(chan struct{})}
	if b.o.SnapshotDir != "" {
		p.file = filepath.Join(b.o.SnapshotDir, "cinch-"+filepath.Base(b.o.Shell)+".sh")
	}
	return p
}

// take returns the file a command sources, "" for none, and the PATH it
// has, "" for the one it inherits.
func (p *profile) take() (snapshot, path string) {
	if p.file == "" {
		return "", ""
	}
	p.once.Do(func() {
		if p.recall() {
			close(p.done)
			return
		}
		go func() { // ends with profileLimit
			defer close(p.done)
			p.learn()
		}()
		timer := time.NewTimer(profileWait)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
	})
	select {
	case <-p.done:
		return p.snap, p.path(p.dirs)
	default:
	}
	data, err := os.ReadFile(p.file) // an earlier session's
	if err != nil {
		return "", ""
	}
	_, dirs, code := saved(data)
	if !code {
		return "", p.path(dirs)
	}
	return p.file, p.path(dirs)
}

// recall takes over what was learned not long ago from the same files.
func (p *profile) recall() bool {
	fi, err := os.Stat(p.file)
	if err != nil || time.Since(fi.ModTime()) > profileFresh || time.Until(fi.ModTime()) > 0 {
		return false
	}
	data, err := os.ReadFile(p.file)
	if err != nil {
		return false
	}
	sources, dirs, code := saved(data)
	if sources != p.sources() {
		return false
	}
	p.dirs = dirs
	if code {
		p.snap = p.file
	}
	return true
}

// sources identifies the state of all that a profile is usually made of.
func (p *profile) sources() string {
	h := sha256.New()
	env := p.b.o.Env()
	home := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
	}
	fmt.Fprintf(h, "%s\n%s\n%s\n", p.b.shell(), home, pathOf(env))
	files := []string{"/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zshenv", "/etc/zprofile", "/etc/zshrc", "/etc/zsh/zshenv", "/etc/zsh/zprofile", "/etc/zsh/zshrc"}
	if es, err := os.ReadDir("/etc/profile.d"); err == nil {
		for _, e := range es {
			files = append(files, filepath.Join("/etc/profile.d", e.Name()))
		}
	}
	for _, name := range []string{".bash_profile", ".bash_login", ".profile", ".bashrc", ".bash_aliases", ".zshenv", ".zprofile", ".zshrc", ".zlogin"} {
		files = append(files, filepath.Join(home, name))
	}
	for _, f := range files {
		if fi, err := os.Stat(f); err == nil {
			fmt.Fprintf(h, "%s %d %d\n", f, fi.Size(), fi.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// path is our PATH with those of dirs at its end that it does not have: the
// profile must not undo what the program was started with.
func (p *profile) path(dirs []string) string {
	path := pathOf(p.b.o.Env())
	have := filepath.SplitList(path)
	grown := false
	for _, d := range dirs {
		if filepath.IsAbs(d) && !slices.Contains(have, d) {
			have = append(have, d)
			grown = true
		}
	}
	if !grown {
		return ""
	}
	return strings.Join(have, string(filepath.ListSeparator))
}

// learn runs the profile and writes the snapshot.
func (p *profile) learn() {
	if err := os.MkdirAll(p.b.o.SnapshotDir, 0o700); err != nil {
		return // a home that cannot be written to: no snapshot
	}
	f, err := os.CreateTemp(p.b.o.SnapshotDir, ".learn-*")
	if err != nil {
		return
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_ = f.Close()
	ctx, cancel := context.WithTimeout(context.Background(), profileLimit)
	defer cancel()
	sources := p.sources() // before they are read
	shell := p.b.shell()
	script := bashDump
	if strings.HasPrefix(filepath.Base(shell), "zsh") {
		script = zshDump
	}
	spec := proc.Spec{
		Path: shell, Args: []string{shell, "-l", "-c", strings.ReplaceAll(script, "OUT", proc.Quote(f.Name()))},
		Env: append(slices.Clone(p.b.o.Env()), "SHELL="+p.b.o.Shell, "CLAUDECODE=1"), Dir: p.b.o.Root,
	}
	child, err := proc.Start(ctx, spec, proc.Options{Guard: p.b.o.Guard})
	if err != nil {
		return
	}
	_, err = child.Wait()
	_ = child.Kill(time.Second) // agents that the profile started are not ours to keep
	if err != nil {
		return
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return
	}
	code, dirs := snapshot(data)
	p.dirs = dirs
	whole := append([]byte(savedPrefix+sources+" "+strings.Join(dirs, ":")+"\n"), code...)
	if err := atomicfile.WriteFile(p.file, whole, 0o600); err != nil {
		return
	}
	if len(code) > 0 {
		p.snap = p.file
	}
}

// The dumps write one section after another, each behind a line with its name.
// Functions for completion (_name) are left out: they are many, and nothing
// completes here. Output of the profile itself goes nowhere.
const bashDump = `[ -r ~/.bashrc ] && . ~/.bashrc
{
echo '#cinch path'
printf '%s\n' "$PATH"
echo '#cinch functions'
declare -F | while read -r _ _ name; do
	case $name in _[!_]*) ;; *) declare -f -- "$name" ;; esac
done
echo '#cinch options'
shopt -s
set -o
echo '#cinch aliases'
alias -p
} >|OUT 2>/dev/null`

const zshDump = `[ -r ~/.zshrc ] && . ~/.zshrc
{
echo '#cinch path'
printf '%s\n' "$PATH"
echo '#cinch functions'
for name in ${(f)"$(typeset +f)"}; do
	case $name in _[^_]*) ;; *) typeset -f -- "$name" ;; esac
done
echo '#cinch aliases'
alias -L
} >|OUT 2>/dev/null`

// A snapshot file begins with a line for us: what it was learned from, and
// the directories of the PATH.
const savedPrefix = "# cinch "

// saved reads that line; code reports whether shell code follows.
func saved(data []byte) (sources string, dirs []string, code bool) {
	line, rest, _ := strings.Cut(string(data), "\n")
	line, ok := strings.CutPrefix(line, savedPrefix)
	if !ok {
		return "", nil, false
	}
	sources, list, _ := strings.Cut(line, " ")
	return sources, filepath.SplitList(list), rest != ""
}

// snapshot makes shell code of a dump, as little as will do, and returns the
// directories of its PATH.
func snapshot(dump []byte) (code []byte, dirs []string) {
	sections := map[string]string{}
	name := ""
	for line := range strings.Lines(string(dump)) {
		if s, ok := strings.CutPrefix(line, "#cinch "); ok {
			name = strings.TrimSpace(s)
			continue
		}
		sections[name] += line
	}
	dirs = filepath.SplitList(strings.TrimSuffix(sections["path"], "\n"))
	var b strings.Builder
	b.WriteString(sections["functions"])
	for f := range strings.Lines(sections["options"]) {
		f := strings.Fields(f)
		if len(f) != 2 || f[1] != "on" {
			continue
		}
		if slices.Contains(keptShopts, f[0]) {
			b.WriteString("shopt -s " + f[0] + "\n")
		} else if slices.Contains(keptOptions, f[0]) {
			b.WriteString("set -o " + f[0] + "\n")
		}
	}
	aliases := keptAliases(sections["aliases"])
	if aliases != "" {
		b.WriteString("shopt -s expand_aliases 2>/dev/null\n" + aliases)
	}
	if b.Len() > maxSnapshot {
		return nil, dirs
	}
	return []byte(b.String()), dirs
}

// Options that a person may have set to their taste and that change what a
// command means. Those which belong to a prompt, and those which end shells
// (errexit, nounset) or change how a command is read (extglob), stay out.
var (
	keptShopts  = []string{"dotglob", "failglob", "globstar", "lastpipe", "nocaseglob", "nocasematch", "nullglob"}
	keptOptions = []string{"noclobber", "noglob", "physical", "pipefail"}
)

// keptAliases leaves out those that make a command ask before it acts: with
// nobody to answer it would then not act, and not say so.
func keptAliases(aliases string) string {
	var b strings.Builder
	for line := range strings.Lines(aliases) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "alias "), "=")
		switch name {
		case "rm", "cp", "mv", "ln":
			if strings.Contains(value, " -i") || strings.Contains(value, " --interactive") {
				continue
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonc"
)

const maxFile = 2 << 20 // bytes of a settings file

// machine is the file system of the machine, from its root.
type machine struct{}

func (machine) Open(name string) (fs.File, error) { return os.Open(absolute(name)) }
func (machine) Stat(name string) (fs.FileInfo, error) {
	return os.Stat(absolute(name))
}
func (machine) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(absolute(name)) }

func absolute(name string) string {
	if runtime.GOOS == "windows" {
		return filepath.FromSlash(name)
	}
	return "/" + name
}

// read finds and parses all sources, highest first.
func (v *Value) read() {
	o := v.o
	v.managed()
	for _, e := range slices.Backward(o.Extra) {
		v.text(Flag, "settings of the host", e)
	}
	v.flag()
	reads := func(l Layer) bool { return !o.SourcesSet || slices.Contains(o.Sources, l) }
	if reads(Local) {
		for _, f := range v.localFiles() {
			v.file(Local, f)
		}
	}
	if reads(Project) {
		v.file(Project, filepath.Join(o.ProjectRoot, ".claude", "settings.json"))
	}
	if reads(User) && o.Root != "" {
		f := filepath.Join(o.Root, "settings.json")
		if v.source(Project, f) == nil { // started in the home directory: it is one file
			v.file(User, f)
		} else {
			v.source(Project, f).layer = User
		}
	}
	if o.State != "" {
		v.state = v.file(State, o.State)
		v.sources = slices.DeleteFunc(v.sources, func(s *source) bool { return s.layer == State })
	}
}

func (v *Value) source(l Layer, file string) *source {
	for _, s := range v.sources {
		if s.layer == l && s.file == file {
			return s
		}
	}
	return nil
}

// localFiles are the files of the local layer, the strongest first: that of
// the main checkout, which all worktrees share, and that of the start directory.
func (v *Value) localFiles() []string {
	var l []string
	for _, d := range []string{v.LocalDir(), v.o.ProjectRoot} {
		f := filepath.Join(d, ".claude", "settings.local.json")
		if !slices.Contains(l, f) {
			l = append(l, f)
		}
	}
	return l
}

// LocalDir returns the directory whose .claude holds the local settings that
// are written.
func (v *Value) LocalDir() string {
	d := v.o.ProjectRoot
	switch {
	case v.o.Main != "":
		d = v.o.Main
	case v.o.Repo != "":
		d = v.o.Repo
	}
	if v.o.State != "" && filepath.Clean(d) == filepath.Dir(v.o.State) {
		return v.o.ProjectRoot // the home directory is no project
	}
	return d
}

// ManagedDir returns the directory of managed settings on the system goos.
func ManagedDir(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/ClaudeCode"
	case "windows":
		return `C:\Program Files\ClaudeCode`
	}
	return "/etc/claude-code"
}

// managed reads the managed settings: of the drop-ins the last one counts most,
// the base file least. What a host gives counts if there is nothing else.
func (v *Value) managed() {
	dir := v.o.ManagedDir
	if dir == "" {
		dir = ManagedDir(v.o.OS)
	}
	drop := filepath.Join(dir, "managed-settings.d")
	es, err := fs.ReadDir(v.o.FS, slashed(drop))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.problem(Refuse, Origin{Layer: Managed, File: drop}, "", "cannot be read: %v", cause(err))
	}
	for _, e := range slices.Backward(es) { // ReadDir sorts
		if n := e.Name(); strings.HasSuffix(n, ".json") && !strings.HasPrefix(n, ".") {
			v.file(Managed, filepath.Join(drop, n))
		}
	}
	v.file(Managed, filepath.Join(dir, "managed-settings.json"))
	if v.o.Host == "" {
		return
	}
	merge, admin := false, false
	for _, s := range v.sources {
		admin = admin || s.root != nil && len(s.root.names) > 0
		if n := s.at("parentSettingsBehavior"); n != nil {
			merge = n.text == "merge"
		}
	}
	s := v.text(Managed, "managed settings of the host", []byte(v.o.Host))
	switch {
	case !admin || s.root == nil:
	case merge:
		s.root = restrictive(s.root)
	default:
		s.root = nil
		v.problem(Info, Origin{Layer: Managed, File: s.file}, "", "not used: this machine has managed settings of its own")
	}
}

// restrictive keeps of a host's managed settings what only takes away.
func restrictive(n *node) *node {
	c := &node{kind: object, src: n.src, off: n.off}
	for _, k := range n.names {
		m := n.members[k]
		switch {
		case k == "permissions" && m.kind == object:
			p := &node{kind: object, src: m.src, off: m.off}
			for _, l := range []string{"deny", "ask", "disableBypassPermissionsMode", "disableAutoMode"} {
				if x := m.members[l]; x != nil {
					p.set(l, x)
				}
			}
			c.set(k, p)
		case (strings.HasPrefix(k, "disable") || strings.HasPrefix(k, "allowManaged") || strings.HasPrefix(k, "strict") || k == "enforceAvailableModels") && m.text == "true",
			k == "deniedMcpServers", k == "blockedMarketplaces", k == "disableAutoMode":
			c.set(k, m)
		}
	}
	return c
}

// flag reads the value of --settings.
func (v *Value) flag() {
	f := v.o.Flag
	if f == "" {
		return
	}
	if strings.HasPrefix(strings.TrimSpace(f), "{") {
		v.text(Flag, "--settings", []byte(f))
		return
	}
	if !filepath.IsAbs(f) {
		f = filepath.Join(v.o.Cwd, f)
	}
	if s := v.file(Flag, f); s.data == nil && s.root == nil && v.stamps[f] == "" {
		v.problem(Refuse, Origin{Layer: Flag, File: f}, "", "there is no such file; --settings takes the name of a file, or JSON")
	}
}

// text parses settings that stand in no file.
func (v *Value) text(l Layer, name string, data []byte) *source {
	s := &source{layer: l, file: name, data: data}
	v.sources = append(v.sources, s)
	v.parse(s)
	return s
}

// file reads and parses one file. A file that is not there is an empty source.
func (v *Value) file(l Layer, name string) *source {
	s := &source{layer: l, file: name}
	v.sources = append(v.sources, s)
	// Another program may be in the middle of rewriting the file in place:
	// what does not parse is looked at again before it is believed.
	const pause = 15 * time.Millisecond
	tries := 1
	if _, live := v.o.FS.(machine); live {
		tries = 4
	}
	for try := 1; ; try++ {
		v.stamps[name] = stampOf(v.o.FS, name)
		data, err := readFile(v.o.FS, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoDir) {
			return s
		}
		if err != nil {
			sev := grave(l)
			if l == User && errors.Is(err, fs.ErrPermission) {
				sev = Error // a home that is not ours, as in containers: go on without it
			}
			v.problem(sev, Origin{Layer: l, File: name}, "", "cannot be read: %v", cause(err))
			return s
		}
		if _, err := jsonc.Parse(data); err != nil && try < tries {
			<-time.After(pause)
			continue
		}
		s.data = data
		v.parse(s)
		return s
	}
}

// grave is how bad it is that a layer's file cannot be used: rules that forbid
// something may be lost with it.
func grave(l Layer) Severity {
	if l == State {
		return Error
	}
	return Refuse
}

func (v *Value) parse(s *source) {
	s.lines = []int{0}
	for i, c := range s.data {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	p, err := jsonc.Parse(s.data)
	var je *jsonc.Error
	switch {
	case errors.As(err, &je):
		o := Origin{s.layer, s.file, je.Line, je.Col}
		v.problem(grave(s.layer), o, "", "%s; nothing of this file is in effect", je.Text)
	case p == nil:
	case p.Kind != object:
		v.problem(grave(s.layer), s.origin(p.Off), "", "holds %s where an object should stand; nothing of it is in effect", p.Kind)
	default:
		s.whole = build(s, p)
		s.root = s.whole
	}
}

var errNoDir = errors.New("a file stands in place of a directory")

// readFile reads a regular file of reasonable size.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	name = slashed(name)
	f, err := fsys.Open(name)
	if err != nil {
		if info, serr := fs.Stat(fsys, path.Dir(name)); serr == nil && !info.IsDir() || isNotDir(err) {
			return nil, errNoDir
		}
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	return data, err
}

// cause is err without the name of the file, which the Problem has.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// stampOf sums up the state of a file; "" if it is not there.
func stampOf(fsys fs.FS, name string) string {
	info, err := fs.Stat(fsys, slashed(name))
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano(), " ", info.Mode())
}

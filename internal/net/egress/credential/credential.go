// Package credential reads what settings say about credentials and plans it:
// which variables commands do not get, which files they cannot read, and which
// they see with a stand-in for the secret part.
//
// It owns the entries of sandbox.credentials and reads the files that they
// name, once. It must not know layers, connections or the sandbox.
package credential

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/net/egress"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/mask"
)

// An Entry is one credential: a file by Path or a variable by Name.
type Entry struct {
	Path, Name  string
	Mode        string   // deny or mask
	InjectHosts []string // where the value may go; nil: to every allowed domain
	// Extract is a pattern whose first group is the secret part; "" is all.
	Extract string
	// OnExtractNoMatch says what becomes of an entry whose pattern fits
	// nothing: warn leaves it as it is, error ends the start, deny (and "")
	// keeps it from commands.
	OnExtractNoMatch string
	// Decode and MaskClaims are not supported: such an entry is denied.
	Decode     string
	MaskClaims []string

	// CanMask says that the entry's source may mask. From others mask is deny.
	CanMask bool `json:"-"`
}

// what is how people know e.
func (e Entry) what() string {
	if e.Name != "" {
		return e.Name
	}
	return e.Path
}

// Options are the surroundings of a plan.
type Options struct {
	Environ []string // KEY=value
	// Files says that files can be shown with other contents.
	Files bool
	// Before, if not nil, is the Set of an earlier plan, whose stand-ins stay.
	Before *mask.Set
	// Plaintext lets values go out without TLS.
	Plaintext bool
	// Allowed reports whether a rule allows a host: where a secret without
	// hosts of its own may go.
	Allowed func(t egress.Target) bool
}

// A Plan is what becomes of the credentials.
type Plan struct {
	Unset   []string // variables that commands do not get
	Deny    []string // files that they cannot read
	Set     *mask.Set
	Environ []string // variables with stand-ins
	Files   []File
	// Problems are to be told: what is not done as it was asked for.
	Problems []string
	// Masked says that there is anything to put in on the way.
	Masked bool
}

// A File is seen with other contents.
type File struct {
	Path string
	Data []byte
}

// maxFile bounds a masked file.
const maxFile = 8 << 20

// variable is what a variable may be called.
func variable(name string) bool {
	for i, c := range name {
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != ""
}

// New plans entries. Where two speak of one thing, deny wins. The error is an
// entry that was to end the start.
func New(entries []Entry, o Options) (*Plan, error) {
	b := &builder{o: o, p: &Plan{}, denied: map[string]bool{}}
	env := map[string]string{}
	for _, kv := range o.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	for _, e := range entries {
		if e.Name != "" && !variable(e.Name) || e.Name == "" && e.Path == "" {
			b.tell(e, "it names no variable and no file")
		} else if e.Mode != "mask" {
			if e.Mode != "deny" {
				b.tell(e, "the mode %q is neither deny nor mask; it counts as deny", e.Mode)
			}
			b.deny(e)
		}
	}
	for _, e := range entries {
		if e.Mode != "mask" || b.denied[e.what()] {
			continue
		}
		if err := b.mask(e, env); err != nil {
			return nil, err
		}
	}
	b.p.Set = mask.New(b.secrets, o.Plaintext, o.Before)
	b.finish(env)
	return b.p, nil
}

// A builder makes a Plan.
type builder struct {
	o       Options
	p       *Plan
	denied  map[string]bool
	secrets []mask.Secret
	texts   []text
}

// A text is a value or a file with secret parts.
type text struct {
	entry Entry
	parts []part
}

type part struct{ plain, secret string } // secret is a name in the Set

func (b *builder) tell(e Entry, format string, args ...any) {
	b.p.Problems = append(b.p.Problems, "sandbox.credentials: "+e.what()+": "+fmt.Sprintf(format, args...))
}

func (b *builder) deny(e Entry) {
	if b.denied[e.what()] {
		return
	}
	b.denied[e.what()] = true
	if e.Name != "" {
		b.p.Unset = append(b.p.Unset, e.Name)
	} else {
		b.p.Deny = append(b.p.Deny, e.Path)
	}
}

// mask plans an entry that is to be masked, or denies it where that cannot be.
func (b *builder) mask(e Entry, env map[string]string) error {
	switch {
	case !e.CanMask:
		b.tell(e, "only user, managed and --settings settings may mask; it counts as deny")
		b.deny(e)
		return nil
	case e.Decode != "" || len(e.MaskClaims) > 0:
		b.tell(e, "decode is not supported; it counts as deny")
		b.deny(e)
		return nil
	}
	hosts, err := b.hosts(e)
	if err != nil {
		b.tell(e, "%v; it counts as deny", err)
		b.deny(e)
		return nil
	}
	var value string
	if e.Name != "" {
		value = env[e.Name]
		if value == "" {
			return nil // not set: nothing to hide
		}
	} else {
		if value, err = b.read(e.Path); err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				b.tell(e, "it cannot be masked (%v), so it cannot be read at all", err)
			}
			b.deny(e)
			return nil
		}
	}
	spans, err := secretParts(e, value)
	if err != nil {
		b.tell(e, "%v; it counts as deny", err)
		b.deny(e)
		return nil
	}
	if len(spans) == 0 {
		switch e.OnExtractNoMatch {
		case "error":
			return fmt.Errorf("sandbox.credentials: %s: the pattern %q matches nothing in it", e.what(), e.Extract)
		case "warn":
			b.tell(e, "the pattern %q matches nothing in it; commands see it as it is", e.Extract)
		default:
			b.tell(e, "the pattern %q matches nothing in it; it counts as deny", e.Extract)
			b.deny(e)
		}
		return nil
	}
	t := text{entry: e}
	end := 0
	for i, s := range spans {
		name := e.what()
		if i > 0 {
			name += " (" + strconv.Itoa(i+1) + ")"
		}
		b.secrets = append(b.secrets, mask.Secret{Name: name, Value: value[s[0]:s[1]], For: hosts})
		t.parts = append(t.parts, part{value[end:s[0]], name})
		end = s[1]
	}
	t.parts = append(t.parts, part{plain: value[end:]})
	b.texts = append(b.texts, t)
	if strings.HasSuffix(e.Name, "SECRET_ACCESS_KEY") {
		b.tell(e, "requests that are signed with it (SigV4) cannot be put right on the way and will fail")
	}
	return nil
}

// hosts is where e's value may go.
func (b *builder) hosts(e Entry) (func(string, uint16) bool, error) {
	allowed := b.o.Allowed
	if e.InjectHosts != nil {
		rules, problems := egress.NewRules(e.InjectHosts, nil, true)
		if len(problems) > 0 {
			return nil, errors.Join(problems...)
		}
		allowed = func(t egress.Target) bool { v, _ := rules.Decide(t); return v == egress.Allowed }
	}
	return func(host string, port uint16) bool {
		t, err := egress.NewTarget(host, port)
		return err == nil && allowed != nil && allowed(t)
	}, nil
}

// read returns what a file holds, if it can be masked.
func (b *builder) read(path string) (string, error) {
	if strings.ContainsAny(path, "*?[") {
		return "", errors.New("a pattern")
	}
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !b.o.Files:
		return "", errors.New("files can be shown with other contents under bubblewrap only")
	case !fi.Mode().IsRegular():
		return "", errors.New("no regular file")
	case fi.Size() > maxFile:
		return "", errors.New("larger than 8 MB")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxFile:
		return "", errors.New("larger than 8 MB")
	case !utf8.Valid(data):
		return "", errors.New("no text in UTF-8")
	}
	return string(data), nil
}

// secretParts are where value is secret, in order.
func secretParts(e Entry, value string) ([][2]int, error) {
	if e.Extract == "" {
		begin := len(value) - len(strings.TrimLeft(value, " \t\r\n"))
		end := len(strings.TrimRight(value, " \t\r\n"))
		if e.Name != "" {
			begin, end = 0, len(value)
		}
		if begin >= end {
			return nil, errors.New("it is empty")
		}
		return [][2]int{{begin, end}}, nil
	}
	re, err := regexp.Compile(e.Extract)
	if err != nil {
		return nil, err
	}
	if re.NumSubexp() < 1 {
		return nil, fmt.Errorf("the pattern %q has no group", e.Extract)
	}
	var out [][2]int
	for _, m := range re.FindAllStringSubmatchIndex(value, -1) {
		if m[2] >= 0 && m[2] < m[3] {
			out = append(out, [2]int{m[2], m[3]})
		}
	}
	return out, nil
}

// finish fills the stand-ins in, now that there are some. A variable that holds
// a masked value besides is no way around.
func (b *builder) finish(env map[string]string) {
	hide := func(s string) string {
		for _, x := range b.secrets {
			if len(x.Value) >= 8 {
				s = strings.ReplaceAll(s, x.Value, b.p.Set.StandIn(x.Name))
			}
		}
		return s
	}
	done := map[string]bool{}
	for _, t := range b.texts {
		if b.denied[t.entry.what()] {
			continue
		}
		b.p.Masked = true
		var s strings.Builder
		for _, p := range t.parts {
			s.WriteString(hide(p.plain))
			if p.secret != "" {
				s.WriteString(b.p.Set.StandIn(p.secret))
			}
		}
		if t.entry.Name == "" {
			b.p.Files = append(b.p.Files, File{t.entry.Path, []byte(s.String())})
			continue
		}
		done[t.entry.Name] = true
		b.p.Environ = append(b.p.Environ, t.entry.Name+"="+s.String())
	}
	for _, kv := range b.o.Environ {
		k, _, _ := strings.Cut(kv, "=")
		if v := env[k]; !done[k] && !b.denied[k] && hide(v) != v {
			done[k] = true
			b.p.Environ = append(b.p.Environ, k+"="+hide(v))
		}
	}
}

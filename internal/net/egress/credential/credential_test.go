package credential

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/net/egress"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	npmrc := write("npmrc", "registry=https://r.test\n//r.test/:_authToken=npm-secret-1\n//s.test/:_authToken=npm-secret-2\n")
	token := write("token", "\n file-secret\n")
	binary := write("binary", "\xff\xfe")
	empty := write("empty", " \n")
	o := Options{
		Environ: []string{"A=aaaaaaaa-secret", "COPY=x=aaaaaaaa-secret;", "URL=https://u:pass-word-1@h.test", "D=d", "E=mm", "AWS_SECRET_ACCESS_KEY=kkkkkkkkkk", "GONE="},
		Files:   true, Allowed: func(t egress.Target) bool { return t.Host == "allowed.test" },
	}
	p, err := New([]Entry{
		{Name: "A", Mode: "mask", CanMask: true, InjectHosts: []string{"a.test", "*.b.test:8443"}},
		{Name: "URL", Mode: "mask", CanMask: true, Extract: `//[^:]*:([^@]*)@`},
		{Name: "D", Mode: "mask", CanMask: true}, {Name: "D", Mode: "deny"},
		{Name: "E", Mode: "mask"},
		{Name: "AWS_SECRET_ACCESS_KEY", Mode: "mask", CanMask: true},
		{Name: "GONE", Mode: "mask", CanMask: true}, {Name: "NEVER", Mode: "mask", CanMask: true},
		{Name: "1X", Mode: "deny"}, {Mode: "deny"}, {Name: "JWT", Mode: "mask", CanMask: true, Decode: "jwt"}, {Name: "ODD", Mode: "hide"},
		{Path: npmrc, Mode: "mask", CanMask: true, Extract: `_authToken=(\S+)`, InjectHosts: []string{"r.test"}},
		{Path: token, Mode: "mask", CanMask: true, InjectHosts: []string{}},
		{Path: binary, Mode: "mask", CanMask: true}, {Path: dir, Mode: "mask", CanMask: true}, {Path: empty, Mode: "mask", CanMask: true},
		{Path: filepath.Join(dir, "*"), Mode: "mask", CanMask: true}, {Path: filepath.Join(dir, "missing"), Mode: "mask", CanMask: true},
		{Path: npmrc + "2", Mode: "deny"},
		{Name: "A", Mode: "mask", CanMask: true, InjectHosts: []string{"*"}, Path: ""},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	stand := func(name string) string {
		s := p.Set.StandIn(name)
		if s == "" {
			t.Errorf("%s has no stand-in", name)
		}
		return s
	}
	// The last entry cannot be read, so A is denied with all that it had.
	if !slices.Contains(p.Unset, "A") {
		t.Errorf("unset: %q", p.Unset)
	}
	wantEnv := []string{
		"URL=https://u:" + stand("URL") + "@h.test", "AWS_SECRET_ACCESS_KEY=" + stand("AWS_SECRET_ACCESS_KEY"),
	}
	for _, e := range wantEnv {
		if !slices.Contains(p.Environ, e) {
			t.Errorf("%q is not among %q", e, p.Environ)
		}
	}
	for _, e := range p.Environ {
		if strings.HasPrefix(e, "A=") {
			t.Errorf("what is denied is there: %q", e)
		}
		if strings.Contains(e, "aaaaaaaa-secret") {
			t.Errorf("another variable holds the value: %q", e)
		}
	}
	wantFiles := []File{
		{npmrc, []byte("registry=https://r.test\n//r.test/:_authToken=" + stand(npmrc) + "\n//s.test/:_authToken=" + stand(npmrc+" (2)") + "\n")},
		{token, []byte("\n " + stand(token) + "\n")},
	}
	if d := cmp.Diff(wantFiles, p.Files); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{npmrc + "2", binary, dir, empty, filepath.Join(dir, "*"), filepath.Join(dir, "missing")}, p.Deny); d != "" {
		t.Errorf("deny (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"D", "ODD", "E", "JWT", "A"}, p.Unset); d != "" {
		t.Errorf("unset (-want +got):\n%s", d)
	}
	for _, want := range []string{"1X: it names no", "E: only user", "JWT: decode", "ODD: the mode \"hide\"", "no text in UTF-8", "no regular file", "it is empty", "a pattern", "SigV4", "every host cannot be allowed"} {
		if !strings.Contains(strings.Join(p.Problems, "\n"), want) {
			t.Errorf("no word of %q in\n%s", want, strings.Join(p.Problems, "\n"))
		}
	}
	got := fmt.Sprint(p.Set.Names("a.test", 443), p.Set.Names("x.b.test", 8443), p.Set.Names("x.b.test", 443), p.Set.Names("r.test", 443), p.Set.Names("allowed.test", 443))
	if want := fmt.Sprint([]string{"A"}, []string{"A"}, []string{}, []string{npmrc, npmrc + " (2)"}, []string{"URL", "AWS_SECRET_ACCESS_KEY"}); got != want {
		t.Errorf("hosts: got %s, want %s", got, want)
	}
}

func TestNoMatch(t *testing.T) {
	t.Parallel()
	for on, want := range map[string]string{"": "unset", "deny": "unset", "warn": "seen", "error": "error"} {
		p, err := New([]Entry{{Name: "A", Mode: "mask", CanMask: true, Extract: "x(y)", OnExtractNoMatch: on}}, Options{Environ: []string{"A=value"}})
		got := "seen"
		switch {
		case err != nil:
			got = "error"
		case len(p.Unset) > 0:
			got = "unset"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", on, got, want)
		}
	}
	for _, pattern := range []string{"(", "x"} {
		p, err := New([]Entry{{Name: "A", Mode: "mask", CanMask: true, Extract: pattern}}, Options{Environ: []string{"A=value"}})
		if err != nil || len(p.Unset) != 1 {
			t.Errorf("%q: %+v %v", pattern, p, err)
		}
	}
	// Where files cannot be shown otherwise they are kept from commands.
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := New([]Entry{{Path: file, Mode: "mask", CanMask: true}}, Options{})
	if err != nil || len(p.Deny) != 1 || len(p.Files) != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

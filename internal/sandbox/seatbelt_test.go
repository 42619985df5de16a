package sandbox

import (
	"strings"
	"testing"
)

func TestSeatbeltProfile(t *testing.T) {
	t.Parallel()
	l := layout{mounts: []mount{
		{path: `/src/a"b`, dir: true, kind: writable},
		{path: "/src/lib", dir: true, kind: readOnly},
		{path: "/home/u/.ssh", dir: true, kind: hidden},
	}}
	got := profile(Rules{}, l, 4567)
	at := -1
	for _, want := range []string{ // later lines win, so the order is the meaning
		"(deny default)",
		"(allow file-read*)",
		`(allow file-write* (subpath "/src/a\"b"))`,
		`(deny file-write* (subpath "/src/lib"))`,
		`(deny file-read* file-write* (subpath "/home/u/.ssh"))`,
		"(deny network*)",
		`(allow network-outbound (remote ip "localhost:4567"))`,
	} {
		i := strings.Index(got, want+"\n")
		if i <= at {
			t.Errorf("%s is not there, or not behind what it overrides:\n%s", want, got)
		}
		at = max(at, i)
	}
	for _, open := range []string{"(allow file-write*)", "(allow network*)", "unix-socket"} {
		if strings.Contains(got, open) {
			t.Errorf("%s is open", open)
		}
	}
	if got := profile(Rules{OpenNetwork: true, OpenFiles: true}, l, 0); !strings.Contains(got, "(allow network*)") || !strings.Contains(got, "(allow file-read* file-write*)") {
		t.Errorf("what was opened is shut:\n%s", got)
	}
}

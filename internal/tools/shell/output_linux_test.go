package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestLongOutput(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	// Just within what is shown.
	r := l.bash("seq 1 7000 | head -c 29000")
	if got := text(r); len(got) < 28_990 || r.IsError || strings.Contains(got, "persisted") {
		t.Errorf("29,000 characters became %d", len(got))
	}
	// Beyond: a preview, and the whole in a file.
	r = l.bash("seq 1 10000")
	d, _ := r.Detail.(detail)
	got := text(r)
	if !strings.HasPrefix(got, "<persisted-output>\n47.7 KB of output, too much to show; all of it is in "+d.Persisted+"\n") ||
		!strings.HasSuffix(got, "\n10000\n</persisted-output>") || !strings.Contains(got, "\n1\n2\n3\n") || len(got) > 2_500 {
		t.Errorf("got %.300q … %d", got, len(got))
	}
	if d.Stdout == "" || d.PersistedSize != 48894 || filepath.Dir(d.Persisted) != l.o.ResultDir {
		t.Errorf("got %+v", d)
	}
	data, err := os.ReadFile(d.Persisted)
	if err != nil || len(data) != 48894 || !bytes.HasSuffix(data, []byte("\n10000\n")) {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	if left := l.files(); left != nil {
		t.Errorf("%v are left", left)
	}
	// A failure: more of both ends.
	r = l.bash("seq 1 10000; exit 9")
	got = text(r)
	if !strings.HasPrefix(got, "Exit code 9\n1\n2\n") || !strings.Contains(got, "left out …]\n\n") || !strings.Contains(got, "\n10000\n[complete output in ") ||
		len(got) > 10_300 || len(got) < 9_500 || !r.IsError {
		t.Errorf("got %.300q … %d", got, len(got))
	}
}

func TestOutputLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) { o.MaxText, o.ResultDir = 100, "" })
	r := l.bash("seq 1 1000")
	d := r.Detail.(detail)
	if len(text(r)) > 500 || filepath.Dir(d.Persisted) != l.o.TaskDir {
		t.Errorf("got %q, %+v", text(r), d)
	}
	if _, err := os.Stat(d.Persisted); err != nil {
		t.Error(err)
	}
	wide := newLab(t, func(o *Options) { o.MaxText = 1 << 30 })
	if n := len(text(wide.bash("seq 1 100000 | head -c 140000"))); n < 139_000 {
		t.Errorf("140,000 characters became %d", n)
	}
	if n := len(text(wide.bash("seq 1 100000 | head -c 160000"))); n > 3_000 {
		t.Errorf("160,000 characters became %d", n)
	}
}

// Memory does not grow with the output, nor does the answer.
func TestFlood(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(o *Options) { o.MaxOutput = 200 << 20 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, tt := range []struct{ command, want string }{
		{"head -c 100000000 /dev/zero | tr '\\0' x", "<persisted-output>\n95.4 MB"}, // one line
		{"seq 1 3000000", "<persisted-output>\n21.8 MB"},
		{"head -c 50000000 /dev/urandom", "(47.7 MB of output that is no text: binary data in "},
		{`for i in $(seq 1 20000); do printf '\e[2J\e[H'; done`, "<persisted-output>\n136.7 KB"},
	} {
		r := l.bash(tt.command)
		if got := text(r); !strings.HasPrefix(got, tt.want) || len(got) > 4_000 || r.IsError {
			t.Errorf("%s: got %.200q … %d", tt.command, got, len(got))
		}
		if d, _ := r.Detail.(detail); d.Persisted != "" {
			fi, err := os.Stat(d.Persisted)
			if err != nil || fi.Size() > maxKept+100 || fi.Size() != d.PersistedSize {
				t.Errorf("%s: kept %v, %v", tt.command, fi, err)
			}
			os.Remove(d.Persisted)
		}
	}
	begin := time.Now()
	r := l.bash("while head -c 20000000 /dev/zero; do sleep .01; done", "description", "endless")
	if got := text(r); !strings.HasPrefix(got, "Exit code 143\nCommand was ended because it wrote more than 200.0 MB\n") || !r.IsError || len(got) > 11_000 {
		t.Errorf("got %.200q … %d", got, len(got))
	}
	if took := time.Since(begin); took > 60*time.Second {
		t.Errorf("took %v", took)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 64<<20 {
		t.Errorf("%d MB were allocated", grown>>20)
	}
}

func TestOddOutput(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	for _, tt := range []struct{ command, want string }{
		{`printf '10%%\r50%%\r100%%\ndone\n'`, "100%\ndone\n[2 overwritten states of progress lines are not shown]"},
		{`printf 'a\r\nb\r\n'`, "a\r\nb"},
		{`printf 'x\r\r\n'`, "x"},
		{`printf '50%%\r'`, "50%"},
		{`printf 'a\000b'`, "a\u2400b"},
		{`printf 'caf\351'`, "caf\ufffd"},
		{`printf '\342\202\254'`, "€"},
		{`printf '\033[31mred\033[0m'`, "\x1b[31mred\x1b[0m"}, // escaping is for those who show it
	} {
		l.says(l.bash(tt.command), tt.want, false)
	}
	png := `printf '\211PNG\r\n\032\n\000\000'`
	r := l.bash(png)
	d := r.Detail.(detail)
	l.says(r, "(10 bytes of output that is no text: image/png in "+d.Persisted+")", false)
	if data, err := os.ReadFile(d.Persisted); string(data) != "\x89PNG\r\n\x1a\n\x00\x00" || err != nil || filepath.Ext(d.Persisted) != ".png" {
		t.Errorf("kept %q in %s, %v", data, d.Persisted, err)
	}
	if d.IsImage {
		t.Error("it claims to be an image block")
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	var got []agent.Progress
	_, err := l.tools["Bash"].Run(t.Context(), agent.Call{Input: []byte(`{"command":"printf 'one\\ntwo\\r2/3\\n'; sleep 0.8"}`),
		Progress: func(p agent.Progress) { got = append(got, p) }})
	if want := (agent.Progress{Text: "2/3", Bytes: 12}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestInputHint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, text string
		failed, want  bool
	}{
		{"cat", "", false, true},
		{"read x", "", true, true},
		{"python3", "", false, true},
		{"cat file", "", false, false},
		{"cat <file", "", false, false},
		{"echo | cat", "", false, false},
		{"cat <<<x >f", "", false, false},
		{"catch", "", false, false},
		{"sudo x", "sudo: a terminal is required to read the password", true, true},
		{"grep -r 'EOF when reading a line' .", "a.py: EOF when reading a line", false, false},
	} {
		if got := inputHint(tt.command, tt.text, tt.failed) != ""; got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\rb\n", "\r\r\n", "\x00\xff", "a\r\nb\r", "€\r", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, hidden := clean(bytes.Clone(raw))
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("%q became %q", raw, got)
		}
		if strings.Count(got, "\n") != bytes.Count(raw, []byte("\n")) {
			t.Errorf("%q became %q: lines were lost", raw, got)
		}
		if hidden == 0 && !bytes.ContainsRune(raw, '\r') && utf8.Valid(raw) && !bytes.ContainsRune(raw, 0) && got != string(raw) {
			t.Errorf("%q became %q for no reason", raw, got)
		}
	})
}

func FuzzMeaning(f *testing.F) {
	for _, s := range []string{"grep a b", "cd x && grep", "a | rg b", "if", "! grep x", "git grep x", "cd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		benign(s)
		mayChangeDir(s)
		inputHint(s, "", true)
	})
}

func TestMayChangeDir(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"cd x": true, "ls; cd x": true, "(cd x)": true, "pushd x": true, "ls": false, "echo abcd": false,
		"cat cd.txt": false, "ls && popd": true, "builtin cd x": true, "x=$(cd y; pwd)": true, ". ./env": true, "ls .": true, "ls ./a": false,
	} {
		if got := mayChangeDir(command); got != want {
			t.Errorf("%s: got %v", command, got)
		}
	}
}

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withProfile makes a lab whose home has these files.
func withProfile(t *testing.T, snapshots string, files map[string]string) *lab {
	t.Helper()
	return newLab(t, func(o *Options) {
		home := t.TempDir()
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(home, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env := append(o.Env(), "HOME="+home)
		o.Env = func() []string { return env }
		o.SnapshotDir = snapshots
	})
}

// patient makes sure that the profile has been learned.
func (l *lab) patient() *lab {
	l.t.Helper()
	l.bash("true")
	<-l.tools["Bash"].(*bash).profile.done
	return l
}

func TestProfile(t *testing.T) {
	t.Parallel()
	snaps := filepath.Join(t.TempDir(), "shell-snapshots")
	l := withProfile(t, snaps, map[string]string{
		".bash_profile": "echo noise; echo noise >&2; PATH=/opt/extra:$PATH; export PROFILE=1; ssh-agent >/dev/null 2>&1\n",
		".bashrc": `
echo more noise
alias hello='echo hi there'
alias rm='rm -i'
alias mv="mv --interactive"
greet() { echo "hello, $1"; }
_completion() { :; }
__helper() { echo helped; }
shopt -s globstar extglob
set -o pipefail
set -u
set -- a b c
cd /
`,
	}).patient()
	l.says(l.bash("hello"), "hi there", false)
	l.says(l.bash("greet you; __helper"), "hello, you\nhelped", false)
	l.says(l.bash("touch f; rm f; ls"), "(Bash completed with no output)", false) // not asked, so done
	l.says(l.bash("false | true"), "Exit code 1", true)
	l.says(l.bash(`echo $# "$nope" $(shopt globstar) $(shopt extglob); pwd`), "0  globstar on extglob off\n"+l.root, false)
	path := os.Getenv("PATH")
	l.says(l.bash(`echo "$PATH|$PROFILE"`), path+":/opt/extra|", false)
	l.says(l.bash("_completion 2>/dev/null"), "Exit code 127", true)
	data, err := os.ReadFile(filepath.Join(snaps, "cinch-bash.sh"))
	if err != nil || strings.Contains(string(data), "noise") {
		t.Errorf("the snapshot is %q, %v", data, err)
	}
	if es, _ := os.ReadDir(snaps); len(es) != 1 {
		t.Errorf("%d files are left beside the snapshot", len(es))
	}
}

// A profile is not run again within the hour unless its files changed.
func TestProfileIsRemembered(t *testing.T) {
	t.Parallel()
	snaps, home := t.TempDir(), t.TempDir()
	session := func(rc string) *lab {
		return newLab(t, func(o *Options) {
			file := filepath.Join(home, ".bashrc")
			if old, _ := os.ReadFile(file); string(old) != rc {
				if err := os.WriteFile(file, []byte(rc), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := append(o.Env(), "HOME="+home)
			o.Env, o.SnapshotDir = func() []string { return env }, snaps
		})
	}
	runs := func() int {
		data, _ := os.ReadFile(filepath.Join(home, "runs"))
		return strings.Count(string(data), "x")
	}
	for i, step := range []struct {
		rc, want string
		runs     int
		old      bool
	}{
		{"echo x >>~/runs; alias hello='echo hi'\nPATH=$PATH:/opt/mine\n", "hi /opt/mine", 1, false},
		{"echo x >>~/runs; alias hello='echo hi'\nPATH=$PATH:/opt/mine\n", "hi /opt/mine", 1, false},
		{"echo x >>~/runs; alias hello='echo hello'\nPATH=$PATH:/opt/mine\n", "hello /opt/mine", 2, false},
		{"echo x >>~/runs; alias hello='echo hello'\nPATH=$PATH:/opt/mine\n", "hello /opt/mine", 3, true},
	} {
		if step.old {
			then := time.Now().Add(-2 * profileFresh)
			if err := os.Chtimes(filepath.Join(snaps, "cinch-bash.sh"), then, then); err != nil {
				t.Fatal(err)
			}
		}
		l := session(step.rc).patient()
		l.says(l.bash(`hello "${PATH##*:}"`), step.want, false)
		if got := runs(); got != step.runs {
			t.Errorf("step %d: the profile ran %d times, want %d", i, got, step.runs)
		}
	}
}

func TestNoProfile(t *testing.T) {
	t.Parallel()
	l := withProfile(t, t.TempDir(), nil).patient()
	if got := l.tools["Bash"].(*bash).profile.snap; got != "" {
		t.Errorf("there is nothing to source, but %s is", got)
	}
	l.says(l.bash("echo on"), "on", false)
}

// A profile that hangs costs the first command a second, and what an earlier
// session learned is used.
func TestSlowProfile(t *testing.T) {
	t.Parallel()
	snaps := t.TempDir()
	withProfile(t, snaps, map[string]string{".bashrc": "alias hello='echo hi'\n"}).patient()
	slow := withProfile(t, snaps, map[string]string{".bashrc": "alias hello='echo new'\nsleep 300\n"})
	begin := time.Now()
	slow.says(slow.bash("hello"), "hi", false)
	if took := time.Since(begin); took < profileWait || took > profileWait+5*time.Second {
		t.Errorf("the first command took %v", took)
	}
	begin = time.Now()
	slow.says(slow.bash("hello"), "hi", false)
	if took := time.Since(begin); took > profileWait {
		t.Errorf("the second command took %v", took)
	}
}

func TestSnapshotCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := withProfile(t, filepath.Join(file, "dir"), map[string]string{".bashrc": "alias hello='echo hi'\n"})
	l.says(l.bash("echo on"), "on", false)
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte("#cinch path\n/a:/b\n#cinch functions\nf () \n{ \n    :\n}\n#cinch options\nglobstar       \ton\n#cinch aliases\nalias a='b'\nalias rm='rm -i'\n"))
	f.Add([]byte("no sections"))
	f.Fuzz(func(t *testing.T, dump []byte) {
		if code, _ := snapshot(dump); len(code) > maxSnapshot {
			t.Errorf("%d bytes", len(code))
		}
	})
}

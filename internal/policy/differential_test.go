package policy

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Seeds of the checked corpus, and how many commands each gives.
var corpusSeeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

const perSeed = 2500

var corpus = flag.Int("corpus", 400, "commands of TestDifferential, taken from the beginning of each seed; 20000 is all of them")

// A ruleSet and what it promises: none of the marked programs in never runs,
// and if still is set no file is created or changed.
type ruleSet struct {
	name  string
	cfg   Config
	never []string
	still bool
}

func ruleSets(t testing.TB) []ruleSet {
	all := []string{"touch", "rm", "curl", "evil", "tee", "lured"}
	sets := []ruleSet{
		{"read-only", Config{}, all, true},
		{"two rules", Config{Rules: rules("allow Bash(npm *)", "allow Bash(make:*)")}, all, true},
		{"prefixes", Config{Rules: rules("allow Bash(git *)", "allow Bash(grep:*)", "allow Bash(cat *)", "allow Bash(make *)", "allow Bash(printf *)", "allow Bash(test *)", "allow Bash([ *)")}, all, true},
		{"allow all but two", Config{Rules: rules("allow Bash", "deny Bash(rm *)", "deny Bash(touch:*)")}, []string{"rm", "touch"}, false},
		{"bypass but two", Config{Mode: agent.ModeBypass, Rules: rules("deny Bash(evil *)", "ask Bash(curl *)")}, []string{"evil", "curl"}, false},
		{"edits", Config{Mode: agent.ModeAcceptEdits, Rules: rules("allow Bash(echo *)")}, []string{"curl", "evil", "tee", "lured"}, false},
		{"plan", Config{Mode: agent.ModePlan, Rules: rules("allow Bash")}, all, true},
		{"dontAsk", Config{Mode: agent.ModeDontAsk, Rules: rules("allow Bash(ls *)", "allow Bash(make all)")}, all, true},
	}
	for i := range sets {
		c := &sets[i].cfg
		c.Cwd, c.Home = "/w", "/h"
		c.Exported = func(name string) bool { return slices.Contains([]string{"PATH", "HOME", "PWD"}, name) }
	}
	return sets
}

// TestDifferential runs in a real bash whatever a rule set allows of a
// generated corpus, and looks at which programs were started. All of the
// corpus takes a minute or more and gains nothing from the race detector: CI
// runs it by itself, with -corpus 20000. CORPUS_SEEDS names other seeds.
func TestDifferential(t *testing.T) {
	for _, program := range []string{"bwrap", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is needed: %v", program, err)
			}
			t.Skipf("%s is missing", program)
		}
	}
	start := time.Now()
	seeds := corpusSeeds
	if s := os.Getenv("CORPUS_SEEDS"); s != "" {
		seeds = nil
		for f := range strings.FieldsSeq(s) {
			n, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, n)
		}
	}
	each := min(perSeed, (*corpus+len(seeds)-1)/len(seeds))
	sets := ruleSets(t)
	policies := make([]*Policy, len(sets))
	for i, s := range sets {
		policies[i] = must(t, s.cfg)
	}
	// by holds for each command the sets that allow it.
	by := map[string][]int{}
	total := 0
	for _, seed := range seeds {
		g := newGenerator(seed)
		for range each {
			command := g.next()
			total++
			if _, seen := by[command]; seen || strings.ContainsRune(command, 0) {
				continue
			}
			by[command] = nil
			for i, p := range policies {
				if p.Decide(bash(command)).Verdict == agent.Allow {
					by[command] = append(by[command], i)
				}
			}
		}
	}
	// What must leave no file comes first, so that what others leave running
	// in the background is not laid to its charge.
	var run, rest []string
	for _, c := range slices.Sorted(maps.Keys(by)) {
		switch {
		case len(by[c]) == 0:
		case slices.ContainsFunc(by[c], func(i int) bool { return sets[i].still }):
			run = append(run, c)
		default:
			rest = append(rest, c)
		}
	}
	still := len(run)
	run = append(run, rest...)
	judged := time.Since(start)
	const workers = 2
	var wg sync.WaitGroup
	var marks atomic.Int64
	share := func(list []string, w int) []string { return list[len(list)*w/workers : len(list)*(w+1)/workers] }
	for w := range workers {
		wg.Go(func() {
			part := slices.Concat(share(run[:still], w), share(run[still:], w))
			for c, traces := range execute(t, part) {
				check(t, sets, by[c], c, traces)
				marks.Add(1)
			}
		})
	}
	wg.Wait()
	// Some sets allow marked programs: without their marks nothing is proved.
	if marks.Load() < int64(len(run)/10) {
		t.Errorf("only %d of %d commands left a mark: the marked programs do not work", marks.Load(), len(run))
	}
	counts := make([]int, len(sets))
	for _, allowed := range by {
		for _, i := range allowed {
			counts[i]++
		}
	}
	for i, s := range sets {
		t.Logf("%-18s allows %d", s.name, counts[i])
		if counts[i] < each*len(seeds)/20 {
			t.Errorf("%s allows only %d: the corpus proves little about it", s.name, counts[i])
		}
	}
	t.Logf("%d commands, %d rule sets, %d distinct, %d run in bash, %d left a mark; judged in %v, all in %v", total, len(sets), len(by), len(run), marks.Load(), judged.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
}

func check(t *testing.T, sets []ruleSet, allowed []int, command string, traces []string) {
	t.Helper()
	for _, i := range allowed {
		for _, trace := range traces {
			name, _, _ := strings.Cut(trace, " ")
			if slices.Contains(sets[i].never, name) || name == "DIRTY" && sets[i].still {
				t.Errorf("%s allows %q, which left: %s", sets[i].name, command, trace)
			}
		}
	}
}

// driver runs each command of /in in a subshell, every eighth in a bash of
// its own, and notes the marked programs that ran and files that came to be.
// Other programs are functions, which costs no process, or not there at all;
// they succeed or fail by chance, so that both sides of && are reached.
const driver = `
set -m
command_not_found_handle() { return $((RANDOM % 4 == 0)); }
for p in npm git make grep ls head wc cut cat; do eval "$p() { return \$((RANDOM % 4 == 0)); }"; export -f $p; done
export -f command_not_found_handle
export PATH=/stub:/real HOME=/h FUNCNEST=4 # a function may call itself, in a pipe even
unset p
watch() { # ends what does not end by itself
	local now last same=0
	while /real/sleep 1; do
		local all=(/proc/[0-9]*)
		((${#all[@]} > 300)) && echo "too many processes" >/log/ran && kill -9 -1
		read -r now </log/now
		if [[ $now == "$last" ]]; then ((++same >= 3)) && kill -9 -- -${now#* }; else same=0; fi
		last=$now
	done
}
echo - >/log/now
watch >/dev/null 2>&1 &
disown
_old=()
_n=0
while IFS= read -r -d '' _c; do
	cd /w
	(
		ulimit -t 2 -f 100
		export CASE=$_n
		((_n % 8)) || exec bash -c "$_c"
		eval "$_c"
	) </dev/null >/dev/null 2>&1 &
	_pid=$!
	echo "$_n $_pid" >/log/now
	wait $_pid
	# What it left in the background has had its time when 20 more are done.
	kill -9 -- ${_old[_n % 20]:+-${_old[_n % 20]}}
	_old[_n % 20]=$_pid
	shopt -s nullglob dotglob
	_f=(/w/* /w/sub/* /h/*)
	_a=
	IFS= read -r -d '' _a <a.txt
	shopt -u nullglob dotglob
	if [[ ${_f[*]} != '/w/a.txt /w/sub /w/sub/x' || $_a != $'x y\n' ]]; then
		printf '%s\0' "$_n DIRTY ${_f[*]}" >>/log/report
		/real/rm -rf -- "${_f[@]}"
		/real/mkdir -p /w/sub; echo x y >/w/a.txt; echo >/w/sub/x
	fi
	_n=$((_n + 1))
done </in 2>/dev/null
times >/log/times
echo $_n >/log/done
`

// execute runs commands and returns what each left, for those that left anything.
func execute(t *testing.T, commands []string) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	mk := func(name, content string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode)); err != nil {
			t.Error(err)
		}
	}
	mk("in", strings.Join(commands, "\x00")+"\x00", 0o644)
	mk("driver", driver, 0o644)
	mk("log/ran", "", 0o666)
	mk("w/a.txt", "x y\n", 0o644)
	mk("w/sub/x", "\n", 0o644)
	mk("h/.keep", "", 0o644)
	if err := os.Remove(filepath.Join(dir, "h/.keep")); err != nil {
		t.Error(err)
	}
	// They are started thousands of times, and dash starts faster.
	small, err := exec.LookPath("dash")
	if err != nil {
		small = "bash"
	}
	small = "/real/" + filepath.Base(small)
	for _, name := range []string{"touch", "rm", "curl", "evil", "tee"} {
		mk("stub/"+name, "#!"+small+"\necho \"${CASE:--} ${0##*/}\" >>/log/ran\n", 0o755)
	}
	for _, name := range []string{"sort", "find", "sed", "env", "xargs", "nice"} {
		mk("trap/"+name, "#!"+small+"\necho \"${CASE:--} lured to ${0##*/}\" >>/log/ran\n", 0o755)
	}
	args := []string{"--unshare-all", "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
		"--ro-bind", "/usr/lib", "/usr/lib", "--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64", "--ro-bind-try", "/usr/lib64", "/usr/lib64",
		"--ro-bind", dir + "/in", "/in", "--ro-bind", dir + "/driver", "/driver", "--ro-bind", dir + "/stub", "/stub", "--ro-bind", dir + "/trap", "/trap",
		"--bind", dir + "/log", "/log", "--bind", dir + "/w", "/w", "--bind", dir + "/h", "/h", "--clearenv", "--chdir", "/w"}
	for _, real := range []string{"bash", filepath.Base(small), "find", "xargs", "env", "timeout", "nice", "nohup", "stdbuf", "sed", "sort", "rm", "mkdir", "sleep"} {
		path, err := exec.LookPath(real)
		if err != nil {
			t.Errorf("the corpus needs %s: %v", real, err)
			return nil
		}
		args = append(args, "--ro-bind", path, "/real/"+real)
	}
	// sh is bash too: it heeds FUNCNEST.
	args = append(args, "--symlink", "bash", "/real/sh", "/real/bash", "/driver")
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bwrap", args...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("running the corpus: %v\n%.2000s", err, stderr.String())
		return nil
	}
	if times, err := os.ReadFile(filepath.Join(dir, "log/times")); err == nil {
		t.Logf("%d commands: processor time of the driver and its children, user and system: %s", len(commands), strings.Join(strings.Fields(string(times)), " "))
	}
	done, err := os.ReadFile(filepath.Join(dir, "log/done"))
	if n := strings.TrimSpace(string(done)); err != nil || n != fmt.Sprint(len(commands)) {
		t.Errorf("the driver did %s of %d commands: %v\n%.2000s", n, len(commands), err, stderr.String())
		return nil
	}
	out := map[string][]string{}
	for _, file := range []struct{ name, sep string }{{"report", "\x00"}, {"ran", "\n"}} {
		report, err := os.ReadFile(filepath.Join(dir, "log", file.name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		for entry := range strings.SplitSeq(strings.TrimSuffix(string(report), file.sep), file.sep) {
			number, trace, ok := strings.Cut(entry, " ")
			i, err := strconv.Atoi(number)
			switch {
			case err == nil && i < len(commands):
				out[commands[i]] = append(out[commands[i]], trace)
			case ok:
				// A program that ran without its environment cannot be
				// traced to its command. No command that is allowed does that.
				t.Errorf("an untraced program ran: %q", entry)
			}
		}
	}
	return out
}

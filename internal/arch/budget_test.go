package arch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// What a start may cost. The measured figures are in docs/bench.md;
// a bar stands a little above them, so that what breaks it was a decision.
const (
	maxBinary     = 25 << 20  // bytes, stripped
	maxInitBytes  = 380 << 10 // allocated before main, all packages
	maxInitAllocs = 2500
	maxOwnInit    = 4 << 10 // by any one package of ours
)

// unwanted are libraries too big or too slow to start for this binary.
var unwanted = []string{
	"google.golang.org/api", "google.golang.org/grpc", "go.opencensus.io",
	"github.com/aws/aws-sdk-go", "github.com/nats-io", "github.com/alecthomas/chroma", "github.com/yuin/goldmark",
}

// release builds the binary as make build does, once.
var release = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cinch-arch-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "cinch")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, module+"cmd/cinch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := release(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func built(t *testing.T) string {
	t.Helper()
	dir, err := release()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "cinch")
}

func TestBinarySize(t *testing.T) {
	t.Parallel()
	fi, err := os.Stat(built(t))
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() > maxBinary {
		t.Errorf("the stripped binary has %d bytes, may have %d", fi.Size(), maxBinary)
	}
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)

// Before main nothing is worth allocating: each page that is touched there is
// paid for by every start.
func TestInitAllocations(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(built(t), "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	lines := initLine.FindAllStringSubmatch(stderr.String(), -1)
	if len(lines) < 20 {
		t.Fatalf("got no trace of inits:\n%s", &stderr)
	}
	bytes, allocs := 0, 0
	for _, l := range lines {
		b, _ := strconv.Atoi(l[2])
		a, _ := strconv.Atoi(l[3])
		bytes, allocs = bytes+b, allocs+a
		if strings.HasPrefix(l[1], module) && b > maxOwnInit {
			t.Errorf("%s allocates %d bytes before main, may %d", l[1], b, maxOwnInit)
		}
	}
	if bytes > maxInitBytes || allocs > maxInitAllocs {
		t.Errorf("before main %d bytes are allocated in %d pieces, may be %d in %d\n%s", bytes, allocs, maxInitBytes, maxInitAllocs, &stderr)
	}
}

// deps.txt names every package that is linked and why, so that a new one is
// seen in review.
func TestDependencyList(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+"cmd/cinch")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var linked []string
	for p := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(p, module) {
			continue
		}
		linked = append(linked, p)
		for _, u := range unwanted {
			if p == u || strings.HasPrefix(p, u) {
				t.Errorf("%s is linked: it is on the list of what must not be", p)
			}
		}
	}
	slices.Sort(linked)
	data, err := os.ReadFile("deps.txt")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.TrimSpace(why) == "" {
			t.Errorf("deps.txt: %s has no reason", name)
		}
		listed = append(listed, name)
	}
	for _, p := range linked {
		if !slices.Contains(listed, p) {
			t.Errorf("%s is linked but not in deps.txt: add it with its reason", p)
		}
	}
	for _, p := range listed {
		if !slices.Contains(linked, p) {
			t.Errorf("deps.txt: %s is not linked any more", p)
		}
	}
	if !slices.IsSorted(listed) {
		t.Errorf("deps.txt is not sorted")
	}
}

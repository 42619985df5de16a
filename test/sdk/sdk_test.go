//go:build unix

// Package sdk drives cinch with the published Agent SDK for TypeScript: one
// program a case, in cases, each with a home, a project and an offline model
// of its own. host.mjs is what the programs share.
package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// patience is how long one program may take. They need about a second each;
// a machine that does much else takes longer.
const patience = 90 * time.Second

var cinch string // the program under test

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if bin := os.Getenv("CINCH_BIN"); bin != "" {
			var err error
			if cinch, err = filepath.Abs(bin); err == nil {
				_, err = os.Stat(cinch)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "CINCH_BIN:", err)
				return 1
			}
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "cinch-sdk")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		cinch = filepath.Join(dir, "cinch")
		if out, err := exec.Command("go", "build", "-o", cinch, "../../cmd/cinch").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building cinch: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// need ends the test if node or the SDK is missing: with an error where CI
// is set, so that nothing passes unseen.
func need(t *testing.T) {
	t.Helper()
	stop := t.Skip
	if os.Getenv("CI") != "" {
		stop = t.Fatal
	}
	if _, err := exec.LookPath("node"); err != nil {
		stop("node is missing: run scripts/setup.sh")
	}
	if _, err := os.Stat("node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs"); err != nil {
		stop("the Agent SDK is missing: run scripts/setup.sh")
	}
}

func TestSDK(t *testing.T) {
	t.Parallel()
	need(t)
	files, err := filepath.Glob("cases/*.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("got the cases %q, %v", files, err)
	}
	places := make(chan struct{}, 2)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".mjs"), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			run(t, file)
		})
	}
}

// run runs one program to its end.
func run(t *testing.T, file string) {
	model := &host{}
	model.srv = modelserver.New(modelserver.Options{Brain: model.answer})
	srv := httptest.NewServer(model.routes())
	defer srv.Close()
	defer model.srv.Close()

	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(dir, "home"), filepath.Join(dir, "project")
	for _, d := range []string{home, project, filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", file)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + filepath.Join(dir, "tmp"), "SHELL=/bin/bash", "LANG=C.UTF-8",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid",
		"ANTHROPIC_BASE_URL=" + srv.URL, "ANTHROPIC_API_KEY=test-key", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CINCH=" + cinch, "PROJECT=" + project,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// What the program started ends with it, however it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("it did not end within %v", patience)
	} else if err != nil {
		t.Errorf("it ended with %v", err)
	}
	if v := model.srv.Violations(); len(v) > 0 && !model.expected() {
		t.Errorf("the model was asked what the API refuses:\n%s", strings.Join(v, "\n"))
	}
	if t.Failed() {
		t.Logf("%s", &out)
	}
}

// A host is the model of one program, and what the program asks it.
type host struct {
	srv   *modelserver.Server
	mu    sync.Mutex
	brain modelserver.Brain
	bad   bool // the program expects requests that the API refuses
}

func (h *host) answer(ctx context.Context, r *modelserver.Request) (modelserver.Script, error) {
	h.mu.Lock()
	brain := h.brain
	h.mu.Unlock()
	if brain == nil {
		return modelserver.Script{}, fmt.Errorf("request %d came before the program said what to answer", r.N)
	}
	return brain(ctx, r)
}

func (h *host) expected() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bad
}

func (h *host) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h.srv)
	// The scripts that answer from now on.
	mux.HandleFunc("POST /case/answers", func(w http.ResponseWriter, r *http.Request) {
		var texts []string
		if err := json.NewDecoder(r.Body).Decode(&texts); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		scripts := make([]modelserver.Script, len(texts))
		for i, text := range texts {
			var err error
			if scripts[i], err = modelserver.ParseScript(text); err != nil {
				http.Error(w, fmt.Sprintf("answer %d: %v", i, err), http.StatusBadRequest)
				return
			}
		}
		h.mu.Lock()
		h.brain = modelserver.Play(scripts...)
		h.mu.Unlock()
	})
	mux.HandleFunc("POST /case/violations", func(http.ResponseWriter, *http.Request) {
		h.mu.Lock()
		h.bad = true
		h.mu.Unlock()
	})
	// The message requests so far.
	mux.HandleFunc("GET /case/requests", func(w http.ResponseWriter, _ *http.Request) {
		type row struct {
			Headers map[string]string `json:"headers"`
			Body    json.RawMessage   `json:"body"`
			Status  int               `json:"status"`
			Left    bool              `json:"left"`
			Usage   modelserver.Usage `json:"usage"`
			At      int64             `json:"at"`
		}
		rows := []row{}
		for _, x := range h.srv.Exchanges() {
			if x.N < 0 {
				continue
			}
			head := map[string]string{}
			for k, v := range x.Header {
				head[strings.ToLower(k)] = strings.Join(v, ", ")
			}
			rows = append(rows, row{head, x.Body, x.Status, x.Left, x.Usage, x.At.UnixMilli()})
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(rows)
	})
	return mux
}

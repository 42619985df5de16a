//go:build unix

package sdk

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

// A program by others that adds up what transcripts cost reads ours, and
// comes to the sum that we tell.
func TestCcusageReadsOurTranscripts(t *testing.T) {
	t.Parallel()
	need(t)
	var scripts []modelserver.Script
	for _, text := range []string{
		"usage in=100 read=2000 write=300 out=40\ntext Two blocks, one message.\ntool t1 Bash {\"command\":\"echo hi\"}",
		"repeat\nusage in=7 read=2300 write=11 out=5\ntext Done.",
	} {
		s, err := modelserver.ParseScript(text)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, s)
	}
	srv := modelserver.New(modelserver.Options{Brain: modelserver.Play(scripts...)})
	url, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	home, project := t.TempDir(), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := func(v any, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = project, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=test-key"}, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
		}
		if err := json.Unmarshal(out, v); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
		}
	}
	var result struct {
		Cost float64 `json:"total_cost_usd"`
	}
	run(&result, cinch, "-p", "hi", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash", "--output-format", "json")
	type totals struct {
		In    int     `json:"inputTokens"`
		Out   int     `json:"outputTokens"`
		Write int     `json:"cacheCreationTokens"`
		Read  int     `json:"cacheReadTokens"`
		Cost  float64 `json:"totalCost"`
	}
	var got struct {
		Totals totals `json:"totals"`
	}
	run(&got, here(t, "node_modules/.bin/ccusage"), "session", "--json", "--offline")
	if want := (totals{107, 45, 311, 4300, result.Cost}); got.Totals != want {
		t.Errorf("got %+v, want %+v", got.Totals, want)
	}
}

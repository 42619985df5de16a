package cli

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/recording"
)

// A replay is a recorded run: what it was started with, and what answers.
type replay struct {
	Args   []string `json:"args"`
	Prompt string   `json:"prompt"`

	rec *recording.Recording
	url string
}

// replayRun runs a recorded session once more without a network: the model's
// answers and the tools' results come from the recording.
func (p *program) replayRun(args []string) int {
	if len(args) != 1 {
		return p.fail(usagef("usage: cinch replay FILE"))
	}
	f, err := os.Open(args[0])
	if err != nil {
		return p.fail(err)
	}
	rec, err := recording.Read(f)
	f.Close()
	if err != nil {
		return p.fail(fmt.Errorf("reading the recording: %w", err))
	}
	var r replay
	if err := json.Unmarshal(rec.Session, &r); err != nil {
		return p.fail(fmt.Errorf("reading the recording: its head is not of 'cinch --record': %w", err))
	}
	o, err := parse(r.Args)
	if err != nil {
		return p.fail(err)
	}
	if o.last("input-format") == "stream-json" {
		return p.fail(fmt.Errorf("a run that a host has driven cannot be run once more without it"))
	}
	url, stop, err := rec.Listen()
	if err != nil {
		return p.fail(err)
	}
	defer stop()
	r.rec, r.url = rec, url
	p.replay = &r
	code := p.converse(o)
	if rec.Torn {
		fmt.Fprintln(p.stderr, "cinch: the recording was cut off; its last exchange is left out")
	}
	for _, d := range rec.Drift() {
		fmt.Fprintln(p.stderr, "cinch: not as recorded: "+termsafe.String(d))
	}
	return code
}

package window_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
)

var roomy = compact.Limits{Window: 200_000, Threshold: 167_000, Output: 20_000, Auto: true}

func TestManualCompaction(t *testing.T) {
	t.Parallel()
	var moments []string
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("<analysis>x</analysis><summary>THE-SUMMARY</summary>", "reply")}, limits: roomy,
		change: func(o *compact.Options) {
			o.Hook = func(_ context.Context, m agent.Moment) agent.HookResult {
				moments = append(moments, fmt.Sprint(m.Event, " ", m.Match, " ", m.Fields["custom_instructions"], m.Fields["compact_summary"]))
				return agent.HookResult{}
			}
			o.Restore = func(context.Context, []agent.Message) compact.Restored {
				return compact.Restored{Opening: []agent.Block{&agent.Text{Text: "RULES", Note: "instructions"}}, Behind: []agent.Block{text(" "), text("FILES")}}
			}
			o.Instructions = func() string { return "STANDING-WISH" }
			o.Transcript = "/t.jsonl"
		}})
	for _, p := range []string{"remember ALPHA", "remember BETA"} {
		if _, err := r.turn(p); err != nil {
			t.Fatal(err)
		}
	}
	done := r.e.Compact(t.Context(), r.h, "FOCUS-WORD")
	if done.Err != "" || done.Summary != "THE-SUMMARY" || done.Trigger != "manual" || done.Pre <= 0 {
		t.Fatalf("got %+v", done)
	}
	r.h = done.History
	if _, err := r.turn("what do you know?"); err != nil {
		t.Fatal(err)
	}
	all := r.all()
	for _, want := range []string{"RULES", "THE-SUMMARY", "FILES", "remember BETA", "/t.jsonl", "what do you know?"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%d times %q in %s", strings.Count(all, want), want, all)
		}
	}
	if strings.Contains(all, "ALPHA") || len(r.h) != 4 || r.h[1].Role != agent.Assistant {
		t.Errorf("the old history is still there: %s", all)
	}
	ask := r.srv.Requests()[2].Last()
	if !strings.Contains(ask, "FOCUS-WORD") || !strings.Contains(ask, "STANDING-WISH") {
		t.Errorf("the request was %q", ask)
	}
	if want := []string{"PreCompact manual FOCUS-WORD<nil>", "PostCompact manual <nil>THE-SUMMARY"}; !slices.Equal(moments, want) {
		t.Errorf("hooks %q", moments)
	}
	// Its answer is counted by the provider that it is asked of, and only there.
	if len(r.emitted) != 1 {
		t.Errorf("emitted %+v", r.emitted)
	}
	if u := r.srv.Exchanges()[2].Usage; u.Read == 0 {
		t.Errorf("the summary did not read the cache: %+v", u)
	}
	r.fine()
}

func TestSummaryAnswers(t *testing.T) {
	t.Parallel()
	script := func(src string) modelserver.Script {
		s, err := modelserver.ParseScript(src)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	long := strings.Repeat("and on and on ", 3000)
	for name, tc := range map[string]struct {
		scripts   []modelserver.Script
		want, err string
		asked     int
	}{
		"at once":           {[]modelserver.Script{answer("<summary> S </summary>")}, "S", "", 1},
		"cut off":           {[]modelserver.Script{answer("<summary>S and")}, "S and", "", 1},
		"mentions the tag":  {[]modelserver.Script{answer("I will write <summary> now <summary>S</summary>")}, "S", "", 1},
		"tools first":       {[]modelserver.Script{script("tool t1 Bash {\"command\":\"ls\"}"), answer("<summary>S</summary>")}, "S", "", 2},
		"no tags, twice":    {[]modelserver.Script{answer("first"), answer("second")}, "second", "", 2},
		"empty tags, twice": {[]modelserver.Script{answer("<summary></summary>"), script("tool t2 Bash {}")}, "", "no summary when asked twice", 2},
		"refused":           {[]modelserver.Script{script("text no\nstop refusal")}, "", "refused", 1},
		"too long":          {[]modelserver.Script{answer("<summary>" + long + "</summary>")}, "", "longer than what it would replace", 1},
		"status 401":        {[]modelserver.Script{script("status 401 - authentication_error no such key")}, "", "no such key", 1},
		"stream error":      {[]modelserver.Script{script("text <summary>half\nerror overloaded_error busy")}, "half", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{Options: modelserver.Options{Brain: modelserver.Play(tc.scripts...)}, limits: roomy})
			r.say(agent.User, "", text("do it"))
			r.say(agent.Assistant, "m1", text("done"))
			r.say(agent.User, "", text("more"))
			r.say(agent.Assistant, "m2", text("done too"))
			done := r.e.Compact(t.Context(), r.h, "")
			if done.Summary != tc.want || (tc.err == "") != (done.Err == "") || !strings.Contains(done.Err, tc.err) {
				t.Errorf("got summary %q, error %q", done.Summary, done.Err)
			}
			if done.Err != "" && &done.History[0] != &r.h[0] {
				t.Error("the history changed on failure")
			}
			if n := len(r.srv.Requests()); n != tc.asked {
				t.Errorf("asked %d times", n)
			}
			r.fine()
		})
	}
}

func TestNothingToCompact(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("", "")}, limits: roomy, change: func(o *compact.Options) {
		o.Hook = func(context.Context, agent.Moment) agent.HookResult {
			return agent.HookResult{Block: true, Reason: "not now"}
		}
	}})
	if done := r.e.Compact(t.Context(), nil, ""); !strings.Contains(done.Err, "nothing to summarise") {
		t.Errorf("got %+v", done)
	}
	r.say(agent.User, "", text("hi"))
	r.say(agent.Assistant, "m", text("ho"))
	if done := r.e.Compact(t.Context(), r.h, ""); !strings.Contains(done.Err, "not now") {
		t.Errorf("got %+v", done)
	}
	r.e.SetLimits(compact.Limits{Off: true})
	if done := r.e.Compact(t.Context(), r.h, ""); !strings.Contains(done.Err, "DISABLE_COMPACT") {
		t.Errorf("got %+v", done)
	}
	if n := len(r.srv.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A summary that hangs ends with the clock or the context.
func TestSummaryStops(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ *modelserver.Request) (modelserver.Script, error) {
		return modelserver.Script{Steps: []modelserver.Step{modelserver.Text{Text: "x"}, modelserver.Hang{}}}, nil
	}
	r := newRig(t, setup{Options: modelserver.Options{Brain: hang}, limits: roomy, change: func(o *compact.Options) { o.Clock = 50e6 }})
	r.say(agent.User, "", text("hi"))
	r.say(agent.Assistant, "m", text("ho"))
	if done := r.e.Compact(t.Context(), r.h, ""); !strings.Contains(done.Err, "longer than 50ms") {
		t.Errorf("got %q", done.Err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the person stopped it"))
	if done := r.e.Compact(ctx, r.h, ""); !strings.Contains(done.Err, "the person stopped it") {
		t.Errorf("got %q", done.Err)
	}
}

// long returns a history of n turns with results of about 4 KB.
func (r *rig) long(n int) {
	for i := range n {
		id := fmt.Sprint("t", i)
		r.say(agent.User, "", text("prompt "+id))
		in, _ := json.Marshal(map[string]string{"command": "run " + id})
		r.say(agent.Assistant, "m"+id, &agent.ToolUse{ID: agent.CallID(id), Name: "Bash", Input: in})
		r.say(agent.User, "", &agent.ToolResult{ID: agent.CallID(id), Blocks: []agent.Block{text(strings.Repeat("output "+id+"\n", 300))}})
		r.say(agent.Assistant, "n"+id, text("answer "+id+" "+strings.Repeat("word ", 60)))
	}
}

func TestAutoClearsThenSummarises(t *testing.T) {
	t.Parallel()
	limits := compact.Limits{Window: 40_000, Threshold: 32_000, Output: 4000, Auto: true}
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("<summary>SUM</summary>", "reply"), Window: 40_000}, limits: limits})
	r.long(30) // about 30,000 tokens: below
	before := r.all()
	if out := r.e.Fit(t.Context(), r.h); out.Changed {
		t.Errorf("changed without need: %+v", out.Cuts)
	}
	r.long(6)
	out := r.e.Fit(t.Context(), r.h)
	if !out.Changed || out.Compacted != nil || r.e.Tokens(out.History) > 24_000 {
		t.Errorf("want room by the stages, got %d tokens, %+v", r.e.Tokens(out.History), out.Compacted)
	}
	for i, m := range out.History[len(out.History)-8:] {
		if string(m.Wire) != string(r.h[len(r.h)-8+i].Wire) {
			t.Errorf("a recent message changed: %s", m.Wire)
		}
	}
	// Words are left, and they alone are too many.
	r.h = nil
	for range 300 {
		r.say(agent.User, "", text(strings.Repeat("a wish ", 30)))
		r.say(agent.Assistant, r.id(), text(strings.Repeat("an answer ", 30)))
	}
	r.say(agent.User, "", text("LAST"))
	out = r.e.Fit(t.Context(), r.h)
	if out.Compacted == nil || out.Compacted.Err != "" || out.Compacted.Trigger != "auto" {
		t.Fatalf("want a summary, got %+v", out.Compacted)
	}
	r.h = out.History
	if all := r.all(); !strings.Contains(all, "SUM") || strings.Count(all, "LAST") != 1 || len(r.h) != 3 {
		t.Errorf("got %d messages: %s", len(r.h), all)
	}
	if before == "" || len(r.emitted) == 0 {
		t.Error("nothing told")
	}
	r.fine()
}

func TestTooLongIsRecoveredOnce(t *testing.T) {
	t.Parallel()
	// The limits are wrong: the window is a fifth of what we believe.
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("<summary>SUM</summary>", "reply"), Window: 30_000}, limits: roomy})
	for range 400 {
		r.say(agent.User, "", text(strings.Repeat("a wish ", 30)))
		r.say(agent.Assistant, r.id(), text(strings.Repeat("an answer ", 30)))
	}
	got, err := r.turn("now?")
	if err != nil || got != "reply" {
		t.Fatalf("got %q, %v; notes %q", got, err, r.notes)
	}
	if len(r.done) != 1 || r.done[0].Err != "" || r.e.Limits().Window > 30_000 {
		t.Errorf("compacted %+v, limits %+v", r.done, r.e.Limits())
	}
	if n := len(r.srv.Requests()); n < 5 || n > 24 {
		t.Errorf("%d requests for a summary in parts", n)
	}
	err = &agent.ModelError{Fault: agent.FaultTooLong, Message: "prompt is too long: 50000 tokens > 30000 maximum"}
	if _, ok := r.e.Recover(t.Context(), r.h, err); !ok {
		t.Error("not recovered after an answer came")
	}
	if out, ok := r.e.Recover(t.Context(), r.h, err); ok || !strings.Contains(out.Note, "still too long") {
		t.Errorf("recovered twice in a row: %q", out.Note)
	}
}

// Without a model at hand a history that must shrink shrinks all the same.
func TestOutline(t *testing.T) {
	t.Parallel()
	dead := func(context.Context, *modelserver.Request) (modelserver.Script, error) {
		return modelserver.ParseScript("status 403 - permission_error no")
	}
	r := newRig(t, setup{Options: modelserver.Options{Brain: dead}, limits: compact.Limits{Window: 40_000, Threshold: 32_000, Output: 4000, Auto: true}})
	for i := range 300 {
		r.say(agent.User, "", text(fmt.Sprint("wish ", i, strings.Repeat(" please", 60))))
		r.say(agent.Assistant, r.id(), text("answer "+fmt.Sprint(i)))
	}
	r.say(agent.User, "", text("LAST"))
	out := r.e.Fit(t.Context(), r.h)
	if out.Compacted == nil || out.Compacted.Err != "" || !strings.Contains(out.Compacted.Summary, "No model was at hand") {
		t.Fatalf("got %+v", out.Compacted)
	}
	if s := out.Compacted.Summary; !strings.Contains(s, "wish 298") || !strings.Contains(s, "earlier ones are left out") || len(s) > 40_000 {
		t.Errorf("%d bytes: %.200s", len(s), s)
	}
	if n := r.e.Tokens(out.History); n > 32_000 {
		t.Errorf("%d tokens are left", n)
	}
}

// When a window fills up again at once, no more summaries are made, and the
// person is told why.
func TestThrash(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("<summary>SUM</summary>", "reply")},
		limits: compact.Limits{Window: 40_000, Threshold: 32_000, Output: 4000, Auto: true}})
	for range 8 {
		if _, err := r.turn(strings.Repeat("go on ", 16_000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.done); n > 5 {
		t.Errorf("%d summaries", n)
	}
	if n := len(r.notes); n == 0 || !strings.Contains(r.notes[n-1], "filled up again at once") {
		t.Errorf("notes %q", r.notes)
	}
}

func TestBadImageIsRepaired(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("", "reply")}, limits: roomy})
	r.say(agent.User, "", text(""), text("look"), &agent.Image{MediaType: "image/png", Data: picture(t)})
	r.say(agent.Assistant, "m", text("nice"), &agent.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{}`)})
	r.say(agent.User, "", &agent.ToolResult{ID: "t1", Blocks: []agent.Block{text("here"), &agent.Image{MediaType: "image/png", Data: "PGh0bWw+"}}})
	r.say(agent.Assistant, "n", text("odd"))
	got, err := r.turn("and this?")
	if err != nil || got != "reply" {
		t.Fatalf("got %q, %v, notes %q", got, err, r.notes)
	}
	all := r.all()
	if !strings.Contains(all, "could not process image") || strings.Contains(all, "PGh0bWw+") || !strings.Contains(all, picture(t)) {
		t.Errorf("history %s", all)
	}
	if n := len(r.srv.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	if len(r.notes) != 1 || !strings.Contains(r.notes[0], "an image (image/png)") {
		t.Errorf("notes %q", r.notes)
	}
	if _, err := r.turn("again"); err != nil || len(r.srv.Requests()) != 3 {
		t.Errorf("the repair did not last: %v", err)
	}
}

func TestTooLargeDropsMedia(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("", "reply"), MaxBody: 40_000}, limits: roomy})
	pad := picture(t) + strings.Repeat("A", 4000-len(picture(t))%4000)
	for i := range 20 {
		r.say(agent.User, "", text(fmt.Sprint("look ", i)), &agent.Image{MediaType: "image/png", Data: pad})
		r.say(agent.Assistant, r.id(), text("ok"))
	}
	got, err := r.turn("and?")
	if err != nil || got != "reply" {
		t.Fatalf("got %q, %v, notes %q", got, err, r.notes)
	}
	var sizes []int
	for _, e := range r.srv.Exchanges() {
		sizes = append(sizes, len(e.Body))
	}
	all := r.all()
	if !strings.Contains(all, "taken out to keep the request small") || !strings.Contains(string(r.h[38].Wire), pad) || strings.Contains(string(r.h[0].Wire), pad) {
		t.Errorf("the oldest should go first; requests of %v bytes", sizes)
	}
	if len(r.notes) == 0 || !strings.Contains(r.notes[0], "too large") || !strings.Contains(r.notes[0], "an image (image/png) in message 1") {
		t.Errorf("notes %q", r.notes)
	}
}

// The count limits hold before anything is sent.
func TestMediaLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{Options: modelserver.Options{Brain: brain("", "reply")}, limits: roomy})
	img := picture(t)
	for range 60 {
		r.say(agent.User, "", text("look"), &agent.Image{MediaType: "image/png", Data: img}, &agent.Image{MediaType: "image/png", Data: img})
		r.say(agent.Assistant, r.id(), text("ok"))
	}
	if _, err := r.turn("and?"); err != nil {
		t.Fatal(err)
	}
	last := r.srv.Requests()[0]
	n := 0
	for _, m := range last.Messages {
		for _, b := range m.Blocks {
			if b.Type == "image" {
				n++
			}
		}
	}
	if n != 80 {
		t.Errorf("%d images were sent", n)
	}
	r.fine()
}

package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// A desk is everything around a gate: hooks, a person, a classifier.
type desk struct {
	mode     agent.Mode
	rules    []policy.Rule
	pre      *agent.HookResult                                  // PreToolUse
	request  func(context.Context) agent.HookResult             // PermissionRequest
	person   func(context.Context, agent.Question) agent.Answer // nil: nobody
	classify func() (agent.Decision, error)
	denied   agent.HookResult
	saveErr  error

	mu     sync.Mutex
	asked  []agent.Question
	hooked []string
	saved  []agent.PermissionUpdate
	events []agent.Body
	modes  []agent.Mode
}

func (d *desk) gate(t *testing.T) *Gate {
	t.Helper()
	p, problems := policy.New(policy.Config{Mode: d.mode, Rules: d.rules, Cwd: "/w", Home: "/home/u"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o := Options{
		Policy: p,
		Inspect: func(name string, in json.RawMessage) (agent.Effects, error) {
			c := call(name, "")
			c.Input = in
			return inspect(c)
		},
		Save: func(_ context.Context, u agent.PermissionUpdate) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.saved = append(d.saved, u)
			return d.saveErr
		},
		ModeChanged: func(m agent.Mode) { d.modes = append(d.modes, m) },
		Emit: func(b agent.Body) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.events = append(d.events, b)
		},
		Hooks: func(ctx context.Context, m agent.Moment) agent.HookResult {
			d.mu.Lock()
			d.hooked = append(d.hooked, m.Event)
			d.mu.Unlock()
			switch {
			case m.Event == "PreToolUse" && d.pre != nil:
				return *d.pre
			case m.Event == "PermissionRequest" && d.request != nil:
				return d.request(ctx)
			case m.Event == "PermissionDenied":
				return d.denied
			}
			return agent.HookResult{}
		},
	}
	if d.person != nil {
		o.Ask = func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			d.mu.Lock()
			d.asked = append(d.asked, q)
			d.mu.Unlock()
			a := d.person(ctx, q)
			if cause := context.Cause(ctx); cause != nil {
				return agent.Answer{}, cause
			}
			return a, nil
		}
	}
	if d.classify != nil {
		o.Classify = func(context.Context, agent.Call, string) (agent.Decision, error) { return d.classify() }
	}
	return New(o)
}

// call is a call of Bash with a command, or of a file tool with a path.
func call(name, arg string) agent.Call {
	c := agent.Call{ID: "toolu_1", Name: name}
	key := "command"
	if name != "Bash" {
		key = "file_path"
	}
	c.Input, _ = json.Marshal(map[string]string{key: arg})
	c.Effects, _ = inspect(c)
	return c
}

func inspect(c agent.Call) (agent.Effects, error) {
	var in struct {
		Command string `json:"command"`
		Path    string `json:"file_path"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return agent.Effects{}, err
	}
	switch {
	case in.Command != "":
		return agent.Effects{Subjects: []agent.Subject{{Kind: agent.SubjectCommand, Value: in.Command}}}, nil
	case in.Path != "":
		return agent.Effects{Subjects: []agent.Subject{{Kind: agent.SubjectWrite, Value: in.Path}}}, nil
	}
	return agent.Effects{}, errors.New("neither command nor file_path")
}

func allow(text string) policy.Rule {
	return policy.Rule{Verdict: agent.Allow, Layer: policy.LayerUser, Text: text}
}
func deny(text string) policy.Rule {
	return policy.Rule{Verdict: agent.Deny, Layer: policy.LayerProject, Text: text}
}
func ask(text string) policy.Rule { return policy.Rule{Layer: policy.LayerUser, Text: text} }

func says(v agent.Verdict) func(context.Context, agent.Question) agent.Answer {
	return func(_ context.Context, q agent.Question) agent.Answer {
		return agent.Answer{ID: q.ID, Decision: agent.Decision{Verdict: v, Reason: "so be it"}}
	}
}

func hook(v agent.Verdict) *agent.HookResult {
	return &agent.HookResult{Decision: &agent.Decision{Verdict: v, Why: agent.WhyHook, By: "hook:h", Reason: "hook says"}}
}

func hookLater(v agent.Verdict) func(context.Context) agent.HookResult {
	return func(context.Context) agent.HookResult { return *hook(v) }
}

func silent(ctx context.Context) agent.HookResult { return agent.HookResult{} }

func TestDecide(t *testing.T) {
	t.Parallel()
	make1 := call("Bash", "make")
	for _, c := range []struct {
		name  string
		desk  *desk
		call  agent.Call
		want  agent.Verdict
		why   agent.Why
		asked int
	}{
		{"rule allows", &desk{rules: []policy.Rule{allow("Bash(make)")}, person: says(agent.Deny)}, make1, agent.Allow, agent.WhyRule, 0},
		{"rule denies", &desk{rules: []policy.Rule{deny("Bash(make)")}, person: says(agent.Allow)}, make1, agent.Deny, agent.WhyRule, 0},
		{"person allows", &desk{person: says(agent.Allow)}, make1, agent.Allow, agent.WhyUser, 1},
		{"person denies", &desk{person: says(agent.Deny)}, make1, agent.Deny, agent.WhyUser, 1},
		{"hook denies what a rule allows", &desk{rules: []policy.Rule{allow("Bash")}, pre: hook(agent.Deny)}, make1, agent.Deny, agent.WhyHook, 0},
		{"hook allows what no rule does", &desk{pre: hook(agent.Allow), person: says(agent.Deny)}, make1, agent.Allow, agent.WhyHook, 0},
		{"hook does not beat deny", &desk{rules: []policy.Rule{deny("Bash(make)")}, pre: hook(agent.Allow)}, make1, agent.Deny, agent.WhyRule, 0},
		{"hook does not beat ask", &desk{rules: []policy.Rule{ask("Bash(make)")}, pre: hook(agent.Allow), person: says(agent.Deny)}, make1, agent.Deny, agent.WhyUser, 1},
		{"hook does not beat the guard", &desk{pre: hook(agent.Allow), person: says(agent.Deny)}, call("Bash", "rm -rf ~"), agent.Deny, agent.WhyUser, 1},
		{"hook does not beat a protected path", &desk{pre: hook(agent.Allow), person: says(agent.Deny)}, call("Write", "/w/.git/config"), agent.Deny, agent.WhyUser, 1},
		{"hook does not edit in plan mode", &desk{mode: agent.ModePlan, pre: hook(agent.Allow), person: says(agent.Deny)}, call("Write", "/w/a"), agent.Deny, agent.WhyUser, 1},
		{"hook allows in dontAsk", &desk{mode: agent.ModeDontAsk, pre: hook(agent.Allow)}, make1, agent.Allow, agent.WhyHook, 0},
		{"hook asks though a rule allows", &desk{rules: []policy.Rule{allow("Bash")}, pre: hook(agent.Ask), person: says(agent.Allow)}, make1, agent.Allow, agent.WhyUser, 1},
		{"hook asks in bypass", &desk{mode: agent.ModeBypass, pre: hook(agent.Ask), person: says(agent.Deny)}, make1, agent.Deny, agent.WhyUser, 1},
		{"hook asks in dontAsk", &desk{mode: agent.ModeDontAsk, rules: []policy.Rule{allow("Bash")}, pre: hook(agent.Ask)}, make1, agent.Deny, agent.WhyHook, 0},
		{"hook defers", &desk{pre: hook(agent.Defer)}, make1, agent.Defer, agent.WhyHook, 0},
		{"hook blocks", &desk{rules: []policy.Rule{allow("Bash")}, pre: &agent.HookResult{Block: true, Reason: "no"}}, make1, agent.Deny, agent.WhyHook, 0},
		{"request hook allows", &desk{request: hookLater(agent.Allow)}, make1, agent.Allow, agent.WhyHook, 0},
		{"request hook denies", &desk{request: hookLater(agent.Deny)}, make1, agent.Deny, agent.WhyHook, 0},
		{"request hook has no opinion", &desk{request: silent, person: says(agent.Allow)}, make1, agent.Allow, agent.WhyUser, 1},
		{"request hook does not beat ask", &desk{rules: []policy.Rule{ask("Bash(make)")}, request: hookLater(agent.Allow)}, make1, agent.Deny, agent.WhyRule, 0},
		{"request hook does not beat the guard", &desk{mode: agent.ModeBypass, request: hookLater(agent.Allow)}, call("Bash", "rm -rf /opt/x/y"), agent.Deny, agent.WhySafety, 0},
		{"nobody", &desk{}, make1, agent.Deny, agent.WhyOther, 0},
		{"classifier allows", &desk{mode: agent.ModeAuto, classify: func() (agent.Decision, error) { return agent.Decision{Verdict: agent.Allow}, nil }, person: says(agent.Deny)}, make1, agent.Allow, agent.WhyClassifier, 0},
		{"classifier denies", &desk{mode: agent.ModeAuto, classify: func() (agent.Decision, error) { return agent.Decision{Verdict: agent.Deny, Reason: "no"}, nil }, person: says(agent.Allow)}, make1, agent.Deny, agent.WhyClassifier, 0},
		{"classifier leaves it", &desk{mode: agent.ModeAuto, classify: func() (agent.Decision, error) { return agent.Decision{}, nil }, person: says(agent.Allow)}, make1, agent.Allow, agent.WhyUser, 1},
		{"classifier unavailable", &desk{mode: agent.ModeAuto, classify: func() (agent.Decision, error) { return agent.Decision{}, errors.New("down") }, person: says(agent.Allow)}, make1, agent.Allow, agent.WhyUser, 1},
		{"classifier unavailable, nobody", &desk{mode: agent.ModeAuto}, make1, agent.Deny, agent.WhyClassifier, 0},
		{"classifier is not asked about ask rules", &desk{mode: agent.ModeAuto, rules: []policy.Rule{ask("Bash(make)")}, classify: func() (agent.Decision, error) { return agent.Decision{Verdict: agent.Allow}, nil }, person: says(agent.Deny)}, make1, agent.Deny, agent.WhyUser, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.desk
			got, err := d.gate(t).Decide(t.Context(), c.call)
			if err != nil || got.Verdict != c.want || got.Why != c.why || len(d.asked) != c.asked {
				t.Errorf("got %s (%s, %q), asked %d, %v; want %s (%s), asked %d", got.Verdict, got.Why, got.Reason, len(d.asked), err, c.want, c.why, c.asked)
			}
			if got.Verdict == agent.Deny && got.Reason == "" {
				t.Error("denied without a word")
			}
		})
	}
}

func TestChangedInput(t *testing.T) {
	t.Parallel()
	changed := func(in string) *agent.HookResult {
		return &agent.HookResult{Decision: &agent.Decision{Verdict: agent.Allow, Input: json.RawMessage(in)}, Input: json.RawMessage(in)}
	}
	by := func(in string) func(context.Context, agent.Question) agent.Answer {
		return func(_ context.Context, q agent.Question) agent.Answer {
			return agent.Answer{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow, Why: agent.WhyPrompt, Input: json.RawMessage(in)}}
		}
	}
	for _, c := range []struct {
		name  string
		desk  *desk
		want  agent.Verdict
		input string
	}{
		{"a hook's input is judged", &desk{rules: []policy.Rule{deny("Bash(rm *)")}, pre: changed(`{"command":"rm x"}`)}, agent.Deny, ""},
		{"a hook's input runs", &desk{pre: changed(`{"command":"make b"}`)}, agent.Allow, `{"command":"make b"}`},
		{"a hook's input without an opinion", &desk{rules: []policy.Rule{allow("Bash(make b)")}, pre: &agent.HookResult{Input: json.RawMessage(`{"command":"make b"}`)}}, agent.Allow, `{"command":"make b"}`},
		{"a hook's input that does not fit", &desk{rules: []policy.Rule{allow("Bash")}, pre: changed(`{"x":1}`)}, agent.Deny, ""},
		{"a host's input runs", &desk{person: by(`{"command":"touch y"}`)}, agent.Allow, `{"command":"touch y"}`},
		{"a host's input is judged", &desk{rules: []policy.Rule{deny("Bash(rm *)")}, person: by(`{"command":"rm x"}`)}, agent.Deny, ""},
		{"a host's input that does not fit", &desk{person: by(`[]`)}, agent.Deny, ""},
		{"a request hook's input hits an ask rule", &desk{rules: []policy.Rule{ask("Bash(rm *)")}, request: func(context.Context) agent.HookResult { return *changed(`{"command":"rm x"}`) }}, agent.Deny, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.desk.gate(t).Decide(t.Context(), call("Bash", "make a"))
			if err != nil || got.Verdict != c.want || string(got.Input) != c.input {
				t.Errorf("got %s with %s (%q), %v; want %s with %s", got.Verdict, got.Input, got.Reason, err, c.want, c.input)
			}
		})
	}
}

// A grant spares the next question, is saved where it belongs, and does not
// reach further than it says.
func TestGrants(t *testing.T) {
	t.Parallel()
	d := &desk{person: func(_ context.Context, q agent.Question) agent.Answer {
		a := agent.Decision{Verdict: agent.Allow}
		if q.Call.Effects.Subjects[0].Value == "mkdir made1" {
			a.Updates = []agent.PermissionUpdate{
				{Type: "addRules", Behavior: "allow", Destination: "session", Rules: []agent.RuleText{{Tool: "Bash", Content: "mkdir:*"}}},
				{Type: "addRules", Behavior: "allow", Destination: "localSettings", Rules: []agent.RuleText{{Tool: "Bash", Content: "make"}}},
				{Type: "setMode", Mode: agent.ModeAcceptEdits, Destination: "session"},
			}
		} else {
			a.Verdict = agent.Deny
		}
		return agent.Answer{ID: q.ID, Decision: a}
	}}
	g := d.gate(t)
	var got []string
	for _, command := range []string{"mkdir made1", "mkdir made2", "make", "curl x"} {
		r, err := g.Decide(t.Context(), call("Bash", command))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Verdict.String())
	}
	if want := []string{"allow", "allow", "allow", "deny"}; !slices.Equal(got, want) || len(d.asked) != 2 {
		t.Errorf("got %v with %d questions, want %v with 2", got, len(d.asked), want)
	}
	if len(d.saved) != 1 || d.saved[0].Destination != "localSettings" {
		t.Errorf("saved %v", d.saved)
	}
	if !slices.Equal(d.modes, []agent.Mode{agent.ModeAcceptEdits}) || g.Policy().Mode() != agent.ModeAcceptEdits {
		t.Errorf("modes %v", d.modes)
	}
	if len(d.asked[0].Decision.Suggest) == 0 || d.asked[0].Decision.Reason == "" || d.asked[0].Kind != agent.AskPermission {
		t.Errorf("the question says too little: %+v", d.asked[0].Decision)
	}
	if n := g.Denials(); len(n) != 1 || n[0].Tool != "Bash" || string(n[0].Input) != `{"command":"curl x"}` {
		t.Errorf("denials %v", n)
	}
}

func TestGrantThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	d := &desk{saveErr: errors.New("disk full"), person: func(_ context.Context, q agent.Question) agent.Answer {
		return agent.Answer{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow, Updates: q.Decision.Suggest}}
	}}
	g := d.gate(t)
	for range 2 {
		if r, err := g.Decide(t.Context(), call("Bash", "make")); err != nil || r.Verdict != agent.Allow {
			t.Fatal(r, err)
		}
	}
	if len(d.asked) != 1 {
		t.Errorf("asked %d times: the grant does not hold for the session", len(d.asked))
	}
	noted := ""
	for _, e := range d.events {
		if n, ok := e.(agent.Noted); ok {
			noted = n.Text
		}
	}
	if !strings.Contains(noted, "disk full") || !strings.Contains(noted, "holds for this session") {
		t.Errorf("noted %q", noted)
	}
}

// Both are asked at the same time; the first who decides is heard, the other
// is called off, and nobody is left waiting.
func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	for _, hookFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			called := 0
			wait := func(ctx context.Context, first bool) bool {
				if first {
					return true
				}
				<-ctx.Done()
				called++
				return false
			}
			d := &desk{
				request: func(ctx context.Context) agent.HookResult {
					if !wait(ctx, hookFirst) {
						return agent.HookResult{}
					}
					return *hook(agent.Deny)
				},
				person: func(ctx context.Context, q agent.Question) agent.Answer {
					wait(ctx, !hookFirst)
					return agent.Answer{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow}}
				},
			}
			got, err := d.gate(t).Decide(t.Context(), call("Bash", "make"))
			want := agent.Allow
			if hookFirst {
				want = agent.Deny
			}
			if err != nil || got.Verdict != want || called != 1 {
				t.Errorf("hook first %v: got %s, %v; %d called off", hookFirst, got.Verdict, err, called)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		d := &desk{request: silent, person: func(ctx context.Context, q agent.Question) agent.Answer {
			<-ctx.Done()
			return agent.Answer{}
		}}
		g := d.gate(t)
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			wg.Go(func() { _, errs[i] = g.Decide(ctx, call("Bash", "make")) })
		}
		synctest.Wait()
		if len(d.asked) != len(errs) {
			t.Errorf("%d of %d questions are open at once", len(d.asked), len(errs))
		}
		ids := map[string]bool{}
		for _, q := range d.asked {
			ids[q.ID] = true
		}
		if len(ids) != len(errs) {
			t.Errorf("%d questions share %d ids", len(errs), len(ids))
		}
		cancel(why)
		wg.Wait()
		for i, err := range errs {
			if !errors.Is(err, why) {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}

// The classifier is not trusted for ever: after three denials in a row a
// person is asked, and an answer sets the count back.
func TestClassifierTires(t *testing.T) {
	t.Parallel()
	n := 0
	d := &desk{mode: agent.ModeAuto, person: says(agent.Allow), denied: agent.HookResult{Extra: map[string]json.RawMessage{"retry": json.RawMessage("true")}},
		classify: func() (agent.Decision, error) { n++; return agent.Decision{Verdict: agent.Deny, Reason: "odd"}, nil }}
	g := d.gate(t)
	var got []string
	for range 5 {
		r, err := g.Decide(t.Context(), call("Bash", "make"))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Verdict.String())
		if r.Verdict == agent.Deny && (!strings.Contains(r.Reason, "Blocked by classifier") || !strings.Contains(r.Reason, "tried again")) {
			t.Errorf("reason %q", r.Reason)
		}
	}
	if want := []string{"deny", "deny", "deny", "allow", "deny"}; !slices.Equal(got, want) || n != 4 {
		t.Errorf("got %v after %d classifications, want %v after 4", got, n, want)
	}
	if k := len(slices.DeleteFunc(d.hooked, func(e string) bool { return e != "PermissionDenied" })); k != 4 {
		t.Errorf("PermissionDenied ran %d times", k)
	}
}

// In plan mode the classifier judges shell commands, and those only, if the
// session has been in auto mode and the settings do not say otherwise.
func TestClassifierInPlanMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		been, not bool
		call      agent.Call
		want      agent.Verdict
		asked     int
	}{
		{"never in auto mode", false, false, call("Bash", "make a"), agent.Deny, 1},
		{"been in auto mode", true, false, call("Bash", "make a"), agent.Allow, 0},
		{"switched off", true, true, call("Bash", "make a"), agent.Deny, 1},
		{"a file", true, false, call("Write", "/w/a"), agent.Deny, 1},
		{"what cannot be undone", true, false, call("Bash", "rm -rf /opt/x"), agent.Deny, 1},
	} {
		d := &desk{person: says(agent.Deny), classify: func() (agent.Decision, error) { return agent.Decision{Verdict: agent.Allow}, nil }}
		g := d.gate(t)
		g.o.NotInPlan = c.not
		if c.been {
			if err := g.SetMode(agent.ModeAuto); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.SetMode(agent.ModePlan); err != nil {
			t.Fatal(err)
		}
		got, err := g.Decide(t.Context(), c.call)
		if err != nil || got.Verdict != c.want || len(d.asked) != c.asked {
			t.Errorf("%s: got %s (%s), asked %d, %v", c.name, got.Verdict, got.Reason, len(d.asked), err)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		desk *desk
		call agent.Call
		has  []string
	}{
		{"bash", &desk{}, call("Bash", "make a"), []string{"This command requires approval.", "No one can be asked", "Bash(make a)"}},
		{"write", &desk{}, call("Write", "/w/x"), []string{"No permission to write /w/x.", "No one can be asked"}},
		{"tool", &desk{}, agent.Call{Name: "mcp__a__b"}, []string{"No permission to use mcp__a__b.", "the rule mcp__a__b would allow it"}},
		{"rule", &desk{rules: []policy.Rule{deny("Bash(make *)")}}, call("Bash", "make a"), []string{"This command was not run.", "denied by the rule Bash(make *) (project)"}},
		{"dontAsk", &desk{mode: agent.ModeDontAsk}, call("Bash", "make a"), []string{"dontAsk", "Bash(make a)"}},
		{"plan", &desk{mode: agent.ModePlan}, call("Write", "/w/x"), []string{"Plan mode", "ExitPlanMode"}},
		{"auto", &desk{mode: agent.ModeAuto}, call("Bash", "make a"), []string{"classifier of auto mode is unavailable"}},
		{"guard", &desk{mode: agent.ModeBypass}, call("Bash", "rm -rf ~"), []string{"home directory", "No one can be asked"}},
		{"parts", &desk{}, call("Bash", "ls && make a && curl x"), []string{"Bash(make a), Bash(curl x)"}},
	} {
		got, err := c.desk.gate(t).Decide(t.Context(), c.call)
		if err != nil || got.Verdict != agent.Deny {
			t.Errorf("%s: %s, %v", c.name, got.Verdict, err)
		}
		for _, h := range c.has {
			if !strings.Contains(got.Reason, h) {
				t.Errorf("%s: %q lacks %q", c.name, got.Reason, h)
			}
		}
	}
}

func TestModesOfTheirOwn(t *testing.T) {
	t.Parallel()
	d := &desk{}
	g := d.gate(t)
	r, err := g.In(agent.ModeAcceptEdits)(t.Context(), call("Write", "/w/x"))
	if err != nil || r.Verdict != agent.Allow || g.Policy().Mode() != agent.ModeDefault {
		t.Errorf("got %s, %v; the gate's mode is %s", r.Verdict, err, g.Policy().Mode())
	}
	if err := g.SetMode(agent.ModeBypass); err == nil {
		t.Error("bypass was switched on")
	}
	if err := g.SetMode(agent.ModePlan); err != nil || g.Policy().Mode() != agent.ModePlan {
		t.Errorf("mode %s, %v", g.Policy().Mode(), err)
	}
}

func TestConcurrentGrants(t *testing.T) {
	t.Parallel()
	g := (&desk{}).gate(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			u := agent.PermissionUpdate{Type: "addRules", Behavior: "allow", Destination: "session", Rules: []agent.RuleText{{Tool: "Bash", Content: "make " + strings.Repeat("x", i+1)}}}
			if err := g.Grant(t.Context(), []agent.PermissionUpdate{u}); err != nil {
				t.Error(err)
			}
			if r, err := g.Decide(t.Context(), call("Bash", "make "+strings.Repeat("x", i+1))); err != nil || r.Verdict != agent.Allow {
				t.Error(r, err)
			}
		})
	}
	wg.Wait()
	if n := len(g.Policy().Rules()); n != 50 {
		t.Errorf("%d of 50 grants survived", n)
	}
}

package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// set makes a Set of a hooks block that must be whole.
func set(t *testing.T, o Options, block string) *Set {
	t.Helper()
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Project == "" {
		o.Project = t.TempDir()
	}
	s := New(o)
	t.Cleanup(s.Close)
	hs, ps := Parse(json.RawMessage(block), Handler{Source: "project", File: "settings.json"})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	s.Replace("project", hs)
	return s
}

// one is a hooks block with one command.
func block(event, command, more string) string {
	c, err := json.Marshal(command)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{%q:[{"hooks":[{"type":"command","command":%s%s}]}]}`, event, c, more)
}

func pre() agent.Moment {
	return agent.Moment{Event: "PreToolUse", Match: "Bash", Call: &agent.Call{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}
}

func TestCommandAnswers(t *testing.T) {
	t.Parallel()
	deny := func(reason string) *agent.Decision {
		return &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, Reason: reason}
	}
	for _, tt := range []struct {
		name    string
		m       agent.Moment
		command string
		more    string
		want    agent.HookResult
	}{
		{name: "silence", m: pre(), command: "exit 0"},
		{name: "text is nothing there", m: pre(), command: "echo hello"},
		{name: "exit 2 denies", m: pre(), command: "echo no way >&2; exit 2", want: agent.HookResult{
			Block: true, Reason: "PreToolUse:Bash hook error: [echo no way >&2; exit 2]: no way",
			Decision: deny("PreToolUse:Bash hook error: [echo no way >&2; exit 2]: no way")}},
		{name: "exit 2 beats allow", m: pre(), command: `echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'; echo stop >&2; exit 2`, want: agent.HookResult{
			Block:    true,
			Reason:   `PreToolUse:Bash hook error: [echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'; echo stop >&2; exit 2]: stop`,
			Decision: deny(`PreToolUse:Bash hook error: [echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'; echo stop >&2; exit 2]: stop`)}},
		{name: "exit 2 with a JSON denial keeps its words", m: pre(), command: `echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"why"}}'; exit 2`, want: agent.HookResult{
			Block: true, Decision: deny("PreToolUse:Bash hook error: why")}},
		{name: "exit 1 is told and no more", m: pre(), command: "echo oops >&2; echo more >&2; exit 1", want: agent.HookResult{
			Notes: []string{"PreToolUse hook [echo oops >&2; echo more >&2; exit 1]: exit code 1: oops"}}},
		{name: "exit 1 with JSON decides", m: pre(), command: `echo '{"decision":"block","reason":"r"}'; exit 1`, want: agent.HookResult{
			Block: true, Reason: "PreToolUse:Bash hook error: r", Decision: deny("PreToolUse:Bash hook error: r")}},
		{name: "exit 1 of a policy hook", m: pre(), command: "exit 1", more: `,"failClosed":true`, want: agent.HookResult{
			Block: true, Reason: "The policy hook [exit 1] failed with exit code 1.", Decision: deny("The policy hook [exit 1] failed with exit code 1."),
			Notes: []string{"PreToolUse hook [exit 1]: exit code 1: "}}},
		{name: "allow with input", m: pre(), command: `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"pwd"}}}'`, want: agent.HookResult{
			Input:    json.RawMessage(`{"command":"pwd"}`),
			Decision: &agent.Decision{Verdict: agent.Allow, Why: agent.WhyHook, Input: json.RawMessage(`{"command":"pwd"}`)}}},
		{name: "an answer for another event", m: pre(), command: `echo '{"hookSpecificOutput":{"hookEventName":"Stop","permissionDecision":"allow"}}'`, want: agent.HookResult{
			Notes: []string{`PreToolUse hook [echo '{"hookSpecificOutput":{"hookEventName":"Stop","permissionDecision":"allow"}}']: its answer is for Stop`}}},
		{name: "broken JSON is text", m: agent.Moment{Event: "UserPromptSubmit"}, command: `echo '{"a"'`, want: agent.HookResult{Context: []string{`{"a"`}}},
		{name: "text is context", m: agent.Moment{Event: "SessionStart", Match: "startup"}, command: "echo remember", want: agent.HookResult{Context: []string{"remember"}}},
		{name: "continue false", m: agent.Moment{Event: "PostToolBatch"}, command: `echo '{"continue":false,"stopReason":"enough","systemMessage":"seen"}'`, want: agent.HookResult{
			Halt: true, Reason: "enough", Notes: []string{"seen"}}},
		{name: "stop feedback", m: agent.Moment{Event: "Stop"}, command: "echo go on >&2; exit 2", want: agent.HookResult{
			Block: true, Reason: "Stop hook feedback:\n[echo go on >&2; exit 2]: go on"}},
		{name: "exit 2 where nothing can be blocked", m: agent.Moment{Event: "SessionStart", Match: "startup"}, command: "echo hm >&2; exit 2", want: agent.HookResult{
			Notes: []string{"SessionStart hook [echo hm >&2; exit 2]: hm"}}},
		{name: "request", m: agent.Moment{Event: "PermissionRequest", Match: "Bash", Call: pre().Call}, command: `echo '{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"m","interrupt":true}}}'`, want: agent.HookResult{
			Decision: &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook, Reason: "m", Interrupt: true}}},
		{name: "exit 2 of a request", m: agent.Moment{Event: "PermissionRequest", Match: "Bash", Call: pre().Call}, command: "exit 2"},
		{name: "output", m: agent.Moment{Event: "PostToolUse", Match: "Bash", Call: pre().Call}, command: `echo '{"hookSpecificOutput":{"additionalContext":"c","updatedToolOutput":"new"}}'`, want: agent.HookResult{
			Context: []string{"c"}, Output: json.RawMessage(`"new"`)}},
		{name: "no such program", m: pre(), command: "/nowhere/x", more: `,"args":[]`, want: agent.HookResult{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, Options{}, block(tt.m.Event, tt.command, tt.more))
			got := s.Run(t.Context(), tt.m)
			if got.Ran != 1 {
				t.Fatalf("ran %d hooks", got.Ran)
			}
			if tt.name == "no such program" {
				if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "gave no answer") || got.Block {
					t.Errorf("got %+v", got)
				}
				return
			}
			got.Ran, got.Extra = 0, nil
			if got.Decision != nil {
				if got.Decision.By != "hook:"+tt.command && tt.want.Decision.Verdict != agent.Deny {
					t.Errorf("by %q", got.Decision.By)
				}
				got.Decision.By = ""
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A directory may be called anything: no hook of it runs something else.
func TestNamesAreNeverShellText(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "My Proj's \"$x\" & (1)\n`touch pwned`$(touch pwned)")
	if err := os.MkdirAll(filepath.Join(dir, "hooks"), 0o777); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "hooks", "show.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s|' \"$@\"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, command, args, want string }{
		{"outside of quotes", `${CLAUDE_PROJECT_DIR}/hooks/show.sh a ${CLAUDE_PROJECT_DIR} b`, "", "a|" + dir + "|b|"},
		{"inside of quotes", `"${CLAUDE_PROJECT_DIR}/hooks/show.sh" "x ${CLAUDE_PROJECT_DIR}"`, "", "x " + dir + "|"},
		{"a variable", `"$CLAUDE_PROJECT_DIR"/hooks/show.sh 1`, "", "1|"},
		{"in a substitution in quotes", `"${CLAUDE_PROJECT_DIR}/hooks/show.sh" "$("${CLAUDE_PROJECT_DIR}"/hooks/show.sh ${CLAUDE_PROJECT_DIR})"`, "", dir + "||"},
		{"for another shell", `sh -c 'exec "${CLAUDE_PROJECT_DIR}/hooks/show.sh" y'`, "", "y|"},
		{"no shell", `${CLAUDE_PROJECT_DIR}/hooks/show.sh`, `,"args":["${CLAUDE_PROJECT_DIR}","$HOME"]`, dir + "|$HOME|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, Options{Project: dir}, block("UserPromptSubmit", tt.command, tt.args))
			got := s.Run(t.Context(), agent.Moment{Event: "UserPromptSubmit"})
			if d := cmp.Diff(agent.HookResult{Context: []string{tt.want}, Ran: 1}, got); d != "" {
				t.Error(d)
			}
		})
	}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(dir, "pwned")); len(left) > 0 {
			t.Error("a command in a directory's name was run")
		}
	})
}

func TestReferences(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"D": "/d"}
	for _, tt := range []struct{ in, shell, want string }{
		{`${D}/x ${E}`, "", `"${D}"/x ${E}`},
		{`"${D}/x"`, "", `"${D}/x"`},
		{`'${D}'`, "", `'${D}'`},
		{`"$(cat "${D}/x" ${D})" ${D}`, "", `"$(cat "${D}/x" "${D}")" "${D}"`},
		{`\"${D}`, "", `\""${D}"`},
		{`"a'b" ${D}`, "", `"a'b" "${D}"`},
		{`(cd ${D}) ; "(" ${D}`, "", `(cd "${D}") ; "(" "${D}"`},
		{`${D}\x`, "powershell", `${env:D}\x`},
		{`${D`, "", `${D`},
	} {
		if got := references(tt.in, vars, tt.shell); got != tt.want {
			t.Errorf("references(%q): got %q want %q", tt.in, got, tt.want)
		}
	}
}

func TestInputAndEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := set(t, Options{
		Project: dir, EnvFile: func(event string) string { return "/env/" + event },
		Common: func(agent.Moment) map[string]any { return map[string]any{"session_id": "s", "cwd": dir} },
	}, block("PostToolUse", `cat >input; printf '%s %s' "$CLAUDE_ENV_FILE" "$PWD" >env`, ""))
	m := agent.Moment{Event: "PostToolUse", Match: "Bash", Call: pre().Call, Agent: "a1", AgentType: "Explore", Fields: map[string]any{"duration_ms": 3}}
	if r := s.Run(t.Context(), m); len(r.Notes) > 0 {
		t.Fatal(r.Notes)
	}
	in, err := os.ReadFile(filepath.Join(dir, "input"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := json.Unmarshal(in, &got); err != nil {
		t.Fatal(err)
	}
	want = map[string]any{
		"session_id": "s", "cwd": dir, "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"},
		"tool_use_id": "t1", "agent_id": "a1", "agent_type": "Explore", "duration_ms": 3.0,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if real, _ := filepath.EvalSymlinks(dir); err != nil || string(env) != "/env/PostToolUse "+dir && string(env) != "/env/PostToolUse "+real {
		t.Errorf("got %q, %v", env, err)
	}
}

// A hook that hangs, floods or leaves children behind costs its clock and no more.
func TestBadHooksAreBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command, more string
		max                 time.Duration
		note                string
		blocks              bool
	}{
		{name: "hangs", command: "sleep 60", more: `,"timeout":0.3`, max: 8 * time.Second, note: "it took longer than 300ms"},
		{name: "hangs and is policy", command: "sleep 60", more: `,"timeout":0.3,"failClosed":true`, max: 8 * time.Second, note: "it took longer than 300ms", blocks: true},
		{name: "ignores the signal", command: "trap '' TERM INT HUP; while :; do sleep 1; done", more: `,"timeout":0.3`, max: 15 * time.Second, note: "it took longer than 300ms"},
		{name: "floods", command: "head -c 1000000000 /dev/zero", max: 60 * time.Second, note: "it wrote more than"},
		{name: "floods the error stream", command: "head -c 100000000 /dev/zero >&2; exit 1", max: 60 * time.Second, note: "it wrote more than"},
		{name: "floods with a decision", command: `printf '{"decision":"approve","reason":"'; head -c 20000000 /dev/zero | tr '\0' x; printf '"}'`, more: `,"failClosed":true`, max: 60 * time.Second, note: "its answer is too long", blocks: true},
		{name: "dies", command: "kill -9 $$", max: 8 * time.Second, note: "exit code"},
		{name: "does not read", command: "exec <&-; exit 0", max: 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, Options{}, block("PreToolUse", tt.command, tt.more))
			m := pre()
			m.Fields = map[string]any{"big": strings.Repeat("x", 1<<20)}
			began := time.Now()
			r := s.Run(t.Context(), m)
			if took := time.Since(began); took > tt.max {
				t.Errorf("it took %s", took)
			}
			if all := strings.Join(r.Notes, "\n"); !strings.Contains(all, tt.note) || tt.note == "" && all != "" {
				t.Errorf("got notes %.300q, want %q", all, tt.note)
			}
			if r.Block != tt.blocks || (r.Decision != nil && r.Decision.Verdict == agent.Deny) != tt.blocks {
				t.Errorf("got %+v, %+v, want a block: %t", r.Block, r.Decision, tt.blocks)
			}
		})
	}
}

func TestLeftChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := set(t, Options{Project: dir}, block("Stop", "(sleep 300; echo late) & echo $! >pid; exit 0", `,"timeout":2`))
	began := time.Now()
	s.Run(t.Context(), agent.Moment{Event: "Stop"})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a child that holds the pipe kept the hook for %s", took)
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var head, body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		head, body = r.Header.Get("X-Key")+"|"+r.Header.Get("Content-Type"), string(b)
		mu.Unlock()
		switch r.URL.Path {
		case "/deny":
			io.WriteString(w, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"remote"}}`)
		case "/text":
			io.WriteString(w, "denied")
		case "/broken":
			io.WriteString(w, `{"decision":`)
		case "/500":
			w.WriteHeader(500)
			io.WriteString(w, `{"decision":"block"}`)
		case "/hang":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(srv.Close)
	post := func(ctx context.Context, url string, header map[string]string, body []byte) (int, []byte, error) {
		req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(string(body)))
		if err != nil {
			return 0, nil, err
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			return 0, nil, err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return res.StatusCode, b, err
	}
	for _, tt := range []struct {
		path, note string
		deny       bool
	}{
		{path: "/empty"},
		{path: "/deny", deny: true},
		{path: "/text", note: "not a JSON object"},
		{path: "/broken", note: "not a JSON object"},
		{path: "/500", note: "status 500"},
		{path: "/hang", note: "it took longer than 200ms"},
		{path: "/forbidden", note: "allowedHttpHookUrls"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			s := set(t, Options{
				Post: post, Env: []string{"KEY=k1", "SECRET=s1"},
				AllowURL: func(u string) bool { return !strings.HasSuffix(u, "/forbidden") },
			}, fmt.Sprintf(`{"PreToolUse":[{"hooks":[{"type":"http","url":%q,"timeout":0.2,"headers":{"X-Key":"a-$KEY-${KEY}-$SECRET-$"},"allowedEnvVars":["KEY"]}]}]}`, srv.URL+tt.path))
			r := s.Run(t.Context(), pre())
			if all := strings.Join(r.Notes, "\n"); !strings.Contains(all, tt.note) || tt.note == "" && all != "" {
				t.Errorf("got notes %q, want %q", all, tt.note)
			}
			if got := r.Decision != nil && r.Decision.Verdict == agent.Deny; got != tt.deny {
				t.Errorf("denied: %t", got)
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if head != "a-k1-k1--$|application/json" || !strings.Contains(body, `"tool_use_id":"t1"`) {
		t.Errorf("got %q %s", head, body)
	}
}

func TestToolPromptAgentCallback(t *testing.T) {
	t.Parallel()
	o := Options{
		Call: func(_ context.Context, server, tool string, in json.RawMessage) (string, bool, error) {
			if tool == "fails" {
				return "bad", true, nil
			}
			return fmt.Sprintf(`{"reason":%q,"decision":"block"}`, server+"/"+tool+" "+string(in)), false, nil
		},
		Ask: func(_ context.Context, model, prompt string) (string, error) {
			if strings.Contains(prompt, "say nothing") {
				return "I would rather not", nil
			}
			return `Sure: {"ok":false,"reason":"asked ` + model + `"}`, nil
		},
		Work: func(context.Context, string, string) (string, error) { return `{"ok":true}`, nil },
		Host: func(_ context.Context, q agent.Question) (agent.Answer, error) {
			switch q.Name {
			case "hook_0":
				return agent.Answer{Payload: json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}`)}, nil
			case "hook_1":
				return agent.Answer{Err: "it threw"}, nil
			}
			return agent.Answer{}, errors.New("gone")
		},
	}
	tool := set(t, o, `{"PreToolUse":[{"hooks":[{"type":"mcp_tool","server":"s","tool":"t","input":{"c":"run ${tool_input.command}","all":"${tool_input}","n":[1,"${nothing}"]}},{"type":"mcp_tool","server":"s","tool":"fails"}]}]}`)
	r := tool.Run(t.Context(), pre())
	if want := `PreToolUse:Bash hook error: s/t {"all":{"command":"ls"},"c":"run ls","n":[1,null]}`; r.Reason != want || r.Ran != 2 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "s/fails failed: bad") {
		t.Errorf("got %+v want %q", r, want)
	}

	ask := set(t, o, `{"PreToolUse":[{"hooks":[{"type":"prompt","prompt":"is $ARGUMENTS fine?","model":"haiku"}]}],"Stop":[{"hooks":[{"type":"agent","prompt":"look"}]}],"PostToolBatch":[{"hooks":[{"type":"prompt","prompt":"say nothing"}]}]}`)
	if r := ask.Run(t.Context(), pre()); !r.Halt || r.Decision == nil || r.Decision.Verdict != agent.Deny || r.Decision.Reason != "PreToolUse:Bash hook error: asked haiku" {
		t.Errorf("got %+v", r)
	}
	if r := ask.Run(t.Context(), agent.Moment{Event: "Stop"}); r.Block || r.Ran != 1 || len(r.Notes) > 0 {
		t.Errorf("got %+v", r)
	}
	if r := ask.Run(t.Context(), agent.Moment{Event: "PostToolBatch"}); r.Block || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "did not answer with JSON") {
		t.Errorf("got %+v", r)
	}

	back := set(t, o, `null`)
	hs, err := ParseCallbacks(json.RawMessage(`{"PreToolUse":[{"matcher":null,"hookCallbackIds":["hook_1","hook_0"],"timeout":5}],"PostToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_1"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	back.Replace("sdk", hs)
	// What the host breaks in front of a call stops it; behind it, it is told.
	if r := back.Run(t.Context(), pre()); r.Decision == nil || r.Decision.Verdict != agent.Deny || r.Decision.By != "hook:hook_1" || r.Ran != 2 {
		t.Errorf("got %+v", r)
	}
	m := pre()
	m.Event = "PostToolUse"
	if r := back.Run(t.Context(), m); r.Block || len(r.Notes) != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	d := func(v agent.Verdict, in string) answer {
		a := answer{ran: true, decision: &agent.Decision{Verdict: v, Why: agent.WhyHook}}
		if in != "" {
			a.input = json.RawMessage(in)
		}
		return a
	}
	for _, tt := range []struct {
		name    string
		answers []answer
		want    agent.HookResult
	}{
		{"none ran", []answer{{}}, agent.HookResult{}},
		{"deny > defer", []answer{d(agent.Defer, ""), d(agent.Deny, ""), d(agent.Allow, `{"x":1}`)}, agent.HookResult{Ran: 3, Decision: &agent.Decision{Verdict: agent.Deny, Why: agent.WhyHook}}},
		{"defer > ask", []answer{d(agent.Ask, ""), d(agent.Defer, "")}, agent.HookResult{Ran: 2, Decision: &agent.Decision{Verdict: agent.Defer, Why: agent.WhyHook}}},
		{"ask > allow, with the input of the other", []answer{d(agent.Allow, `{"x":1}`), d(agent.Ask, "")}, agent.HookResult{
			Ran: 2, Input: json.RawMessage(`{"x":1}`), Decision: &agent.Decision{Verdict: agent.Ask, Why: agent.WhyHook, Input: json.RawMessage(`{"x":1}`)}}},
		{"reasons add up", []answer{{ran: true, block: true, reason: "a"}, {ran: true, block: true, reason: "b"}}, agent.HookResult{Ran: 2, Block: true, Reason: "a\nb"}},
		{"halt stands", []answer{{ran: true, context: []string{"x"}}, {ran: true, halt: true, reason: "h"}}, agent.HookResult{Ran: 2, Halt: true, Reason: "h", Context: []string{"x"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, merge("PreToolUse", tt.answers)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		event, matcher, value string
		want                  bool
	}{
		{"PreToolUse", "", "Bash", true},
		{"PreToolUse", "*", "Bash", true},
		{"PreToolUse", "Edit", "NotebookEdit", false},
		{"PreToolUse", "Edit.*", "NotebookEdit", true},
		{"PreToolUse", "Write|Edit", "Edit", true},
		{"PreToolUse", "Write, Edit", "Edit", true},
		{"PreToolUse", "mcp__srv", "mcp__srv__t", false},
		{"PreToolUse", "mcp__srv__.*", "mcp__srv__t", true},
		{"PreToolUse", "Task", "Agent", true},
		{"Stop", "never", "", true},
		{"FileChanged", ".envrc|.env", ".env", true},
		{"FileChanged", ".env", "xenv", false},
		{"SessionStart", "resume|startup", "startup", true},
	} {
		f, err := compile(tt.event, tt.matcher)
		if err != nil || f(tt.value) != tt.want {
			t.Errorf("%s %q %q: got %t, %v", tt.event, tt.matcher, tt.value, !tt.want, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	raw := `{
		"PreToolUse":[{"matcher":"Bash","hooks":[
			{"type":"command","command":"ok","timeout":1.5,"if":"Bash(git *)","async":false},
			{"type":"command"},
			{"type":"shell","command":"x"},
			{"command":"x"},
			"x",
			{"type":"http"},
			{"type":"command","command":"x","timeout":"soon"}]},
			{"matcher":"(","hooks":[{"type":"command","command":"x"}]}],
		"pretooluse":[],
		"Nonsense":[],
		"Stop":"x",
		"SessionStart":[{"hooks":[{"type":"prompt","prompt":"x"},{"type":"command","command":"start","once":true}]}]
	}`
	hs, ps := Parse(json.RawMessage(raw), Handler{Source: "project", File: "f.json"})
	want := []Handler{
		{Event: "PreToolUse", Matcher: "Bash", Type: Command, Command: "ok", Timeout: 1500 * time.Millisecond, If: "Bash(git *)", Source: "project", File: "f.json"},
		{Event: "SessionStart", Type: Command, Command: "start", Source: "project", File: "f.json"},
	}
	if d := cmp.Diff(want, hs); d != "" {
		t.Error(d)
	}
	var got []string
	for _, p := range ps {
		got = append(got, p.Where)
	}
	wantWhere := []string{"hooks.Nonsense", "hooks.PreToolUse[0].hooks[1]", "hooks.PreToolUse[0].hooks[2]", "hooks.PreToolUse[0].hooks[3]", "hooks.PreToolUse[0].hooks[4]",
		"hooks.PreToolUse[0].hooks[5]", "hooks.PreToolUse[0].hooks[6]", "hooks.PreToolUse[1].hooks[0]", "hooks.SessionStart[0].hooks[0]", "hooks.Stop", "hooks.pretooluse"}
	if d := cmp.Diff(wantWhere, got); d != "" {
		t.Error(d)
	}
	if s := ps[len(ps)-1].String(); s != "f.json: hooks.pretooluse: there is no such event, did you mean PreToolUse?" {
		t.Error(s)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	h := Handler{Event: "Stop", Type: Command, Command: "x"}
	from := func(source string) []Handler { h := h; h.Source = source; return []Handler{h} }
	count := func(l Locks) int {
		s := New(Options{})
		s.Lock(l)
		defer s.Close()
		for _, src := range []string{"user", "project", "managed", "plugin:a", "skill:b"} {
			s.Replace(src, from(src))
		}
		s.Replace("sdk", []Handler{{Event: "Stop", Type: Callback, CallbackID: "c", Source: "sdk"}})
		s.Replace("project", nil)
		n := len(s.Handlers())
		if s.Any("Stop") != (n > 0) {
			t.Errorf("Any does not agree with %d handlers", n)
		}
		return n
	}
	// user and managed hold the same hook; copies of plugins and skills stay.
	if got := []int{count(Locks{}), count(Locks{ManagedOnly: true}), count(Locks{Disabled: true})}; !cmp.Equal(got, []int{4, 2, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestIfAndOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := set(t, Options{Project: dir, Matches: func(rule string, c agent.Call) bool { return rule == "Bash(ls)" && c.Name == "Bash" }},
		`{"PreToolUse":[{"hooks":[{"type":"command","command":"echo yes >>ran","if":"Bash(ls)"},{"type":"command","command":"echo no >>ran","if":"Bash(rm *)"}]}],
		  "Stop":[{"hooks":[{"type":"command","command":"echo never >>ran","if":"Bash(ls)"}]}]}`)
	hs, ps := Parse(json.RawMessage(block("PreToolUse", "echo once >>ran2", `,"once":true`)), Handler{Source: "skill:x"})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	s.Replace("skill:x", hs)
	for range 2 {
		s.Run(t.Context(), pre())
	}
	s.Run(t.Context(), agent.Moment{Event: "Stop"})
	for file, want := range map[string]string{"ran": "yes\nyes\n", "ran2": "once\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", file, got, err)
		}
	}
}

func TestAsync(t *testing.T) {
	t.Parallel()
	type late struct {
		context, notes []string
		wake           bool
	}
	got := make(chan late, 2)
	s := set(t, Options{Late: func(context, notes []string, wake bool) { got <- late{context, notes, wake} }},
		`{"PostToolUse":[{"hooks":[{"type":"command","async":true,"command":"sleep 0.3; echo '{\"hookSpecificOutput\":{\"additionalContext\":\"later\"},\"systemMessage\":\"m\"}'"}]}],
		  "Stop":[{"hooks":[{"type":"command","asyncRewake":true,"command":"echo wake up >&2; exit 2"}]}],
		  "SessionEnd":[{"hooks":[{"type":"command","async":true,"command":"sleep 300"}]}]}`)
	began := time.Now()
	m := pre()
	m.Event = "PostToolUse"
	if r := s.Run(t.Context(), m); r.Ran != 0 || time.Since(began) > 250*time.Millisecond {
		t.Errorf("an asynchronous hook was waited for: %+v", r)
	}
	if d := cmp.Diff(late{[]string{"later"}, []string{"m"}, false}, <-got, cmp.AllowUnexported(late{})); d != "" {
		t.Error(d)
	}
	if r := s.Run(t.Context(), agent.Moment{Event: "Stop"}); r.Block {
		t.Errorf("got %+v", r)
	}
	if l := <-got; !l.wake || len(l.context) != 1 || l.context[0] != "wake up" {
		t.Errorf("got %+v", l)
	}
	s.Run(t.Context(), agent.Moment{Event: "SessionEnd"})
	began = time.Now()
	s.Close() // ends the one that sleeps
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("closing took %s", took)
	}
}

func TestSessionEndHasOneClock(t *testing.T) {
	t.Parallel()
	s := set(t, Options{StopTimeout: 300 * time.Millisecond}, `{"SessionEnd":[{"hooks":[{"type":"command","command":"sleep 60"},{"type":"command","command":"sleep 61"}]}]}`)
	began := time.Now()
	s.Run(t.Context(), agent.Moment{Event: "SessionEnd", Match: "other"})
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestLongTexts(t *testing.T) {
	t.Parallel()
	s := set(t, Options{Spill: func(string) (string, error) { return "/kept", nil }}, block("UserPromptSubmit", "head -c 20000 /dev/zero | tr '\\0' y", ""))
	r := s.Run(t.Context(), agent.Moment{Event: "UserPromptSubmit"})
	if want := strings.Repeat("y", 10000) + "\n[10000 characters more; all of it is in /kept]"; len(r.Context) != 1 || r.Context[0] != want {
		t.Errorf("got %.80q … (%d)", r.Context, len(r.Context))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}`)
	f.Add(`{"PreToolUse":[{"matcher":"a|b","hooks":[{"type":"http","url":"u","timeout":-1}]}]}`)
	f.Add(`{"Stop":null}`)
	f.Fuzz(func(t *testing.T, raw string) {
		hs, _ := Parse(json.RawMessage(raw), Handler{Source: "user"})
		for _, h := range hs {
			if h.Event == "" || h.Type == "" || h.Timeout < 0 {
				t.Errorf("%q gave %+v", raw, h)
			}
		}
	})
}

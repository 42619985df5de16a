//go:build unix

package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
)

var update = flag.Bool("update", false, "rewrite the table of docs/sdk.md")

const types = "node_modules/@anthropic-ai/claude-agent-sdk/sdk.d.ts"

// declared are the control requests that the SDK declares: the name of each
// one's type, without its ending, by subtype.
func declared(t *testing.T, src string) map[string]string {
	t.Helper()
	union := regexp.MustCompile(`declare type SDKControlRequestInner = ([^;]+);`).FindStringSubmatch(src)
	if union == nil {
		t.Fatal("the declarations have no SDKControlRequestInner")
	}
	out := map[string]string{}
	for name := range strings.SplitSeq(union[1], "|") {
		name = strings.TrimSpace(name)
		body := regexp.MustCompile(`declare type ` + name + ` = \{[^}]*?subtype: '([a-z_]+)'`).FindStringSubmatch(src)
		if body == nil {
			t.Errorf("the type %s has no subtype", name)
			continue
		}
		out[body[1]] = strings.TrimSuffix(name, "Request")
	}
	return out
}

// required are the members that a declared type always has.
func required(src, name string) []string {
	_, body, ok := strings.Cut(src, "declare type "+name+" = {\n")
	if !ok {
		return nil
	}
	var out []string
	member := regexp.MustCompile(`^    ([A-Za-z_]+): `) // of the type itself, by its indent; optional ones have a question mark
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "};") {
			break
		}
		if m := member.FindStringSubmatch(line); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

func declarations(t *testing.T) string {
	t.Helper()
	need(t)
	src, err := os.ReadFile(types)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(src), "\r\n", "\n")
}

// Every control request of the installed SDK has its line in the list, and
// the list holds nothing that neither the SDK declares nor its code sends.
func TestControlsAreComplete(t *testing.T) {
	t.Parallel()
	inSDK := declared(t, declarations(t))
	if len(inSDK) < 40 {
		t.Errorf("only %d control requests were found in %s", len(inSDK), types)
	}
	code, err := os.ReadFile("node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range app.Controls() {
		if listed[c.Name] {
			t.Errorf("%s is listed twice", c.Name)
		}
		listed[c.Name] = true
		if !slices.Contains([]string{"full", "partial", "refused", "sent"}, c.State) {
			t.Errorf("%s has the state %q", c.Name, c.State)
		}
		if c.State != "full" && c.Note == "" {
			t.Errorf("%s is %s, and nothing says why", c.Name, c.State)
		}
		if _, ok := inSDK[c.Name]; !ok && !bytes.Contains(code, []byte(`"`+c.Name+`"`)) {
			t.Errorf("%s is listed, but the SDK does not know it", c.Name)
		}
	}
	for name := range inSDK {
		if !listed[name] {
			t.Errorf("the control request %s is not listed", name)
		}
	}
}

// samples are requests that a session like the one below can answer.
var samples = map[string]string{
	"initialize":              `{"hooks":{}}`,
	"interrupt":               `{}`,
	"set_permission_mode":     `{"mode":"acceptEdits"}`,
	"set_model":               `{"model":"claude-sonnet-4-5"}`,
	"set_max_thinking_tokens": `{"max_thinking_tokens":null}`,
	"cancel_async_message":    `{"message_uuid":"6a1f0f0e-6c2e-4f0b-9a51-1d2c3b4a5f60"}`,
	"mcp_status":              `{}`,
	"mcp_message":             `{"server_name":"notes","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}`,
	"mcp_set_servers":         `{"servers":{}}`,
	"mcp_reconnect":           `{"serverName":"notes"}`,
	"mcp_toggle":              `{"serverName":"notes","enabled":true}`,
	"mcp_read_resource":       `{"serverName":"notes","uri":"notes://all"}`,
	"mcp_call":                `{"tool":"mcp__notes__add","arguments":{"note":"by the host"}}`,
	"rewind_files":            `{"user_message_id":"6a1f0f0e-6c2e-4f0b-9a51-1d2c3b4a5f61","dry_run":true}`,
	"get_context_usage":       `{"detail":"summary"}`,
	"get_settings":            `{}`,
	"apply_flag_settings":     `{"settings":{"cleanupPeriodDays":20}}`,
	"update_settings":         `{"source":"localSettings","settings":{"outputStyle":"default"}}`,
	"list_models":             `{}`,
	"get_session_cost":        `{}`,
	"get_usage":               `{}`,
	"get_binary_version":      `{}`,
	"get_hooks_listing":       `{}`,
	"list_permission_rules":   `{}`,
	"rename_session":          `{"title":"A better name"}`,
	"reload_skills":           `{}`,
	"reload_plugins":          `{}`,
	"reload_output_styles":    `{}`,
	"stop_task":               `{"task_id":"$TASK"}`,
	"background_tasks":        `{}`,
	"get_task_output":         `{"task_id":"$TASK"}`,
	"read_file":               `{"path":"a.txt"}`,
	"file_suggestions":        `{"query":"a"}`,
	"seed_read_state":         `{"path":"a.txt","mtime":0}`,
	"set_color":               `{"color":"default"}`,
	"set_has_subscribers":     `{"has_subscribers":true}`,
	"register_repo_root":      `{"directory":"$PROJECT"}`,

	"set_mcp_permission_mode_override": `{"serverName":"notes","mode":"default"}`,
}

// Every request of a host is answered, as the list says: with the members
// that the SDK declares, or with the error that means it is not supported.
func TestControlsAreAnswered(t *testing.T) {
	t.Parallel()
	src := declarations(t)
	names := declared(t, src)
	h := talkTo(t, []string{"text Well.", `tool t1 Bash {"command":"sleep 60","run_in_background":true}` + "\ntext Started."}, "--mcp-config",
		`{"mcpServers":{"notes":{"command":"node","args":["`+here(t, "servers/notes.mjs")+`"],"env":{"OWNER":"Ada"}}}}`,
		"--allowedTools=Bash", "--permission-prompt-tool=stdio")
	if err := os.WriteFile(filepath.Join(h.project, "a.txt"), []byte("a\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	h.ask(t, "initialize", samples["initialize"])
	h.prompt(t, "Wait in the background.")
	task := h.wait(t, func(f frame) bool { return f.Subtype == "task_started" }).TaskID
	h.wait(t, func(f frame) bool { return f.Type == "result" })

	list := app.Controls()
	// stop_task ends the task that others ask about.
	slices.SortStableFunc(list, func(a, b app.Control) int {
		return strings.Compare(map[bool]string{true: "1"}[a.Name == "stop_task"], map[bool]string{true: "1"}[b.Name == "stop_task"])
	})
	for _, c := range list {
		if c.State == "sent" {
			continue
		}
		sample, ok := samples[c.Name]
		if !ok {
			t.Errorf("there is no sample of %s", c.Name)
			continue
		}
		a := h.ask(t, c.Name, strings.NewReplacer("$TASK", task, "$PROJECT", h.project).Replace(sample))
		if c.State == "refused" {
			if a.Subtype != "error" || a.ErrorCode != "unsupported_request" || a.Error == "" {
				t.Errorf("%s: got %s %q %q, want the typed error", c.Name, a.Subtype, a.ErrorCode, a.Error)
			}
			continue
		}
		if a.Subtype != "success" {
			t.Errorf("%s: got %s: %s", c.Name, a.Subtype, a.Error)
			continue
		}
		var got map[string]json.RawMessage
		if len(a.Response) > 0 {
			if err := json.Unmarshal(a.Response, &got); err != nil {
				t.Errorf("%s: answered with %s", c.Name, a.Response)
			}
		}
		for _, member := range required(src, names[c.Name]+"Response") {
			if _, ok := got[member]; !ok {
				t.Errorf("%s: %s is missing in %.300s", c.Name, member, a.Response)
			}
		}
	}
	a := h.ask(t, "no_such_request", `{}`)
	if a.Subtype != "error" || a.ErrorCode != "unsupported_request" || !strings.Contains(a.Error, "no_such_request") {
		t.Errorf("an unknown request: got %s %q %q", a.Subtype, a.ErrorCode, a.Error)
	}
	h.end(t)
}

// Missing members would be passed over if the declarations were not understood.
func TestRequiredMembers(t *testing.T) {
	t.Parallel()
	src := declarations(t)
	for name, want := range map[string][]string{
		"SDKControlReadFileResponse":              {"contents", "absPath"},
		"SDKControlGetTaskOutputResponse":         {"output", "total_bytes", "truncated"},
		"SDKControlListPermissionRulesResponse":   {"state"},
		"SDKControlReloadOutputStylesResponse":    {"available_output_styles"},
		"SDKControlThatDoesNotExistAtAllResponse": nil,
	} {
		if got := required(src, name); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// docs/sdk.md holds the list as it is in the code.
func TestDocs(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/sdk.md", "<!-- controls: go test ./test/sdk -run TestDocs -update -->\n", "<!-- /controls -->"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	var b strings.Builder
	b.WriteString(head + begin + "| request | state | note |\n|---|---|---|\n")
	list := app.Controls()
	slices.SortFunc(list, func(a, b app.Control) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.State, c.Note)
	}
	b.WriteString(end + tail)
	if b.String() == string(doc) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code says: run go test ./test/sdk -run TestDocs -update", path)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func here(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// A dialogue is a running cinch that frames are written to and read from,
// without an SDK between.
type dialogue struct {
	project string
	srv     *modelserver.Server
	cmd     *exec.Cmd
	in      io.WriteCloser
	frames  chan frame
	stderr  *bytes.Buffer
	n       int
}

type frame struct {
	Type     string `json:"type"`
	Subtype  string `json:"subtype"`
	TaskID   string `json:"task_id"`
	Response answer `json:"response"`
}

type answer struct {
	Subtype   string          `json:"subtype"`
	ID        string          `json:"request_id"`
	Error     string          `json:"error"`
	ErrorCode string          `json:"error_code"`
	Response  json.RawMessage `json:"response"`
}

// talkTo starts cinch with a model that answers with each script once, and
// with the first for ever.
func talkTo(t *testing.T, answers []string, args ...string) *dialogue {
	t.Helper()
	var scripts []modelserver.Script
	for _, a := range slices.Backward(answers) {
		s, err := modelserver.ParseScript(a)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, s)
	}
	scripts[len(scripts)-1].Repeat = -1
	return begin(t, t.TempDir(), t.TempDir(), modelserver.Play(scripts...), args...)
}

func begin(t *testing.T, home, project string, brain modelserver.Brain, args ...string) *dialogue {
	t.Helper()
	srv := modelserver.New(modelserver.Options{Brain: brain})
	url, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	h := &dialogue{project: project, srv: srv, frames: make(chan frame, 64), stderr: new(bytes.Buffer)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	h.cmd = exec.CommandContext(ctx, cinch, append([]string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"}, args...)...)
	h.cmd.Dir, h.cmd.Stderr = h.project, h.stderr
	h.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "SHELL=/bin/bash", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=test-key",
		"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(h.frames)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			var f frame
			if json.Unmarshal(line, &f) == nil {
				h.frames <- f
			}
			if err != nil {
				return
			}
		}
	}()
	return h
}

// wait reads frames up to the first that fits.
func (h *dialogue) wait(t *testing.T, fits func(frame) bool) frame {
	t.Helper()
	for timeout := time.After(40 * time.Second); ; {
		select {
		case f, ok := <-h.frames:
			if !ok {
				t.Fatalf("cinch ended before the frame that was waited for\n%s", h.stderr)
			}
			if fits(f) {
				return f
			}
		case <-timeout:
			h.cmd.Process.Kill()
			t.Fatal("waited 40 s in vain for a frame")
		}
	}
}

func (h *dialogue) ask(t *testing.T, subtype, fields string) answer {
	t.Helper()
	h.n++
	id := fmt.Sprintf("q%d", h.n)
	body := strings.Replace(fields, "{", fmt.Sprintf(`{"subtype":%q,`, subtype), 1)
	body = strings.Replace(body, ",}", "}", 1)
	fmt.Fprintf(h.in, `{"type":"control_request","request_id":%q,"request":%s}`+"\n", id, body)
	return h.wait(t, func(f frame) bool { return f.Type == "control_response" && f.Response.ID == id }).Response
}

func (h *dialogue) prompt(t *testing.T, text string) {
	t.Helper()
	fmt.Fprintf(h.in, `{"type":"user","uuid":"6a1f0f0e-6c2e-4f0b-9a51-1d2c3b4a5f61","message":{"role":"user","content":%q}}`+"\n", text)
}

// end closes the input; cinch ends by itself.
func (h *dialogue) end(t *testing.T) {
	t.Helper()
	h.in.Close()
	for range h.frames {
	}
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("cinch ended with %v\n%s", err, h.stderr)
	}
}

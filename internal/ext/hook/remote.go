package hook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func newID() string { return rand.Text() }

// http posts the input. Only a 2xx answer counts.
func (s *Set) http(ctx context.Context, h *Handler, input []byte) output {
	if s.o.Post == nil {
		return output{err: errors.New("HTTP hooks are not available here")}
	}
	if s.o.AllowURL != nil && !s.o.AllowURL(h.URL) {
		return output{err: fmt.Errorf("the settings do not allow hooks to go to %s (allowedHttpHookUrls)", h.URL)}
	}
	header := map[string]string{"Content-Type": "application/json"}
	for k, v := range h.Headers {
		header[k] = s.fill(h, v)
	}
	status, body, err := s.o.Post(ctx, h.URL, header, input)
	switch {
	case err != nil:
		return output{err: err}
	case status < 200 || status > 299:
		return output{err: fmt.Errorf("%s answered with status %d", h.URL, status)}
	}
	text := strings.TrimSpace(string(body))
	if text != "" && (text[0] != '{' || !json.Valid([]byte(text))) {
		return output{err: fmt.Errorf("%s answered with something that is not a JSON object", h.URL)}
	}
	return output{stdout: text}
}

// fill replaces $NAME and ${NAME} in a header: by the variable's value where
// the handler and the settings allow it to leave, else by nothing.
func (s *Set) fill(h *Handler, v string) string {
	value := func(name string) string {
		allowed := false
		for _, n := range h.AllowedVars {
			allowed = allowed || n == name
		}
		if !allowed || s.o.AllowVar != nil && !s.o.AllowVar(name) {
			return ""
		}
		out := ""
		for _, kv := range s.o.Env {
			if k, val, ok := strings.Cut(kv, "="); ok && k == name {
				out = val
			}
		}
		return out
	}
	var b strings.Builder
	for i := 0; i < len(v); {
		if v[i] != '$' {
			b.WriteByte(v[i])
			i++
			continue
		}
		rest, brace := v[i+1:], false
		if strings.HasPrefix(rest, "{") {
			rest, brace = rest[1:], true
		}
		n := 0
		for n < len(rest) && (rest[n] == '_' || rest[n] >= 'A' && rest[n] <= 'Z' || rest[n] >= 'a' && rest[n] <= 'z' || n > 0 && rest[n] >= '0' && rest[n] <= '9') {
			n++
		}
		if n == 0 || brace && (n == len(rest) || rest[n] != '}') {
			b.WriteByte('$')
			i++
			continue
		}
		b.WriteString(value(rest[:n]))
		i += 1 + n
		if brace {
			i += 2
		}
	}
	return b.String()
}

// tool calls an MCP tool; ${a.b} in its input is taken from the hook input.
func (s *Set) tool(ctx context.Context, h *Handler, input []byte) output {
	if s.o.Call == nil {
		return output{err: errors.New("MCP hooks are not available here")}
	}
	var fields map[string]any
	if err := json.Unmarshal(input, &fields); err != nil {
		return output{err: err}
	}
	var args any = map[string]any{}
	if len(h.Input) > 0 {
		if err := json.Unmarshal(h.Input, &args); err != nil {
			return output{err: fmt.Errorf("its input is not JSON: %w", err)}
		}
	}
	raw, err := json.Marshal(substitute(args, fields))
	if err != nil {
		return output{err: err}
	}
	text, isError, err := s.o.Call(ctx, h.Server, h.Tool, raw)
	if err == nil && isError {
		err = fmt.Errorf("%s/%s failed: %s", h.Server, h.Tool, text)
	}
	return output{stdout: text, err: err}
}

func substitute(v any, fields map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = substitute(x, fields)
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = substitute(x, fields)
		}
		return v
	case string:
		if name, ok := strings.CutPrefix(v, "${"); ok && strings.HasSuffix(name, "}") && strings.Count(v, "${") == 1 {
			return path(fields, strings.TrimSuffix(name, "}")) // keeps its type
		}
		for {
			before, rest, ok := strings.Cut(v, "${")
			if !ok {
				return v
			}
			name, after, ok := strings.Cut(rest, "}")
			if !ok {
				return v
			}
			x := path(fields, name)
			text, isText := x.(string)
			if !isText && x != nil {
				b, _ := json.Marshal(x)
				text = string(b)
			}
			v = before + text + after
		}
	}
	return v
}

func path(v any, name string) any {
	for part := range strings.SplitSeq(name, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[part]
	}
	return v
}

// A verdict is a model's answer to a prompt or agent hook.
type verdict struct {
	OK         *bool  `json:"ok"`
	Reason     string `json:"reason"`
	Impossible bool   `json:"impossible"`
}

// ask puts the hook's question to a model.
func (s *Set) ask(ctx context.Context, h *Handler, input []byte) output {
	f := s.o.Ask
	if h.Type == Agent {
		f = s.o.Work
	}
	if f == nil {
		return output{err: fmt.Errorf("hooks of type %s are not available here", h.Type)}
	}
	text, err := f(ctx, h.Model, question(h.Prompt, string(input)))
	if err != nil {
		return output{err: err}
	}
	i, j := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if i < 0 || j < i {
		return output{err: fmt.Errorf("the model did not answer with JSON: %.200q", text)}
	}
	var v verdict
	if err := json.Unmarshal([]byte(text[i:j+1]), &v); err != nil || v.OK == nil {
		return output{err: fmt.Errorf("the model's answer has no field ok: %.200q", text)}
	}
	return output{stdout: text[i : j+1], verdict: &v}
}

// question puts the input where $ARGUMENTS stands, or at the end; \$ is a
// plain dollar sign.
func question(prompt, input string) string {
	const mark = "$ARGUMENTS"
	var b strings.Builder
	used := false
	for i := 0; i < len(prompt); {
		switch {
		case strings.HasPrefix(prompt[i:], `\$`):
			b.WriteByte('$')
			i += 2
		case strings.HasPrefix(prompt[i:], mark):
			b.WriteString(input)
			used = true
			i += len(mark)
		default:
			b.WriteByte(prompt[i])
			i++
		}
	}
	if !used {
		b.WriteString("\n\n" + input)
	}
	b.WriteString("\n\nAnswer with one JSON object and nothing else: {\"ok\": true} if the condition holds, or {\"ok\": false, \"reason\": \"why not\"}.")
	return b.String()
}

// callback asks the SDK host.
func (s *Set) callback(ctx context.Context, h *Handler, m agent.Moment, input []byte) output {
	if s.o.Host == nil {
		return output{err: agent.ErrNoOne}
	}
	q := agent.Question{Kind: agent.AskHook, Name: h.CallbackID, Payload: input, Agent: m.Agent}
	if m.Call != nil {
		q.Call = *m.Call
	}
	a, err := s.o.Host(ctx, q)
	switch {
	case err != nil:
		return output{err: err}
	case a.Err != "":
		return output{err: errors.New(a.Err)}
	}
	return output{json: a.Payload}
}

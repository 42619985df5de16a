package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/model/caps"
	"github.com/seed-eb844fcb/cinch/internal/net/model/limit"
	"github.com/seed-eb844fcb/cinch/internal/net/model/reply"
)

// A failure is why an attempt came to nothing, and what may be done about it.
type failure struct {
	err  *agent.ModelError
	kind string // Retrying.Kind
	// retry: trying the same again can help.
	retry bool
	// wait is how long the upstream asks to wait, if asked is set.
	wait  time.Duration
	asked bool
	// whole: an answer in one piece can help, at once.
	whole bool
	// overloaded counts towards the switch to another model.
	overloaded bool
	// elsewhere: another model may answer where this one cannot.
	elsewhere bool
	// drop are the features that the upstream refused by name.
	drop []string
	// bare: the refusal names nothing; a plainer request may pass.
	bare bool
	// ceiling, if not 0, is a max_tokens that fits.
	ceiling int
	// refused is the credential that was not taken.
	refused string
}

// kindOf names a failure as Retrying.Kind does.
func kindOf(status int, typ string) string {
	switch {
	case status == 529 || typ == "overloaded_error":
		return "overloaded"
	case status == 429 || typ == "rate_limit_error":
		return "rate_limit"
	case status == 401 || status == 403 || typ == "authentication_error" || typ == "permission_error":
		return "authentication_failed"
	case status >= 500 || status == 408 || status == 409 || typ == "api_error" || typ == "timeout_error":
		return "server_error"
	case status == 402 || typ == "billing_error":
		return "billing_error"
	case status == 404:
		return "model_not_found"
	case status >= 400:
		return "invalid_request"
	}
	return "unknown"
}

// statusOf is the status that an error inside a stream stands for.
func statusOf(typ string) int {
	switch typ {
	case "invalid_request_error":
		return 400
	case "authentication_error":
		return 401
	case "billing_error":
		return 402
	case "permission_error":
		return 403
	case "not_found_error":
		return 404
	case "request_too_large":
		return 413
	case "rate_limit_error":
		return 429
	case "timeout_error":
		return 504
	case "overloaded_error":
		return 529
	}
	return 500
}

// An answer is a refusal by the upstream, wherever it stood.
type answer struct {
	status         int
	reply.APIError // the API's own words, if it spoke
	requestID      string
	header         http.Header // nil for an error inside a stream
	body           []byte      // of an answer that is not the API's
}

// readAnswer reads the body of an answer with an error status.
func readAnswer(resp *http.Response, body []byte) answer {
	a := answer{status: resp.StatusCode, header: resp.Header, requestID: dial.RequestID(resp.Header), body: body}
	data := bytes.TrimSpace(body)
	if bytes.HasPrefix(data, []byte("event:")) || bytes.HasPrefix(data, []byte("data:")) {
		if _, rest, ok := bytes.Cut(data, []byte("data:")); ok {
			data, _, _ = bytes.Cut(bytes.TrimSpace(rest), []byte("\n"))
		}
	}
	var w struct {
		Error     json.RawMessage `json:"error"`
		Message   string          `json:"message"`
		Detail    json.RawMessage `json:"detail"`
		RequestID string          `json:"request_id"`
	}
	if json.Unmarshal(data, &w) != nil {
		return a
	}
	if a.requestID == "" {
		a.requestID = w.RequestID
	}
	switch {
	case len(w.Error) > 0 && w.Error[0] == '{':
		_ = json.Unmarshal(w.Error, &a.APIError) // what does not fit stays empty
	case len(w.Error) > 0 && w.Error[0] == '"':
		_ = json.Unmarshal(w.Error, &a.Message)
	}
	if a.Message == "" {
		a.Message = w.Message
	}
	if a.Message == "" && len(w.Detail) > 0 {
		if json.Unmarshal(w.Detail, &a.Message) != nil {
			a.Message = string(w.Detail)
		}
	}
	return a
}

// words is what the answer says, or what is known about it.
func (a answer) words() string {
	if a.Message != "" {
		return reply.Clip(a.Message, 2000)
	}
	text := strings.TrimSpace(string(a.body))
	if strings.HasPrefix(text, "<") {
		title := ""
		if _, rest, ok := strings.Cut(text, "<title>"); ok {
			title, _, _ = strings.Cut(rest, "</title>")
		}
		return strings.TrimSpace("a web page instead of an answer of the API: " + reply.Clip(strings.TrimSpace(title), 120))
	}
	if text != "" {
		return reply.Clip(text, 300)
	}
	if s := http.StatusText(a.status); s != "" {
		return s
	}
	return "status " + strconv.Itoa(a.status)
}

// refusal classifies an answer with an error.
func (c *Client) refusal(a answer, p plan, cred string) *failure {
	f := &failure{kind: kindOf(a.status, a.Type), err: &agent.ModelError{
		Op: "send", Status: a.status, Type: a.Type, Message: a.words(), RequestID: a.requestID, Gateway: c.base.Host,
	}}
	text := strings.ToLower(f.err.Message)
	switch s := a.status; {
	case s == 413 || a.Type == "request_too_large":
		f.err.Fault = agent.FaultTooLarge
	case s == 402 || caps.Mentions(text, "credit balance", "billing"):
		f.err.Fault = agent.FaultBilling
	case s == 400 || s == 422:
		c.badRequest(f, text, p)
	case s == 401:
		f.err.Fault, f.refused = agent.FaultAuth, cred
		f.err.Message += c.authHint()
	case s == 403:
		f.err.Fault = agent.FaultAuth
	case s == 404:
		c.notFound(f, a, p)
	case s == 408 || s == 409 || s == 429 || s >= 500 && s != 501 && s != 505:
		f.err.Fault, f.retry = agent.FaultTransient, true
		f.overloaded = f.kind == "overloaded"
		f.elsewhere = s >= 500
	case s >= 300 && s < 400:
		f.err.Message = "the server redirects to another host, which is not followed: " + reply.Clip(a.header.Get("Location"), 200) + "; set ANTHROPIC_BASE_URL to where the API is"
	}
	if a.header == nil {
		return f
	}
	now := time.Now()
	f.wait, f.asked = limit.After(a.header, now)
	if a.status == 429 {
		c.rateLimited(f, text, c.noteLimits(a.header), now)
	}
	switch strings.ToLower(a.header.Get("X-Should-Retry")) {
	case "true":
		f.retry = true
		if f.err.Fault == agent.FaultOther {
			f.err.Fault = agent.FaultTransient
		}
	case "false":
		f.retry = false
	}
	return f
}

// rateLimited says which limit was hit, and until when.
func (c *Client) rateLimited(f *failure, text string, l limit.Limits, now time.Time) {
	local := c.o.Local
	if local == nil {
		local = time.Local
	}
	if s := l.Describe(now, local); s != "" {
		f.err.Message += " · " + s
	}
	if l.Status == "rejected" && !f.asked {
		if t := l.Ends(); t.After(now) {
			f.wait, f.asked = t.Sub(now), true
		}
	}
	if caps.Mentions(text, "spend limit", "usage limit", "spending") {
		f.retry = false
	}
}

// badRequest classifies a 400.
func (c *Client) badRequest(f *failure, text string, p plan) {
	e := f.err
	if in, limit, ok := contextLimit(text); ok && in < limit {
		// The prompt fits, together with max_tokens it does not. A little less
		// than what is left is asked for, since counts are not exact.
		if room := limit - in - 1000; room >= 3000 && room < p.max {
			e.Fault, f.ceiling = agent.FaultTooLong, room
			return
		}
	}
	if caps.Mentions(text, "prompt is too long", "exceed context limit", "context window", "maximum context length", "input is too long", "too many tokens", "context_length_exceeded") {
		e.Fault = agent.FaultTooLong
		return
	}
	if f.drop = caps.Blame(e.Message, p.features); len(f.drop) > 0 {
		return
	}
	e.Path = contentPath(text)
	switch {
	case strings.Contains(e.Path, ".content."):
		e.Fault = agent.FaultBlock
	case caps.Mentions(text, "could not process image", "image exceeds", "image dimensions", "pdf", "invalid base64"):
		e.Fault = agent.FaultBlock
	case caps.HasWord(text, "model") && caps.Mentions(text, "not found", "does not exist", "invalid model", "unknown model", "not supported"):
		e.Fault, f.elsewhere = agent.FaultModel, true
	default:
		f.bare = e.Path == "" && c.base.Host != "api.anthropic.com"
	}
}

// notFound classifies a 404: a model, or a path that the server does not have.
func (c *Client) notFound(f *failure, a answer, p plan) {
	f.err.Fault, f.elsewhere = agent.FaultModel, true
	if a.Type != "not_found_error" && !strings.Contains(strings.ToLower(a.Message), "model") {
		f.kind, f.err.Fault, f.elsewhere = "invalid_request", agent.FaultOther, false
		f.err.Message += fmt.Sprintf("; %s has no %s/v1/messages: check ANTHROPIC_BASE_URL", c.base.Host, c.base.Path)
		return
	}
	if !strings.Contains(f.err.Message, p.spec.ID) {
		f.err.Message += " (model " + p.spec.ID + ")"
	}
}

func (c *Client) authHint() string {
	switch c.o.Auth.Source() {
	case "token":
		return "; check ANTHROPIC_AUTH_TOKEN"
	case "key":
		return "; check ANTHROPIC_API_KEY"
	case "helper":
		return "; the apiKeyHelper printed a key that is not taken"
	}
	return "; no credential was sent: set ANTHROPIC_API_KEY"
}

// contextLimit reads "188240 + 21333 > 200000" out of a refusal.
func contextLimit(text string) (in, limit int, ok bool) {
	_, rest, found := strings.Cut(text, "exceed context limit:")
	if !found {
		return 0, 0, false
	}
	var out int
	if n, _ := fmt.Sscanf(strings.TrimSpace(rest), "%d + %d > %d", &in, &out, &limit); n != 3 {
		return 0, 0, false
	}
	return in, limit, true
}

// contentPath finds the part of the request that a refusal names:
// "messages.3.content.1", or "messages.3", or "".
func contentPath(text string) string {
	_, rest, ok := strings.Cut(text, "messages.")
	if !ok {
		return ""
	}
	n := digitsLen(rest)
	if n == 0 {
		return ""
	}
	path := "messages." + rest[:n]
	if after, ok := strings.CutPrefix(rest[n:], ".content."); ok {
		if k := digitsLen(after); k > 0 {
			path += ".content." + after[:k]
		}
	}
	return path
}

func digitsLen(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// unsent classifies an attempt that got no answer: err came from the
// transport, or names the clock that ran out.
func (c *Client) unsent(err error, op string) *failure {
	f := &failure{kind: "unknown", err: &agent.ModelError{Op: op, Gateway: c.base.Host, Err: err}}
	var clock *clockError
	switch {
	case errors.Is(err, ErrHelper):
		f.kind = "authentication_failed"
		f.err.Op, f.err.Fault, f.err.Message = "connect", agent.FaultAuth, err.Error()
		return f
	case errors.As(err, &clock):
		f.err.Fault, f.retry = agent.FaultTransient, true
		f.err.Message = "Request timed out: " + clock.Error()
		return f
	}
	p := dial.Explain(err)
	f.err.Message = "Unable to connect to API (" + p.Code + "): " + c.base.Host + ": " + p.Text
	if p.Hint != "" {
		f.err.Message += "; " + p.Hint
	}
	if f.retry = !p.Lasting; f.retry {
		f.err.Fault = agent.FaultTransient
	}
	return f
}

// A clockError says which clock ran out.
type clockError struct {
	what  string // connect, first byte, next byte, next event, credential
	limit time.Duration
}

func (e *clockError) Error() string {
	return fmt.Sprintf("nothing for %v while waiting for the %s", e.limit, e.what)
}

// ended returns the cause if ctx is over.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

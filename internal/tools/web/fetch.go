package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const (
	maxURL       = 2_000    // characters
	maxRedirects = 10       // on one host
	maxAsked     = 100_000  // characters of a page that a question is about
	maxShown     = 30_000   // characters of a page when no model reads it for us
	maxExcerpt   = 500      // characters of an error page
	cacheBytes   = 50 << 20 // what the cache holds
	defaultBytes = 10 << 20 // what is read of one page
	saveFile     = 0o600
)

// New returns the tools there are functions for.
func New(o Options) []agent.Tool {
	if o.TTL == 0 {
		o.TTL = 15 * time.Minute
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultBytes
	}
	if o.MaxSearches <= 0 {
		o.MaxSearches = 200
	}
	var tools []agent.Tool
	if o.Fetch != nil {
		tools = append(tools, &fetch{o: o, pages: cache{ttl: o.TTL, max: cacheBytes}})
	}
	if o.Search != nil {
		tools = append(tools, &search{o: o})
	}
	return tools
}

// fetch is the tool WebFetch.
type fetch struct {
	o     Options
	pages cache
}

const fetchSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"url":{"description":"The address of the page","type":"string","format":"uri"},` +
	`"prompt":{"description":"What you want to know from the page","type":"string"},` +
	`"offset":{"description":"The character of the page to begin with, to go on with a long one","type":"integer","minimum":0,"maximum":9007199254740991}},` +
	`"required":["url","prompt"],"additionalProperties":false}`

func (f *fetch) Spec() agent.Spec {
	text := `Reads a web page or another public document and answers a question about it.

- HTML becomes Markdown. `
	if f.o.Ask != nil {
		text += "A smaller model reads the page and answers prompt: ask for exactly what you need, quotes and code included.\n"
	} else {
		text += "You get the page itself.\n"
	}
	text += `- http addresses are read over https. A redirect to another host is not followed but told, so that you can decide.
- No login: for pages behind one use a tool that has it, such as gh for GitHub.
- Files that are no text are saved, and you get the path.
- Pages are remembered for some minutes. Of a long one you get a part and are told the offset of the next.`
	return agent.Spec{Name: "WebFetch", Description: text, Schema: json.RawMessage(fetchSchema)}
}

type fetchInput struct {
	URL    string `json:"url"`
	Prompt string `json:"prompt"`
	Offset int    `json:"offset"`
	at     *url.URL
}

func parseFetch(raw json.RawMessage) (in fetchInput, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return in, errors.New("prompt is empty")
	}
	if in.Offset < 0 {
		return in, errors.New("offset is negative")
	}
	in.at, err = address(in.URL)
	return in, err
}

// Inspect names the host: who may be asked is a matter of rules.
func (f *fetch) Inspect(raw json.RawMessage) (agent.Effects, error) {
	in, err := parseFetch(raw)
	if err != nil {
		return agent.Effects{}, err
	}
	return agent.Effects{
		Concurrent: true, ReadOnly: true, Idempotent: true,
		Subjects: []agent.Subject{
			{Kind: agent.SubjectHost, Value: strings.ToLower(in.at.Hostname())},
			{Kind: agent.SubjectURL, Value: in.at.String()},
		},
	}, nil
}

// detail is the structured result, in the words of the SDK.
type detail struct {
	Bytes      int64  `json:"bytes"`
	Code       int    `json:"code"`
	CodeText   string `json:"codeText"`
	Result     string `json:"result"`
	DurationMS int64  `json:"durationMs"`
	URL        string `json:"url"`
}

func (f *fetch) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := parseFetch(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	begin := time.Now()
	p, err := f.page(ctx, in.at)
	if err != nil {
		return agent.Result{}, err
	}
	text, failed := p.text, p.code >= 400
	switch {
	case failed:
		text = p.failure()
	case p.plain:
		if text, err = f.answer(ctx, in, p); err != nil {
			return agent.Result{}, err
		}
	}
	res := agent.Textual(text)
	res.IsError = failed
	if !failed {
		res.Detail = detail{
			Bytes: p.bytes, Code: p.code, CodeText: statusText(p.code), Result: text,
			DurationMS: time.Since(begin).Milliseconds(), URL: in.URL,
		}
	}
	return res, nil
}

// answer is what the model gets to know of the text of p.
func (f *fetch) answer(ctx context.Context, in fetchInput, p page) (string, error) {
	if f.o.Ask == nil {
		part, note := cut(p.text, in.Offset, maxShown)
		return part + note, nil
	}
	part, note := cut(p.text, in.Offset, maxAsked)
	if strings.TrimSpace(part) == "" {
		return "The page has no text." + note, nil
	}
	text, err := f.o.Ask(ctx, in.Prompt, part)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		part, note = cut(p.text, in.Offset, maxShown)
		return fmt.Sprintf("(No model could read the page for you: %v. This is its text.)\n\n%s%s", err, part, note), nil
	}
	return text + note, nil
}

// cut returns at most n characters of s from offset on, and a note that says
// what is missing.
func cut(s string, offset, n int) (part, note string) {
	total, from, to := 0, len(s), len(s)
	for i := range s {
		if total == offset {
			from = i
		}
		if total == offset+n {
			to = i
		}
		total++
	}
	if offset > 0 && offset >= total {
		return "", fmt.Sprintf("\n\n[The page ends before offset %d: it has %d characters.]", offset, total)
	}
	if from > to {
		from = to
	}
	if to == len(s) {
		return s[from:], ""
	}
	return s[from:to], fmt.Sprintf("\n\n[This is about characters %d to %d of %d. For more use offset %d.]", offset, offset+n, total, offset+n)
}

// address checks a URL and makes it one that is fetched: over TLS, without
// the part that is never sent.
func address(s string) (*url.URL, error) {
	if len(s) > maxURL {
		return nil, fmt.Errorf("url has %d characters, at most %d are taken", len(s), maxURL)
	}
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return nil, fmt.Errorf("url is not valid: %w", errors.Unwrap(err))
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url must begin with https:// or http://, not %q", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("url names no host")
	case u.User != nil:
		return nil, errors.New("url holds a user name or password; they are never sent")
	}
	if u.Scheme == "http" && (u.Port() == "" || u.Port() == "80") {
		u.Scheme = "https"
		u.Host = strings.TrimSuffix(u.Host, ":80")
	}
	u.Host = strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// page returns the page at u, from the cache if it is there.
func (f *fetch) page(ctx context.Context, u *url.URL) (page, error) {
	key := u.String()
	if p, ok := f.pages.look(key); ok {
		return p, nil
	}
	limit := fmt.Errorf("%s took longer than %s to answer", u.Host, f.o.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, f.o.Timeout, limit)
	defer cancel()
	p, err := f.load(ctx, u)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return page{}, fmt.Errorf("fetching %s: %w", key, err)
	}
	if p.code < 300 {
		f.pages.keep(key, p)
	}
	return p, nil
}

// load fetches u, and what it redirects to on the same host.
func (f *fetch) load(ctx context.Context, u *url.URL) (page, error) {
	header := map[string]string{"Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5"}
	if f.o.UserAgent != "" {
		header["User-Agent"] = f.o.UserAgent
	}
	for range maxRedirects {
		code, final, answer, body, err := f.o.Fetch(ctx, "GET", u.String(), header)
		if err != nil {
			return page{}, err
		}
		if at, err := url.Parse(final); final != "" && (err != nil || !strings.EqualFold(at.Host, u.Host)) {
			_ = body.Close()
			return page{}, fmt.Errorf("the answer came from %q, which was not asked", final)
		}
		next, err := redirect(u, code, field(answer, "Location"))
		if err != nil || next != nil {
			_ = body.Close()
		}
		switch {
		case err != nil:
			return page{}, err
		case next == nil:
			p, err := f.read(u, code, answer, body)
			_ = body.Close()
			return p, err
		case next.Host != u.Host:
			return elsewhere(u, next, code), nil
		}
		u = next
	}
	return page{}, fmt.Errorf("more than %d redirects", maxRedirects)
}

// redirect is where an answer with that code leads; nil if it is no redirect.
func redirect(from *url.URL, code int, location string) (*url.URL, error) {
	switch code {
	case 301, 302, 303, 307, 308:
	default:
		return nil, nil
	}
	if location == "" {
		return nil, fmt.Errorf("status %d without a Location", code)
	}
	rel, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("a redirect to something that is no address")
	}
	to, err := address(from.ResolveReference(rel).String())
	if err != nil {
		return nil, fmt.Errorf("a redirect that is not followed: %w", err)
	}
	return to, nil
}

// elsewhere tells a redirect to another host. It was not agreed to go there,
// so the model has to ask for it by name.
func elsewhere(from, to *url.URL, code int) page {
	return page{code: code, text: fmt.Sprintf("%s redirects to another host, which was not followed (status %d %s).\nIf you want to go there, call WebFetch with this url:\n%s",
		from, code, statusText(code), to)}
}

// field returns the first value of a header field.
func field(h map[string][]string, name string) string {
	for k, v := range h {
		if len(v) > 0 && strings.EqualFold(k, name) {
			return v[0]
		}
	}
	return ""
}

// statusText names the usual status codes.
func statusText(code int) string {
	names := map[int]string{
		200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 206: "Partial Content",
		301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
		400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
		408: "Request Timeout", 410: "Gone", 418: "I'm a teapot", 429: "Too Many Requests", 451: "Unavailable For Legal Reasons",
		500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
	}
	return names[code]
}

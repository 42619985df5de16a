package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/price"
	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/model"
	"github.com/seed-eb844fcb/cinch/internal/net/recording"
)

// connect makes the dialer and the model's client. No connection is opened.
func (a *App) connect(context.Context) error {
	a.ledger = a.openLedger()
	d, err := dial.New(dial.Options{Env: a.env.get, Only: a.o.OnlyHosts, Ledger: a.ledger})
	if err != nil {
		return err
	}
	a.dialer = d
	mo, err := a.modelOptions()
	if err != nil {
		return err
	}
	a.model, err = model.New(mo)
	return err
}

func (a *App) modelOptions() (model.Options, error) {
	o, warnings, err := model.FromEnv(a.env.get)
	if err != nil {
		return o, err
	}
	for _, w := range warnings {
		a.warn("%v", w)
	}
	o.HTTP = a.dialer.Client(dial.Use{Why: "model"})
	if a.o.Record != nil {
		rec, err := recording.NewRecorder(a.o.Record, o.HTTP.Transport, a.o.RecordAs)
		if err != nil {
			return o, fmt.Errorf("beginning the recording: %w", err)
		}
		client := *o.HTTP
		client.Transport = rec
		o.HTTP = &client
		a.onClose(func() {
			if err := rec.Err(); err != nil {
				fmt.Fprintln(a.o.Stderr, "cinch: the recording is not whole: "+err.Error())
			}
		})
	}
	o.UserAgent, o.Session, o.Fallback, o.Sent = a.userAgent(), a.sessionID, a.fallback(), a.sent
	o.Betas = append(o.Betas, a.o.Betas...)
	o.Models.Overrides = a.cfg().modelOverrides
	if a.o.BaseURL != "" {
		o.BaseURL = a.o.BaseURL
	}
	if a.o.APIKey != "" {
		o.Auth = model.Auth{Key: a.o.APIKey}
		return o, nil
	}
	if o.Auth.Key == "" && o.Auth.Token == "" {
		o.Auth.Token = a.env.get("CLAUDE_CODE_OAUTH_TOKEN")
	}
	if a.cfg().keyHelper != "" {
		o.Auth.Helper = a.helperKey
	}
	return o, nil
}

// helperKey is the credential that the settings' helper prints.
func (a *App) helperKey(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	spec := proc.Shell("", a.cfg().keyHelper)
	spec.Env, spec.Dir = a.env.list, a.o.Cwd
	out, err := proc.Run(ctx, spec, proc.Options{Guard: &a.guard}, 64<<10)
	if err != nil {
		return "", err
	}
	if key := strings.TrimSpace(string(out.Stdout)); out.OK() && key != "" {
		return key, nil
	}
	return "", fmt.Errorf("apiKeyHelper ended with %s: %s", out.Exit, strings.TrimSpace(string(out.Stderr)))
}

// keySource is what init frames say about the credential.
func (a *App) keySource() string {
	switch {
	case a.o.APIKey != "" || a.env.get("ANTHROPIC_API_KEY") != "":
		return "ANTHROPIC_API_KEY"
	case a.env.get("ANTHROPIC_AUTH_TOKEN") != "":
		return "ANTHROPIC_AUTH_TOKEN"
	case a.cfg().keyHelper != "":
		return "apiKeyHelper"
	}
	return "none"
}

// userAgent names us, and the SDK that drives us.
func (a *App) userAgent() string {
	ua := "cinch/" + a.o.Version + " (external, " + a.entrypoint()
	if v := a.env.get("CLAUDE_AGENT_SDK_VERSION"); v != "" {
		ua += ", agent-sdk/" + v
	}
	if app := a.env.get("CLAUDE_AGENT_SDK_CLIENT_APP"); app != "" {
		ua += ", client-app/" + app
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, ua) + ")"
}

func (a *App) entrypoint() string {
	if e := a.env.get("CLAUDE_CODE_ENTRYPOINT"); e != "" {
		return e
	}
	if a.o.Print {
		return "sdk-cli"
	}
	return "cli"
}

// modelName is the model the session begins with, by its id.
func (a *App) modelName() string {
	name := a.o.Model
	if name == "" {
		name = a.env.get("ANTHROPIC_MODEL")
	}
	if name == "" && a.loaded != nil {
		name = a.loaded.Model
	}
	if name == "" {
		name = a.cfg().model
	}
	if name == "" {
		name = model.Default
	}
	return a.model.Resolve(name).ID
}

func (a *App) resolve(name string) (string, error) {
	if name == "" {
		return a.modelName(), nil
	}
	if strings.ContainsAny(name, " \t\n") {
		return "", fmt.Errorf("%q cannot be the name of a model", name)
	}
	return a.model.Resolve(name).ID, nil
}

// small is the model for side questions.
func (a *App) small() string {
	return a.model.Resolve(or(a.env.first("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"), "haiku")).ID
}

func (a *App) fallback() []string {
	if len(a.o.Fallback) > 0 {
		return a.o.Fallback
	}
	return a.cfg().fallback
}

// thinking is how much the model may think, where something asks for other
// than its default.
func (a *App) thinking() (agent.Thought, string) {
	t := agent.Thought{Display: a.o.ThinkingDisplay}
	switch budget := a.o.ThinkingTokens; {
	case a.o.Thinking != "":
		t.Type = a.o.Thinking
	case a.o.ThinkingSet && budget == 0, a.env.on("CLAUDE_CODE_DISABLE_THINKING"), a.cfg().noThinking:
		t.Type = "disabled"
	case a.o.ThinkingSet:
		t.Type, t.Budget = "enabled", budget
	case a.env.get("MAX_THINKING_TOKENS") != "":
		if n := a.env.number("MAX_THINKING_TOKENS", 0); n > 0 {
			t.Type, t.Budget = "enabled", max(n, 1024)
		} else {
			t.Type = "disabled"
		}
	}
	effort := or(a.o.Effort, a.cfg().effort)
	if e := a.env.get("CLAUDE_CODE_EFFORT_LEVEL"); e != "" {
		effort = e
	}
	if effort == "auto" {
		effort = ""
	}
	return t, effort
}

// price is the cost of a response by the list.
func (a *App) price(model string, u agent.Usage) float64 {
	r, _ := a.cfg().prices.Of(model)
	return r.Cost(price.Tokens{Input: u.In, Output: u.Out, CacheRead: u.CacheRead, CacheWrite5m: u.CacheWrite5m, CacheWrite1h: u.CacheWrite1h, WebSearches: u.WebSearches})
}

func (a *App) limits(name string) (window, output int) {
	s := a.model.Resolve(name)
	return s.Window, s.MaxTokens
}

// A lazyClient is the client of WebFetch, made when it is first needed.
type lazyClient struct {
	once sync.Once
	c    *dial.HTTP
}

// errPrivate refuses addresses that a page of the web has no business at.
var errPrivate = errors.New("it is a private, loopback or link-local address, which web tools may not reach")

// webAddress refuses what web tools may not reach.
func webAddress(host string, addr netip.AddrPort) error {
	ip := addr.Addr().Unmap()
	if ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() || !ip.IsGlobalUnicast() {
		return fmt.Errorf("%s leads to %s: %w", host, ip, errPrivate)
	}
	return nil
}

func (a *App) webClient() *dial.HTTP {
	a.web.once.Do(func() {
		a.web.c = a.dialer.Client(dial.Use{
			Why:     "web",
			Control: webAddress,
			// The tool follows redirects itself, checking each.
			Redirect: dial.Stay,
		})
	})
	return a.web.c
}

// askSmall puts a question about some text to the small model.
func (a *App) askSmall(ctx context.Context, prompt, content string) (string, error) {
	return a.complete(ctx, a.small(), "fetch", content+"\n\n---\n\n"+prompt)
}

// complete asks a model one question outside of the conversation.
func (a *App) complete(ctx context.Context, name, purpose, text string) (string, error) {
	m := agent.Message{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: text}}}
	req := &agent.Request{Model: name, MaxTokens: 4096, Messages: []agent.Message{m.Encode()}, Purpose: purpose, Thinking: agent.Thought{Type: "disabled"}}
	blocks, err := a.collect(ctx, req)
	return agent.TextOf(blocks), err
}

// collect runs req and returns the blocks of the answer; its cost is the session's.
func (a *App) collect(ctx context.Context, req *agent.Request) ([]agent.Block, error) {
	var out []agent.Block
	for d, err := range a.Session.Metered(a.model).Stream(ctx, req) {
		if err != nil {
			return out, err
		}
		switch d := d.(type) {
		case agent.Reset:
			out = nil
		case agent.BlockEnd:
			out = append(out, d.Block)
		}
	}
	return out, nil
}

// search runs one web search upstream.
func (a *App) search(ctx context.Context, query string, allowed, blocked []string) (string, error) {
	tool := map[string]any{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
	if len(allowed) > 0 {
		tool["allowed_domains"] = allowed
	}
	if len(blocked) > 0 {
		tool["blocked_domains"] = blocked
	}
	tools, err := marshal([]any{tool})
	if err != nil {
		return "", err
	}
	m := agent.Message{Role: agent.User, Blocks: []agent.Block{&agent.Text{Text: "Search the web for: " + query}}}
	system, err := marshal([]any{map[string]any{"type": "text", "text": "Search the web for what the user asks, and answer with what was found and where."}})
	if err != nil {
		return "", err
	}
	blocks, err := a.collect(ctx, &agent.Request{
		Model: a.Session.Model(), System: system, Tools: tools, Messages: []agent.Message{m.Encode()}, Purpose: "search",
		Extra: map[string]json_{"tool_choice": json_(`{"type":"auto"}`)}, Thinking: agent.Thought{Type: "disabled"},
	})
	if err != nil {
		return "", err
	}
	return searched(query, blocks), nil
}

// searched is the answer of a search as the model gets it: the links, then
// what was said about them.
func searched(query string, blocks []agent.Block) string {
	var b strings.Builder
	b.WriteString("Web search results for " + strconv.Quote(query) + ":\n")
	for _, blk := range blocks {
		o, ok := blk.(*agent.Opaque)
		if !ok || o.Type != "web_search_tool_result" {
			continue
		}
		var r struct {
			Content json_ `json:"content"`
		}
		var hits []struct{ Title, URL string }
		if unmarshal(o.Raw, &r) != nil {
			continue
		}
		if unmarshal(r.Content, &hits) != nil {
			b.WriteString("\nThe search failed: " + string(r.Content) + "\n")
			continue
		}
		for _, h := range hits {
			if _, err := url.Parse(h.URL); err == nil {
				b.WriteString("\n- " + h.Title + "\n  " + h.URL)
			}
		}
		b.WriteByte('\n')
	}
	if text := agent.TextOf(blocks); text != "" {
		b.WriteString("\n" + text + "\n")
	}
	b.WriteString("\nName the sources you use, with their links.")
	return b.String()
}

package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/model/catalog"
)

// FromEnv reads the options that the environment holds: where, how to
// authenticate, which models, clocks and retries. HTTP, UserAgent, Session,
// UserID, Fallback and Auth.Helper are left to the caller. An error means
// that requests would not be what was asked for; warnings are values that
// cannot be used and were left at their defaults.
func FromEnv(env func(string) string) (o Options, warnings []error, err error) {
	e := reader{env: env}
	o.BaseURL = env("ANTHROPIC_BASE_URL")
	o.Auth = Auth{Key: strings.TrimSpace(env("ANTHROPIC_API_KEY")), Token: strings.TrimSpace(env("ANTHROPIC_AUTH_TOKEN"))}
	o.Auth.HelperTTL = e.millis("CLAUDE_CODE_API_KEY_HELPER_TTL_MS", 0, math.MaxInt32)
	var errHeaders, errExtra, errKey error
	o.Headers, errHeaders = ParseHeaders(env("ANTHROPIC_CUSTOM_HEADERS"))
	o.Betas = strings.FieldsFunc(env("ANTHROPIC_BETAS"), func(r rune) bool { return r == ',' || r <= ' ' })
	if s := strings.TrimSpace(env("CLAUDE_CODE_EXTRA_BODY")); s != "" {
		if json.Unmarshal([]byte(s), &o.Extra) != nil {
			errExtra = errors.New("CLAUDE_CODE_EXTRA_BODY is no JSON object")
		}
	}
	for name, v := range map[string]string{"ANTHROPIC_API_KEY": o.Auth.Key, "ANTHROPIC_AUTH_TOKEN": o.Auth.Token} {
		if at := badByte(v); at >= 0 {
			errKey = fmt.Errorf("%s: invalid request header value: character %d is not allowed", name, at+1)
		}
	}
	e.models(&o.Models)
	e.thinking(&o)
	e.features(&o)
	e.clocks(&o)
	return o, e.warnings, errors.Join(errHeaders, errExtra, errKey)
}

// A reader reads typed variables and collects what it cannot read.
type reader struct {
	env      func(string) string
	warnings []error
}

func (e *reader) on(name string) bool {
	switch strings.ToLower(strings.TrimSpace(e.env(name))) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// number reads a number such as 64000, 64_000 or 2e3. ok is false if there is
// none; what is out of bounds goes to the nearest bound.
func (e *reader) number(name string, low, high int) (n int, ok bool) {
	s := strings.TrimSpace(e.env(name))
	if s == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || math.IsNaN(f) {
		e.warnings = append(e.warnings, fmt.Errorf("%s: %q is no number", name, s))
		return 0, false
	}
	return int(min(max(f, float64(low)), float64(high))), true
}

func (e *reader) millis(name string, low, high int) time.Duration {
	n, _ := e.number(name, low, high)
	return time.Duration(n) * time.Millisecond
}

func (e *reader) models(m *catalog.Models) {
	m.Aliases = map[string]string{}
	for alias, names := range map[string][]string{
		"opus":          {"ANTHROPIC_DEFAULT_OPUS_MODEL"},
		"sonnet":        {"ANTHROPIC_DEFAULT_SONNET_MODEL"},
		"haiku":         {"ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"},
		"fable":         {"ANTHROPIC_DEFAULT_FABLE_MODEL"},
		catalog.Default: {"ANTHROPIC_DEFAULT_MODEL"},
	} {
		for _, name := range names {
			if v := strings.TrimSpace(e.env(name)); v != "" {
				m.Aliases[alias] = v
				break
			}
		}
	}
	m.MaxOutput, _ = e.number("CLAUDE_CODE_MAX_OUTPUT_TOKENS", 1, math.MaxInt32)
	m.Window, _ = e.number("CLAUDE_CODE_MAX_CONTEXT_TOKENS", 1, math.MaxInt32)
	m.No1M = e.on("CLAUDE_CODE_DISABLE_1M_CONTEXT")
}

func (e *reader) thinking(o *Options) {
	if n, ok := e.number("MAX_THINKING_TOKENS", 0, math.MaxInt32); ok {
		if n == 0 {
			o.Think = agent.Thought{Type: "disabled"}
		} else {
			o.Think = agent.Thought{Type: "enabled", Budget: max(n, 1024)}
		}
	}
	for name, feature := range map[string]string{
		"CLAUDE_CODE_DISABLE_THINKING":          "thinking",
		"CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING": "adaptive-thinking",
		"DISABLE_INTERLEAVED_THINKING":          "interleaved-thinking",
	} {
		if e.on(name) {
			o.Without = append(o.Without, feature)
		}
	}
}

func (e *reader) features(o *Options) {
	if e.on("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS") {
		o.Without = append(o.Without, "betas")
	}
	for name, feature := range map[string]string{
		"DISABLE_PROMPT_CACHING":        "cache",
		"DISABLE_PROMPT_CACHING_HAIKU":  "cache haiku",
		"DISABLE_PROMPT_CACHING_SONNET": "cache sonnet",
		"DISABLE_PROMPT_CACHING_OPUS":   "cache opus",
		"DISABLE_PROMPT_CACHING_FABLE":  "cache fable",
	} {
		if e.on(name) {
			o.Without = append(o.Without, feature)
		}
	}
	switch v := strings.ToLower(strings.TrimSpace(e.env("ENABLE_TOOL_SEARCH"))); {
	case e.on("ENABLE_TOOL_SEARCH"), v == "auto", strings.HasPrefix(v, "auto:"):
		o.With = append(o.With, "tool-search")
	case v == "false" || v == "0" || v == "no" || v == "off":
		o.Without = append(o.Without, "tool-search")
	}
	if e.on("ENABLE_PROMPT_CACHING_1H") && !e.on("FORCE_PROMPT_CACHING_5M") {
		o.MarkTTL = "1h"
	}
}

func (e *reader) clocks(o *Options) {
	if n, ok := e.number("CLAUDE_CODE_MAX_RETRIES", 0, maxRetries); ok {
		if o.MaxRetries = n; n == 0 {
			o.MaxRetries = -1
		}
	}
	o.Patient = e.on("CLAUDE_CODE_RETRY_WATCHDOG")
	o.StreamOnly = e.on("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK")
	def := Clocks{}.filled()
	if d := e.millis("API_TIMEOUT_MS", 1, math.MaxInt32); d > 0 {
		// One clock for the whole of a request there; here it bounds each wait
		// up to the answer, and raising it raises what may be spent on retries.
		o.Clocks.FirstByte, o.Clocks.Whole = d, d
		o.Clocks.Connect = min(d, def.Connect)
		o.Clocks.Total = max(d, def.Total)
	}
	if d := e.millis("CLAUDE_STREAM_IDLE_TIMEOUT_MS", 300_000, math.MaxInt32); d > 0 {
		o.Clocks.Idle = d
	}
	if d := e.millis("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", 10_000, 30*60_000); d > 0 {
		o.Clocks.Idle = d
	}
}

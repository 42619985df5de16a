package model

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A feature is something that not every upstream accepts.
type feature struct {
	name string
	beta string // the value of anthropic-beta that goes with it, or ""
	// fields are the names under which errors speak of it, separated by spaces.
	fields string
	// model: whether it is accepted is a matter of the model, not of the upstream.
	model bool
}

// features lists what may be left out of a request, one by one. It is a
// table: nothing changes it.
var features = [...]feature{
	{name: "thinking", fields: "thinking", model: true},
	{name: "adaptive-thinking", fields: "adaptive", model: true},
	{name: "thinking-display", fields: "display", model: true},
	{name: "interleaved-thinking", beta: "interleaved-thinking-2025-05-14", model: true},
	{name: "effort", beta: "effort-2025-11-24", fields: "effort", model: true},
	{name: "output-config", fields: "output_config"},
	{name: "structured-output", beta: "structured-outputs-2025-11-13", fields: "output_format format"},
	{name: "context-management", beta: "context-management-2025-06-27", fields: "context_management"},
	{name: "tool-search", beta: "advanced-tool-use-2025-11-20", fields: "defer_loading tool_reference"},
	{name: "strict-tools", fields: "strict"},
	{name: "eager-input", beta: "fine-grained-tool-streaming-2025-05-14", fields: "eager_input_streaming"},
	{name: "context-1m", beta: "context-1m-2025-08-07", model: true},
	{name: "cache", fields: "cache_control"},
	{name: "cache-1h", beta: "extended-cache-ttl-2025-04-11", fields: "ttl"},
	{name: "cache-scope", beta: "prompt-caching-scope-2026-01-05", fields: "scope"},
	{name: "metadata", fields: "metadata user_id"},
	{name: "count-tokens"},
}

// named reports whether field is one of the names of f.
func (f feature) named(field string) bool {
	return field != "" && slices.Contains(strings.Fields(f.fields), field)
}

// byName returns the feature of that name; a name that is none is a beta of
// its own.
func byName(name string) feature {
	for _, f := range features {
		if f.name == name || f.beta == name && name != "" {
			return f
		}
	}
	return feature{name: name, beta: name}
}

// A Cap is what is known about one feature of the upstream.
type Cap struct {
	Feature string
	Beta    string // the header value that goes with it, or ""
	Model   string // set if this holds for one model, or one family of models, only
	Allowed bool
	Why     string // of a refusal: "settings", "not the public API", or the upstream's words
	Learned time.Time
}

// caps is the capability table of one upstream. It starts from what is known
// beforehand and learns from refusals; what is learned holds as long as the
// client lives.
type caps struct {
	mu     sync.Mutex
	denied map[string]Cap // by feature, or by feature and model
	nobeta bool
}

func (c *caps) init(firstParty bool, without, with []string) {
	c.denied = map[string]Cap{}
	deny := func(name, why string) {
		name, model, _ := strings.Cut(name, " ") // "cache haiku" is of a family
		f := byName(name)
		key := strings.TrimSpace(f.name + " " + model)
		c.denied[key] = Cap{Feature: f.name, Beta: f.beta, Model: model, Why: why}
	}
	if !firstParty {
		// Gateways tend to reject deferred tools, and a refusal would cost
		// every session a request.
		deny("tool-search", "not the public API")
	}
	for _, name := range with {
		delete(c.denied, byName(name).name)
	}
	for _, name := range without {
		if name == "betas" {
			c.nobeta = true
			for _, f := range features {
				if f.beta != "" {
					deny(f.name, "settings")
				}
			}
			continue
		}
		deny(name, "settings")
	}
}

// allows reports whether a request to model may use the feature.
func (c *caps) allows(name, model string) bool {
	f := byName(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nobeta && f.beta != "" {
		return false
	}
	if _, no := c.denied[f.name]; no {
		return false
	}
	for _, key := range []string{model, family(model)} {
		if _, no := c.denied[f.name+" "+key]; no {
			return false
		}
	}
	return true
}

// family is the kind of a model: opus, sonnet, haiku, fable, or "".
func family(model string) string {
	for _, name := range []string{"opus", "sonnet", "haiku", "fable"} {
		if strings.Contains(model, name) {
			return name
		}
	}
	return ""
}

// deny remembers that the upstream refused a feature.
func (c *caps) deny(name, model, why string) {
	f := byName(name)
	key := f.name
	if !f.model {
		model = ""
	} else {
		key += " " + model
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied[key] = Cap{Feature: f.name, Beta: f.beta, Model: model, Why: why, Learned: time.Now()}
}

// Caps returns what is known about the upstream: one entry for each feature,
// and one more for each model that lacks it.
func (c *Client) Caps() []Cap {
	c.caps.mu.Lock()
	defer c.caps.mu.Unlock()
	var out []Cap
	for _, f := range features {
		if _, no := c.caps.denied[f.name]; !no {
			out = append(out, Cap{Feature: f.name, Beta: f.beta, Allowed: true})
		}
	}
	for _, k := range c.caps.denied {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Cap) int {
		if n := strings.Compare(a.Feature, b.Feature); n != 0 {
			return n
		}
		return strings.Compare(a.Model, b.Model)
	})
	return out
}

// Allows reports whether requests to model may use a feature, by the name
// that Request.Features and Caps give it.
func (c *Client) Allows(feature, model string) bool {
	return c.caps.allows(feature, c.o.Models.Resolve(model).ID)
}

// blame returns the names of those among the sent features that a refusal
// speaks of. message are the upstream's words.
func blame(message string, sent []string) []string {
	lower := strings.ToLower(message)
	if _, rest, ok := strings.Cut(lower, "capability_rejected:"); ok {
		word, _, _ := strings.Cut(strings.TrimSpace(rest)+" ", " ")
		word = strings.Trim(word, "`'\".,;)")
		for _, name := range sent {
			f := byName(name)
			if word == f.name || word == f.beta || f.named(word) || strings.ReplaceAll(word, "_", "-") == f.name {
				return []string{name}
			}
		}
	}
	var out []string
	for _, name := range sent {
		if f := byName(name); f.beta != "" && strings.Contains(lower, f.beta) {
			out = append(out, name)
		}
	}
	if len(out) > 0 {
		return out
	}
	if path := errorPath(lower); path != "" {
		if path == "thinking" && hasWord(lower, "adaptive") && slices.Contains(sent, "adaptive-thinking") {
			return []string{"adaptive-thinking"}
		}
		return blamePath(path, sent)
	}
	if strings.Contains(lower, "beta") && mentions(lower, "invalid", "unexpected", "unknown", "unsupported", "not supported", "unrecognized", "not allowed") {
		// A beta is refused and not named: all of them go.
		for _, name := range sent {
			if byName(name).beta != "" {
				out = append(out, name)
			}
		}
		return out
	}
	if !mentions(lower, "not support", "unsupported", "not permitted", "not allowed", "unknown", "unrecognized", "unexpected", "extra inputs", "not available", "invalid") {
		return nil
	}
	// In prose the most particular name counts: adaptive before thinking.
	for _, name := range []string{"adaptive-thinking", "thinking-display", "context-management", "tool-search", "eager-input", "strict-tools", "effort", "cache-1h", "cache", "output-config", "metadata"} {
		if !slices.Contains(sent, name) {
			continue
		}
		for field := range strings.FieldsSeq(byName(name).fields) {
			if hasWord(lower, field) {
				return []string{name}
			}
		}
	}
	if slices.Contains(sent, "thinking") && hasWord(lower, "thinking") && !mentions(lower, "signature", "block", "budget") {
		return []string{"thinking"}
	}
	return nil
}

// blamePath finds the feature at a path such as tools.0.custom.defer_loading.
func blamePath(path string, sent []string) []string {
	parts := strings.Split(path, ".")
	if parts[0] == "thinking" && parts[len(parts)-1] == "type" && slices.Contains(sent, "adaptive-thinking") {
		return []string{"adaptive-thinking"}
	}
	// Below these roots most of what a path names is content, whatever it is called.
	var among []string
	switch parts[0] {
	case "messages", "system":
		among = []string{"cache", "cache-1h", "cache-scope", "tool-search"}
	case "tools":
		among = []string{"cache", "cache-1h", "cache-scope", "tool-search", "strict-tools", "eager-input"}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		for _, name := range sent {
			if byName(name).named(parts[i]) && (among == nil || slices.Contains(among, name)) {
				return []string{name}
			}
		}
	}
	return nil
}

// errorPath returns the path that a message of the API begins with, or "":
// "tools.0.custom.defer_loading: Extra inputs are not permitted".
func errorPath(message string) string {
	path, _, ok := strings.Cut(message, ":")
	if !ok || path == "" {
		return ""
	}
	for _, r := range path {
		if r != '_' && r != '.' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return ""
		}
	}
	return path
}

func mentions(s string, phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// hasWord reports whether s has w with no letter or underscore beside it.
func hasWord(s, w string) bool {
	for i := 0; ; {
		n := strings.Index(s[i:], w)
		if n < 0 {
			return false
		}
		i += n
		before := i == 0 || !wordByte(s[i-1])
		i += len(w)
		if before && (i == len(s) || !wordByte(s[i])) {
			return true
		}
	}
}

func wordByte(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// Package caps knows what an upstream accepts of what not every upstream
// accepts. It owns the list of features, the table of one upstream, and
// finding out which feature a refusal speaks of; it must not know how
// requests are made or sent.
package caps

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A Feature is something that not every upstream accepts.
type Feature struct {
	Name string
	Beta string // the value of anthropic-beta that goes with it, or ""
	// Fields are the names under which requests have it and errors speak of
	// it, separated by spaces; the first is the field of the request.
	Fields string
	// Model: whether it is accepted is a matter of the model, not of the upstream.
	Model bool
}

// features lists what may be left out of a request, one by one. It is a
// table: nothing changes it.
var features = [...]Feature{
	{Name: "thinking", Fields: "thinking", Model: true},
	{Name: "adaptive-thinking", Fields: "adaptive", Model: true},
	{Name: "thinking-display", Fields: "display", Model: true},
	{Name: "interleaved-thinking", Beta: "interleaved-thinking-2025-05-14", Model: true},
	{Name: "effort", Beta: "effort-2025-11-24", Fields: "effort", Model: true},
	{Name: "output-config", Fields: "output_config"},
	{Name: "structured-output", Beta: "structured-outputs-2025-11-13", Fields: "output_format format"},
	{Name: "context-management", Beta: "context-management-2025-06-27", Fields: "context_management"},
	{Name: "tool-search", Beta: "advanced-tool-use-2025-11-20", Fields: "defer_loading tool_reference"},
	{Name: "strict-tools", Fields: "strict"},
	{Name: "eager-input", Beta: "fine-grained-tool-streaming-2025-05-14", Fields: "eager_input_streaming"},
	{Name: "context-1m", Beta: "context-1m-2025-08-07", Model: true},
	{Name: "cache", Fields: "cache_control"},
	{Name: "cache-1h", Beta: "extended-cache-ttl-2025-04-11", Fields: "ttl"},
	{Name: "cache-scope", Beta: "prompt-caching-scope-2026-01-05", Fields: "scope"},
	{Name: "metadata", Fields: "metadata user_id"},
	{Name: "count-tokens"},
}

// named reports whether field is one of the names of f.
func (f Feature) named(field string) bool {
	return field != "" && slices.Contains(strings.Fields(f.Fields), field)
}

// ByName returns the feature of that name; a name that is none is a beta of
// its own.
func ByName(name string) Feature {
	for _, f := range features {
		if f.Name == name || f.Beta == name && name != "" {
			return f
		}
	}
	return Feature{Name: name, Beta: name}
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

// A Table says what one upstream accepts. It starts from what is known
// beforehand and learns from refusals; what is learned holds as long as the
// table lives. Its methods may be called concurrently.
type Table struct {
	mu     sync.Mutex
	denied map[string]Cap // by feature, or by feature and model
	nobeta bool
}

// New returns the table of the public API (firstParty) or of a gateway.
// without and with name features, or single betas, that are not used or used
// all the same; "betas" in without is all that need a beta, "cache haiku" the
// cache for a family of models.
func New(firstParty bool, without, with []string) *Table {
	c := &Table{denied: map[string]Cap{}}
	deny := func(name, why string) {
		name, model, _ := strings.Cut(name, " ") // "cache haiku" is of a family
		f := ByName(name)
		key := strings.TrimSpace(f.Name + " " + model)
		c.denied[key] = Cap{Feature: f.Name, Beta: f.Beta, Model: model, Why: why}
	}
	if !firstParty {
		// Gateways tend to reject deferred tools, and a refusal would cost
		// every session a request.
		deny("tool-search", "not the public API")
	}
	for _, name := range with {
		delete(c.denied, ByName(name).Name)
	}
	for _, name := range without {
		if name == "betas" {
			c.nobeta = true
			for _, f := range features {
				if f.Beta != "" {
					deny(f.Name, "settings")
				}
			}
			continue
		}
		deny(name, "settings")
	}
	return c
}

// Allows reports whether a request to model may use the feature.
func (c *Table) Allows(name, model string) bool {
	f := ByName(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nobeta && f.Beta != "" {
		return false
	}
	if _, no := c.denied[f.Name]; no {
		return false
	}
	for _, key := range []string{model, family(model)} {
		if _, no := c.denied[f.Name+" "+key]; no {
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

// Deny remembers that the upstream refused a feature.
func (c *Table) Deny(name, model, why string) {
	f := ByName(name)
	key := f.Name
	if !f.Model {
		model = ""
	} else {
		key += " " + model
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied[key] = Cap{Feature: f.Name, Beta: f.Beta, Model: model, Why: why, Learned: time.Now()}
}

// List returns what is known about the upstream, sorted: one entry for each
// feature, and one more for each model that lacks it.
func (c *Table) List() []Cap {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Cap
	for _, f := range features {
		if _, no := c.denied[f.Name]; !no {
			out = append(out, Cap{Feature: f.Name, Beta: f.Beta, Allowed: true})
		}
	}
	for _, k := range c.denied {
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

// Why is the reason for which requests to model do not use a feature, or "".
func (c *Table) Why(feature, model string) string {
	for _, k := range c.List() {
		if k.Feature == feature && !k.Allowed && (k.Model == "" || k.Model == model || k.Model == family(model)) {
			return k.Why
		}
	}
	return ""
}

// Blame returns the names of those among the sent features that a refusal
// speaks of. message are the upstream's words.
func Blame(message string, sent []string) []string {
	lower := strings.ToLower(message)
	if _, rest, ok := strings.Cut(lower, "capability_rejected:"); ok {
		word, _, _ := strings.Cut(strings.TrimSpace(rest)+" ", " ")
		word = strings.Trim(word, "`'\".,;)")
		for _, name := range sent {
			f := ByName(name)
			if word == f.Name || word == f.Beta || f.named(word) || strings.ReplaceAll(word, "_", "-") == f.Name {
				return []string{name}
			}
		}
	}
	var out []string
	for _, name := range sent {
		if f := ByName(name); f.Beta != "" && strings.Contains(lower, f.Beta) {
			out = append(out, name)
		}
	}
	if len(out) > 0 {
		return out
	}
	if path := errorPath(lower); path != "" {
		if path == "thinking" && HasWord(lower, "adaptive") && slices.Contains(sent, "adaptive-thinking") {
			return []string{"adaptive-thinking"}
		}
		return blamePath(path, sent)
	}
	if strings.Contains(lower, "beta") && Mentions(lower, "invalid", "unexpected", "unknown", "unsupported", "not supported", "unrecognized", "not allowed") {
		// A beta is refused and not named: all of them go.
		for _, name := range sent {
			if ByName(name).Beta != "" {
				out = append(out, name)
			}
		}
		return out
	}
	if !Mentions(lower, "not support", "unsupported", "not permitted", "not allowed", "unknown", "unrecognized", "unexpected", "extra inputs", "not available", "invalid") {
		return nil
	}
	// In prose the most particular name counts: adaptive before thinking.
	for _, name := range []string{"adaptive-thinking", "thinking-display", "context-management", "tool-search", "eager-input", "strict-tools", "effort", "cache-1h", "cache", "output-config", "metadata"} {
		if !slices.Contains(sent, name) {
			continue
		}
		for field := range strings.FieldsSeq(ByName(name).Fields) {
			if HasWord(lower, field) {
				return []string{name}
			}
		}
	}
	if slices.Contains(sent, "thinking") && HasWord(lower, "thinking") && !Mentions(lower, "signature", "block", "budget") {
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
			if ByName(name).named(parts[i]) && (among == nil || slices.Contains(among, name)) {
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

// Mentions reports whether s has one of the phrases.
func Mentions(s string, phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// HasWord reports whether s has w with no letter or underscore beside it.
func HasWord(s, w string) bool {
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

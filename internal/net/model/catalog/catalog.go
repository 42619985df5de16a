// Package catalog knows the models: what names stand for and what each model
// takes. It owns the table; it must not know who asks or where requests go.
// Everything in it is pure.
package catalog

import (
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// A Spec says what a model can do and what a request to it asks for when the
// caller leaves it open.
type Spec struct {
	ID        string // as it is sent
	MaxTokens int    // the default of max_tokens and its ceiling
	Window    int    // context window in tokens
	Thinking  agent.Thought
	Adaptive  bool     // takes thinking of type "adaptive"
	Budget    bool     // takes thinking of type "enabled" with a budget
	Off       bool     // takes thinking of type "disabled"
	Effort    string   // the default effort, "" if the model takes none
	Efforts   []string // the levels it takes, from low to high
	Known     bool     // in the table; false means that all of this is assumed
	Long      bool     // the [1m] suffix was given and the model needs a beta for it
}

// Models is how names of models are understood. The zero value knows the
// aliases and the built-in table.
type Models struct {
	// Aliases replace the ids that fable, opus, sonnet, haiku, default and
	// best stand for.
	Aliases map[string]string
	// Overrides replace the id that is sent for a full model id (ARNs,
	// deployment names); they are not resolved further.
	Overrides map[string]string
	// MaxOutput, if not 0, replaces the default of max_tokens, up to the
	// ceiling of a known model.
	MaxOutput int
	// Window, if not 0, is assumed for models that are not in the table.
	Window int
	// No1M makes the [1m] suffix mean nothing.
	No1M bool
}

// Default is what a client asks for when nobody chose a model.
const Default = "default"

// The ids behind the aliases.
const (
	opus   = "claude-opus-5-5"
	sonnet = "claude-sonnet-5-5"
	haiku  = "claude-haiku-5-5"
	fable  = "claude-fable-5-2"
)

const million = 1_000_000

// Alias returns the id that name stands for, and whether name is an alias.
// "opusplan" is opus in plan mode and sonnet otherwise: its caller decides,
// and here it stands for sonnet.
func (m Models) Alias(name string) (id string, ok bool) {
	key, suffix := strings.ToLower(strings.TrimSpace(name)), ""
	if base, long := strings.CutSuffix(key, "[1m]"); long {
		key, suffix = base, "[1m]"
	}
	switch key {
	case "", "best":
		key = Default
	case "opusplan":
		key = "sonnet"
	}
	id = m.Aliases[key]
	if id == "" && key == Default {
		key, id = "opus", m.Aliases["opus"]
	}
	if id == "" {
		switch key {
		case "opus":
			id = opus
		case "sonnet":
			id = sonnet
		case "haiku":
			id = haiku
		case "fable":
			id = fable
		default:
			return name, false
		}
	}
	return strings.TrimSuffix(id, suffix) + suffix, true
}

// Resolve returns the spec of the model that name, an alias or an id with or
// without the [1m] suffix, stands for. It never fails: an unknown name is
// sent as it is, with cautious assumptions.
func (m Models) Resolve(name string) Spec {
	id, _ := m.Alias(name)
	id = strings.TrimSpace(id)
	base, long := strings.CutSuffix(id, "[1m]")
	s := lookup(base)
	s.ID = base
	if to := m.Overrides[base]; to != "" {
		s.ID = to
	}
	if !s.Known && m.Window > 0 {
		s.Window = m.Window
	}
	if long && !m.No1M && s.Window < million {
		s.Window, s.Long = million, s.Known
	}
	if m.MaxOutput > 0 && (!s.Known || m.MaxOutput < s.MaxTokens) {
		s.MaxTokens = m.MaxOutput
	}
	return s
}

var (
	fourEfforts = []string{"low", "medium", "high", "max"}
	allEfforts  = []string{"low", "medium", "high", "xhigh", "max"}
)

// lookup finds an id in the table: by the model's name inside it, so that the
// ids of clouds and dated ids are found too.
func lookup(id string) Spec {
	name := strings.ToLower(id)
	if i := strings.LastIndex(name, "claude-"); i >= 0 {
		name = name[i+len("claude-"):]
	}
	name = strings.ReplaceAll(name, ".", "-")
	omitted := agent.Thought{Type: "adaptive", Display: "omitted"}
	is := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if rest, ok := strings.CutPrefix(name, p); ok && (rest == "" || !isVersion(rest)) {
				return true
			}
		}
		return false
	}
	current := Spec{MaxTokens: 128_000, Window: million, Thinking: omitted, Adaptive: true, Effort: "medium", Efforts: allEfforts, Known: true}
	switch {
	case is("opus-5-5", "fable-5-2"):
		return current
	case is("sonnet-5-5", "haiku-5-5"):
		current.Off = true
		return current
	case is("fable-5-1", "fable-5", "mythos-5-1", "mythos-5"):
		current.Effort = "high"
		return current
	case is("opus-5", "sonnet-5"):
		current.Effort, current.Off = "high", true
		return current
	case is("opus-4-8", "opus-4-7"):
		return Spec{MaxTokens: 64_000, Window: 200_000, Thinking: omitted, Adaptive: true, Off: true, Effort: "high", Efforts: allEfforts, Known: true}
	case is("opus-4-6", "sonnet-4-6"):
		return Spec{MaxTokens: 64_000, Window: 200_000, Thinking: omitted, Adaptive: true, Budget: true, Off: true, Effort: "high", Efforts: fourEfforts, Known: true}
	case is("opus-4-5", "sonnet-4-5", "haiku-4-5"):
		s := budgeted(64_000, 31_999)
		if strings.HasPrefix(name, "opus") {
			s.Effort, s.Efforts = "high", []string{"low", "medium", "high"}
		}
		return s
	case is("sonnet-4", "sonnet-4-0"):
		return budgeted(32_000, 31_999)
	case is("opus-4-1", "opus-4", "opus-4-0"):
		return budgeted(32_000, 31_999)
	case is("3-7-sonnet"):
		return budgeted(32_000, 31_999)
	case is("3-5-haiku", "3-5-sonnet"):
		return Spec{MaxTokens: 8192, Window: 200_000, Known: true}
	case is("3-opus", "3-haiku", "3-sonnet"):
		return Spec{MaxTokens: 4096, Window: 200_000, Known: true}
	}
	return Spec{MaxTokens: 32_000, Window: 200_000, Thinking: omitted, Adaptive: true, Budget: true, Off: true, Effort: "high", Efforts: allEfforts}
}

// isVersion reports whether rest goes on with a minor version, "-7", rather
// than with a date or a word: then the name is of another, newer model.
func isVersion(rest string) bool {
	if len(rest) < 2 || rest[0] != '-' {
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	}
	n := 1
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	return n > 1 && n < 4
}

func budgeted(max, budget int) Spec {
	return Spec{
		MaxTokens: max, Window: 200_000, Budget: true, Off: true, Known: true,
		Thinking: agent.Thought{Type: "enabled", Budget: budget, Display: "omitted"},
	}
}

// ClampEffort returns the level that the model takes for want: want itself, or the
// highest level below it.
func (s Spec) ClampEffort(want string) string {
	if want == "" || want == "auto" {
		want = s.Effort
	}
	rank := -1
	for i, level := range allEfforts {
		if level == want {
			rank = i
		}
	}
	best := ""
	for _, have := range s.Efforts {
		for i, level := range allEfforts {
			if level == have && i <= rank {
				best = have
			}
		}
	}
	return best
}

// Think fits a wanted thought to what the model takes.
func (s Spec) Think(want agent.Thought) agent.Thought {
	t := want
	switch want.Type {
	case "":
		t = s.Thinking
		if want.Display != "" {
			t.Display = want.Display
		}
	case "enabled":
		if !s.Budget {
			t.Type, t.Budget = "adaptive", 0
		}
	case "adaptive":
		if !s.Adaptive {
			t = s.Thinking
		}
	case "disabled":
		if !s.Off {
			// Thinking cannot be turned off here: leave it to the model.
			return agent.Thought{}
		}
		return agent.Thought{Type: "disabled"}
	}
	if t.Type == "adaptive" && !s.Adaptive || t.Type == "enabled" && !s.Budget {
		return agent.Thought{}
	}
	if t.Display == "" {
		t.Display = s.Thinking.Display
	}
	return t
}

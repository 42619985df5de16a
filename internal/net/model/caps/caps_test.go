package caps

import (
	"slices"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	t.Parallel()
	c := New(false, []string{"betas", "own-beta", "cache haiku"}, nil)
	var names []string
	for _, k := range c.List() {
		names = append(names, strings.TrimSpace(k.Feature+" "+k.Model))
	}
	if !slices.IsSorted(names) || len(names) != len(features)+2 {
		t.Errorf("got %q", names)
	}
	for _, tt := range []struct {
		feature, model string
		ok             bool
		why            string
	}{
		{"effort", "claude-opus-5-5", false, "settings"},
		{"effort-2025-11-24", "claude-opus-5-5", false, ""},
		{"any-beta-2026-01-01", "claude-opus-5-5", false, ""},
		{"cache", "claude-opus-5-5", true, ""},
		{"cache", "claude-haiku-5-5", false, "settings"},
		{"tool-search", "claude-opus-5-5", false, "settings"},
		{"metadata", "x", true, ""},
	} {
		if got, why := c.Allows(tt.feature, tt.model), c.Why(tt.feature, tt.model); got != tt.ok || why != tt.why {
			t.Errorf("%s with %s: %v, %q", tt.feature, tt.model, got, why)
		}
	}
}

func TestDeny(t *testing.T) {
	t.Parallel()
	c := New(true, nil, nil)
	c.Deny("thinking", "m1", "no thinking")
	c.Deny("metadata", "m1", "no metadata")
	for _, tt := range []struct {
		feature, model string
		ok             bool
	}{{"thinking", "m1", false}, {"thinking", "m2", true}, {"metadata", "m2", false}, {"tool-search", "m1", true}} {
		if got := c.Allows(tt.feature, tt.model); got != tt.ok {
			t.Errorf("%s with %s: %v", tt.feature, tt.model, got)
		}
	}
}

func TestBlame(t *testing.T) {
	t.Parallel()
	all := make([]string, len(features))
	for i, f := range features {
		all[i] = f.Name
	}
	for message, want := range map[string]string{
		"tools.3.custom.defer_loading: Extra inputs are not permitted":         "tool-search",
		"tools.3.custom.input_schema.effort: bad":                              "",
		"system.0.cache_control.scope: Extra inputs are not permitted":         "cache-scope",
		"system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted": "cache-1h",
		"messages.0.content.1.tool_result.content.0.tool_reference: unknown":   "tool-search",
		"messages.1.content.0: Invalid `signature` in `thinking` block":        "",
		"output_config.format: Extra inputs are not permitted":                 "structured-output",
		"output_config: Extra inputs are not permitted":                        "output-config",
		"context_management: Extra inputs are not permitted":                   "context-management",
		"adaptive thinking is not supported on this model":                     "adaptive-thinking",
		"thinking is not supported on this model":                              "thinking",
		"thinking budget is unsupported":                                       "",
		"`thinking` blocks cannot be modified; unexpected":                     "",
		"This model does not support the effort parameter":                     "effort",
		"prompt caching: cache_control is unsupported":                         "cache",
		"capability_rejected: context_management.":                             "context-management",
		"capability_rejected: effort-2025-11-24 for you":                       "effort",
		"Unexpected value(s) `context-1m-2025-08-07`":                          "context-1m",
		"something else went wrong":                                            "",
		"reinforced effort was made":                                           "",
	} {
		if got := strings.Join(Blame(message, all), " "); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
	got := Blame("invalid beta flag", []string{"cache", "effort", "tool-search"})
	if want := []string{"effort", "tool-search"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Blame("effort is not supported", []string{"cache"}); got != nil {
		t.Errorf("blamed %q, which was not sent", got)
	}
}

func FuzzBlame(f *testing.F) {
	f.Add("tools.0.custom.defer_loading: Extra inputs are not permitted")
	f.Add("capability_rejected: effort")
	f.Fuzz(func(t *testing.T, message string) {
		sent := []string{"thinking", "effort", "cache", "own-beta"}
		for _, name := range Blame(message, sent) {
			if !slices.Contains(sent, name) {
				t.Errorf("%q: blamed %s, which was not sent", message, name)
			}
		}
	})
}

package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestAlias(t *testing.T) {
	t.Parallel()
	own := Models{Aliases: map[string]string{"opus": "my-opus", "haiku": "tiny[1m]", Default: ""}}
	for _, tt := range []struct {
		models Models
		name   string
		id     string
		alias  bool
	}{
		{Models{}, "", opus, true},
		{Models{}, "default", opus, true},
		{Models{}, "best", opus, true},
		{Models{}, " Opus ", opus, true},
		{Models{}, "sonnet", sonnet, true},
		{Models{}, "sonnet[1m]", sonnet + "[1m]", true},
		{Models{}, "haiku", haiku, true},
		{Models{}, "fable", fable, true},
		{Models{}, "opusplan", sonnet, true},
		{Models{}, "claude-opus-4-8", "claude-opus-4-8", false},
		{Models{}, "Qwen", "Qwen", false},
		{own, "opus", "my-opus", true},
		{own, "default", "my-opus", true},
		{own, "haiku[1m]", "tiny[1m]", true},
		{own, "sonnet", sonnet, true},
		{Models{Aliases: map[string]string{Default: "d", "opus": "o"}}, "", "d", true},
	} {
		if id, ok := tt.models.Alias(tt.name); id != tt.id || ok != tt.alias {
			t.Errorf("%q: got %q, %v, want %q, %v", tt.name, id, ok, tt.id, tt.alias)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	type facts struct {
		ID             string
		Max, Window    int
		Thinking       string
		Effort         string
		Known, Long    bool
		Adaptive, Plan bool
	}
	for _, tt := range []struct {
		models Models
		name   string
		want   facts
	}{
		{Models{}, "opus", facts{"claude-opus-5-5", 128_000, 1_000_000, "adaptive", "medium", true, false, true, false}},
		{Models{}, "fable", facts{"claude-fable-5-2", 128_000, 1_000_000, "adaptive", "medium", true, false, true, false}},
		{Models{}, "opus[1m]", facts{"claude-opus-5-5", 128_000, 1_000_000, "adaptive", "medium", true, false, true, false}},
		{Models{}, "claude-opus-4-8[1m]", facts{"claude-opus-4-8", 64_000, 1_000_000, "adaptive", "high", true, true, true, false}},
		{Models{No1M: true}, "claude-opus-4-8[1m]", facts{"claude-opus-4-8", 64_000, 200_000, "adaptive", "high", true, false, true, false}},
		{Models{}, "claude-sonnet-4-20250514", facts{"claude-sonnet-4-20250514", 32_000, 200_000, "enabled", "", true, false, false, true}},
		{Models{}, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", facts{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000, 200_000, "enabled", "", true, false, false, true}},
		{Models{}, "claude-opus-4-5@20251101", facts{"claude-opus-4-5@20251101", 64_000, 200_000, "enabled", "high", true, false, false, true}},
		{Models{}, "anthropic/claude-fable-5.1", facts{"anthropic/claude-fable-5.1", 128_000, 1_000_000, "adaptive", "high", true, false, true, false}},
		{Models{}, "claude-3-5-haiku-20241022", facts{"claude-3-5-haiku-20241022", 8192, 200_000, "", "", true, false, false, false}},
		{Models{}, "claude-opus-5-9", facts{"claude-opus-5-9", 32_000, 200_000, "adaptive", "high", false, false, true, true}},
		{Models{}, "claude-sonnet-41", facts{"claude-sonnet-41", 32_000, 200_000, "adaptive", "high", false, false, true, true}},
		{Models{Window: 64_000, MaxOutput: 50_000}, "qwen", facts{"qwen", 50_000, 64_000, "adaptive", "high", false, false, true, true}},
		{Models{Window: 64_000, MaxOutput: 500_000}, "opus", facts{"claude-opus-5-5", 128_000, 1_000_000, "adaptive", "medium", true, false, true, false}},
		{Models{Overrides: map[string]string{"claude-opus-5-5": "arn:aws:x"}}, "opus", facts{"arn:aws:x", 128_000, 1_000_000, "adaptive", "medium", true, false, true, false}},
	} {
		s := tt.models.Resolve(tt.name)
		got := facts{s.ID, s.MaxTokens, s.Window, s.Thinking.Type, s.Effort, s.Known, s.Long, s.Adaptive, s.Budget}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestClampEffort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ model, want, got string }{
		{"opus", "", "medium"}, {"opus", "auto", "medium"}, {"opus", "xhigh", "xhigh"}, {"claude-opus-4-6", "xhigh", "high"}, {"claude-opus-4-5", "max", "high"},
		{"claude-sonnet-4-5", "high", ""}, {"opus", "huge", ""}, {"claude-3-haiku", "", ""},
	} {
		if got := (Models{}).Resolve(tt.model).ClampEffort(tt.want); got != tt.got {
			t.Errorf("%s %q: got %q, want %q", tt.model, tt.want, got, tt.got)
		}
	}
}

func TestThink(t *testing.T) {
	t.Parallel()
	type th = agent.Thought
	for _, tt := range []struct {
		model      string
		want, gets th
	}{
		{"opus", th{}, th{Type: "adaptive", Display: "omitted"}},
		{"opus", th{Display: "summarized"}, th{Type: "adaptive", Display: "summarized"}},
		{"opus", th{Type: "disabled"}, th{}},
		{"sonnet", th{Type: "disabled"}, th{Type: "disabled"}},
		{"opus", th{Type: "enabled", Budget: 9}, th{Type: "adaptive", Display: "omitted"}},
		{"claude-sonnet-4-5", th{Type: "enabled", Budget: 9}, th{Type: "enabled", Budget: 9, Display: "omitted"}},
		{"claude-sonnet-4-5", th{Type: "adaptive"}, th{Type: "enabled", Budget: 31_999, Display: "omitted"}},
		{"claude-3-5-haiku", th{Type: "adaptive"}, th{}},
		{"claude-3-5-haiku", th{Type: "enabled", Budget: 2000}, th{}},
		{"qwen", th{Type: "enabled", Budget: 2000}, th{Type: "enabled", Budget: 2000, Display: "omitted"}},
	} {
		if got := (Models{}).Resolve(tt.model).Think(tt.want); got != tt.gets {
			t.Errorf("%s %+v: got %+v, want %+v", tt.model, tt.want, got, tt.gets)
		}
	}
}

package compact

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits are the sizes a request must keep. The zero value never shortens
// anything.
type Limits struct {
	Window    int // tokens of the model's context window; 0: unknown
	Threshold int // tokens at which the history is shortened
	Output    int // tokens that a summary may have
	// Auto shortens without being asked; Off refuses also when asked.
	Auto, Off bool
	Bytes     int // of a whole request; 0: 32 MB
	Pages     int // of PDF in a request; 0: 100
	Media     int // images and documents in a request; 0: 100
	Results   int // bytes of tool results that one message may hold; 0: a quarter of the window
	// Problems says which wishes were not followed, and why.
	Problems []string
}

// reserve is kept free below the window: 20,000 tokens for an answer, the
// rest for what one step may add. It is what the reference reports.
const reserve = 33_000

// A Wish is what model, settings, flags and environment say about the window.
type Wish struct {
	// Window is the model's, Assumed if its id is not known.
	Window  int
	Assumed bool
	// Enabled is the setting autoCompactEnabled, if it is set.
	Enabled *bool
	// Setting is autoCompactWindow, Flag --autocompact. "" if not given.
	Setting, Flag string
	// Env looks a variable up. Nil: none is set.
	Env func(string) string
}

// Limits returns the limits that w asks for. Wishes that make no sense are
// left out and told in Problems.
func (w Wish) Limits() Limits {
	env := w.Env
	if env == nil {
		env = func(string) string { return "" }
	}
	l := Limits{Window: w.Window, Auto: w.Enabled == nil || *w.Enabled, Output: 20_000}
	if v := env("CLAUDE_CODE_MAX_CONTEXT_TOKENS"); v != "" && w.Assumed {
		if n, err := strconv.Atoi(v); err == nil && n > 0 {
			l.Window = n
		} else {
			l.tell("CLAUDE_CODE_MAX_CONTEXT_TOKENS is %q: it takes a number of tokens", v)
		}
	}
	if on(env("CLAUDE_CODE_DISABLE_1M_CONTEXT")) {
		l.Window = min(l.Window, 200_000)
	}
	if on(env("DISABLE_AUTO_COMPACT")) {
		l.Auto = false
	}
	if on(env("DISABLE_COMPACT")) {
		l.Auto, l.Off = false, true
	}
	size := l.Window
	for _, x := range []struct{ name, value string }{
		{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", env("CLAUDE_CODE_AUTO_COMPACT_WINDOW")}, {"--autocompact", w.Flag}, {"autoCompactWindow", w.Setting},
	} {
		if x.value == "" || strings.EqualFold(x.value, "auto") && x.name == "--autocompact" {
			continue
		}
		n, err := ParseWindow(x.value)
		if err != nil {
			l.tell("%s: %v", x.name, err)
			continue
		}
		if l.Window > 0 {
			size = min(n, l.Window)
		}
		break
	}
	l.Threshold = size - min(reserve, size/5)
	if v := env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"); v != "" {
		switch p, err := strconv.Atoi(v); {
		case err != nil || p < 1 || p > 100:
			l.tell("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE is %q: it takes 1 to 100", v)
		default:
			l.Threshold = min(l.Threshold, size*p/100)
		}
	}
	l.Output = min(l.Output, max(l.Window/5, 1000))
	return l
}

func (l *Limits) tell(format string, args ...any) {
	l.Problems = append(l.Problems, fmt.Sprintf(format, args...))
}

// ParseWindow reads a number of tokens from 100,000 to 1,000,000: 200000,
// 500k, 1M, or 100 to 1000 for thousands.
func ParseWindow(s string) (int, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	unit := 1.0
	if u, ok := strings.CutSuffix(t, "k"); ok {
		t, unit = u, 1000
	} else if u, ok := strings.CutSuffix(t, "m"); ok {
		t, unit = u, 1_000_000
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("%q is no number of tokens: use 200000, 500k or 1M", s)
	}
	if unit == 1 && f >= 100 && f <= 1000 {
		unit = 1000
	}
	if f *= unit; f < 100_000 || f > 1_000_000 {
		return 0, fmt.Errorf("%q is not between 100k and 1M tokens", s)
	}
	return int(f), nil
}

// on reports whether an environment variable switches something on.
func on(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// filled returns l with its defaults.
func (l Limits) filled() Limits {
	def := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	def(&l.Bytes, 32<<20)
	def(&l.Pages, 100)
	def(&l.Media, 100)
	def(&l.Results, max(l.Window, 200_000)) // four bytes a token, a quarter of the window
	if l.Window > 0 {
		l.Results = min(l.Results, max(l.Window, 10_000))
	}
	return l
}

// media returns what images and documents may take, beside overhead tokens of
// system text and tools.
func (l Limits) media(overhead int) Size {
	return Size{Bytes: max(l.Bytes-overhead*4-64<<10, l.Bytes/2), Media: l.Media, Pages: l.Pages}
}

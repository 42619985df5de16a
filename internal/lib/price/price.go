// Package price knows what models cost. It owns the price list and the
// arithmetic; it must not know where usage comes from or who is charged.
// Everything in it is pure.
//
// The list is that of the first-party API, in US dollars for a million
// tokens, as of Date. Clouds and gateways may charge otherwise: a Table says
// so.
package price

import "strings"

// Date is the day on which the built-in list was compared with the public one.
const Date = "2026-11-30"

// search is the price of one server-side web search: 10 dollars for a thousand.
const search = 0.01

// A Rate is what a million tokens cost, in US dollars.
type Rate struct {
	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cacheRead"`
	CacheWrite5m float64 `json:"cacheWrite5m"`
	CacheWrite1h float64 `json:"cacheWrite1h"`
	// Above and Long: a request whose prompt has more than Above tokens,
	// cached ones included, is charged at Long as a whole.
	Above int   `json:"above,omitempty"`
	Long  *Rate `json:"long,omitempty"`
}

// Tokens is what one request used. The token counts do not overlap.
type Tokens struct {
	Input, Output, CacheRead, CacheWrite5m, CacheWrite1h int
	WebSearches                                          int
}

// Cost is the price of one request in US dollars. Requests are priced one by
// one, never as a sum, since the rate depends on the length of each prompt.
func (r Rate) Cost(t Tokens) float64 {
	if r.Long != nil && t.Input+t.CacheRead+t.CacheWrite5m+t.CacheWrite1h > r.Above {
		return r.Long.Cost(t)
	}
	sum := float64(t.Input)*r.Input + float64(t.Output)*r.Output + float64(t.CacheRead)*r.CacheRead +
		float64(t.CacheWrite5m)*r.CacheWrite5m + float64(t.CacheWrite1h)*r.CacheWrite1h
	return sum/1e6 + float64(t.WebSearches)*search
}

// A Table overrides the built-in list. A key is a model id, or the beginning
// of one up to a hyphen; the longest key that fits applies. A nil Table is
// the built-in list alone.
type Table map[string]Rate

// Of returns the rate of model. estimate says that the list does not have the
// model and the rate is that of its nearest relative: its family's current
// model, or the current opus for a name that says nothing.
func (t Table) Of(model string) (r Rate, estimate bool) {
	id := canon(model)
	best := ""
	for key, rate := range t {
		if k := canon(key); len(k) > len(best) && (id == k || strings.HasPrefix(id, k+"-")) {
			best, r = k, rate
		}
	}
	if best != "" {
		return r, false
	}
	return builtin(id)
}

// canon brings the ways in which providers write a model id to one: region
// and vendor prefixes, dots and dates behind @ and the [1m] mark go.
func canon(model string) string {
	s := strings.ToLower(strings.TrimSpace(model))
	s, _, _ = strings.Cut(s, "[")
	if i := strings.LastIndex(s, "claude-"); i > 0 {
		s = s[i:]
	}
	return strings.NewReplacer(".", "-", "@", "-", ":", "-").Replace(s)
}

// rate makes a Rate out of the two prices by which models are known and the
// price of a cache read, by the rule that holds for all: writes cost 1.25
// times the input for five minutes and twice the input for an hour.
func rate(input, output, read float64) Rate {
	return Rate{Input: input, Output: output, CacheRead: read, CacheWrite5m: input * 1.25, CacheWrite1h: input * 2}
}

func (r Rate) above(n int, long Rate) Rate {
	r.Above, r.Long = n, &long
	return r
}

// builtin looks an id in canonical form up in the list.
func builtin(id string) (r Rate, estimate bool) {
	name, ok := strings.CutPrefix(id, "claude-")
	if ok {
		for _, suffix := range []string{"", "latest", "thinking", "fast"} {
			if r, ok := listed(strings.TrimSuffix(undated(name), "-"+suffix)); ok {
				return r, false
			}
		}
	}
	switch {
	case strings.Contains(id, "haiku"):
		name = "haiku-5-5"
	case strings.Contains(id, "sonnet"):
		name = "sonnet-5-5"
	case strings.Contains(id, "fable"), strings.Contains(id, "mythos"):
		name = "fable-5-2"
	default:
		name = "opus-5-5"
	}
	r, _ = listed(name)
	return r, true
}

// undated cuts the date, and what stands behind it, off a name.
func undated(name string) string {
	for i := 0; i+9 <= len(name); i++ {
		if name[i] == '-' && strings.Trim(name[i+1:i+9], "0123456789") == "" && (i+9 == len(name) || name[i+9] == '-') {
			return name[:i]
		}
	}
	return name
}

func listed(name string) (Rate, bool) {
	switch name {
	case "fable-5-2":
		return rate(8, 40, 0.20), true
	case "fable-5-1", "mythos-5-1":
		return rate(10, 50, 0.25), true
	case "fable-5", "mythos-5":
		return rate(10, 50, 1), true
	case "opus-5-5":
		return rate(4, 20, 0.20), true
	case "opus-5", "opus-4-8", "opus-4-7", "opus-4-6", "opus-4-5":
		return rate(5, 25, 0.50), true
	case "opus-4-1", "opus-4", "opus-4-0", "3-opus":
		return rate(15, 75, 1.50), true
	case "sonnet-5-5":
		return rate(2, 10, 0.10), true
	case "sonnet-5":
		return rate(2, 10, 0.20), true
	case "sonnet-4-6", "3-7-sonnet", "3-5-sonnet":
		return rate(3, 15, 0.30), true
	case "sonnet-4-5", "sonnet-4", "sonnet-4-0":
		return rate(3, 15, 0.30).above(200_000, rate(6, 22.50, 0.60)), true
	case "haiku-5-5":
		return rate(0.10, 0.50, 0.01).above(100_000, rate(0.50, 2.50, 0.05)), true
	case "haiku-4-5":
		return rate(1, 5, 0.10), true
	case "3-5-haiku":
		return rate(0.80, 4, 0.08), true
	case "3-haiku":
		return rate(0.25, 1.25, 0.03), true
	}
	return Rate{}, false
}

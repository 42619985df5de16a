// Package limit reads what answers say about rate limits. It owns the headers
// and telling them to people; it must not know what is done about a limit.
// Everything in it is pure.
package limit

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits are the rate limits that the last answer told of.
type Limits struct {
	At      time.Time         // when they came; zero if none did yet
	Headers map[string]string // all headers about limits, names in lower case
	// Windows are the limits of a subscription, by name ("5h", "7d", …).
	Windows []Window
	// Claim names the window that decides: "five_hour", "seven_day", …
	Claim string
	// Status is allowed, allowed_warning or rejected; "" if the upstream has
	// no such limits.
	Status string
	Reset  time.Time // of the window that decides
}

// A Window is one limit that starts anew at Reset.
type Window struct {
	Name   string
	Status string
	Used   float64 // share that is used up, 0 to 1 and beyond
	Reset  time.Time
}

const unified = "anthropic-ratelimit-unified-"

// Read reads the headers of an answer. ok is false if none speaks of limits.
func Read(h http.Header, now time.Time) (l Limits, ok bool) {
	l = Limits{At: now, Headers: map[string]string{}}
	windows := map[string]*Window{}
	for name := range h {
		key, value := strings.ToLower(name), h.Get(name)
		if !strings.HasPrefix(key, "anthropic-ratelimit-") && !strings.HasPrefix(key, "x-ratelimit-") && key != "retry-after" {
			continue
		}
		l.Headers[key] = value
		rest, ours := strings.CutPrefix(key, unified)
		if !ours {
			continue
		}
		switch rest {
		case "status":
			l.Status = value
			continue
		case "reset":
			l.Reset = epoch(value)
			continue
		case "representative-claim":
			l.Claim = value
			continue
		}
		name, what, has := strings.Cut(rest, "-")
		if !has || what != "status" && what != "reset" && what != "utilization" {
			continue
		}
		w := windows[name]
		if w == nil {
			w = &Window{Name: name}
			windows[name] = w
		}
		switch what {
		case "status":
			w.Status = value
		case "reset":
			w.Reset = epoch(value)
		case "utilization":
			w.Used, _ = strconv.ParseFloat(value, 64)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		l.Windows = append(l.Windows, *windows[name])
	}
	return l, len(l.Headers) > 0
}

// epoch reads seconds since 1970 or an RFC 3339 time; zero if it is neither.
func epoch(s string) time.Time {
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil && n > 0 {
		return time.Unix(n, 0)
	}
	t, _ := time.Parse(time.RFC3339, strings.TrimSpace(s))
	return t
}

// claimed is the window that the deciding header names, and what it is called.
func claimed(claim string) (window, words string) {
	switch claim {
	case "five_hour":
		return "5h", "5-hour limit"
	case "seven_day":
		return "7d", "7-day limit"
	case "":
		return "", "rate limit"
	}
	return "", strings.ReplaceAll(claim, "_", " ") + " limit"
}

// Ends is when the window that decides starts anew, if that is known.
func (l Limits) Ends() time.Time {
	name, _ := claimed(l.Claim)
	for _, w := range l.Windows {
		if w.Name == name && !w.Reset.IsZero() {
			return w.Reset
		}
	}
	if !l.Reset.IsZero() {
		return l.Reset
	}
	// The limits of API keys: the latest of those that are used up.
	var last time.Time
	for key, value := range l.Headers {
		base, ok := strings.CutSuffix(key, "-remaining")
		if !ok || value != "0" {
			continue
		}
		if t := epoch(l.Headers[base+"-reset"]); t.After(last) {
			last = t
		}
	}
	return last
}

// Describe says which limit was hit and when it ends, in the zone local; ""
// if that is not known.
func (l Limits) Describe(now time.Time, local *time.Location) string {
	_, words := claimed(l.Claim)
	name, _ := claimed(l.Claim)
	for _, w := range l.Windows {
		if w.Name == name && w.Used > 0 {
			words += " (" + strconv.Itoa(int(w.Used*100+0.5)) + "% used)"
		}
	}
	if t := l.Ends(); t.After(now) {
		words += " resets " + clockTime(t, now, local)
	} else if l.Claim == "" {
		return ""
	}
	return words
}

// clockTime tells t as people do: the time, with the day if it is another one.
func clockTime(t, now time.Time, local *time.Location) string {
	t, now = t.In(local), now.In(local)
	layout := "15:04 MST"
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		layout = "Mon 2 Jan 15:04 MST"
	}
	return "at " + t.Format(layout) + " (in " + Roughly(t.Sub(now)) + ")"
}

// Roughly tells a duration in its two greatest units.
func Roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(1, int(d.Round(time.Second)/time.Second))) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Round(time.Minute)/time.Minute)) + "m"
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return strconv.Itoa(int(d/time.Hour)) + "h" + strconv.Itoa(int(d%time.Hour/time.Minute)) + "m"
	}
	return strconv.Itoa(int(d.Round(time.Hour)/(24*time.Hour))) + " days"
}

// After reads how long the upstream asks to wait. ok is false if it does
// not ask. A date is compared with the upstream's own clock, if it tells it.
func After(h http.Header, now time.Time) (d time.Duration, ok bool) {
	if v := h.Get("Retry-After-Ms"); v != "" {
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return seconds(n / 1000), true
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(n), true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(0, t.Sub(now)), true
}

// seconds keeps an absurd number of seconds in what a Duration can hold.
func seconds(n float64) time.Duration {
	if !(n > 0) { // negative, or not a number
		return 0
	}
	return time.Duration(min(n, 1e9) * float64(time.Second))
}

package ledger

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
)

// A Total is what the contacts with one host for one purpose come to.
type Total struct {
	Host     string    `json:"host"`
	Why      string    `json:"why"`
	Verdict  string    `json:"verdict"`
	By       string    `json:"by,omitempty"` // what decided, if that is one thing
	Times    int       `json:"times"`
	Failed   int       `json:"failed,omitempty"` // of them, those that came to nothing
	Open     int       `json:"open,omitempty"`   // of them, those of which no end is written
	Sent     int64     `json:"sent"`
	Received int64     `json:"received"`
	Last     time.Time `json:"last"`
}

// Totals adds list up, hosts in the order of their first contact.
func Totals(list []Contact) []Total {
	out := []Total{}
	at := map[[3]string]int{}
	for _, c := range list {
		key := [3]string{c.Host, c.Why, c.Verdict}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Total{Host: c.Host, Why: c.Why, Verdict: c.Verdict, By: c.By})
		}
		t := &out[i]
		t.Times++
		t.Sent, t.Received = t.Sent+c.Sent, t.Received+c.Received
		if t.By != c.By {
			t.By = ""
		}
		switch {
		case c.End.IsZero():
			t.Open++
		case c.Err != "" && c.Verdict == Allowed:
			t.Failed++
		}
		if c.At.After(t.Last) {
			t.Last = c.At
		}
	}
	return out
}

// WriteTotals prints totals as a table.
func WriteTotals(w io.Writer, totals []Total) error {
	rows := [][]string{{"HOST", "WHY", "VERDICT", "TIMES", "SENT", "RECEIVED", ""}}
	for _, t := range totals {
		var notes []string
		if t.By != "" {
			notes = append(notes, "by "+t.By)
		}
		if t.Failed > 0 {
			notes = append(notes, fmt.Sprintf("%d failed", t.Failed))
		}
		if t.Open > 0 {
			notes = append(notes, fmt.Sprintf("%d without an end", t.Open))
		}
		rows = append(rows, []string{t.Host, t.Why, t.Verdict, strconv.Itoa(t.Times), size(t.Sent), size(t.Received), strings.Join(notes, ", ")})
	}
	return table(w, rows)
}

// WriteContacts prints every contact on a line of its own, in local time.
func WriteContacts(w io.Writer, list []Contact) error {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Contact) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	rows := [][]string{{"TIME", "HOST", "WHY", "VERDICT", "SENT", "RECEIVED", "TOOK", ""}}
	for _, c := range list {
		took := "-"
		if !c.End.IsZero() {
			took = c.End.Sub(c.At).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{c.At.Local().Format("15:04:05.000"), c.Host, c.Why, c.Verdict, size(c.Sent), size(c.Received), took, strings.Join(c.notes(), " · ")})
	}
	return table(w, rows)
}

// notes are what else is known of c.
func (c *Contact) notes() []string {
	var out []string
	add := func(ok bool, s string) {
		if ok {
			out = append(out, s)
		}
	}
	add(c.Call != "", "call "+string(c.Call))
	add(c.Boundary != "", "request "+c.Boundary)
	add(c.By != "", "by "+c.By)
	add(c.Proxy != "", "through "+c.Proxy)
	add(c.Status != 0, "status "+strconv.Itoa(c.Status))
	add(len(c.Secrets) > 0, "with "+strings.Join(c.Secrets, ", "))
	add(c.Command != "", "$ "+c.Command)
	add(c.Err != "", c.Err)
	add(c.End.IsZero(), "no end is written: under way, or killed")
	return out
}

// table prints rows in columns. All but the last column of a row are short.
func table(w io.Writer, rows [][]string) error {
	var width []int
	for _, r := range rows {
		for i := range r {
			r[i] = termsafe.String(r[i])
			if i == len(width) {
				width = append(width, 0)
			}
			if i < len(r)-1 {
				width[i] = max(width[i], len(r[i]))
			}
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, s := range r {
			fmt.Fprintf(&b, "%-*s  ", width[i], s)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func size(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10)
	case n < 10_000_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n/1_000_000, 10) + "M"
}

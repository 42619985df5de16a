package mcp

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Whatever servers call their tools: different tools have different names,
// each fits the provider's pattern, and one keeps its name.
func TestNamesAreInjective(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	parts := []string{"a", "b", ".", "/", " ", "_", "__", "-", "é", "日本", strings.Repeat("long", 20), "A"}
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		return b.String()
	}
	for range 200 {
		set := New(Options{})
		owner, names := map[string]string{}, map[string]string{}
		for range 100 {
			s, tool := word(), word()
			id := s + "\x00" + tool
			n := set.claim(s, tool, true)
			if !pattern.MatchString(n) {
				t.Fatalf("%q of %q is %q", tool, s, n)
			}
			if was, ok := owner[n]; ok && was != id {
				t.Fatalf("%q and %q are both %q", was, id, n)
			}
			if was, ok := names[id]; ok && was != n {
				t.Fatalf("%q was %q and is %q", id, was, n)
			}
			owner[n], names[id] = id, n
		}
		set.Close()
	}
}

// The plain name belongs to the tool that is called so, whatever the order.
func TestPlainNameWins(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"a.b", "a_b"}, {"a_b", "a.b"}} {
		set := New(Options{})
		x := &Server{Config: Config{Name: "s"}, set: set}
		ts, _ := x.adapt(defs(order...))
		for _, tl := range ts {
			if plain := tl.name == "mcp__s__a_b"; plain != (tl.def.Name == "a_b") {
				t.Errorf("%v: %q is %s", order, tl.def.Name, tl.name)
			}
		}
		set.Close()
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, out, note, err string }{
		"none":              {in: `null`, out: `{"properties":{},"type":"object"}`},
		"no type":           {in: `{"properties":{"a":{}}}`, out: `{"properties":{"a":{}},"type":"object"}`},
		"a string":          {in: `{"type":"string"}`, err: "not object"},
		"a boolean":         {in: `true`, err: "not an object"},
		"a list of types":   {in: `{"type":["object","null"]}`, out: `{"properties":{},"type":"object"}`},
		"dialect":           {in: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`, out: `{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{},"type":"object"}`},
		"reference":         {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`, out: `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"missing reference": {in: `{"properties":{"a":{"$ref":"#/$defs/A"}}}`, err: "not there"},
		"outside":           {in: `{"properties":{"a":{"$ref":"https://x/y"}}}`, err: "outside"},
		"anyOf":             {in: `{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, out: `{"properties":{"a":{},"b":{}},"type":"object"}`, note: "Give one of: a; or b."},
		"allOf":             {in: `{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`, out: `{"properties":{"a":{},"b":{}},"required":["a"],"type":"object"}`},
		"odd alternative":   {in: `{"oneOf":[7]}`, err: "not an object"},
	} {
		var in any
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatal(err)
		}
		out, note, err := repair(in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %s, %v", name, out, err)
			}
			continue
		}
		if err != nil || string(out) != c.out || note != c.note {
			t.Errorf("%s: got %s %q %v, want %s %q", name, out, note, err, c.out, c.note)
		}
	}
}

// A schema that refers to itself ends, and stays small.
func TestRepairRecursive(t *testing.T) {
	t.Parallel()
	var in any
	if err := json.Unmarshal([]byte(`{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"l":{"$ref":"#/$defs/N"},"r":{"$ref":"#/$defs/N"},"m":{"$ref":"#/$defs/N"}}}}}`), &in); err != nil {
		t.Fatal(err)
	}
	out, _, err := repair(in)
	if err != nil || len(out) > 64<<10 {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
}

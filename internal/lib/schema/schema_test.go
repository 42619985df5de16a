package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const city = `{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer","minimum":1}},"required":["city","people"],"additionalProperties":false}`

const draft7 = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
	"a/b %":{"type":"array","items":{"$ref":"#/definitions/x"}},
	"pair":{"type":"array","items":[{"type":"string"},{"$ref":"#/properties/pair/items/0"}]}},
	"additionalProperties":{"type":"boolean"},"definitions":{"x":{"type":"object","properties":{"y":{"enum":["p","q"]}}}}}`

const tree = `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"string"},"left":{"$ref":"#"},"more":{"type":"array","prefixItems":[{"type":"null"}],"items":{"$ref":"#/$defs/n"}}}}}}`

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ schema, in, want string }{
		{city, `{"city":"Bern","people":134000}`, ""},
		{city, `{"city":"Bern"}`, `root: required: missing properties: ["people"]`},
		{city, `{"city":1,"people":2}`, `/city: type: 1 has type "integer", want "string"`},
		{city, `{"city":1,"people":"x"}`, `/city: type: 1 has type "integer", want "string"`}, // the first, always
		{city, `{"city":"B","people":0}`, `/people: minimum: 0/1 is less than 1.000000`},
		{city, `{"city":"B","people":1.5}`, `/people: type: 1.5 has type "number", want "integer"`},
		{city, `{"city":"B","people":1,"z":2}`, `root: unexpected additional properties ["z"]`},
		{city, `[]`, `root: type: [] has type "array", want "object"`},
		{city, `{`, `root: no JSON: unexpected end of JSON input`},
		{draft7, `{"a/b %":[{"y":"p"},{"y":"r"}]}`, `/a~1b %/1/y: enum: r does not equal any of: [p q]`},
		{draft7, `{"pair":["a",2]}`, `/pair/1: type: 2 has type "integer", want "string"`},
		{draft7, `{"other":1}`, `/other: type: 1 has type "integer", want "boolean"`},
		{tree, `{"left":{"more":[null,{"v":"x"},{"left":{"v":1}}]}}`, `/left/more/2/left/v: type: 1 has type "integer", want "string"`},
		{tree, `{"more":[1]}`, `/more/0: type: 1 has type "integer", want "null"`},
		{`{"type":"object","properties":{"a":false}}`, `{"a":1}`, "root: "},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":true}}`, `{"a":1}`, ""},
		{`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "root: anyOf: "},
		// What we cannot check is not held against a value.
		{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}},"patternProperties":{"(?<=a)b":{}}}`, `{"a":"x"}`, ""},
		{`{"$Ref":"#","Type":"object","TYPE":"array"}`, `5`, ""}, // keywords are what they are, to the letter
		{`{"$id":"https://x.test/s","type":"object","properties":{"pattern":{"type":"string"},"$id":{"type":"string"}}}`, `{"pattern":1}`, `/pattern: type: 1 has type "integer", want "string"`},
	} {
		s, err := Compile(json.RawMessage(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		err = s.Check(json.RawMessage(tt.in))
		switch v := (*Violation)(nil); {
		case tt.want == "":
			if err != nil {
				t.Errorf("%s: got %v", tt.in, err)
			}
		case !errors.As(err, &v) || !strings.HasPrefix(v.Error(), tt.want):
			t.Errorf("%s: got %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestLongReason(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(city))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check(json.RawMessage(`{"city":["` + strings.Repeat("é", 5000) + `"],"people":1}`))
	if n := len([]rune(err.Error())); n > maxReason+20 {
		t.Errorf("the reason has %d characters", n)
	}
}

// Schemas that would take the program down, or never come to an end.
func TestRefused(t *testing.T) {
	t.Parallel()
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for schema, want := range map[string]string{
		`{`:            "the schema is no JSON",
		`true`:         "the schema is not an object",
		`{"$ref":"#"}`: "the schema refers to itself without end",
		`{"properties":{"a":{"$ref":"#/properties/a"}}}`:                                                       "the schema refers to itself without end",
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`: "the schema refers to itself without end",
		`{"dependentSchemas":{"x":{"$ref":"#"}}}`:                                                              "the schema refers to itself without end",
		`{"$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d40":{}}}`:                                    "the schema is too complex",
		strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300):                                     "the schema is nested deeper",
		`{"$ref":"#/$defs/none"}`:                                                                              "the schema refers to something that is not in it",
		`{"$ref":"https://x.test/s.json"}`:                                                                     `the schema refers to "https://x.test/s.json"`,
		`{"$ref":"#name"}`:                                                                                     `the schema refers to "#name"`,
		`{"properties":{"a":{"$anchor":"x"}}}`:                                                                 "the schema uses $anchor",
		`{"properties":3}`:                                                                                     "the schema cannot be used",
		`{"type":7}`:                                                                                           "the schema cannot be used",
	} {
		if _, err := Compile(json.RawMessage(schema)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %s", schema, err, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(city, `{"city":1}`)
	f.Add(draft7, `{"pair":[1,2]}`)
	f.Add(tree, `{"left":{"left":{"v":1}}}`)
	f.Add(`{"$ref":"#"}`, `1`)
	f.Add(`{"items":[true,false],"minItems":1e9,"pattern":"("}`, `[1]`)
	f.Add(`{"properties":{"x":{"$ref":"#/properties/y"},"y":{"$ref":"#/properties/x"}}}`, `{"x":1}`)
	f.Fuzz(func(t *testing.T, schema, in string) {
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			return
		}
		_ = s.Check(json.RawMessage(in))
	})
}

package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want []string
		ok   bool
	}{
		{`{}`, nil, true},
		{` { "a" : 1 , "b":"x\"}" ,"c":[1,{"d":"]"}],"e":null }`, []string{`a=1`, `b="x\"}"`, `c=[1,{"d":"]"}]`, `e=null`}, true},
		{`{"a\\":{"b":{}}}`, []string{`a\\={"b":{}}`}, true},
		{`{"a":1,}`, []string{`a=1`}, false},
		{`{"a":1`, []string{`a=1`}, false},
		{`{"a":"x`, nil, false},
		{`{"a"}`, nil, false},
		{`[1]`, nil, false},
		{``, nil, false},
	} {
		var got []string
		ok := Members([]byte(tt.in), func(m Member) bool {
			got = append(got, fmt.Sprintf("%s=%s", m.Key, m.Val))
			return true
		})
		if ok != tt.ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Members(%s) = %q, %v, want %q, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	in := []byte(` [ 1 , "a,]" ,{"b":[ ]},[[]]]`)
	var got []string
	ok := Elements(in, func(start, end int) bool {
		got = append(got, string(in[start:end]))
		return true
	})
	if want := []string{`1`, `"a,]"`, `{"b":[ ]}`, `[[]]`}; !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, ok, want)
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"x":1}`:                     `{}`,
		`{"x":1,"a":2}`:               `{"a":2}`,
		`{"a":2,"x":1}`:               `{"a":2}`,
		`{"a":2 , "x":1 , "b":3}`:     `{"a":2  , "b":3}`,
		`{"x":1,"a":2,"x":{"x":3}}`:   `{"a":2}`,
		`{"x":1,"x":2,"a":{"x":[1]}}`: `{"a":{"x":[1]}}`,
		`{"a":2}`:                     `{"a":2}`,
	} {
		got, hit := Without([]byte(in), func(m Member) bool { return string(m.Key) == "x" })
		if hit != (in != want) || string(got) != want {
			t.Errorf("Without(%s) = %s, %v, want %s", in, got, hit, want)
		}
	}
	arr := `[{"x":1,"a":2}, {"b":1},{"c":1,"x":2} ]`
	got := EachWithout([]byte(arr), func(_ int, m Member) bool { return string(m.Key) == "x" })
	if want := `[{"a":2}, {"b":1},{"c":1} ]`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnquote(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `plain`, `a\"b\\c\/d\b\f\n\r\t`, `\u00e9\u20ac\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ud83d\u0041`, `\ude00\ud83d`, "grüße", "bad \xff\xfe bytes",
		`\x`, `\`, `\u12`, `\u12g4`, "control \x01", "tab\t", `\ud83d\`, `\ud83d\u`,
	} {
		checkUnquote(t, in)
	}
}

// checkUnquote compares Unquote with encoding/json.
func checkUnquote(t *testing.T, in string) {
	t.Helper()
	var want string
	err := json.Unmarshal([]byte(`"`+in+`"`), &want)
	got, ok := Unquote([]byte("head "), []byte(in))
	if ok != (err == nil) {
		t.Errorf("Unquote(%q): ok = %v, encoding/json says %v", in, ok, err)
	}
	if ok && string(got) != "head "+want {
		t.Errorf("Unquote(%q) = %q, want %q", in, got, "head "+want)
	}
}

func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`a\"b`, `\ud83d\ude00`, "\xff", `\u00`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		// A quote that is not escaped ends the string before its end.
		if s := strings.ReplaceAll(strings.ReplaceAll(in, `\\`, ""), `\"`, ""); strings.Contains(s, `"`) {
			return
		}
		checkUnquote(t, in)
	})
}

// FuzzScan checks that walking agrees with encoding/json on what is JSON, and
// does not panic on what is not.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\""}],"c":null}`, `[1,"x",{}]`, `{"a":`, `[[[`, `{"a":1}x`, `"x"`, `-`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		n := 0
		objOK := Members(in, func(Member) bool { n++; return true })
		arr := 0
		arrOK := Elements(in, func(start, end int) bool { arr++; return start <= end && end <= len(in) })
		Without(in, func(m Member) bool { return len(m.Key)%2 == 0 })
		EachWithout(in, func(i int, m Member) bool { return i%2 == 0 })
		if !json.Valid(in) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(in, &list) == nil && bytes.TrimSpace(in)[0] == '[' && (!arrOK || len(list) != arr) {
			t.Errorf("%s: %d elements (%v), want %d", in, arr, arrOK, len(list))
		}
		var obj map[string]json.RawMessage
		if bytes.TrimSpace(in)[0] == '{' {
			if err := json.Unmarshal(in, &obj); err != nil || !objOK || n < len(obj) {
				t.Errorf("%s: %d members (%v), want at least %d", in, n, objOK, len(obj))
			}
			cut, _ := Without(in, func(m Member) bool { return true })
			if !json.Valid(cut) {
				t.Errorf("%s without its members is %s", in, cut)
			}
			if len(obj) > 0 {
				some, _ := Without(in, func(m Member) bool { return len(m.Key)%2 == 0 })
				if !json.Valid(some) {
					t.Errorf("%s without some members is %s", in, some)
				}
			}
		}
	})
}

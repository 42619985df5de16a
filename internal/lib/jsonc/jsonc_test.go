package jsonc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/lib/jsonc"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"\ufeff{\n  // c\n  \"a\": [1, 2,], /* x\n y */ \"b\": {\"c\": null,},\n}\n// end", `{"a":[1,2],"b":{"c":null}}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{`"a\u00e9\n"`, `"aé\n"`},
		{` -1.5e3 `, `-1.5e3`},
		{`[true,false,null,"//no comment"]`, `[true,false,null,"//no comment"]`},
	} {
		v, err := jsonc.Parse([]byte(c.in))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		} else if got := string(v.JSON()); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
	for _, in := range []string{"", " \n", "\ufeff", "// only a comment", "/* and\none more */\n"} {
		if v, err := jsonc.Parse([]byte(in)); v != nil || err != nil {
			t.Errorf("%q: got %v, %v, want nothing", in, v, err)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"{\n  \"a\": 1\n  \"b\": 2\n}", "3:3: a comma should stand here"},
		{"\ufeff{\"é\" 1}", "1:6: a colon should follow the name \"é\""},
		{"{\n\"a\": tru\n}", `2:6: "tru" is no value`},
		{"{\"a\": 'x'}", "1:7: a value should stand here"},
		{"{a: 1}", "1:2: a name in double quotes should stand here"},
		{"{\"a\": [1, 2", "1:7: this [ is never closed"},
		{"{\"a\": {", "1:7: this { is never closed"},
		{"{\"a\":", "1:6: the document ends where a value should stand"},
		{"{} x", "1:4: something follows the end of the document"},
		{"{\"a\": \"b\n\"}", "1:7: this string has no closing quote on its line"},
		{"{\"a\": \"b\t\"}", "1:9: a control character in a string; write it as an escape"},
		{`{"a": "\q"}`, "1:7: this string holds an escape that means nothing"},
		{"{} /* x", "1:4: this comment has no end"},
		{"{ / }", "1:3: a stray slash"},
		{"[,]", "1:2: a value should stand here"},
		{"{\"a\": 01}", `1:7: "01" is no value`},
		{"{\n\"a\": \"\xff\"}", "2:7: not UTF-8 text"},
		{strings.Repeat("[", 600), "1:502: nested too deeply"},
	} {
		_, err := jsonc.Parse([]byte(c.in))
		var e *jsonc.Error
		if !errors.As(err, &e) || e.Error() != c.want {
			t.Errorf("%.40q: got %v, want %s", c.in, err, c.want)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, path, value, want string }{
		{"replace", "{\n  \"a\": 1, // one\n  \"b\": 2\n}\n", "a", `[3]`, "{\n  \"a\": [\n    3\n  ], // one\n  \"b\": 2\n}\n"},
		{"add last", "{\n  \"a\": 1 // one\n  // end\n}\n", "b", `2`, "{\n  \"a\": 1, // one\n  \"b\": 2\n  // end\n}\n"},
		{"add after trailing comma", "{\n\t\"a\": 1, /* x */\n}", "b", `{"c":2}`, "{\n\t\"a\": 1, /* x */\n\t\"b\": {\n\t\t\"c\": 2\n\t},\n}"},
		{"into nothing", "{}", "a.b", `true`, "{\n  \"a\": {\n    \"b\": true\n  }\n}"},
		{"into a comment", "{\n  // later\n}\n", "a", `1`, "{\n  // later\n  \"a\": 1\n}\n"},
		{"one line", `{"a": 1}`, "b", `2`, `{"a": 1, "b": 2}`},
		{"empty file", "", "a", `1`, "{\n  \"a\": 1\n}\n"},
		{"comment file", "// mine", "a", `1`, "// mine\n{\n  \"a\": 1\n}\n"},
		{"mark kept", "\ufeff{\"a\":1}", "a", `2`, "\ufeff{\"a\":2}"},
		{"CRLF", "{\r\n  \"a\": 1\r\n}\r\n", "b", `[1]`, "{\r\n  \"a\": 1,\r\n  \"b\": [\r\n    1\r\n  ]\r\n}\r\n"},
		{"the one that counts", `{"a":1,"a":2}`, "a", `3`, `{"a":1,"a":3}`},
		{"deep", "{\n  \"p\": {\n    \"x\": {}\n  }\n}", "p.x.y", `1`, "{\n  \"p\": {\n    \"x\": {\n      \"y\": 1\n    }\n  }\n}"},
	} {
		got, err := jsonc.Set([]byte(c.in), strings.Split(c.path, "."), json.RawMessage(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v\nwant %q", c.name, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{`{"a":1}`, "a.b"}, {`[]`, "a"}, {`{"a":}`, "a"}} {
		if got, err := jsonc.Set([]byte(c[0]), strings.Split(c[1], "."), json.RawMessage("1")); err == nil {
			t.Errorf("%s in %s: made %s", c[1], c[0], got)
		}
	}
}

func TestAppendRemoveDelete(t *testing.T) {
	t.Parallel()
	type edit func([]byte) ([]byte, error)
	add := func(path, v string) edit {
		return func(b []byte) ([]byte, error) {
			return jsonc.Append(b, strings.Split(path, "."), json.RawMessage(v))
		}
	}
	del := func(path string) edit {
		return func(b []byte) ([]byte, error) {
			b, _, err := jsonc.Delete(b, strings.Split(path, "."))
			return b, err
		}
	}
	rem := func(path, v string) edit {
		return func(b []byte) ([]byte, error) {
			b, _, err := jsonc.Remove(b, strings.Split(path, "."), func(x *jsonc.Value) bool { return x.Text == v })
			return b, err
		}
	}
	for _, c := range []struct {
		in   string
		do   edit
		want string
	}{
		{"{\n  \"p\": {\n    \"allow\": [\n      \"a\" // first\n    ]\n  }\n}\n", add("p.allow", `"b"`), "{\n  \"p\": {\n    \"allow\": [\n      \"a\", // first\n      \"b\"\n    ]\n  }\n}\n"},
		{`{"l": ["a"]}`, add("l", `"b"`), `{"l": ["a", "b"]}`},
		{`{"l": []}`, add("l", `"b"`), "{\"l\": [\n  \"b\"\n]}"},
		{`{}`, add("p.allow", `"b"`), "{\n  \"p\": {\n    \"allow\": [\n      \"b\"\n    ]\n  }\n}"},
		{"", add("l", `1`), "{\n  \"l\": [\n    1\n  ]\n}\n"},
		{"{\n  // about a\n  \"a\": 1,\n  \"b\": 2\n}", del("a"), "{\n  // about a\n  \"b\": 2\n}"},
		{"{\n  \"a\": 1,\n  \"b\": 2 // two, b\n}", del("b"), "{\n  \"a\": 1 // two, b\n}"},
		{"{\n  \"a\": 1, // one, \"a\",\n  \"b\": 2\n}", del("b"), "{\n  \"a\": 1 // one, \"a\",\n}"},
		{`{"a": 1}`, del("a"), `{}`},
		{`{"a": 1}`, del("b.c"), `{"a": 1}`},
		{`{"a":1,"b":2,"a":3}`, del("a"), `{"b":2}`},
		{`{"l": ["x", "y", "x"]}`, rem("l", "x"), `{"l": [ "y"]}`},
		{"{\"l\": [\n  \"x\",\n  \"y\",\n]}", rem("l", "y"), "{\"l\": [\n  \"x\",\n]}"},
	} {
		got, err := c.do([]byte(c.in))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		// Where exactly a comment ends up is checked by eye; that nothing of
		// it is lost, and what the document says, is checked here.
		if squeeze(string(got)) != squeeze(c.want) {
			t.Errorf("%q:\ngot  %q\nwant %q", c.in, got, c.want)
		}
		if _, err := jsonc.Parse(got); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
	if _, err := jsonc.Append([]byte(`{"l": 1}`), []string{"l"}, json.RawMessage("1")); err == nil {
		t.Error("appended to a number")
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "{}", "\ufeff{\"a\":[1,],}//x", `{"a":{"b":"\u00e9"}}`, "/*", `{"a":1e9,"a":-0}`, "[[[", "{\"a\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := jsonc.Parse(data)
		var e *jsonc.Error
		if err != nil {
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 {
				t.Fatalf("an error without a place: %v", err)
			}
			if json.Valid(data) && bytes.Count(data, []byte("[")) < 100 && bytes.Count(data, []byte("{")) < 100 && !strings.Contains(err.Error(), "UTF-8") {
				t.Fatalf("plain JSON %q is refused: %v", data, err)
			}
			return
		}
		if v == nil {
			return
		}
		out := v.JSON()
		if !json.Valid(out) {
			t.Fatalf("%q became %q", data, out)
		}
		if json.Valid(data) {
			var a, b any
			if json.Unmarshal(data, &a) == nil && json.Unmarshal(out, &b) == nil && !reflect.DeepEqual(a, b) {
				t.Fatalf("%q became %q", data, out)
			}
		}
	})
}

// An edit changes what it should in what the document says, nothing else, and
// keeps every comment.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"", "{}", "{\n \"k\": {\"x\": 1 /*c*/, }, // d\n}", "{\"b\":[{}]} // e", "// f"} {
		f.Add([]byte(s), "k", "x")
	}
	f.Fuzz(func(t *testing.T, data []byte, k1, k2 string) {
		k1, k2 = strings.ToValidUTF8(k1, "?"), strings.ToValidUTF8(k2, "?")
		before, err := jsonc.Parse(data)
		if err != nil || before != nil && before.Kind != jsonc.Object {
			return
		}
		got, err := jsonc.Set(data, []string{k1, k2}, json.RawMessage(`["v"]`))
		if err != nil {
			return
		}
		after, err := jsonc.Parse(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", data, got, err)
		}
		var a, b map[string]any
		if before == nil {
			a = map[string]any{}
		} else if err := json.Unmarshal(before.JSON(), &a); err != nil {
			return
		}
		if err := json.Unmarshal(after.JSON(), &b); err != nil {
			t.Fatal(err)
		}
		inner, _ := a[k1].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		inner[k2] = []any{"v"}
		a[k1] = inner
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%q became %q", data, got)
		}
		back, _, err := jsonc.Delete(got, []string{k1})
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		v, err := jsonc.Parse(back)
		if err != nil || v.Member(k1) != nil {
			t.Fatalf("deleting %q from %q left %q, %v", k1, got, back, err)
		}
	})
}

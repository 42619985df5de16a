package frontmatter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		head     Head
		body     string
		err      bool
	}{
		{name: "plain", in: "---\nname: a\ntools: [Read, Bash]\n---\nbody\n", head: Head{"name": "a", "tools": []any{"Read", "Bash"}}, body: "body\n"},
		{name: "no head", in: "# title\n---\nx\n", body: "# title\n---\nx\n"},
		{name: "mark and CRLF", in: "\ufeff---\r\nname: a\r\n---\r\nbody\r\n", head: Head{"name": "a"}, body: "body\r\n"},
		{name: "never closed", in: "---\nname: a\n", body: "---\nname: a\n"},
		{name: "closed at the end", in: "---\nname: a\n---", head: Head{"name": "a"}},
		{name: "prose with colons", in: "---\nname: a\ndescription: Use it: always, \"even\" now\n---\nb", head: Head{"name": "a", "description": `Use it: always, "even" now`}, body: "b"},
		{name: "bad YAML", in: "---\nname: [a\n  - b\n---\nbody", body: "body", err: true},
		{name: "empty", in: "---\n---\nbody", body: "body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, body, err := Parse([]byte(tt.in))
			if (err != nil) != tt.err {
				t.Fatalf("err = %v", err)
			}
			if len(h) == 0 {
				h = nil
			}
			if d := cmp.Diff(tt.head, h); d != "" {
				t.Errorf("head (-want +got):\n%s", d)
			}
			if body != tt.body {
				t.Errorf("got body %q want %q", body, tt.body)
			}
		})
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	h := Head{"list": "Read, Bash(git log, -p), Edit", "yes": "On", "n": uint64(7), "none": nil, "empty": ""}
	list, ok := h.List("list")
	if d := cmp.Diff([]string{"Read", "Bash(git log, -p)", "Edit"}, list); d != "" || !ok {
		t.Error(d, ok)
	}
	if l, ok := h.List("empty"); l != nil || !ok {
		t.Errorf("an empty list is a list: %v %v", l, ok)
	}
	if _, ok := h.List("absent"); ok {
		t.Error("an absent list is none")
	}
	if !h.Bool("yes", false) || h.Bool("absent", false) || !h.Bool("absent", true) {
		t.Error("Bool")
	}
	if h.Int("n") != 7 || h.Int("list") != 0 || h.Text("n") != "7" {
		t.Error("Int, Text")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"---\na: 1\n---\nb", "---\na: [\n---\n", "---\n&a: *a\n---\n", "\ufeff---\r\n- x\r\n---\r\n", "---\n? x\n: y\n---"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, body, _ := Parse(data)
		if len(body) > len(data) {
			t.Errorf("body is longer than the file")
		}
		h.List("tools")
		h.Text("name")
	})
}

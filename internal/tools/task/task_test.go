package task

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func newList(t *testing.T) *List {
	dir := filepath.Join(t.TempDir(), "tasks", "session")
	return &List{Dir: func() string { return dir }}
}

func call(t *testing.T, tools []agent.Tool, name, in string) agent.Result {
	t.Helper()
	for _, tool := range tools {
		if tool.Spec().Name != name {
			continue
		}
		e, err := tool.Inspect(json.RawMessage(in))
		if err != nil {
			return agent.Failed(err.Error())
		}
		res, err := tool.Run(t.Context(), agent.Call{Name: name, Input: json.RawMessage(in), Effects: e})
		if err != nil {
			return agent.Failed(err.Error())
		}
		return res
	}
	t.Fatalf("there is no %s", name)
	return agent.Result{}
}

func text(r agent.Result) string { return agent.TextOf(r.Blocks) }

func detail(t *testing.T, r agent.Result) string {
	t.Helper()
	data, err := json.Marshal(r.Detail)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTasks(t *testing.T) {
	t.Parallel()
	l := newList(t)
	tools := New(Options{List: l})
	for _, step := range []struct{ name, in, want, detail string }{
		{"TaskList", `{}`, "The list is empty.", `{"tasks":[]}`},
		{"TaskCreate", `{"subject":"Boil\n water","description":"in the kettle","activeForm":"Boiling water"}`, "Task #1 was added: Boil water", `{"task":{"id":"1","subject":"Boil water"}}`},
		{"TaskCreate", `{"subject":"Add tea","description":"","metadata":{"a":1,"b":2}}`, "Task #2 was added: Add tea", `{"task":{"id":"2","subject":"Add tea"}}`},
		{"TaskUpdate", `{"taskId":"2","addBlockedBy":["#1"],"owner":"me","metadata":{"a":null}}`, "Task #2 was updated: owner, metadata, blockedBy.",
			`{"success":true,"taskId":"2","updatedFields":["owner","metadata","blockedBy"]}`},
		{"TaskList", `{}`, "#1 [pending] Boil water\n#2 [pending] Add tea (me) (blocked by #1)",
			`{"tasks":[{"blockedBy":[],"id":"1","status":"pending","subject":"Boil water"},{"blockedBy":["1"],"id":"2","owner":"me","status":"pending","subject":"Add tea"}]}`},
		{"TaskUpdate", `{"taskId":"1","status":"in_progress"}`, "Task #1 was updated: status. It is in_progress now.",
			`{"statusChange":{"from":"pending","to":"in_progress"},"success":true,"taskId":"1","updatedFields":["status"]}`},
		{"TaskUpdate", `{"taskId":"1","status":"in_progress"}`, "Task #1 is as it was.", `{"success":true,"taskId":"1","updatedFields":[]}`},
		{"TaskGet", `{"taskId":"#1"}`, "#1 [in_progress] Boil water\nin the kettle\nOthers wait for it: #2",
			`{"task":{"id":"1","subject":"Boil water","description":"in the kettle","activeForm":"Boiling water","status":"in_progress","blocks":["2"],"blockedBy":[]}}`},
		{"TaskUpdate", `{"taskId":"1","status":"completed"}`, "Task #1 was updated: status. It is completed now.",
			`{"statusChange":{"from":"in_progress","to":"completed"},"success":true,"taskId":"1","updatedFields":["status"]}`},
		{"TaskList", `{}`, "#1 [completed] Boil water\n#2 [pending] Add tea (me)", ""},
		{"TaskUpdate", `{"taskId":"2","status":"deleted"}`, "Task #2 was deleted.",
			`{"statusChange":{"from":"pending","to":"deleted"},"success":true,"taskId":"2","updatedFields":["deleted"]}`},
		{"TaskList", `{}`, "#1 [completed] Boil water", ""},
		{"TaskCreate", `{"subject":"Drink","description":""}`, "Task #3 was added: Drink", ""}, // no number comes back
	} {
		r := call(t, tools, step.name, step.in)
		if got := text(r); got != step.want || r.IsError {
			t.Errorf("%s %s: got %q, want %q", step.name, step.in, got, step.want)
		}
		if got := detail(t, r); step.detail != "" && got != step.detail {
			t.Errorf("%s %s: got\n%s, want\n%s", step.name, step.in, got, step.detail)
		}
	}
	got, _ := os.ReadFile(filepath.Join(l.Dir(), "1.json"))
	want := "{\n  \"id\": \"1\",\n  \"subject\": \"Boil water\",\n  \"description\": \"in the kettle\",\n  \"activeForm\": \"Boiling water\",\n  \"status\": \"completed\",\n  \"blocks\": [],\n  \"blockedBy\": []\n}\n"
	if string(got) != want {
		t.Errorf("file %s, want %s", got, want)
	}
	if got, want := l.Reminder(""), "#1 [completed] Boil water\n#3 [pending] Drink"; got != want {
		t.Errorf("reminder %q, want %q", got, want)
	}
}

func TestTaskErrors(t *testing.T) {
	t.Parallel()
	tools := New(Options{List: newList(t)})
	call(t, tools, "TaskCreate", `{"subject":"a","description":""}`)
	call(t, tools, "TaskCreate", `{"subject":"b","description":""}`)
	call(t, tools, "TaskCreate", `{"subject":"c","description":""}`)
	call(t, tools, "TaskUpdate", `{"taskId":"1","addBlocks":["2"]}`)
	call(t, tools, "TaskUpdate", `{"taskId":"2","addBlocks":["3"]}`)
	for _, tt := range []struct{ name, in, want string }{
		{"TaskCreate", `{"subject":" ","description":""}`, "subject is empty"},
		{"TaskUpdate", `{"taskId":"9","status":"completed"}`, "task 9: there is no such task"},
		{"TaskUpdate", `{"taskId":"1","status":"done"}`, `status is "done"; it may be pending, in_progress, completed or deleted`},
		{"TaskUpdate", `{"status":"completed"}`, "taskId is missing"},
		{"TaskUpdate", `{"taskId":"1","addBlocks":["9"]}`, "task 9: there is no such task"},
		{"TaskUpdate", `{"taskId":"1","addBlocks":["1"]}`, "task 1 already waits for task 1: they cannot wait for each other"},
		{"TaskUpdate", `{"taskId":"1","subject":"x","addBlockedBy":["3"]}`, "task 3 already waits for task 1: they cannot wait for each other"},
		{"TaskGet", `{"taskId":"../../x"}`, "task ../../x: there is no such task"},
	} {
		if r := call(t, tools, tt.name, tt.in); text(r) != tt.want || !r.IsError {
			t.Errorf("%s %s: got %q", tt.name, tt.in, text(r))
		}
	}
	if got, want := text(call(t, tools, "TaskList", `{}`)), "#1 [pending] a\n#2 [pending] b (blocked by #1)\n#3 [pending] c (blocked by #2)"; got != want {
		t.Errorf("got %q, want %q: a failed update changes nothing", got, want)
	}
}

// What others wrote stays: fields we do not know, files we cannot read.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	l := newList(t)
	tools := New(Options{List: l})
	if err := os.MkdirAll(l.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"3.json": `{"subject":"theirs","status":"pending","color":"red","nested":{"a":[1]}}`,
		"7.json": `{"subject":`,
		"x.json": `{}`, "0.json": `{}`, "04.json": `{}`,
	} {
		if err := os.WriteFile(filepath.Join(l.Dir(), name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := text(call(t, tools, "TaskCreate", `{"subject":"ours","description":""}`)), "Task #8 was added: ours"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	call(t, tools, "TaskUpdate", `{"taskId":"3","status":"completed"}`)
	got, _ := os.ReadFile(filepath.Join(l.Dir(), "3.json"))
	want := "{\n  \"id\": \"3\",\n  \"subject\": \"theirs\",\n  \"description\": \"\",\n  \"status\": \"completed\",\n  \"blocks\": [],\n  \"blockedBy\": [],\n  \"color\": \"red\",\n  \"nested\": {\"a\":[1]}\n}\n"
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r := call(t, tools, "TaskList", `{}`)
	if got := text(r); !strings.HasPrefix(got, "#3 [completed] theirs\n#8 [pending] ours\nNot shown: reading task 7: ") || r.IsError {
		t.Errorf("got %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(l.Dir(), "7.json")); string(data) != `{"subject":` || err != nil {
		t.Errorf("the damaged file is %q, %v", data, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	l := newList(t)
	var wg sync.WaitGroup
	for i := range 20 {
		other := &List{Dir: l.Dir} // as another process would
		wg.Go(func() {
			if _, err := other.Create(context.Background(), Item{Subject: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	items, err := l.Items()
	seen := map[string]bool{}
	for i, it := range items {
		seen[it.Subject] = true
		if it.ID != fmt.Sprint(i+1) {
			t.Errorf("task %d has the id %s", i, it.ID)
		}
	}
	if len(items) != 20 || len(seen) != 20 || err != nil {
		t.Errorf("%d tasks, %d subjects, %v", len(items), len(seen), err)
	}
}

func TestTodoWrite(t *testing.T) {
	t.Parallel()
	l := newList(t)
	tools := New(Options{List: l, Todo: true})
	if len(tools) != 1 {
		t.Fatalf("there are %d tools", len(tools))
	}
	two := `{"todos":[{"content":"Boil water","status":"in_progress","activeForm":"Boiling water"},{"content":"Add tea","status":"pending","activeForm":"Adding tea"}]}`
	r := call(t, tools, "TodoWrite", two)
	if got, want := text(r), "The list was updated: 2 of 2 items are open."; got != want || r.IsError {
		t.Errorf("got %q", got)
	}
	if got, want := detail(t, r), `{"newTodos":[{"content":"Boil water","status":"in_progress","activeForm":"Boiling water"},{"content":"Add tea","status":"pending","activeForm":"Adding tea"}],"oldTodos":[]}`; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := l.Reminder(""), "[in_progress] Boil water\n[pending] Add tea"; got != want {
		t.Errorf("reminder %q, want %q", got, want)
	}
	if got := l.Reminder("a/../b"); got != "" {
		t.Errorf("another agent's reminder is %q", got)
	}
	r = call(t, tools, "TodoWrite", `{"todos":[{"content":"Boil water","status":"completed","activeForm":"Boiling water"}]}`)
	if got, want := text(r), "The list was updated: everything on it is done."; got != want {
		t.Errorf("got %q", got)
	}
	if todos, err := l.Todos(""); len(todos) != 0 || err != nil || l.Reminder("") != "" {
		t.Errorf("left %+v, %v", todos, err)
	}
	for _, in := range []string{`{}`, `{"todos":[{"content":" ","status":"pending"}]}`, `{"todos":[{"content":"a","status":"done"}]}`, `{"todos":"x"}`} {
		if r := call(t, tools, "TodoWrite", in); !r.IsError {
			t.Errorf("%s is accepted", in)
		}
	}
}

func TestOffers(t *testing.T) {
	t.Parallel()
	names := func(o Options) (s []string) {
		for _, tool := range New(o) {
			s = append(s, tool.Spec().Name)
			if !json.Valid(tool.Spec().Schema) {
				t.Errorf("the schema of %s is no JSON", tool.Spec().Name)
			}
		}
		return s
	}
	for _, tt := range []struct {
		o    Options
		want []string
	}{
		{Options{}, []string{"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}},
		{Options{Todo: true}, []string{"TodoWrite"}},
		{Options{Both: true}, []string{"TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}},
	} {
		if diff := cmp.Diff(tt.want, names(tt.o)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCannotWrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &List{Dir: func() string { return filepath.Join(file, "tasks") }}
	for _, tool := range []string{"TaskCreate", "TodoWrite"} {
		r := call(t, New(Options{List: l, Both: true}), tool, `{"subject":"a","description":"","todos":[]}`)
		if !r.IsError || !strings.Contains(text(r), file) {
			t.Errorf("%s: got %q", tool, text(r))
		}
	}
}

func FuzzItem(f *testing.F) {
	f.Add([]byte(`{"id":"1","subject":"a","x":[1,{"y":null}],"metadata":{"k":1e400}}`))
	f.Add([]byte(`{"blocks":null,"ID":"2","Subject":"case"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		it, err := decodeItem(data)
		if err != nil {
			return
		}
		out, err := it.encode()
		if err != nil {
			return
		}
		again, err := decodeItem(out)
		if err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		out2, err := again.encode()
		if err != nil || string(out2) != string(out) {
			t.Errorf("%s became %s, then %s, %v", data, out, out2, err)
		}
	})
}

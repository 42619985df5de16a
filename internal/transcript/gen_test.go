package transcript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestGen(t *testing.T) {
	root := os.Getenv("TXGEN")
	if root == "" {
		t.Skip()
	}
	st := NewStore(root)
	cwd := os.Getenv("TXCWD")
	p := st.Path(cwd, session)
	_ = os.RemoveAll(filepath.Dir(p))
	l := open(t, Options{Path: p, Cwd: cwd, Version: "0.1.0", Entrypoint: "sdk-ts", Branch: func() string { return "main" }})
	l.emit(agent.Opened{Info: agent.Info{Session: session}})
	big := make([]byte, 100000)
	for i := range big {
		big[i] = 'x'
	}
	l.user("aaaaaaaa-0000-4000-8000-000000000001", noted("instructions", string(big)), text("first prompt here"))
	a, b := call("toolu_a", "Read"), call("toolu_b", "Bash")
	l.answer("msg_1", text("I will."), a, b)
	l.begin(a, true)
	l.begin(b, false)
	rb := l.finish(b, agent.Result{Blocks: []agent.Block{text("b done")}, Detail: map[string]any{"stdout": "b done"}})
	ra := l.finish(a, agent.Result{Blocks: []agent.Block{text("a done")}})
	l.user("aaaaaaaa-0000-4000-8000-000000000002", ra, rb, noted("memory", "nested rules"))
	l.answer("msg_2", text("done"))
	l.settle()
	l.user("aaaaaaaa-0000-4000-8000-000000000003", text("second prompt"))
	l.answer("msg_3", text("ok 2"))
	l.settle()
	if os.Getenv("TXCOMPACT") != "" {
		h := []agent.Message{{UUID: "sum1", Role: agent.User, Blocks: []agent.Block{text("This session is being continued. Summary: ...")}}}
		h = append(h, l.History[len(l.History)-1])
		l.emit(agent.Compacted{Trigger: "auto", Pre: 1000, Post: 100, History: h, Summary: "x"})
		l.History = h
		l.user("aaaaaaaa-0000-4000-8000-000000000004", text("after compaction"))
		l.answer("msg_4", text("ok 3"))
		l.settle()
	}
	l.agent, l.parent = "agent1", "toolu_b"
	l.emit(agent.Worked{Stage: "started", Task: agent.Task{ID: "agent1", Type: "local_agent", Agent: "Explore", Description: "look", Call: "toolu_b"}})
	l.History = nil
	l.user("aaaaaaaa-0000-4000-8000-000000000009", text("sub prompt"))
	l.answer("msg_s", text("sub answer"))
	if os.Getenv("TXTITLE") != "" {
		if err := Rename(p, "My title"); err != nil {
			t.Fatal(err)
		}
	}
	l.w.Close()
}

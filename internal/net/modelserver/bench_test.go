package modelserver

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRequest is what one request of a long session costs the server.
func BenchmarkRequest(b *testing.B) {
	var msgs []string
	msgs = append(msgs, `{"role":"user","content":"go"}`)
	out := strings.Repeat("some output of a tool\\n", 1000)
	for i := range 50 {
		msgs = append(msgs,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"ls"}}]}`, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}`, i, out))
	}
	body := []byte(`{"model":"m","max_tokens":1,"messages":[` + strings.Join(msgs, ",") + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var c cache
	for b.Loop() {
		r, err := ParseRequest(body)
		if err != nil || len(r.Check(nil)) > 0 {
			b.Fatal(err, r.Check(nil))
		}
		c.commit(c.plan(r))
	}
}

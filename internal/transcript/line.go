package transcript

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// A line is one line of a transcript in the making. tail stands between pre
// and post; it is what is known of a response's end, which comes to be known
// after its blocks.
type line struct {
	uuid      string
	pre, post []byte
	response  bool // has a tail
}

// bytes returns the line with what is known of its response.
func (l line) bytes(stop string, u agent.Usage) []byte {
	b := append([]byte(nil), l.pre...)
	if l.response {
		b = appendTail(b, stop, u)
	}
	return append(b, l.post...)
}

// appendTail appends the end of a message object: stop reason and usage.
func appendTail(b []byte, stop string, u agent.Usage) []byte {
	b = append(b, `,"stop_reason":`...)
	if stop == "" {
		b = append(b, "null"...)
	} else {
		b = agent.AppendString(b, stop)
	}
	b = append(b, `,"stop_sequence":null,"usage":`...)
	return appendUsage(b, u)
}

func appendUsage(b []byte, u agent.Usage) []byte {
	num := func(key string, n int) {
		b = append(b, key...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	num(`{"input_tokens":`, u.In)
	num(`,"cache_creation_input_tokens":`, u.CacheWrite())
	num(`,"cache_read_input_tokens":`, u.CacheRead)
	num(`,"output_tokens":`, u.Out)
	num(`,"server_tool_use":{"web_search_requests":`, u.WebSearches)
	num(`,"web_fetch_requests":`, u.WebFetches)
	num(`},"cache_creation":{"ephemeral_5m_input_tokens":`, u.CacheWrite5m)
	num(`,"ephemeral_1h_input_tokens":`, u.CacheWrite1h)
	b = append(b, '}')
	if u.ServiceTier != "" {
		b = append(b, `,"service_tier":`...)
		b = agent.AppendString(b, u.ServiceTier)
	}
	return append(b, '}')
}

// A field is a key of a line, written as `"key":`, and its value.
type field struct {
	key   string
	value []byte
}

func str(key, s string) field { return field{key, agent.AppendString(nil, s)} }
func raw(key, s string) field { return field{key, []byte(s)} }

// line begins a line of c with the keys that all have: own are the keys of
// its type. The line becomes the parent of the next one.
func (c *chain) line(typ, uuid string, at time.Time, own ...field) line {
	b := make([]byte, 0, 512)
	b = append(b, `{"parentUuid":`...)
	if c.parent == "" {
		b = append(b, "null"...)
	} else {
		b = agent.AppendString(b, c.parent)
	}
	b = append(b, `,"isSidechain":`...)
	b = strconv.AppendBool(b, c.agent != "")
	if c.agent != "" {
		b = append(b, `,"agentId":`...)
		b = agent.AppendString(b, c.agent)
	}
	b = append(b, `,"type":`...)
	b = agent.AppendString(b, typ)
	for _, f := range own {
		b = append(b, ',', '"')
		b = append(b, f.key...)
		b = append(b, '"', ':')
		b = append(b, f.value...)
	}
	c.parent = uuid
	return line{uuid: uuid, pre: b, post: c.w.common(uuid, at)}
}

// respond makes l a line of a response: message is the head of its message
// object, whose tail is written when it is known.
func (l line) respond(message []byte) line {
	l.pre = append(append(l.pre, `,"message":`...), message...)
	l.post = append([]byte{'}'}, l.post...)
	l.response = true
	return l
}

// common returns the end of a line: the keys that depend on the session.
func (w *Writer) common(uuid string, at time.Time) []byte {
	b := make([]byte, 0, 300)
	for _, f := range [...][2]string{
		{`,"uuid":`, uuid}, {`,"timestamp":`, stamp(at)}, {`,"userType":`, "external"},
		{`,"entrypoint":`, w.o.Entrypoint}, {`,"cwd":`, w.cwd}, {`,"sessionId":`, w.session},
		{`,"version":`, w.o.Version}, {`,"gitBranch":`, w.branch},
	} {
		b = append(b, f[0]...)
		b = agent.AppendString(b, f[1])
	}
	return append(b, '}')
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// loose makes a line that is not part of the chain of messages.
func loose(typ string, own ...field) []byte {
	b := append([]byte(nil), `{"type":`...)
	b = agent.AppendString(b, typ)
	for _, f := range own {
		b = append(b, ',', '"')
		b = append(b, f.key...)
		b = append(b, '"', ':')
		b = append(b, f.value...)
	}
	return append(b, '}')
}

// userMessage encodes the message of a user line. A lone text is a string.
func userMessage(bs []agent.Block) []byte {
	b := append([]byte(nil), `{"role":"user","content":`...)
	if t, ok := bs[0].(*agent.Text); ok && len(bs) == 1 && len(t.Citations) == 0 {
		b = agent.AppendString(b, t.Text)
	} else {
		b = agent.AppendBlocks(b, bs)
	}
	return append(b, '}')
}

// assistantMessage encodes the head of the message of an assistant line.
func assistantMessage(id, model string, bs []agent.Block) []byte {
	b := append([]byte(nil), `{"id":`...)
	b = agent.AppendString(b, id)
	b = append(b, `,"type":"message","role":"assistant","model":`...)
	b = agent.AppendString(b, model)
	b = append(b, `,"content":`...)
	return agent.AppendBlocks(b, bs)
}

// Limits of what is kept of a result's detail, which only viewers read. An
// edit of a large file would else put that file into the transcript twice.
const (
	wholeDetail = 16 << 10
	wholeMember = 4 << 10
)

// detail encodes what front ends know of a result, without its bulk.
func detail(r agent.Result) []byte {
	if r.Detail == nil {
		if r.IsError {
			return agent.AppendString(nil, clip("Error: "+agent.TextOf(r.Blocks), wholeMember))
		}
		return nil
	}
	data, err := json.Marshal(r.Detail)
	if err != nil || string(data) == "null" {
		return nil
	}
	return slim(data, 2)
}

// slim leaves out of the object data the members that are large; of large
// objects in it, as deep as levels says, only their large members.
func slim(data []byte, levels int) []byte {
	if len(data) <= wholeDetail {
		return data
	}
	if data[0] != '{' {
		if data[0] == '"' {
			var s string
			if json.Unmarshal(data, &s) == nil {
				return agent.AppendString(nil, clip(s, wholeMember))
			}
		}
		return []byte("null")
	}
	b := []byte{'{'}
	_ = history.Fields(data, func(name, value []byte) bool { // json.Marshal wrote it
		if len(value) > wholeMember {
			if value[0] != '{' || levels <= 1 {
				return true
			}
			value = slim(value, levels-1)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"', ':')
		b = append(b, value...)
		return true
	})
	return append(b, '}')
}

// clip cuts s after n bytes, at a whole character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

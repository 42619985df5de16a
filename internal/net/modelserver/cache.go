package modelserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"sync"
	"unicode/utf8"
)

// lookback is how many blocks before a mark the API looks for a cached prefix.
const lookback = 20

// Usage counts tokens the way the API reports them.
type Usage struct {
	In      int // behind the last mark, and not read from the cache
	Read    int
	Write5m int
	Write1h int
	Out     int
}

// Total is the number of tokens the request holds.
func (u Usage) Total() int { return u.In + u.Read + u.Write5m + u.Write1h }

// A cache simulates the prompt cache: it remembers the prefixes that marks
// ended, per model, and never forgets. The order is tools, system, messages;
// a change of thinking or tool choice makes other messages of the same ones.
// It is safe for concurrent use.
type cache struct {
	min int // tokens a prefix needs to be kept

	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool
}

// A plan is what one request would read and write.
type plan struct {
	usage Usage
	keys  [][sha256.Size]byte // prefixes to keep once the answer begins
}

type segment struct {
	path   string
	key    [sha256.Size]byte
	tokens int // up to and with this segment
	mark   string
}

// plan says what r would cost now. Nothing is kept until commit.
func (c *cache) plan(r *Request) plan {
	segs := segments(r)
	if len(segs) == 0 {
		return plan{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var p plan
	read, last, hour := -1, -1, -1
	for i, s := range segs {
		if s.mark == "" {
			continue
		}
		last = i
		if s.mark == "1h" {
			hour = i
		}
		for j := i; j >= 0 && j > i-lookback; j-- {
			if c.seen[segs[j].key] {
				read = max(read, j)
				break
			}
		}
		if s.tokens >= c.min {
			p.keys = append(p.keys, s.key)
		}
	}
	upTo := func(i int) int {
		if i < 0 {
			return 0
		}
		return segs[i].tokens
	}
	u := &p.usage
	u.Read = upTo(read)
	if last >= 0 && segs[last].tokens < c.min {
		last, hour = -1, -1
	}
	u.Write1h = max(0, upTo(hour)-u.Read)
	u.Write5m = max(0, upTo(last)-max(u.Read, upTo(hour)))
	u.In = upTo(len(segs)-1) - u.Read - u.Write1h - u.Write5m
	return p
}

// commit keeps the prefixes of p.
func (c *cache) commit(p plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[[sha256.Size]byte]bool{}
	}
	for _, k := range p.keys {
		c.seen[k] = true
	}
}

// segments cuts r into the pieces the cache compares, with a running hash.
// A token is four characters.
func segments(r *Request) []segment {
	h := sha256.New()
	h.Write([]byte(r.Model))
	var out []segment
	chars := 0
	var buf []byte
	add := func(path, part string, bytes []byte, mark json.RawMessage) {
		buf = bytes
		chars += utf8.RuneCount(bytes)
		out = append(out, segment{path: path, key: step(h, part, bytes), tokens: (chars + 3) / 4, mark: life(mark)})
	}
	for i := range r.Tools {
		add(fmt.Sprintf("tools.%d", i), "tools", r.Tools[i].bare(buf[:0]), r.Tools[i].CacheControl)
	}
	for i := range r.System {
		add(fmt.Sprintf("system.%d", i), "system", r.System[i].bare(buf[:0]), r.System[i].CacheControl)
	}
	step(h, "thinking", r.fields.of("thinking"))
	step(h, "tool_choice", r.fields.of("tool_choice"))
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Blocks {
			b := &m.Blocks[j]
			mark := b.CacheControl
			for k := range b.Content {
				if len(b.Content[k].CacheControl) > 0 {
					mark = b.Content[k].CacheControl
				}
			}
			add(fmt.Sprintf("messages.%d.content.%d", i, j), m.Role, b.bare(buf[:0]), mark)
		}
	}
	return out
}

// step adds one piece to the running hash and returns the hash so far.
func step(h hash.Hash, part string, bytes []byte) (key [sha256.Size]byte) {
	h.Write([]byte(part))
	h.Write([]byte{0})
	h.Write(bytes)
	h.Write([]byte{0})
	h.Sum(key[:0])
	return key
}

// life is how long a mark keeps its prefix: "5m", "1h", or "" for no mark.
func life(mark json.RawMessage) string {
	if len(mark) == 0 || string(mark) == "null" {
		return ""
	}
	var cc struct{ TTL string }
	if json.Unmarshal(mark, &cc) == nil && cc.TTL == "1h" {
		return "1h"
	}
	return "5m"
}

// tokens counts the tokens of r.
func tokens(r *Request) int {
	segs := segments(r)
	if len(segs) == 0 {
		return 0
	}
	return segs[len(segs)-1].tokens
}

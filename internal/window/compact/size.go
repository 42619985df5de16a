package compact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// Estimates for what has no text. An image is scaled down by the upstream to
// about this many tokens at most; a PDF page is sent as text and picture.
const (
	imageTokens = 1600
	pageTokens  = 2000
	blockTokens = 8 // the wrapping of a block
)

// TokensOf estimates the tokens of n bytes of text: four bytes a token.
func TokensOf(n int) int { return (n + 3) / 4 }

// A Size says how much room something takes in a request.
type Size struct {
	Tokens int // estimated
	Bytes  int // encoded
	Media  int // images and documents
	Pages  int // of PDF
}

func (s Size) add(t Size) Size {
	return Size{s.Tokens + t.Tokens, s.Bytes + t.Bytes, s.Media + t.Media, s.Pages + t.Pages}
}

// A Scale measures histories. It remembers the page counts of documents, so
// one Scale should serve a session. Its methods may be called concurrently.
type Scale struct {
	mu    sync.Mutex
	pages map[*agent.Document]int
}

// History measures h.
func (s *Scale) History(h []agent.Message) Size {
	var n Size
	for _, m := range h {
		n = n.add(s.Message(m))
	}
	return n
}

// Message measures m.
func (s *Scale) Message(m agent.Message) Size {
	var n Size
	for _, b := range m.Blocks {
		n = n.add(s.Block(b))
	}
	if m.Wire != nil {
		n.Bytes = len(m.Wire)
	}
	n.Bytes += len(`{"role":"assistant","content":},`)
	return n
}

// Block measures b.
func (s *Scale) Block(b agent.Block) Size {
	switch b := b.(type) {
	case *agent.Text:
		return text(len(b.Text) + len(b.Citations))
	case *agent.Thinking:
		return text(len(b.Text) + len(b.Signature))
	case *agent.Redacted:
		return text(len(b.Data))
	case *agent.ToolUse:
		return text(len(b.Name) + len(b.Input) + len(b.ID))
	case *agent.ToolResult:
		n := text(len(b.ID))
		for _, x := range b.Blocks {
			n = n.add(s.Block(x))
		}
		return n
	case *agent.Image:
		return Size{Tokens: imageTokens, Bytes: len(b.Data) + len(b.URL) + 80, Media: 1}
	case *agent.Document:
		if b.MediaType == "text/plain" {
			return text(len(b.Data) + len(b.Title))
		}
		p := s.documentPages(b)
		return Size{Tokens: p * pageTokens, Bytes: len(b.Data) + len(b.Title) + 120, Media: 1, Pages: p}
	case *agent.ToolReference:
		return text(len(b.Name) + 400) // its definition comes with it
	case *agent.Opaque:
		return text(len(b.Raw))
	}
	return Size{}
}

func text(n int) Size { return Size{Tokens: blockTokens + TokensOf(n), Bytes: n + 60} }

func (s *Scale) documentPages(d *agent.Document) int {
	s.mu.Lock()
	n, ok := s.pages[d]
	s.mu.Unlock()
	if ok {
		return n
	}
	n = pdfPages(d.Data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil || len(s.pages) > 256 { // it must not keep old documents alive
		s.pages = map[*agent.Document]int{}
	}
	s.pages[d] = n
	return n
}

// pdfPages counts the pages of a base64 PDF: page objects, or the count in
// the page tree, or, where both are compressed, a guess by size. At least 1.
func pdfPages(data string) int {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, _ := base64.StdEncoding.Decode(raw, []byte(data)) // a torn end leaves what came before
	raw = raw[:n]
	objects, count := 0, 0
	for rest := raw; ; {
		i := bytes.Index(rest, []byte("/Type"))
		if i < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[i+len("/Type"):], " \t\r\n")
		if v, ok := bytes.CutPrefix(rest, []byte("/Page")); ok && !bytes.HasPrefix(v, []byte("s")) {
			objects++
		}
	}
	for rest := raw; ; {
		i := bytes.Index(rest, []byte("/Count"))
		if i < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[i+len("/Count"):], " \t\r\n")
		end := 0
		for end < len(rest) && end < 6 && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		if v, err := strconv.Atoi(string(rest[:end])); err == nil {
			count = max(count, v)
		}
	}
	const bytesPerPage = 60_000
	if objects == 0 && count == 0 {
		return 1 + len(raw)/bytesPerPage
	}
	return max(1, objects, min(count, 10_000))
}

// object reports whether raw is a JSON object, as the input of a call must be.
func object(raw json.RawMessage) bool {
	t := bytes.TrimLeft(raw, " \t\r\n")
	return len(t) > 0 && t[0] == '{' && json.Valid(t)
}

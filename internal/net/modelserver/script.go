package modelserver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Script is what the server does for one request.
type Script struct {
	When   []Match // all must hold; none holds for every request
	Repeat int     // how often it may be used: 0 and 1 are once, -1 for ever
	Steps  []Step
}

// A Match is one condition on a request.
type Match struct {
	Not  bool
	What string // last, first, prompt, system, any, tool, model, beta, key, stream
	Text string
}

// A Step is one thing the server does. Steps that stand for content open a
// block, send it in pieces, and close it.
type Step interface{ step() }

type (
	// Text is a text block.
	Text struct{ Text string }
	// Thinking is a thinking block; "" for Signature makes one that proves itself.
	Thinking struct{ Text, Signature string }
	// Redacted is a redacted_thinking block; "" makes one that proves itself.
	Redacted struct{ Data string }
	// Tool is a tool_use block. "%n" in ID is the number of the request.
	Tool struct {
		ID, Name string
		Input    json.RawMessage
	}
	// RawTool is a tool_use block whose input is sent as these very pieces,
	// JSON or not.
	RawTool struct {
		ID, Name string
		Pieces   []string
	}
	// RawBlock is a block of any type, sent whole in its content_block_start.
	RawBlock struct{ JSON json.RawMessage }
	// Open is a Text, Thinking, Tool or RawTool that is begun and never closed.
	Open struct{ Block Step }
	// Start sends the headers and the message_start, which the first content
	// does by itself. Every other step leaves the two unsent.
	Start struct{}
	// Event is an event of any type; Data is its JSON.
	Event struct{ Type, Data string }
	// Comment is a comment line of the stream.
	Comment struct{ Text string }
	// Ping is a ping event.
	Ping struct{}
	// Sleep waits.
	Sleep struct{ For time.Duration }
	// Stop ends the message; without one a script stops with tool_use or end_turn.
	Stop struct{ Reason, Sequence string }
	// Fail is an error event; the stream ends behind it.
	Fail struct{ Type, Message string }
	// Status answers with an HTTP error instead of a message.
	Status struct {
		Code                      int
		RetryAfter, Type, Message string
	}
	// Body is the whole body of the answer, whatever it is. A Status comes after it.
	Body struct{ Text string }
	// Header sets a header of the answer; "" removes it.
	Header struct{ Key, Value string }
	// Count replaces numbers of the usage; -1 keeps one.
	Count struct{ In, Read, Write, Out int }
	// Chunk sends the body in pieces of so many bytes.
	Chunk struct{ Bytes int }
	// Piece makes deltas of so many characters.
	Piece struct{ Chars int }
	// Pace waits between events.
	Pace struct{ Every time.Duration }
	// EOL is the line end of the stream: "\n", "\r\n" or "\r".
	EOL struct{ Text string }
	// Model is the model that says it answers.
	Model struct{ Name string }
	// Gzip compresses the answer if the client takes that.
	Gzip struct{}
	// Headers sends the headers now, before any event.
	Headers struct{}
	// Hang sends nothing more until the client leaves.
	Hang struct{}
	// Cut resets the connection; Drop closes it in the middle of the body;
	// EOF ends the body as if the message were complete.
	Cut  struct{}
	Drop struct{}
	EOF  struct{}
)

func (Text) step()     {}
func (Thinking) step() {}
func (Redacted) step() {}
func (Tool) step()     {}
func (RawTool) step()  {}
func (RawBlock) step() {}
func (Open) step()     {}
func (Start) step()    {}
func (Event) step()    {}
func (Comment) step()  {}
func (Ping) step()     {}
func (Sleep) step()    {}
func (Stop) step()     {}
func (Fail) step()     {}
func (Status) step()   {}
func (Body) step()     {}
func (Header) step()   {}
func (Count) step()    {}
func (Chunk) step()    {}
func (Piece) step()    {}
func (Pace) step()     {}
func (EOL) step()      {}
func (Model) step()    {}
func (Gzip) step()     {}
func (Headers) step()  {}
func (Hang) step()     {}
func (Cut) step()      {}
func (Drop) step()     {}
func (EOF) step()      {}

// ParseScript reads a script in the language of the package comment. Its
// error names the line.
func ParseScript(src string) (Script, error) {
	var s Script
	for n, line := range strings.Split(src, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "|"); ok {
			if err := s.extend(strings.TrimPrefix(rest, " ")); err != nil {
				return Script{}, fmt.Errorf("line %d: %w", n+1, err)
			}
			continue
		}
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		if err := s.add(verb, strings.TrimSpace(rest)); err != nil {
			return Script{}, fmt.Errorf("line %d: %s: %w", n+1, verb, err)
		}
	}
	return s, nil
}

// extend appends a further line to the text of the last step.
func (s *Script) extend(line string) error {
	if len(s.Steps) > 0 {
		last := &s.Steps[len(s.Steps)-1]
		switch b := (*last).(type) {
		case Text:
			*last = Text{b.Text + "\n" + line}
			return nil
		case Thinking:
			*last = Thinking{b.Text + "\n" + line, b.Signature}
			return nil
		case Body:
			*last = Body{b.Text + "\n" + line}
			return nil
		}
	}
	return fmt.Errorf("a line that goes on needs a text, thinking or body before it")
}

func (s *Script) add(verb, rest string) error {
	switch verb {
	case "when":
		m, err := parseMatch(rest)
		s.When = append(s.When, m)
		return err
	case "repeat":
		s.Repeat = -1
		if rest == "" {
			return nil
		}
		n, err := count(rest)
		s.Repeat = n
		return err
	case "status":
		return s.status(rest)
	case "unknown":
		steps, err := unknown(rest)
		s.Steps = append(s.Steps, steps...)
		return err
	case "headers-only":
		s.Steps = append(s.Steps, Headers{}, Hang{})
		return nil
	}
	st, err := parseStep(verb, rest)
	s.Steps = append(s.Steps, st)
	return err
}

// status reads: CODE [RETRY-AFTER] [TYPE [MESSAGE]].
func (s *Script) status(rest string) error {
	word, rest, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(word)
	if err != nil || code < 200 || code > 599 {
		return fmt.Errorf("%q is no HTTP status", word)
	}
	st := Status{Code: code}
	word, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	if word != "" && !strings.HasSuffix(word, "_error") {
		st.RetryAfter = word
		word, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	st.Type, st.Message = word, strings.TrimSpace(rest)
	s.Steps = append(s.Steps, st)
	return nil
}

// unknown makes things that a client must pass over.
func unknown(what string) ([]Step, error) {
	switch what {
	case "", "event":
		return []Step{Event{"unheard_of", `{"type":"unheard_of","value":1}`}}, nil
	case "block":
		return []Step{RawBlock{json.RawMessage(`{"type":"unheard_of","value":1}`)}}, nil
	}
	return nil, fmt.Errorf("%q is neither event nor block", what)
}

func parseStep(verb, rest string) (Step, error) {
	switch verb {
	case "text":
		t, err := words(rest)
		return Text{t}, err
	case "thinking":
		var sig string
		if s, ok := strings.CutPrefix(rest, "sig="); ok {
			sig, rest, _ = strings.Cut(s, " ")
		}
		t, err := words(rest)
		return Thinking{t, sig}, err
	case "redacted":
		return Redacted{rest}, nil
	case "tool", "rawtool":
		return parseTool(verb, rest)
	case "open":
		verb, rest, _ := strings.Cut(rest, " ")
		b, err := parseStep(verb, strings.TrimSpace(rest))
		switch b.(type) {
		case Text, Thinking, Tool, RawTool:
		default:
			err = fmt.Errorf("cannot leave a %s open", verb)
		}
		return Open{b}, err
	case "block":
		return RawBlock{json.RawMessage(rest)}, valid(rest)
	case "event":
		typ, data, _ := strings.Cut(rest, " ")
		return Event{typ, strings.TrimSpace(data)}, nil
	case "start":
		return Start{}, nil
	case "comment":
		return Comment{rest}, nil
	case "ping":
		return Ping{}, nil
	case "sleep":
		d, err := time.ParseDuration(rest)
		return Sleep{d}, err
	case "stop":
		reason, seq, _ := strings.Cut(rest, " ")
		return Stop{reason, seq}, nil
	case "error":
		typ, msg, _ := strings.Cut(rest, " ")
		return Fail{typ, msg}, nil
	}
	return parseSetting(verb, rest)
}

func parseSetting(verb, rest string) (Step, error) {
	switch verb {
	case "body":
		t, err := words(rest)
		return Body{t}, err
	case "header":
		k, v, _ := strings.Cut(rest, " ")
		return Header{k, strings.TrimSpace(v)}, nil
	case "usage":
		return parseCount(rest)
	case "chunk":
		n, err := count(rest)
		return Chunk{n}, err
	case "piece":
		n, err := count(rest)
		return Piece{n}, err
	case "pace":
		d, err := time.ParseDuration(rest)
		return Pace{d}, err
	case "eol":
		eol, ok := map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"}[rest]
		if !ok {
			return nil, fmt.Errorf("%q is not one of lf, crlf, cr", rest)
		}
		return EOL{eol}, nil
	case "model":
		return Model{rest}, nil
	case "gzip":
		return Gzip{}, nil
	case "headers":
		return Headers{}, nil
	case "hang":
		return Hang{}, nil
	case "cut":
		return Cut{}, nil
	case "drop":
		return Drop{}, nil
	case "eof":
		return EOF{}, nil
	}
	return nil, fmt.Errorf("no such verb")
}

func parseTool(verb, rest string) (Step, error) {
	id, rest, _ := strings.Cut(rest, " ")
	name, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	rest = strings.TrimSpace(rest)
	if name == "" {
		return nil, fmt.Errorf("want an id, a name and an input")
	}
	if verb == "tool" {
		return Tool{id, name, json.RawMessage(rest)}, valid(rest)
	}
	var pieces []string
	for strings.HasPrefix(rest, `"`) {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			break // not quoted pieces after all
		}
		p, _ := strconv.Unquote(q)
		pieces, rest = append(pieces, p), strings.TrimSpace(rest[len(q):])
	}
	if rest != "" {
		pieces = append(pieces, rest)
	}
	return RawTool{id, name, pieces}, nil
}

func parseMatch(rest string) (m Match, err error) {
	m.What, m.Text, _ = strings.Cut(rest, " ")
	if m.What == "not" {
		m.Not = true
		m.What, m.Text, _ = strings.Cut(m.Text, " ")
	}
	switch m.What {
	case "last", "first", "prompt", "system", "any", "tool", "model", "beta", "key", "stream":
	default:
		return m, fmt.Errorf("%q names no part of a request", m.What)
	}
	m.Text, err = words(strings.TrimSpace(m.Text))
	return m, err
}

func parseCount(rest string) (Step, error) {
	c := Count{-1, -1, -1, -1}
	for f := range strings.FieldsSeq(rest) {
		k, v, _ := strings.Cut(f, "=")
		n, err := count(v)
		if err != nil {
			return nil, err
		}
		switch k {
		case "in":
			c.In = n
		case "read":
			c.Read = n
		case "write":
			c.Write = n
		case "out":
			c.Out = n
		default:
			return nil, fmt.Errorf("%q is not one of in, read, write, out", k)
		}
	}
	return c, nil
}

// words is rest itself, or what it quotes in Go's form.
func words(rest string) (string, error) {
	if len(rest) > 1 && rest[0] == '"' && rest[len(rest)-1] == '"' {
		if t, err := strconv.Unquote(rest); err == nil {
			return t, nil
		}
	}
	return rest, nil
}

func count(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no count", s)
	}
	return n, nil
}

func valid(s string) error {
	if !json.Valid([]byte(s)) {
		return fmt.Errorf("the input is not JSON: %s", s)
	}
	return nil
}

// holds reports whether every condition of the script holds for r.
func (s *Script) holds(r *Request) bool {
	for _, m := range s.When {
		if m.holds(r) == m.Not {
			return false
		}
	}
	return true
}

func (m Match) holds(r *Request) bool {
	switch m.What {
	case "last":
		return strings.Contains(r.Last(), m.Text)
	case "first":
		return len(r.Messages) > 0 && strings.Contains(textOf(r.Messages[0].Blocks), m.Text)
	case "prompt":
		return strings.Contains(r.Prompt(), m.Text)
	case "system":
		return strings.Contains(textOf(r.System), m.Text)
	case "any":
		return strings.Contains(r.All(), m.Text)
	case "tool":
		return r.Offers(m.Text)
	case "model":
		return r.Model == m.Text
	case "beta":
		return strings.Contains(strings.Join(r.Header.Values("anthropic-beta"), ","), m.Text)
	case "key":
		return r.fields.of(m.Text) != nil
	case "stream":
		return strconv.FormatBool(r.Stream) == m.Text
	}
	return false
}

package modelserver

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A player carries out one script for one request.
type player struct {
	s   *Server
	x   *Exchange
	w   http.ResponseWriter
	rc  *http.ResponseController
	r   *http.Request
	req *Request

	plan    plan
	model   string
	count   Count
	body    *string
	chunk   int // bytes of one write; 0 writes events whole
	piece   int // characters of one delta
	pace    time.Duration
	eol     string
	gzip    bool
	zip     *gzip.Writer
	headers bool // sent
	started bool // message_start sent
	events  int  // sent so far
	index   int  // of the next block
	chars   int  // of content so far
	called  bool // a tool_use was sent
	blocks  []sentBlock
	content []json.RawMessage // of an answer that is no stream
	over    bool              // nothing more is to be sent
}

// play carries out the steps. A step that ends the answer ends it.
func (p *player) play(steps []Step) {
	p.model, p.piece, p.eol = p.req.Model, 12, "\n"
	p.count = Count{-1, -1, -1, -1}
	p.w.Header().Set("request-id", p.id("req"))
	for _, st := range steps {
		if p.over {
			break
		}
		p.step(st)
	}
	switch {
	case p.over:
	case p.body != nil:
		p.whole(http.StatusOK)
	default:
		p.stop(Stop{})
	}
	if p.zip != nil && p.x.Status != 0 {
		p.zip.Close()
	}
	p.s.memory.sent(p.blocks)
}

func (p *player) step(st Step) {
	switch st := st.(type) {
	case Text, Thinking, Redacted, Tool, RawTool, RawBlock:
		p.block(st, true)
	case Open:
		p.block(st.Block, false)
	case Start:
		p.start()
	case Event:
		p.event(st.Type, json.RawMessage(st.Data))
	case Comment:
		p.head()
		p.write(": " + st.Text + p.eol)
	case Ping:
		p.event("ping", json.RawMessage(`{"type":"ping"}`))
	case Stop:
		p.stop(st)
	case Fail:
		p.fail(st)
	case Status:
		p.httpError(st)
	case Sleep:
		p.wait(st.For)
	case Hang:
		p.hang()
	case Headers:
		p.head()
		p.flush()
	case Cut:
		p.abort(true)
	case Drop:
		p.abort(false)
	case EOF:
		p.head()
		p.over = true
	default:
		p.set(st)
	}
}

// set carries out the steps that only change how the others are done.
func (p *player) set(st Step) {
	switch st := st.(type) {
	case Body:
		p.body = &st.Text
	case Header:
		if st.Value == "" {
			p.w.Header()[http.CanonicalHeaderKey(st.Key)] = nil // and none is made up
		} else {
			p.w.Header().Set(st.Key, st.Value)
		}
	case Model:
		p.model = st.Name
	case Count:
		p.count = st
	case Chunk:
		p.chunk = st.Bytes
	case Piece:
		p.piece = max(1, st.Chars)
	case Pace:
		p.pace = st.Every
	case EOL:
		p.eol = st.Text
	case Gzip:
		p.gzip = strings.Contains(p.r.Header.Get("accept-encoding"), "gzip")
	}
}

// usage is what the answer has cost so far.
func (p *player) usage() Usage {
	u := p.plan.usage
	u.Out = max(1, (p.chars+3)/4)
	if c := p.count; c.In >= 0 {
		u.In = c.In
	}
	if p.count.Read >= 0 {
		u.Read = p.count.Read
	}
	if p.count.Write >= 0 {
		u.Write5m, u.Write1h = p.count.Write, 0
	}
	if p.count.Out >= 0 {
		u.Out = p.count.Out
	}
	p.s.note(func() { p.x.Usage = u })
	return u
}

type wireUsage struct {
	In       int       `json:"input_tokens"`
	Write    int       `json:"cache_creation_input_tokens"`
	Read     int       `json:"cache_read_input_tokens"`
	Creation wireLives `json:"cache_creation"`
	Out      int       `json:"output_tokens"`
	Tier     string    `json:"service_tier"`
}

type wireLives struct {
	FiveMinutes int `json:"ephemeral_5m_input_tokens"`
	OneHour     int `json:"ephemeral_1h_input_tokens"`
}

func (u Usage) wire() wireUsage {
	return wireUsage{u.In, u.Write5m + u.Write1h, u.Read, wireLives{u.Write5m, u.Write1h}, u.Out, "standard"}
}

type wireMessage struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Role     string            `json:"role"`
	Model    string            `json:"model"`
	Content  []json.RawMessage `json:"content"`
	Stop     *string           `json:"stop_reason"`
	Sequence *string           `json:"stop_sequence"`
	Usage    wireUsage         `json:"usage"`
}

func (p *player) message() wireMessage {
	m := wireMessage{ID: p.id("msg"), Type: "message", Role: "assistant", Model: p.model, Content: []json.RawMessage{}, Usage: p.usage().wire()}
	m.Content = append(m.Content, p.content...)
	return m
}

// start sends the headers and the message_start, once.
func (p *player) start() {
	if p.started || p.over {
		return
	}
	p.started = true
	p.s.cache.commit(p.plan)
	if !p.req.Stream {
		return
	}
	p.event("message_start", raw(struct {
		Type    string      `json:"type"`
		Message wireMessage `json:"message"`
	}{"message_start", p.message()}))
}

// block sends one block; one that is not whole is left open.
func (p *player) block(st Step, whole bool) {
	p.start()
	head, kind, pieces, body := p.shape(st)
	if !p.req.Stream {
		if whole {
			p.content = append(p.content, body)
		}
		return
	}
	i := p.index
	p.index++
	p.event("content_block_start", raw(struct {
		Type  string          `json:"type"`
		Index int             `json:"index"`
		Block json.RawMessage `json:"content_block"`
	}{"content_block_start", i, head}))
	key := map[string]string{"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json", "signature_delta": "signature"}
	delta := func(kind, text string) {
		p.event("content_block_delta", json.RawMessage(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, key[kind], raw(text))))
	}
	for _, s := range pieces {
		if p.over {
			return
		}
		delta(kind, s)
	}
	if t, ok := st.(Thinking); ok && whole {
		delta("signature_delta", t.signed())
	}
	if whole && !p.over {
		p.event("content_block_stop", json.RawMessage(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i)))
	}
}

func (t Thinking) signed() string {
	if t.Signature != "" {
		return t.Signature
	}
	return sign(t.Text)
}

// shape says how a block begins on the stream, in which deltas it comes, and
// how it looks whole.
func (p *player) shape(st Step) (head json.RawMessage, kind string, pieces []string, body json.RawMessage) {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type thinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	type redacted struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	switch st := st.(type) {
	case Text:
		p.chars += utf8.RuneCountInString(st.Text)
		return raw(text{"text", ""}), "text_delta", p.pieces(st.Text), raw(text{"text", st.Text})
	case Thinking:
		p.chars += utf8.RuneCountInString(st.Text)
		p.blocks = append(p.blocks, sentBlock{signature: st.signed(), text: st.Text})
		return raw(thinking{"thinking", "", ""}), "thinking_delta", p.pieces(st.Text), raw(thinking{"thinking", st.Text, st.signed()})
	case Redacted:
		data := st.Data
		if data == "" {
			data = redact(p.id("red"))
		}
		p.blocks = append(p.blocks, sentBlock{data: data})
		body = raw(redacted{"redacted_thinking", data})
		return body, "", nil, body
	case Tool:
		return p.tool(st.ID, st.Name, p.pieces(string(st.Input)))
	case RawTool:
		return p.tool(st.ID, st.Name, st.Pieces)
	case RawBlock:
		return st.JSON, "", nil, st.JSON
	}
	panic(fmt.Sprintf("modelserver: %T is no block", st))
}

func (p *player) tool(id, name string, pieces []string) (json.RawMessage, string, []string, json.RawMessage) {
	type tool struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	id = strings.ReplaceAll(id, "%n", strconv.Itoa(p.x.N))
	input := json.RawMessage(strings.Join(pieces, ""))
	p.chars += len(input)
	p.called = true
	p.blocks = append(p.blocks, sentBlock{tool: id})
	if !json.Valid(input) {
		input = json.RawMessage("{}")
	}
	return raw(tool{"tool_use", id, name, json.RawMessage("{}")}), "input_json_delta", pieces, raw(tool{"tool_use", id, name, input})
}

// pieces cuts s between characters.
func (p *player) pieces(s string) []string {
	var out []string
	for s != "" {
		end, n := 0, 0
		for end < len(s) && n < p.piece {
			_, w := utf8.DecodeRuneInString(s[end:])
			end += w
			n++
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// stop ends the message.
func (p *player) stop(st Stop) {
	p.start()
	if p.over {
		return
	}
	if st.Reason == "" {
		st.Reason = "end_turn"
		if p.called {
			st.Reason = "tool_use"
		}
	}
	var seq *string
	if st.Sequence != "" {
		seq = &st.Sequence
	}
	if !p.req.Stream {
		m := p.message()
		m.Stop, m.Sequence = &st.Reason, seq
		body := string(raw(m))
		p.body = &body
		if p.w.Header().Get("content-type") == "" {
			p.w.Header().Set("content-type", "application/json")
		}
		p.whole(http.StatusOK)
		return
	}
	type delta struct {
		Stop     string  `json:"stop_reason"`
		Sequence *string `json:"stop_sequence"`
	}
	p.event("message_delta", raw(struct {
		Type  string    `json:"type"`
		Delta delta     `json:"delta"`
		Usage wireUsage `json:"usage"`
	}{"message_delta", delta{st.Reason, seq}, p.usage().wire()}))
	p.event("message_stop", json.RawMessage(`{"type":"message_stop"}`))
	p.over = true
}

// fail sends an error event, or the HTTP error it stands for.
func (p *player) fail(st Fail) {
	if st.Message == "" {
		st.Message = "the offline model was told to fail here"
	}
	if !p.req.Stream {
		p.httpError(Status{Code: errorStatus(st.Type), Type: st.Type, Message: st.Message})
		return
	}
	p.event("error", raw(apiError{Type: "error", Error: apiDetail{st.Type, st.Message}}))
	p.over = true
}

func (p *player) httpError(st Status) {
	if st.RetryAfter != "" {
		p.w.Header().Set("retry-after", st.RetryAfter)
	}
	if st.Type == "" {
		st.Type = errorType(st.Code)
	}
	if st.Message == "" {
		st.Message = "the offline model was told to answer " + strconv.Itoa(st.Code)
	}
	if p.body == nil {
		body := string(raw(apiError{"error", apiDetail{st.Type, st.Message}, p.id("req")}))
		p.body = &body
		p.w.Header().Set("content-type", "application/json")
	}
	p.whole(st.Code)
}

// whole answers with p.body.
func (p *player) whole(code int) {
	p.over = true
	if !p.headers {
		p.headers = true
		p.zipped()
		p.status(code)
	}
	p.write(*p.body)
}

// head sends the headers of a stream, once.
func (p *player) head() {
	if p.headers || p.over {
		return
	}
	p.headers = true
	h := p.w.Header()
	if _, set := h["Content-Type"]; !set {
		h.Set("content-type", "text/event-stream; charset=utf-8")
	}
	h.Set("cache-control", "no-cache")
	p.zipped()
	p.status(http.StatusOK)
}

func (p *player) zipped() {
	if p.gzip {
		p.w.Header().Set("content-encoding", "gzip")
		p.zip = gzip.NewWriter(p.w)
	}
}

// event sends one event, or what goes wrong in its place.
func (p *player) event(typ string, data json.RawMessage) {
	if p.over {
		return
	}
	if f := p.s.opts.Fault; f != nil {
		switch f(p.x.N, p.events) {
		case FaultCut:
			p.abort(true)
			return
		case FaultDrop:
			p.abort(false)
			return
		case FaultEOF:
			p.head()
			p.over = true
			return
		case FaultHang:
			p.hang()
			return
		case FaultError:
			typ, data = "error", raw(apiError{Type: "error", Error: apiDetail{"overloaded_error", "the offline model was told to fail here"}})
			defer func() { p.over = true }()
		}
	}
	p.head()
	if p.pace > 0 && p.events > 0 {
		if p.wait(p.pace); p.over {
			return
		}
	}
	p.events++
	p.write("event: " + typ + p.eol + "data: " + string(data) + p.eol + p.eol)
	p.s.note(func() { p.x.Events = append(p.x.Events, Sent{typ, time.Now()}) })
}

// write sends s and flushes it, in chunks if so asked.
func (p *player) write(s string) {
	var out io.Writer = p.w
	if p.zip != nil {
		out = p.zip
	}
	// A client that does not read must not hold the server for ever.
	p.rc.SetWriteDeadline(time.Now().Add(p.s.opts.Patience))
	for s != "" {
		n := len(s)
		if p.chunk > 0 {
			n = min(n, p.chunk)
		}
		if _, err := io.WriteString(out, s[:n]); err != nil {
			p.left()
			return
		}
		p.flush()
		s = s[n:]
	}
}

func (p *player) flush() {
	if p.zip != nil {
		p.zip.Flush()
	}
	if p.rc.Flush() != nil {
		p.left()
	}
}

// left notes that the client has gone.
func (p *player) left() {
	p.over = true
	p.s.note(func() { p.x.Left = true })
}

// wait waits, unless the client leaves or the server closes.
func (p *player) wait(d time.Duration) {
	t := time.NewTimer(min(d, p.s.opts.Patience))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.r.Context().Done():
		p.left()
	case <-p.s.closed:
		p.abort(false)
	}
}

// hang sends nothing more until the client leaves, the server closes, or
// patience ends; then the connection is closed.
func (p *player) hang() {
	p.flushed()
	p.wait(p.s.opts.Patience)
	if !p.over {
		p.abort(false)
	}
}

func (p *player) flushed() {
	if p.headers {
		p.flush()
	}
}

// abort breaks the connection: reset, or closed where the body is not at its end.
func (p *player) abort(reset bool) {
	p.over = true
	p.flushed()
	p.zip = nil
	conn, _, err := p.rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // not HTTP/1.1: the server closes the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	conn.Close()
}

package transcript

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/disk"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// Options says what a Writer writes and where.
type Options struct {
	// Path is the transcript; its name is the session's id. Required.
	Path string
	// Cwd, Version and Entrypoint (cli, sdk-cli, sdk-ts, sdk-py) are recorded
	// in every line.
	Cwd, Version, Entrypoint string
	// Branch returns the git branch, asked for at each prompt. Nil: unknown.
	Branch func() string
	// Resume continues what Load found at Path. Nil: a new session; Open then
	// fails with fs.ErrExist if there is a transcript already.
	Resume *Loaded
	// Sync makes the record of a call that may write durable against a crash
	// of the machine, by fsync before it runs, and the transcript at the end
	// of each turn. Without it, what is written outlives this process only.
	Sync bool
	// Guard is asked before each write; its error keeps the write from being
	// made. It is how a session that was taken over stops. Nil: no guard.
	Guard func() error
	// FS is the disk. Nil: the machine's.
	FS disk.FS
	// NewID makes uuids of lines. Nil: random ones.
	NewID func() string
}

// A Writer is the sink of a session's journal: it maps durable events to
// lines. Nothing is created before the first message.
//
// An event is on disk when Sink returns. The lines of a response get their
// final usage only when it is over; until then its blocks, and what follows
// them, stand as drafts in the boundary record, where Load finds them.
//
// If a write fails the lines are kept and written before the next ones, up to
// 16 MiB. Methods may be called concurrently.
type Writer struct {
	o       Options
	session string
	cwd     string
	branch  string
	mode    agent.Mode
	title   string
	prompt  string // the last one, for last-prompt lines

	mu     sync.Mutex // keeps the lines in the order of the events
	live   bool       // there is a message
	trace  out
	main   *chain
	agents map[string]*chain
	far    int // bytes since the title was last written
	// requests is nil until one is sent.
	requests *requestLog
}

// newID returns a random (version 4) UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Open returns a Writer for o.
func Open(o Options) (*Writer, error) {
	if o.FS == nil {
		o.FS = disk.OS{}
	}
	if o.NewID == nil {
		o.NewID = newID
	}
	if o.Entrypoint == "" {
		o.Entrypoint = "cli"
	}
	w := &Writer{o: o, cwd: o.Cwd}
	w.begin(o.Path)
	if o.Resume == nil {
		if info, err := o.FS.Stat(o.Path); err == nil && info.Size() > 0 {
			return nil, fmt.Errorf("session %s: %w", w.session, fs.ErrExist)
		}
		return w, nil
	}
	w.main.resume(o.Resume)
	w.title, w.mode, w.branch = o.Resume.Title, o.Resume.Mode, o.Resume.Branch
	return w, nil
}

// begin points w at the transcript path.
func (w *Writer) begin(path string) {
	w.session = strings.TrimSuffix(filepath.Base(path), ext)
	w.trace = out{w: w, path: TracePath(path)}
	w.main = newChain(w, "", path)
	w.agents = map[string]*chain{}
	w.live = false
}

// Path returns the name of the transcript, which Cleared changes.
func (w *Writer) Path() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.main.out.path
}

// Sink records e. It is a journal.Sink.
func (w *Writer) Sink(e agent.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.chain(e.Agent)
	rec := record(e)
	var err error
	switch b := e.Body.(type) {
	case agent.Opened:
		w.info(b.Info)
	case agent.Began:
		if e.Agent == "" {
			w.info(b.Info)
		}
	case agent.Said:
		w.live = true
		err = c.said(e.At, b)
		rec.ID = c.parent // a message of results has no line of its own
	case agent.Responded:
		err = c.responded(b)
	case agent.Started:
		w.live = true
	case agent.Finished:
		err = c.finished(e.At, b)
	case agent.Noted:
		if b.Level == "warning" || b.Level == "error" {
			err = c.system(e.At, "informational", b.Level, b.Text)
		}
	case agent.Local:
		err = c.system(e.At, "local_command", "info", "<local-command-stdout>"+b.Text+"</local-command-stdout>")
	case agent.Compacted:
		w.live = true
		err = c.compacted(e.At, b)
	case agent.Rewound:
		if b.History != nil {
			w.live = true
			err = c.rewound(e.At, b)
		}
	case agent.Mended:
		w.live = true
		err = c.mended(e.At, b)
	case agent.Changed:
		if e.Agent == "" {
			err = w.changed(b)
		}
	case agent.Worked:
		err = w.worked(b)
	case agent.Settled:
		if err = c.flush(); e.Agent == "" {
			err = errors.Join(err, w.settled())
		}
	}
	if rec != nil {
		err = errors.Join(err, w.trace.add(rec.encode()))
	}
	switch b := e.Body.(type) {
	case agent.Started:
		if w.o.Sync && !b.Call.Effects.ReadOnly {
			err = errors.Join(err, w.trace.sync())
		}
	case agent.Cleared:
		err = errors.Join(err, w.cleared(b.Session))
	}
	return err
}

// chain returns the chain of lines of the sub-agent id, or the main one.
func (w *Writer) chain(id string) *chain {
	if id == "" {
		return w.main
	}
	c := w.agents[id]
	if c == nil {
		c = newChain(w, id, AgentPath(w.main.out.path, id))
		c.pickUp()
		w.agents[id] = c
	}
	return c
}

// info takes over what an event says about the session.
func (w *Writer) info(i agent.Info) {
	if i.Mode != "" {
		w.mode = i.Mode
	}
	if i.Cwd != "" {
		w.cwd = i.Cwd
	}
	if w.o.Branch != nil {
		w.branch = w.o.Branch()
	}
	w.retitle(i.Title)
}

// retitle records a title that is new. It is written with the next lines.
func (w *Writer) retitle(title string) {
	if title = cleanTitle(title); title == "" || title == w.title {
		return
	}
	w.title = title
	w.main.out.queue(titleLine(title, w.session))
}

func titleLine(title, session string) []byte {
	return loose("custom-title", str("customTitle", title), str("sessionId", session))
}

// cleanTitle makes a title one line without control characters.
func cleanTitle(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s))
}

func (w *Writer) changed(b agent.Changed) error {
	mode := w.mode
	w.info(b.Info)
	if w.mode != mode {
		w.main.out.queue(loose("permission-mode", str("permissionMode", string(w.mode)), str("sessionId", w.session)))
	}
	return w.main.out.flush()
}

// worked writes what is known of a sub-agent beside its transcript, and
// closes the transcript of one that has ended.
func (w *Writer) worked(b agent.Worked) error {
	t := b.Task
	if t.Type != "local_agent" || t.ID == "" {
		return nil
	}
	switch b.Stage {
	case "started":
		return w.writeMeta(t)
	case "ended":
		if c := w.agents[t.ID]; c != nil {
			err := errors.Join(c.flush(), c.out.close())
			delete(w.agents, t.ID)
			return err
		}
	}
	return nil
}

// settled writes, at the end of a turn, what readers look for in the last
// bytes of a transcript.
func (w *Writer) settled() error {
	if w.title != "" && w.far > farTitle {
		w.far = 0
		w.main.out.queue(titleLine(w.title, w.session))
	}
	if w.prompt != "" {
		w.main.out.queue(w.lastPrompt())
	}
	err := w.main.out.flush()
	if w.o.Sync {
		err = errors.Join(err, w.main.out.sync())
	}
	return err
}

// compat: the Agent SDK's listSessions reads the first and last 64 KiB of a
// transcript only.
const farTitle = 32 << 10

func (w *Writer) lastPrompt() []byte {
	return loose("last-prompt", str("lastPrompt", clip(w.prompt, 200)), str("leafUuid", w.main.parent), str("sessionId", w.session))
}

// cleared ends this transcript and points w at that of the new session.
func (w *Writer) cleared(session string) error {
	err := w.close()
	title := w.title
	w.title, w.prompt, w.far = "", "", 0
	w.begin(filepath.Join(filepath.Dir(w.main.out.path), history.Safe(session)+ext))
	w.retitle(title)
	return err
}

// Snapshot records the system prompt, in the parts it is made of, so that a
// resumed session can send the same bytes.
func (w *Writer) Snapshot(parts []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := json.Marshal(parts)
	if err != nil {
		return fmt.Errorf("recording the system prompt: %w", err)
	}
	c := w.main
	return c.put(c.line("attachment", w.o.NewID(), time.Now(), raw("attachment", `{"type":"prompt_snapshot","systemPrompt":`+string(data)+`}`)))
}

// Append adds a line of a type of its own, such as file-history-snapshot,
// with the given members, a JSON object. It is not part of the conversation.
func (w *Writer) Append(typ string, members json.RawMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var own []field
	err := history.Fields(members, func(name, value []byte) bool {
		own = append(own, field{string(name), value})
		return true
	})
	if err != nil || !json.Valid(members) {
		return fmt.Errorf("recording %s: its members are no JSON object", typ)
	}
	return w.main.out.add(loose(typ, own...))
}

// Close writes what is held back and closes the files.
func (w *Writer) Close() error {
	w.mu.Lock()
	err, requests := w.close(), w.requests
	w.mu.Unlock()
	return errors.Join(err, requests.close())
}

func (w *Writer) close() error {
	err := w.main.flush()
	for _, c := range w.agents {
		err = errors.Join(err, c.flush(), c.out.close())
	}
	return errors.Join(err, w.main.out.close(), w.trace.close())
}

// An out is one file that lines are appended to, opened when there is
// something to write.
type out struct {
	w       *Writer
	path    string
	app     *jsonl.Appender
	backlog [][]byte
	size    int // of backlog
}

const maxBacklog = 16 << 20

// queue puts lines behind what is to be written, without writing.
func (o *out) queue(lines ...[]byte) {
	for _, l := range lines {
		o.backlog = append(o.backlog, l)
		o.size += len(l)
	}
	for o.size > maxBacklog && len(o.backlog) > 1 {
		o.size -= len(o.backlog[0])
		o.backlog = o.backlog[1:]
	}
}

func (o *out) add(lines ...[]byte) error {
	o.queue(lines...)
	return o.flush()
}

// flush writes what is queued. Lines that could not be written stay queued;
// some of them may then come to stand in the file twice.
func (o *out) flush() error {
	if !o.w.live || len(o.backlog) == 0 {
		return nil
	}
	if g := o.w.o.Guard; g != nil {
		if err := g(); err != nil {
			o.backlog, o.size = nil, 0
			return err
		}
	}
	if o.app == nil {
		if err := o.w.o.FS.MkdirAll(filepath.Dir(o.path), 0o700); err != nil {
			return err
		}
		a, err := jsonl.Open(o.w.o.FS, o.path)
		if err != nil {
			return err
		}
		o.app = a
	}
	if err := o.app.Append(o.backlog...); err != nil {
		return err
	}
	if o == &o.w.main.out {
		o.w.far += o.size
	}
	o.backlog, o.size = nil, 0
	return nil
}

func (o *out) sync() error {
	if o.app == nil {
		return nil
	}
	return o.app.Sync()
}

func (o *out) close() error {
	err := o.flush()
	if o.app != nil {
		err = errors.Join(err, o.app.Close())
		o.app = nil
	}
	return err
}

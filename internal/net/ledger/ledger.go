// Package ledger keeps who was contacted over the network in a session, by
// anything: which host, on whose behalf, what was decided about it and how
// many bytes went either way.
//
// It owns the file and its lines. It must not know how hosts are reached or
// what decides about them: those who connect tell it.
//
// A contact is written when it begins and again when it is over, so that one
// which was open when the program was killed is there too. Lines of one
// contact share an id; the last one counts.
package ledger

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/jsonl"
	"github.com/seed-eb844fcb/cinch/internal/lib/procid"
)

// Verdicts.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// A Contact is one exchange with a host, or the refusal of one.
type Contact struct {
	ID  string    `json:"id"`
	At  time.Time `json:"at"`
	End time.Time `json:"end,omitzero"` // zero while it is under way, and for ever if the program was killed
	// Why is what it was for: model, mcp, web, hook, command.
	Why string `json:"why"`
	// Call is the tool call it was made for, Boundary the request in the
	// trace, Command the beginning of the command line; each "" if there is none.
	Call     agent.CallID `json:"call,omitempty"`
	Boundary string       `json:"boundary,omitempty"`
	Command  string       `json:"command,omitempty"`

	Host    string `json:"host"`            // host:port that was meant
	Proxy   string `json:"proxy,omitempty"` // host:port of the proxy on the way
	Verdict string `json:"verdict"`
	By      string `json:"by,omitempty"` // what decided: a rule, "answer", "--net", "address"

	Sent     int64  `json:"sent"`
	Received int64  `json:"received"`
	Status   int    `json:"status,omitempty"` // of HTTP, 0 if there was none
	Err      string `json:"error,omitempty"`
	// Secrets are names of credentials that were put in on the way.
	Secrets []string `json:"secrets,omitempty"`
}

// Name returns the ledger's name beside the transcript path.
func Name(side string) string { return filepath.Join(side, "network.jsonl") }

// Options say where a Book writes. Functions may be called concurrently.
type Options struct {
	// Path returns the file of the session as it is now; "" keeps nothing.
	Path func() string
	// Failed, if not nil, is told once that something could not be written.
	Failed func(error)
}

// A Book takes contacts down. Its methods may be called concurrently, and on
// nil, which keeps nothing.
type Book struct {
	o    Options
	run  string // sets the ids of this process apart
	seq  atomic.Int64
	once sync.Once // for Failed

	mu   sync.Mutex
	path string
	file *jsonl.Appender
}

// New returns a Book. No file is made before the first contact.
func New(o Options) *Book {
	self := procid.Self()
	return &Book{o: o, run: strconv.Itoa(self.PID) + "-" + self.Start}
}

// Close closes the file. Contacts that end later are not written.
func (b *Book) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		_ = b.file.Close() // every line is with the system already
	}
	b.file, b.path, b.o.Path = nil, "", nil
}

// An Entry is a contact under way. It belongs to one goroutine at a time.
type Entry struct {
	b    *Book
	c    Contact
	path string
}

// Begin takes down that c begins. It is never nil.
func (b *Book) Begin(c Contact) *Entry {
	e := &Entry{b: b, c: c}
	if e.c.At.IsZero() {
		e.c.At = time.Now()
	}
	if e.c.Verdict == "" {
		e.c.Verdict = Allowed
	}
	if b == nil {
		return e
	}
	e.c.ID = b.run + "-" + strconv.FormatInt(b.seq.Add(1), 10)
	e.path = b.where()
	b.write(e.path, &e.c)
	return e
}

// End takes down how it ended; change puts in what is known now.
func (e *Entry) End(change func(*Contact)) {
	if change != nil {
		change(&e.c)
	}
	e.c.End = time.Now()
	if e.b != nil {
		e.b.write(e.path, &e.c)
	}
}

// Refuse takes down a contact that was not made.
func (b *Book) Refuse(c Contact) {
	if b == nil {
		return
	}
	c.Verdict = Denied
	c.ID = b.run + "-" + strconv.FormatInt(b.seq.Add(1), 10)
	if c.At.IsZero() {
		c.At = time.Now()
	}
	c.End = time.Now()
	b.write(b.where(), &c)
}

// where is the file contacts of now go to.
func (b *Book) where() string {
	b.mu.Lock()
	f := b.o.Path
	b.mu.Unlock()
	if f == nil {
		return ""
	}
	return f()
}

func (b *Book) write(path string, c *Contact) {
	if path == "" {
		return
	}
	c.Err, c.Command = clip(c.Err, 300), clip(c.Command, 300)
	line, err := json.Marshal(c)
	if err == nil {
		err = b.append(path, line)
	}
	if err != nil && b.o.Failed != nil {
		b.once.Do(func() { b.o.Failed(err) })
	}
}

func (b *Book) append(path string, line []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.o.Path == nil {
		return nil // closed
	}
	if b.file == nil || b.path != path {
		if b.file != nil {
			_ = b.file.Close()
			b.file = nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := jsonl.Open(nil, path)
		if err != nil {
			return err
		}
		b.file, b.path = f, path
	}
	return b.file.Append(line)
}

// clip shortens s to about n bytes, at a letter.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// Read returns the contacts of a file in the order in which they began, and
// how many lines could not be read. A file that is not there holds none.
func Read(path string) (list []Contact, skipped int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	at := map[string]int{}
	var skips jsonl.Skips
	for l, err := range jsonl.Read(f, &skips) {
		if err != nil {
			return list, skips.Count, err
		}
		var c Contact
		if json.Unmarshal(l.Data, &c) != nil || c.ID == "" || c.Host == "" {
			skipped++
			continue
		}
		if i, ok := at[c.ID]; ok {
			list[i] = c
			continue
		}
		at[c.ID] = len(list)
		list = append(list, c)
	}
	return list, skipped + skips.Count, nil
}

// Package mask hides credentials from commands. A command gets a stand-in for
// each; on the way to a host that the credential is for, the stand-in in
// headers and bodies becomes the real value, and on the way back the value
// becomes the stand-in.
//
// It owns the stand-ins and the exchange of one for the other. It must not
// know connections, certificates or settings: whoever reads the traffic calls
// it, and says which host it goes to.
//
// Not done: what is compressed, or encoded other than as Basic credentials, a
// form or JSON, keeps the stand-in, which is worth nothing; request targets are
// left alone, since they end up in logs.
package mask

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// mark begins every stand-in. It has no character that shells, URLs, forms,
// JSON or base64 would write differently.
const mark = "cinchmasked"

// shortest is the length in bytes from which a value is looked for in answers;
// a shorter one would be found where it is not meant.
const shortest = 8

// A Secret is one credential.
type Secret struct {
	// Name is what people know it by: its variable or file.
	Name, Value string
	// For reports whether it may go to a host. Nil is never.
	For func(host string, port uint16) bool
}

// A Set holds the credentials of a session. It is immutable and may be used
// concurrently; nil holds none.
type Set struct {
	plaintext bool
	list      []held
}

type held struct {
	Secret
	stand string
}

// New returns a Set with a stand-in for each secret that has a value: that of
// before, which may be nil, for a name that it has, and a new one else.
// plaintext says that values may go out without TLS.
func New(secrets []Secret, plaintext bool, before *Set) *Set {
	s := &Set{plaintext: plaintext}
	for _, x := range secrets {
		if x.Value == "" {
			continue
		}
		stand := before.StandIn(x.Name)
		if stand == "" {
			var b [16]byte
			_, _ = rand.Read(b[:]) // documented never to fail
			stand = mark + hex.EncodeToString(b[:])
		}
		s.list = append(s.list, held{x, stand})
	}
	return s
}

// StandIn is what commands see in place of the secret called name, "" if
// there is none of that name.
func (s *Set) StandIn(name string) string {
	if s != nil {
		for _, h := range s.list {
			if h.Name == name {
				return h.stand
			}
		}
	}
	return ""
}

// Names lists the secrets that may go to a host.
func (s *Set) Names(host string, port uint16) []string {
	var out []string
	if s != nil {
		for _, h := range s.list {
			if h.For != nil && h.For(host, port) {
				out = append(out, h.Name)
			}
		}
	}
	return out
}

// Swap is the exchange for one host, nil if no secret is for it or, without
// TLS, if none may go there so.
func (s *Set) Swap(host string, port uint16, secure bool) *Swap {
	if s == nil || !secure && !s.plaintext {
		return nil
	}
	w := &Swap{}
	for _, h := range s.list {
		if h.For != nil && h.For(host, port) {
			w.list = append(w.list, h)
		}
	}
	if len(w.list) == 0 {
		return nil
	}
	return w
}

// A Swap exchanges the secrets of one host. It is immutable.
type Swap struct{ list []held }

// maxHeld is the longest body that is held in memory to tell its new length.
const maxHeld = 1 << 20

// Request puts real values into req, whose body is read and closed as before,
// and returns the names of those in its headers. used, if not nil, is called
// for each that is put in the body, while that is read.
func (w *Swap) Request(req *http.Request, used func(name string)) []string {
	seen := map[string]bool{}
	for key, values := range req.Header {
		for i, v := range values {
			values[i] = w.header(key, v, seen)
		}
	}
	req.Header.Del("Accept-Encoding") // so that an answer can be read
	if req.Body != nil && req.Body != http.NoBody && req.Header.Get("Content-Encoding") == "" {
		w.body(req, used)
	}
	return slices.Sorted(maps.Keys(seen))
}

// header is a header's value with the real values in it.
func (w *Swap) header(key, v string, seen map[string]bool) string {
	if kind, text, ok := strings.Cut(v, " "); ok && key == "Authorization" && strings.EqualFold(kind, "basic") {
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			if now := w.text(string(raw), seen); now != string(raw) {
				return kind + " " + base64.StdEncoding.EncodeToString([]byte(now))
			}
		}
	}
	return w.text(v, seen)
}

func (w *Swap) text(s string, seen map[string]bool) string {
	if !strings.Contains(s, mark) {
		return s
	}
	for _, h := range w.list {
		if strings.Contains(s, h.stand) {
			seen[h.Name] = true
			s = strings.ReplaceAll(s, h.stand, h.Value)
		}
	}
	return s
}

func (w *Swap) body(req *http.Request, used func(string)) {
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	r := &Replacer{src: req.Body}
	for _, h := range w.list {
		r.pairs = append(r.pairs, pair{[]byte(h.stand), []byte(written(h.Value, kind)), func() {
			if used != nil {
				used(h.Name)
			}
		}})
	}
	type body struct {
		io.Reader
		io.Closer
	}
	old := req.Body
	req.Body = body{r, old}
	if req.ContentLength < 0 {
		return
	}
	req.Header.Del("Content-Length")
	if req.ContentLength > maxHeld {
		req.ContentLength = -1
		return
	}
	data, err := io.ReadAll(io.LimitReader(r, 2*maxHeld))
	rest := io.Reader(r)
	if err != nil {
		rest = failing{err}
	}
	req.ContentLength = -1
	if err == nil && len(data) < 2*maxHeld {
		req.ContentLength = int64(len(data))
	}
	req.Body = body{io.MultiReader(bytes.NewReader(data), rest), old}
}

// failing gives an error where a body broke off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// written is how a value stands in a body of that kind.
func written(v, kind string) string {
	switch {
	case kind == "application/x-www-form-urlencoded":
		return url.QueryEscape(v)
	case kind == "application/json", strings.HasSuffix(kind, "+json"):
		if b, err := json.Marshal(v); err == nil {
			return string(b[1 : len(b)-1])
		}
	}
	return v
}

// Response takes real values out of resp.
func (w *Swap) Response(resp *http.Response) {
	var pairs []pair
	for _, h := range w.list {
		if len(h.Value) < shortest {
			continue
		}
		forms := []string{h.Value, written(h.Value, "application/json"), strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(h.Value)}
		slices.Sort(forms)
		for _, f := range slices.Compact(forms) {
			pairs = append(pairs, pair{[]byte(f), []byte(h.stand), func() {}})
		}
	}
	for _, values := range resp.Header {
		for i, v := range values {
			for _, p := range pairs {
				v = strings.ReplaceAll(v, string(p.from), string(p.to))
			}
			values[i] = v
		}
	}
	if len(pairs) == 0 || resp.Body == nil || resp.Body == http.NoBody || resp.Header.Get("Content-Encoding") != "" ||
		resp.StatusCode == http.StatusSwitchingProtocols || resp.Request != nil && resp.Request.Method == http.MethodHead {
		return
	}
	old := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&Replacer{src: old, pairs: pairs}, old}
	if n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil && n > 0 {
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
	}
}

// A pair is one exchange; seen is told of each.
type pair struct {
	from, to []byte
	seen     func()
}

// A Replacer reads from src with texts exchanged, wherever reads cut them. It
// holds back no more than what may be the beginning of one.
type Replacer struct {
	src   io.Reader
	pairs []pair
	in    []byte // read, not yet searched
	out   []byte // ready
	err   error
	buf   []byte
}

func (r *Replacer) Read(b []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.buf == nil {
			r.buf = make([]byte, 32<<10)
		}
		n, err := r.src.Read(r.buf)
		r.in = append(r.in, r.buf[:n]...)
		r.err = err
		r.exchange()
	}
	n := copy(b, r.out)
	r.out = r.out[n:]
	return n, nil
}

// exchange moves what is settled from in to out.
func (r *Replacer) exchange() {
	r.out = r.out[:0:0]
	in := r.in
	for {
		first, by := -1, pair{}
		for _, p := range r.pairs {
			if i := bytes.Index(in, p.from); i >= 0 && (first < 0 || i < first) {
				first, by = i, p
			}
		}
		if first < 0 {
			break
		}
		r.out = append(append(r.out, in[:first]...), by.to...)
		in = in[first+len(by.from):]
		by.seen()
	}
	hold := 0
	if r.err == nil {
		for _, p := range r.pairs {
			hold = max(hold, overlap(in, p.from))
		}
	}
	r.out = append(r.out, in[:len(in)-hold]...)
	r.in = append(r.in[:0], in[len(in)-hold:]...)
}

// overlap is the length of the longest end of b that begins p.
func overlap(b, p []byte) int {
	for n := min(len(b), len(p)-1); n > 0; n-- {
		if bytes.Equal(b[len(b)-n:], p[:n]) {
			return n
		}
	}
	return 0
}

package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// over makes a Fetch of a client, as the program does: one request, no redirects.
func over(c *http.Client) Fetch {
	one := *c
	one.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(ctx context.Context, method, url string, header map[string]string) (int, string, map[string][]string, io.ReadCloser, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			return 0, "", nil, nil, err
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := one.Do(req)
		if err != nil {
			return 0, "", nil, nil, err
		}
		return resp.StatusCode, resp.Request.URL.String(), resp.Header, resp.Body, nil
	}
}

// A site is a server with a page for each path.
type site struct {
	*httptest.Server
	hits atomic.Int32
}

func serve(t *testing.T, pages map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		if h := pages[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func page200(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	}
}

func call(t *testing.T, tool agent.Tool, in map[string]any) agent.Result {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Inspect(raw); err != nil {
		return agent.Failed(err.Error())
	}
	res, err := tool.Run(t.Context(), agent.Call{ID: "x", Input: raw, Progress: func(agent.Progress) {}})
	if err != nil {
		return agent.Failed(err.Error())
	}
	return res
}

func text(r agent.Result) string { return agent.TextOf(r.Blocks) }

// get fetches path of s and returns what the tool says.
func get(t *testing.T, s *site, path string, change func(*Options)) agent.Result {
	t.Helper()
	o := Options{Fetch: over(s.Client()), SaveDir: t.TempDir()}
	if change != nil {
		change(&o)
	}
	return call(t, New(o)[0], map[string]any{"url": s.URL + path, "prompt": "what?"})
}

const sample = `<!doctype html><html><head><title>The  Title</title><style>p{}</style>
<meta http-equiv="Refresh" content="5; url='/next'"></head><body><script>evil()</script><!-- hidden -->
<h1>Head</h1><p>Text with <a href="../x?a=1">a link</a> and <code>code</code>.</p>
<img src="data:image/png;base64,AAAA"><img src="i.png" alt="pic">
<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>`

func TestPages(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{
		"/dir/page": page200("text/html; charset=utf-8", sample),
		"/plain":    page200("text/plain", "just <b>text</b>"),
		"/json":     page200("application/json", `{"a": 1}`),
		"/md":       page200("text/markdown", "# hi"),
		"/latin":    page200("text/plain; charset=iso-8859-1", "caf\xe9"),
		"/utf16":    page200("text/plain", "\xff\xfeh\x00i\x00"),
		"/bad":      page200("text/plain; charset=utf-8", "a\xffb"),
		"/unnamed":  page200("", "<!DOCTYPE html><p>found"),
		"/empty":    page200("text/html", ""),
		"/events":   page200("text/event-stream", "data: x\n\n"),
		"/zstd": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			io.WriteString(w, "x")
		},
		"/forbidden": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403); io.WriteString(w, "no entry") },
	})
	for path, want := range map[string]string{
		"/dir/page": "# The Title\n\n# Head\n\nText with [a link](" + s.URL + "/x?a=1) and `code`.\n\n![pic](" + s.URL + "/dir/i.png)\n\n| A | B |\n|---|---|\n| 1 | 2 |\n\n" +
			"[The page sends browsers on to " + s.URL + "/next, which was not followed.]",
		"/plain": "just <b>text</b>", "/json": `{"a": 1}`, "/md": "# hi", "/latin": "café", "/utf16": "hi", "/bad": "a\ufffdb", "/unnamed": "found", "/empty": "",
	} {
		r := get(t, s, path, nil)
		if got := text(r); got != want || r.IsError {
			t.Errorf("%s: got %q (error %v), want %q", path, got, r.IsError, want)
		}
	}
	for path, want := range map[string]string{
		"/events":    "which has no end",
		"/zstd":      `compressed with "zstd"`,
		"/forbidden": "The server answered with status 403 Forbidden. The page may need a login, which this tool does not have. The beginning of its text:\nno entry",
		"/none":      "The server answered with status 404 Not Found. The beginning of its text:\n404 page not found",
	} {
		r := get(t, s, path, nil)
		if got := text(r); !strings.Contains(got, want) || !r.IsError || r.Detail != nil {
			t.Errorf("%s: got %q (error %v), want %q", path, got, r.IsError, want)
		}
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{"/p": page200("text/plain", "hello")})
	got := get(t, s, "/p", nil).Detail.(detail)
	got.DurationMS = 0
	if diff := cmp.Diff(detail{Bytes: 5, Code: 200, CodeText: "OK", Result: "hello", URL: s.URL + "/p"}, got); diff != "" {
		t.Error(diff)
	}
	raw, _ := json.Marshal(got)
	if want := `{"bytes":5,"code":200,"codeText":"OK","result":"hello","durationMs":0,"url":"` + s.URL + `/p"}`; string(raw) != want {
		t.Errorf("got %s", raw)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{
		"/p":    page200("text/plain", "hello"),
		"/long": page200("text/plain", strings.Repeat("é", 150_000)),
	})
	var asked, content string
	ask := func(o *Options) {
		o.Ask = func(_ context.Context, prompt, c string) (string, error) {
			asked, content = prompt, c
			return "an answer", nil
		}
	}
	if r := get(t, s, "/p", ask); text(r) != "an answer" || asked != "what?" || content != "hello" {
		t.Errorf("got %q after %q about %q", text(r), asked, content)
	}
	if got, want := text(get(t, s, "/long", ask)), "an answer\n\n[This is about characters 0 to 100000 of 150000. For more use offset 100000.]"; got != want || len(content) != 200_000 {
		t.Errorf("got %q about %d bytes", got, len(content))
	}
	r := get(t, s, "/p", func(o *Options) {
		o.Ask = func(context.Context, string, string) (string, error) { return "", errors.New("no credit") }
	})
	if got, want := text(r), "(No model could read the page for you: no credit. This is its text.)\n\nhello"; got != want || r.IsError {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s          string
		offset, n  int
		part, note string
	}{
		{"", 0, 3, "", ""},
		{"äbc", 0, 3, "äbc", ""},
		{"äbcd", 0, 3, "äbc", "\n\n[This is about characters 0 to 3 of 4. For more use offset 3.]"},
		{"äbcd", 3, 3, "d", ""},
		{"äbcd", 1, 2, "bc", "\n\n[This is about characters 1 to 3 of 4. For more use offset 3.]"},
		{"äbcd", 4, 3, "", "\n\n[The page ends before offset 4: it has 4 characters.]"},
		{"äbcd", 1 << 40, 3, "", fmt.Sprintf("\n\n[The page ends before offset %d: it has 4 characters.]", 1<<40)},
	} {
		if part, note := cut(tt.s, tt.offset, tt.n); part != tt.part || note != tt.note {
			t.Errorf("%+v: got %q, %q", tt, part, note)
		}
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	tool := New(Options{Fetch: over(http.DefaultClient)})[0]
	effects := func(host, url string) agent.Effects {
		return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true,
			Subjects: []agent.Subject{{Kind: agent.SubjectHost, Value: host}, {Kind: agent.SubjectURL, Value: url}}}
	}
	for in, want := range map[string]agent.Effects{
		"https://Example.com/a?b#c": effects("example.com", "https://example.com/a?b"),
		"http://example.com":        effects("example.com", "https://example.com"),
		"http://example.com:80/x":   effects("example.com", "https://example.com/x"),
		"http://localhost:3000/":    effects("localhost", "http://localhost:3000/"),
		"https://[::1]:8443/":       effects("::1", "https://[::1]:8443/"),
		" https://a.b/ ":            effects("a.b", "https://a.b/"),
	} {
		raw, _ := json.Marshal(map[string]any{"url": in, "prompt": "p"})
		got, err := tool.Inspect(raw)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", in, err, diff)
		}
	}
	for _, in := range []string{"", "example.com", "file:///etc/passwd", "ftp://a/", "https://", "https:///x", "https://u:p@a/", "https://u@a/", "javascript:1", "https://a/%zz", "https://" + strings.Repeat("a", 2000), "https://a b/"} {
		raw, _ := json.Marshal(map[string]any{"url": in, "prompt": "p"})
		if e, err := tool.Inspect(raw); err == nil {
			t.Errorf("%q is accepted: %+v", in, e)
		}
	}
	for _, in := range []string{`{"url":"https://a/"}`, `{"url":"https://a/","prompt":" "}`, `{"url":"https://a/","prompt":"p","offset":-1}`, `{"url":1}`} {
		if _, err := tool.Inspect(json.RawMessage(in)); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
}

func to(location string, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, map[string]http.HandlerFunc{"/": page200("text/plain", "secret")})
	s := serve(t, map[string]http.HandlerFunc{
		"/end": page200("text/plain", "the end"), "/a": to("b", 302), "/b": to("/end", 308), "/loop": to("/loop", 301),
		"/other": to(other.URL+"/", 302), "/file": to("file:///etc/passwd", 302), "/user": to("https://u:p@a/", 302),
		"/nowhere": to("", 302), "/meta": to("http://169.254.169.254/latest", 307), "/odd": to("https://a/%zz", 302),
	})
	if got := text(get(t, s, "/a", nil)); got != "the end" {
		t.Errorf("got %q", got)
	}
	r := get(t, s, "/other", nil)
	want := s.URL + "/other redirects to another host, which was not followed (status 302 Found).\nIf you want to go there, call WebFetch with this url:\n" + other.URL + "/"
	if got := text(r); got != want || r.IsError || r.Detail.(detail).Code != 302 {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := text(get(t, s, "/meta", nil)); !strings.HasSuffix(got, "\nhttps://169.254.169.254/latest") {
		t.Errorf("got %q", got)
	}
	if n := other.hits.Load(); n != 0 {
		t.Errorf("the other host was asked %d times", n)
	}
	for path, want := range map[string]string{
		"/loop": "more than 10 redirects", "/file": "a redirect that is not followed", "/user": "a redirect that is not followed",
		"/nowhere": "without a Location", "/odd": "%zz",
	} {
		if r := get(t, s, path, nil); !strings.Contains(text(r), want) || !r.IsError {
			t.Errorf("%s: got %q", path, text(r))
		}
	}
	// A Fetch that follows redirects itself is found out.
	r = get(t, s, "/other", func(o *Options) {
		followed := s.Client()
		o.Fetch = func(ctx context.Context, method, url string, _ map[string]string) (int, string, map[string][]string, io.ReadCloser, error) {
			resp, err := followed.Get(url)
			if err != nil {
				return 0, "", nil, nil, err
			}
			return resp.StatusCode, resp.Request.URL.String(), resp.Header, resp.Body, nil
		}
	})
	if !r.IsError {
		t.Errorf("got %q", text(r))
	}
}

// The refusal of private addresses happens where the connection is made, for
// each request: a name that resolves to one is refused as well.
func TestPrivateAddressIsAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.Client()
	tr := client.Transport.(*http.Transport).Clone()
	tr.DialContext = (&net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		return fmt.Errorf("%s is a private address", address)
	}}).DialContext
	r := get(t, s, "/", func(o *Options) { o.Fetch = over(&http.Client{Transport: tr}) })
	if !r.IsError || !strings.Contains(text(r), "is a private address") || !strings.HasPrefix(text(r), "fetching "+s.URL+"/: ") {
		t.Errorf("got %q", text(r))
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{
		"/endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("endless "), 8_000)); err != nil {
					return
				}
			}
		},
		"/bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			zeros := bytes.Repeat([]byte{'0'}, 1<<20)
			for range 200 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			z.Close()
		},
		"/silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/stalls": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "a beginning")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "a beginning")
		},
	})
	small := func(o *Options) { o.MaxBytes = 1000 }
	for path, want := range map[string]int64{"/endless": 1000, "/bomb": 1000} {
		r := get(t, s, path, small)
		if got := text(r); !strings.HasSuffix(got, "\n\n[Only the first 1000 bytes were read.]") || len(got) > 1100 || r.Detail.(detail).Bytes != want {
			t.Errorf("%s: got %.80q … %d", path, got, len(got))
		}
	}
	// A compressed body that the transport left alone.
	plain := s.Client().Transport.(*http.Transport).Clone()
	plain.DisableCompression = true
	if got := text(get(t, s, "/bomb", func(o *Options) { o.MaxBytes = 1000; o.Fetch = over(&http.Client{Transport: plain}) })); !strings.HasPrefix(got, "0000") || len(got) > 1100 {
		t.Errorf("got %.80q … %d", got, len(got))
	}
	quick := func(o *Options) { o.Timeout = 200 * time.Millisecond }
	if r := get(t, s, "/silent", quick); !r.IsError || !strings.Contains(text(r), "took longer than 200ms to answer") {
		t.Errorf("got %q", text(r))
	}
	if got := text(get(t, s, "/stalls", quick)); !strings.HasPrefix(got, "a beginning\n\n[The page breaks off here: ") {
		t.Errorf("got %q", got)
	}
	if got := text(get(t, s, "/cut", nil)); !strings.HasPrefix(got, "a beginning\n\n[The page breaks off here: ") {
		t.Errorf("got %q", got)
	}
}

// HTML made to be slow or deep costs little.
func TestHostileHTML(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"deep":    strings.Repeat("<div>", 60_000),
		"inline":  strings.Repeat("<b>", 60_000) + "x",
		"links":   strings.Repeat("<a href=x>", 20_000),
		"lists":   strings.Repeat("<ul><li>", 20_000),
		"quotes":  strings.Repeat("<blockquote>", 20_000) + "x",
		"table":   strings.Repeat("<table><tr><td>", 10_000),
		"wide":    "<table><tr>" + strings.Repeat("<td>x", 20_000) + "</table>",
		"span":    `<table><tr><td colspan="2000000000" rowspan="2000000000">x</td></tr></table>`,
		"attrs":   "<p " + strings.Repeat("a=b ", 40_000) + ">x",
		"entity":  strings.Repeat("&amp", 40_000),
		"indent":  strings.Repeat("<ul><li>", 200) + strings.Repeat("<p>x", 20_000),
		"cites":   strings.Repeat("<blockquote>", 400) + strings.Repeat("<p>x", 20_000),
		"rows":    "<table>" + strings.Repeat("<tr><td>x<td>y", 20_000),
		"bold":    strings.Repeat("<b><i><u>x</b></i></u>", 6_000),
		"tables":  strings.Repeat("<table><tr><td>", 100) + strings.Repeat("<p>x", 10_000),
		"escapes": "<p>" + strings.Repeat("*_[]()#", 20_000),
	} {
		begin := time.Now()
		at, _ := address("https://a.b/")
		if _, err := markdown(body, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: took %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	pdf := "%PDF-1.7\n\x00\x01\x02"
	s := serve(t, map[string]http.HandlerFunc{
		"/doc":   page200("application/pdf", pdf),
		"/lies":  page200("text/plain", pdf),
		"/x.tgz": page200("application/octet-stream", "\x1f\x8b\x08\x00"+strings.Repeat("\x00\x01\x02", 100)),
		"/..x/y": page200("image/png", "\x89PNG\r\n\x1a\n\x00"),
	})
	dir := t.TempDir()
	for path, ext := range map[string]string{"/doc": ".pdf", "/lies": ".bin", "/x.tgz": ".tgz", "/..x/y": ".png"} {
		r := get(t, s, path, func(o *Options) { o.SaveDir = filepath.Join(dir, ext) })
		es, err := os.ReadDir(filepath.Join(dir, ext))
		if err != nil || len(es) != 1 || filepath.Ext(es[0].Name()) != ext || r.IsError {
			t.Fatalf("%s: got %q, %v, %v", path, text(r), es, err)
		}
		if name := filepath.Join(dir, ext, es[0].Name()); !strings.Contains(text(r), name) {
			t.Errorf("%s: %q does not name %s", path, text(r), name)
		}
	}
	if r := get(t, s, "/doc", func(o *Options) { o.SaveDir = "" }); !r.IsError || !strings.Contains(text(r), "no place to save it") {
		t.Errorf("got %q", text(r))
	}
	if r := get(t, s, "/doc", func(o *Options) { o.MaxBytes = 5 }); !r.IsError || !strings.Contains(text(r), "larger than 5 bytes") {
		t.Errorf("got %q", text(r))
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		tool := New(Options{Fetch: func(context.Context, string, string, map[string]string) (int, string, map[string][]string, io.ReadCloser, error) {
			n++
			code := 200
			if n == 1 {
				code = 503
			}
			return code, "", map[string][]string{"content-type": {"text/plain"}}, io.NopCloser(strings.NewReader(fmt.Sprint(n))), nil
		}})[0]
		in := map[string]any{"url": "https://a.b/", "prompt": "p"}
		if r := call(t, tool, in); !r.IsError { // is not remembered
			t.Errorf("got %q", text(r))
		}
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "2"}, {14 * time.Minute, "2"}, {2 * time.Minute, "3"}} {
			time.Sleep(step.wait)
			if got := text(call(t, tool, in)); got != step.want {
				t.Errorf("after %v: got %s, want %s", step.wait, got, step.want)
			}
		}
	})
}

func TestCacheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache{ttl: time.Hour, max: 10}
		for _, k := range []string{"a", "b", "c"} {
			c.keep(k, page{text: "1234"})
			time.Sleep(time.Second)
		}
		c.keep("d", page{text: "longer than all"})
		var got []string
		for _, k := range []string{"a", "b", "c", "d"} {
			if _, ok := c.look(k); ok {
				got = append(got, k)
			}
		}
		if diff := cmp.Diff([]string{"b", "c"}, got); diff != "" || c.size != 8 {
			t.Errorf("%d bytes %s", c.size, diff)
		}
		time.Sleep(2 * time.Hour)
		c.keep("e", page{text: "1"})
		if len(c.pages) != 1 || c.size != 1 {
			t.Errorf("%d pages, %d bytes", len(c.pages), c.size)
		}
	})
}

func TestSearch(t *testing.T) {
	t.Parallel()
	session := "one"
	var got []any
	tools := New(Options{MaxSearches: 2, Session: func() string { return session },
		Search: func(_ context.Context, q string, allowed, blocked []string) (string, error) {
			got = []any{q, allowed, blocked}
			switch q {
			case "nothing":
				return " ", nil
			case "broken":
				return "", errors.New("overloaded")
			}
			return "found", nil
		}})
	if len(tools) != 1 || tools[0].Spec().Name != "WebSearch" {
		t.Fatalf("got %d tools", len(tools))
	}
	ask := func(q string) agent.Result { return call(t, tools[0], map[string]any{"query": q}) }
	r := call(t, tools[0], map[string]any{"query": "go", "allowed_domains": []string{"go.dev"}})
	if diff := cmp.Diff([]any{"go", []string{"go.dev"}, []string(nil)}, got); diff != "" || text(r) != "found" {
		t.Errorf("%q %s", text(r), diff)
	}
	if r := ask("nothing"); text(r) != "Nothing was found." || r.IsError {
		t.Errorf("got %q", text(r))
	}
	if r := ask("more"); text(r) != "The 2 web searches of this session are used up. Go on with what you have found." || r.IsError {
		t.Errorf("got %q", text(r))
	}
	session = "two"
	if r := ask("broken"); text(r) != "searching the web: overloaded" || !r.IsError {
		t.Errorf("got %q", text(r))
	}
	for _, in := range []string{`{"query":"a"}`, `{"query":"  "}`, `{}`, `{"query":"ab","allowed_domains":["a"],"blocked_domains":["b"]}`} {
		if _, err := tools[0].Inspect(json.RawMessage(in)); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(sample)
	f.Add("<table><tr><td colspan=9>")
	f.Add("<meta http-equiv=refresh content='0;URL='>")
	f.Add("<a href='%zz'>x</a><title></title>")
	f.Fuzz(func(t *testing.T, s string) {
		at, _ := address("https://a.b/c/")
		_, _ = markdown(s, at)
	})
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"http://a", "https://a:80/#x", "HTTP://A:80", "//a", "https://[::1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := address(s)
		if err != nil {
			return
		}
		if u.Host == "" || u.User != nil || u.Fragment != "" {
			t.Errorf("%q became %+v", s, u)
		}
		again, err := address(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q became %q, then %v, %v", s, u, again, err)
		}
	})
}

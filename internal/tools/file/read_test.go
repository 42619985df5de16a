//go:build unix

package file

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/image/bmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

func TestReadText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.write("f", "one\n\ttwo\nthree")
	d.write("lf", "a\n")
	d.write("crlf", "a\r\nb\r\n")
	d.write("empty", "")
	d.write("latin", "caf\xe9\n")
	d.write("utf16", "\xff\xfea\x00\n\x00")
	d.write("stray", "é é \xff\n")
	d.write("nul", "a line of text\x00with a zero\n")
	d.write("page.svg", "<svg/>")
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"file_path": "f"}, "1\tone\n2\t\ttwo\n3\tthree"},
		{args{"file_path": "f", "offset": 0, "limit": 1}, "1\tone"},
		{args{"file_path": "f", "offset": 2, "limit": 1}, "2\t\ttwo"},
		{args{"file_path": "f", "offset": 3, "limit": 99}, "3\tthree"},
		{args{"file_path": "f", "offset": 4}, "(" + d.path("f") + " has 3 lines: there is nothing from line 4 on.)"},
		{args{"file_path": "lf"}, "1\ta\n2\t"},
		{args{"file_path": "lf", "offset": 2}, "2\t"},
		{args{"file_path": "crlf"}, "1\ta\n2\tb\n3\t"},
		{args{"file_path": "empty"}, "(" + d.path("empty") + " exists but is empty.)"},
		{args{"file_path": "latin"}, "1\tcafé\n2\t"},
		{args{"file_path": "utf16"}, "1\ta\n2\t"},
		{args{"file_path": "stray"}, "1\té é \ufffd\n2\t\n\n(1 bytes of the file are no valid text and are shown as \ufffd where they occur.)"},
		{args{"file_path": "nul"}, "1\ta line of text\u2400with a zero\n2\t"},
		{args{"file_path": "page.svg"}, "1\t<svg/>"},
	} {
		if got := d.ok("Read", c.in); got != c.want {
			t.Errorf("%v: got %q, want %q", c.in, got, c.want)
		}
	}
	for in, want := range map[string]string{
		`{"file_path":"f","offset":2,"limit":1}`: `{"type":"text","file":{"filePath":"` + d.path("f") + `","content":"\ttwo","numLines":1,"startLine":2,"totalLines":3}}`,
		`{"file_path":"lf"}`:                     `{"type":"text","file":{"filePath":"` + d.path("lf") + `","content":"a\n","numLines":2,"startLine":1,"totalLines":2}}`,
		`{"file_path":"empty"}`:                  `{"type":"text","file":{"filePath":"` + d.path("empty") + `","content":"","numLines":1,"startLine":1,"totalLines":1}}`,
	} {
		r, err := d.tools["Read"].Run(t.Context(), agent.Call{Input: json.RawMessage(in)})
		if got := detail(t, r); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	// Reading again gives the content again.
	if a, b := d.ok("Read", args{"file_path": "f"}), d.ok("Read", args{"file_path": "f"}); a != b {
		t.Errorf("got %q, then %q", a, b)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	if err := syscall.Mkfifo(d.path("fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.write("Main.go", "")
	d.write("conf.yaml", "")
	d.write("sub/deep/x.txt", "")
	d.write("elf", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\xff")
	d.write("page.png", "<!DOCTYPE html><p>no")
	d.write("zero.png", "")
	d.write("text.pdf", "not a pdf")
	d.write("x.heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00")
	d.write("cut.png", string(pngOf(t, 20, 20)[:60]))
	d.write("bad.ipynb", "{")
	for path, want := range map[string]string{
		"none.txt":          "does not exist. The working directory is " + d.dir,
		"main.go":           "Did you mean " + d.path("Main.go") + "?",
		"conf.yml":          "Did you mean " + d.path("conf.yaml") + "?",
		"/sub/deep/x.txt":   "Did you mean " + d.path("sub/deep/x.txt") + "?",
		"/w/sub/deep/x.txt": "Did you mean " + d.path("sub/deep/x.txt") + "?",
		"sub":               "EISDIR",
		"fifo":              "a named pipe",
		"/dev/zero":         "a device",
		"/dev/stdin":        "",
		"elf":               "not text but an ELF program",
		"page.png":          "it holds HTML text",
		"zero.png":          "it is empty",
		"text.pdf":          "it holds text",
		"x.heic":            "must be converted",
		"cut.png":           "cannot be decoded to its end",
		"bad.ipynb":         "not valid JSON",
		"Main.go/x":         "",
	} {
		d.fails("Read", args{"file_path": path}, want)
	}
	d.fails("Read", args{"file_path": "Main.go", "pages": "1"}, "pages is for PDF")
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) { o.MaxTokens = 100 })
	var lines strings.Builder
	for i := range 200 {
		fmt.Fprintf(&lines, "line number %d\n", i+1)
	}
	d.write("f", lines.String())
	r, err := d.call("Read", args{"file_path": "f"})
	if err != nil {
		t.Fatal(err)
	}
	got := agent.TextOf(r.Blocks)
	file := r.Detail.(ReadDetail).File.(TextFile)
	if !strings.HasPrefix(got, "1\tline number 1\n") || !strings.Contains(got, fmt.Sprintf("\n\nPARTIAL view: lines 1 to %d of 201 are shown", file.NumLines)) || !file.TruncatedByTokenCap || strings.Count(got, "\tline") != file.NumLines {
		t.Errorf("got %q, %+v", got, file)
	}
	next := d.ok("Read", args{"file_path": "f", "offset": file.NumLines + 1})
	if !strings.HasPrefix(next, fmt.Sprintf("%d\tline number %d\n", file.NumLines+1, file.NumLines+1)) || !strings.Contains(next, "PARTIAL") {
		t.Errorf("got %q", next)
	}
	d.fails("Read", args{"file_path": "f", "limit": 150}, "<tool_use_error>", "Ask for fewer lines")
	if got := d.ok("Read", args{"file_path": "f", "limit": 40, "allow_large": true}); strings.Contains(got, "PARTIAL") || strings.Count(got, "\n") != 39 {
		t.Errorf("got %q", got)
	}
	// A view in part does not allow to write the whole.
	d.fails("Write", args{"file_path": "f", "content": "x"}, "only in part")
	d.write("long", strings.Repeat("é", 5000))
	if got := d.ok("Read", args{"file_path": "long"}); !strings.Contains(got, "PARTIAL view: line 1 of 1 is too long") || len(got) > 700 {
		t.Errorf("got %q", got)
	}
}

// A file too big to load reads as a small one does.
func TestReadStream(t *testing.T) {
	t.Parallel()
	const limit = 2 * chunk
	d := newDesk(t, nil)
	d.ed.load = limit
	var b bytes.Buffer
	for i := 1; b.Len() <= limit; i++ {
		fmt.Fprintf(&b, "line %d of a file that is too big to be loaded caf\xe9\r\n", i)
	}
	total := bytes.Count(b.Bytes(), []byte("\n"))
	d.write("big", b.String())
	for _, first := range []int{1, 2, 5000, 8000, total, total + 1} {
		n := min(3, total+2-first)
		var want []string
		for i := first; i < first+n; i++ {
			if i > total {
				want = append(want, fmt.Sprintf("%d\t", i))
			} else {
				want = append(want, fmt.Sprintf("%d\tline %d of a file that is too big to be loaded café", i, i))
			}
		}
		if got := d.ok("Read", args{"file_path": "big", "offset": first, "limit": 3}); got != strings.Join(want, "\n") {
			t.Errorf("from %d: got %q, want %q", first, got, strings.Join(want, "\n"))
		}
	}
	r, err := d.call("Read", args{"file_path": "big"})
	if err != nil {
		t.Fatal(err)
	}
	file := r.Detail.(ReadDetail).File.(TextFile)
	if got := agent.TextOf(r.Blocks); file.TotalLines != total+1 || !strings.Contains(got, "PARTIAL view") || len(got) > 5*DefaultMaxTokens {
		t.Errorf("%d bytes, %d lines", len(got), file.TotalLines)
	}
	d.fails("Read", args{"file_path": "big", "limit": 8000}, "Ask for fewer lines")
	if got := d.ok("Read", args{"file_path": "big", "offset": total + 2}); !strings.Contains(got, fmt.Sprintf("has %d lines", total+1)) {
		t.Errorf("got %q", got)
	}
	d.write("one", strings.Repeat("x", limit+10))
	if got := d.ok("Read", args{"file_path": "one"}); !strings.Contains(got, "line 1 of 1 is too long") {
		t.Errorf("got the tail %q", got[len(got)-300:])
	}
	d.write("bin", "\x7fELF\x00\xff"+strings.Repeat("\x00", limit))
	d.fails("Read", args{"file_path": "bin"}, "an ELF program")
	d.write("wide", "\xff\xfe"+strings.Repeat("a\x00", limit/2))
	d.fails("Read", args{"file_path": "wide"}, "iconv")
	d.ok("Edit", args{"file_path": "big", "old_string": "line 77 of", "new_string": "LINE 77 of"})
	if got := d.ok("Read", args{"file_path": "big", "offset": 77, "limit": 1}); !strings.HasPrefix(got, "77\tLINE 77") {
		t.Errorf("got %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.tools["Read"].Run(ctx, agent.Call{Input: json.RawMessage(`{"file_path":"big"}`)}); err == nil {
		t.Error("read on after the context ended")
	}
}

func noise(w, h int) *image.NRGBA {
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
	}
	return img
}

func pngOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, noise(w, h)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadImages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	var jpg, bm, g bytes.Buffer
	if err := jpeg.Encode(&jpg, noise(30, 20), nil); err != nil {
		t.Fatal(err)
	}
	if err := bmp.Encode(&bm, noise(30, 20)); err != nil {
		t.Fatal(err)
	}
	frame := image.NewPaletted(image.Rect(0, 0, 4, 4), []color.Color{color.White, color.Black})
	if err := gif.EncodeAll(&g, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	small := pngOf(t, 30, 20)
	plain := image.NewNRGBA(image.Rect(0, 0, 4000, 20))
	var wide bytes.Buffer
	if err := png.Encode(&wide, plain); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		data    []byte
		kind    string
		w, h    int
		asIs    bool
		resized bool
	}{
		{"a.png", small, "image/png", 30, 20, true, false},
		{"named.jpg", small, "image/png", 30, 20, true, false},
		{"noending", jpg.Bytes(), "image/jpeg", 30, 20, true, false},
		{"a.gif", g.Bytes(), "image/gif", 4, 4, true, false},
		{"a.bmp", bm.Bytes(), "image/png", 30, 20, false, false},
		{"wide.png", wide.Bytes(), "image/png", 2000, 10, false, true},
		{"heavy.png", pngOf(t, 400, 400), "image/jpeg", 400, 400, false, false},
	} {
		d.write(c.name, string(c.data))
		r, err := d.call("Read", args{"file_path": c.name})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		img := r.Blocks[0].(*agent.Image)
		data, err := base64.StdEncoding.DecodeString(img.Data)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := decoderOf(img.MediaType).config(bytes.NewReader(data))
		if err != nil || img.MediaType != c.kind || cfg.Width != c.w || cfg.Height != c.h || len(data) > maxImage || bytes.Equal(data, c.data) != c.asIs || (len(r.Blocks) > 1) != c.resized {
			t.Errorf("%s: %s %d×%d, %d bytes, %d blocks, %v", c.name, img.MediaType, cfg.Width, cfg.Height, len(data), len(r.Blocks), err)
		}
		file := r.Detail.(ReadDetail).File.(ImageFile)
		if file.OriginalSize != int64(len(c.data)) || file.Dimensions.DisplayWidth != c.w || file.Type != c.kind {
			t.Errorf("%s: %d %+v", c.name, file.OriginalSize, file.Dimensions)
		}
	}
	d.write("bomb.png", string(bombPNG()))
	d.fails("Read", args{"file_path": "bomb.png"}, "beyond what is decoded")
}

// bombPNG claims to be 100,000 pixels wide and high.
func bombPNG() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1)))
	p := b.Bytes()
	copy(p[16:24], []byte{0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0})
	head := p[12:29]
	crc := crcOf(head)
	copy(p[29:33], []byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)})
	return p
}

func crcOf(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320*(crc&1)
		}
	}
	return ^crc
}

// makePDF writes a document of n pages; packed puts the page objects in a
// compressed stream, as newer files do.
func makePDF(n int, packed bool) []byte {
	var b bytes.Buffer
	var offsets []int
	b.WriteString("%PDF-1.5\n")
	object := func(num int, body string) {
		for len(offsets) <= num {
			offsets = append(offsets, 0)
		}
		offsets[num] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", num, body)
	}
	var kids, objects []string
	for i := range n {
		kids = append(kids, fmt.Sprintf("%d 0 R", 3+i))
		objects = append(objects, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]>>")
	}
	pages := fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), n)
	object(1, "<</Type/Catalog/Pages 2 0 R>>")
	if packed {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		fmt.Fprintf(w, "2 0\n%s\n%s", pages, strings.Join(objects, "\n"))
		_ = w.Close()
		object(500, fmt.Sprintf("<</Type /ObjStm/N 1/First 4/Filter/FlateDecode/Length %d>>\nstream\r\n%s\nendstream", z.Len(), z.String()))
	} else {
		object(2, pages)
		for i, o := range objects {
			object(3+i, o)
		}
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets))
	for _, o := range offsets[1:] {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets), start)
	return b.Bytes()
}

func TestReadPDF(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for name, data := range map[string][]byte{
		"three.pdf": makePDF(3, false), "noending": makePDF(1, false), "packed.pdf": makePDF(10, true),
		"many.pdf": makePDF(11, false), "manypacked.pdf": makePDF(30, true),
		"locked.pdf": bytes.Replace(makePDF(1, false), []byte("/Root"), []byte("/Encrypt 9 0 R/Root"), 1),
		"cut.pdf":    makePDF(3, false)[:200],
	} {
		d.write(name, string(data))
	}
	for _, name := range []string{"three.pdf", "noending", "packed.pdf"} {
		r, err := d.call("Read", args{"file_path": name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		doc := r.Blocks[1].(*agent.Document)
		if data, _ := base64.StdEncoding.DecodeString(doc.Data); string(data) != d.content(name) || doc.MediaType != "application/pdf" {
			t.Errorf("%s: %s, %d bytes", name, doc.MediaType, len(data))
		}
		if got := detail(t, r); !strings.HasPrefix(got, `{"type":"pdf","file":{"filePath":"`+d.path(name)) {
			t.Errorf("%s: %.100s", name, got)
		}
	}
	for _, c := range []struct{ name, pages, want string }{
		{"many.pdf", "", "has 11 pages. Above 10"},
		{"manypacked.pdf", "", "has 30 pages"},
		{"locked.pdf", "", "encrypted"},
		{"cut.pdf", "", "without its end"},
		{"three.pdf", "1-3", "neither is installed"},
		{"three.pdf", "5", "no page 5"},
		{"three.pdf", "0", "must be a page"},
		{"three.pdf", "2-1", "must be a page"},
		{"three.pdf", "x", "must be a page"},
		{"manypacked.pdf", "1-25", "at most 20"},
	} {
		in := args{"file_path": c.name}
		if c.pages != "" {
			in["pages"] = c.pages
		}
		d.fails("Read", in, "<tool_use_error>", c.want)
	}
}

func TestReadPDFPages(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"pdftoppm", "pdfseparate"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not installed", program)
			}
			t.Skipf("%s is not installed", program)
		}
		d := newDesk(t, func(o *Options) {
			o.Which = func(name string) string {
				if name == program {
					return name
				}
				return ""
			}
			o.Run = func(ctx context.Context, argv []string, stdin []byte) ([]byte, error) {
				cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
				cmd.Stdin = bytes.NewReader(stdin)
				return cmd.Output()
			}
		})
		d.write("f.pdf", string(makePDF(12, false)))
		r, err := d.call("Read", args{"file_path": "f.pdf", "pages": "11-"})
		if err != nil || len(r.Blocks) != 3 {
			t.Errorf("%s: %d blocks, %v", program, len(r.Blocks), err)
			continue
		}
		if got, want := detail(t, r), fmt.Sprintf(`{"type":"parts","file":{"filePath":%q,"originalSize":%d,"count":2,"outputDir":""}}`, d.path("f.pdf"), len(d.content("f.pdf"))); got != want {
			t.Errorf("%s: got %s, want %s", program, got, want)
		}
	}
}

func TestReadNotebook(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) { o.MaxTokens = 300 })
	pic := base64.StdEncoding.EncodeToString(pngOf(t, 5, 5))
	nb := func(cells string) string { return `{"cells":[` + cells + `],"nbformat":4,"nbformat_minor":5}` }
	d.write("n.ipynb", nb(`{"cell_type":"markdown","id":"m","source":["# T\n","x"]},{"cell_type":"code","id":"c","execution_count":2,"source":"1+1","outputs":[
		{"output_type":"stream","text":"out\n"},{"output_type":"display_data","data":{"image/png":"`+pic+`"}},{"output_type":"display_data","data":{"image/png":"aGk="}}]}`))
	r, err := d.call("Read", args{"file_path": "n.ipynb"})
	if err != nil {
		t.Fatal(err)
	}
	want := "<cell id=\"m\" type=\"markdown\">\n# T\nx\n</cell>\n<cell id=\"c\" type=\"code\" execution_count=\"2\">\n1+1\n</cell>\n<output type=\"stream\">\nout\n</output>"
	if got := r.Blocks[0].(*agent.Text).Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if img, ok := r.Blocks[1].(*agent.Image); !ok || img.Data != pic {
		t.Errorf("got %v", r.Blocks[1])
	}
	if got := r.Blocks[2].(*agent.Text).Text; !strings.Contains(got, "a picture that cannot be shown") {
		t.Errorf("got %q", got)
	}
	if got := detail(t, r); !strings.HasPrefix(got, `{"type":"notebook","file":{"filePath":"`+d.path("n.ipynb")+`","cells":[{"cellType":"markdown","source":"# T\nx","cell_id":"m"},{"cellType":"code","source":"1+1","execution_count":2,"cell_id":"c","language":"python","outputs":[{"output_type":"stream","text":"out\n"},`) {
		t.Errorf("got %s", got)
	}
	cell := `{"cell_type":"raw","id":"%d","source":"` + strings.Repeat("word ", 100) + `"}`
	d.write("long.ipynb", nb(fmt.Sprintf(cell+","+cell+","+cell+","+cell, 1, 2, 3, 4)))
	if got := d.ok("Read", args{"file_path": "long.ipynb"}); !strings.Contains(got, "PARTIAL view: cells 1 to 2 of 4 are shown. Go on with offset 3") {
		t.Errorf("got %q", got)
	}
	d.fails("Write", args{"file_path": "long.ipynb", "content": "{}"}, "only in part")
	if got := d.ok("Read", args{"file_path": "long.ipynb", "offset": 3}); strings.Contains(got, "PARTIAL") || !strings.Contains(got, `id="4"`) {
		t.Errorf("got %q", got)
	}
	d.ok("Write", args{"file_path": "long.ipynb", "content": nb("")})
	if got := d.ok("Read", args{"file_path": "long.ipynb"}); !strings.Contains(got, "without cells") {
		t.Errorf("got %q", got)
	}
	d.write("other.ipynb", nb(""))
	d.fails("Write", args{"file_path": "other.ipynb", "content": "{}"}, "Read it first")
}

func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(dir+"/f.go", []byte(strings.Repeat("func main() { println(1) }\n", 100)), 0o644); err != nil {
		b.Fatal(err)
	}
	tool := New(Options{Cwd: func() string { return dir }, State: NewState()})[0]
	in := json.RawMessage(`{"file_path":"` + dir + `/f.go"}`)
	for b.Loop() {
		eff, err := tool.Inspect(in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tool.Run(b.Context(), agent.Call{Input: in, Effects: eff}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEdit(b *testing.B) {
	dir := b.TempDir()
	tools := New(Options{Cwd: func() string { return dir }, State: NewState()})
	if err := os.WriteFile(dir+"/f.go", []byte(strings.Repeat("func main() { println(1) }\n", 100)+"x"), 0o644); err != nil {
		b.Fatal(err)
	}
	x, y := "x", "y"
	for b.Loop() {
		in, _ := json.Marshal(args{"file_path": dir + "/f.go", "old_string": x, "new_string": y})
		if _, err := tools[2].Run(b.Context(), agent.Call{Input: in}); err != nil {
			b.Fatal(err)
		}
		x, y = y, x
	}
}

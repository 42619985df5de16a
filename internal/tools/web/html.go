package web

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// looksHTML reports whether text of no declared kind is HTML.
func looksHTML(text string) bool {
	start := strings.ToLower(strings.TrimLeft(text[:min(len(text), 1000)], " \t\r\n"))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

// maxWork bounds what a translation may cost: pages made to be expensive,
// deep lists around long texts for instance, are read as plain text.
const maxWork = 32 << 20

// maxHTML is how long a page may be to be parsed at all; bad markup costs a
// microsecond a byte.
const maxHTML = 3 << 20

// markdown translates a page. What a reader would not see is left out, and
// addresses become complete.
func markdown(text string, at *url.URL) (string, error) {
	if len(text) > maxHTML {
		return plainText(text), nil
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return plainText(text), nil // nested deeper than any page that is meant to be read
	}
	title, refresh := prune(doc, at)
	var out string
	if work(doc, 1) > maxWork {
		out = plainText(text)
	} else {
		conv := converter.NewConverter(converter.WithPlugins(
			base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(),
		))
		md, err := conv.ConvertNode(doc, converter.WithDomain(at.Scheme+"://"+at.Host))
		if err != nil {
			return "", fmt.Errorf("translating HTML: %w", err)
		}
		out = strings.TrimSpace(string(md))
	}
	if title != "" && !strings.Contains(out[:min(len(out), 1000)], title) {
		out = "# " + title + "\n\n" + out
	}
	if refresh != "" {
		out += "\n\n[The page sends browsers on to " + refresh + ", which was not followed.]"
	}
	return out, nil
}

// work estimates what translating n costs. Each level of what is indented or
// quoted goes over all that is inside once more, in lines that are longer.
func work(n *html.Node, level int) int {
	const element = 32
	sum := element * level * level
	switch n.Type {
	case html.TextNode:
		return len(n.Data) * level
	case html.ElementNode:
		switch n.DataAtom {
		case atom.Ul, atom.Ol, atom.Blockquote, atom.Table:
			level++
		}
	}
	for c := range n.ChildNodes() {
		if sum > maxWork {
			break
		}
		sum += work(c, level)
	}
	return sum
}

// plainText is the text of a page without its structure.
func plainText(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	skip := atom.Atom(0) // the element whose text is none
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			if skip == 0 {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			switch a := atom.Lookup(name); a {
			case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg:
				if skip == 0 {
					skip = a
				}
			case atom.P, atom.Div, atom.Br, atom.Li, atom.Tr, atom.H1, atom.H2, atom.H3, atom.H4, atom.Pre, atom.Section:
				b.WriteByte('\n')
			case atom.Td, atom.Th:
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if atom.Lookup(name) == skip {
				skip = 0
			}
		}
	}
}

// prune takes out of doc what is no text and what would be repeated at length,
// and makes addresses relative to the page complete. It returns the title and
// where the page sends a browser on to.
func prune(doc *html.Node, at *url.URL) (title, refresh string) {
	var drop []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			drop = append(drop, n)
			continue
		}
		if n.Type != html.ElementNode {
			continue
		}
		switch n.DataAtom {
		case atom.Title:
			if title == "" && n.FirstChild != nil {
				title = strings.Join(strings.Fields(n.FirstChild.Data), " ")
			}
		case atom.Meta:
			if strings.EqualFold(attr(n, "http-equiv"), "refresh") {
				if _, to, ok := strings.Cut(strings.ToLower(attr(n, "content")), "url="); ok {
					refresh = complete(attr(n, "content")[len(attr(n, "content"))-len(to):], at)
				}
			}
		case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Canvas:
			drop = append(drop, n)
		case atom.Img:
			if strings.HasPrefix(attr(n, "src"), "data:") {
				drop = append(drop, n)
			}
		}
		for i, a := range n.Attr {
			switch a.Key {
			case "href", "src":
				n.Attr[i].Val = complete(a.Val, at)
			case "colspan", "rowspan":
				n.Attr[i].Val = "1" // else one cell can become two billion
			}
		}
	}
	for _, n := range drop {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	return title, refresh
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// complete makes ref, found on the page at, an address on its own.
func complete(ref string, at *url.URL) string {
	ref = strings.Trim(strings.TrimSpace(ref), `'"`)
	if ref == "" || strings.HasPrefix(ref, "#") {
		return ref
	}
	u, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return at.ResolveReference(u).String()
}

// Command picture draws text from standard input as a terminal in SVG. The
// picture in the README is made by scripts/picture.sh from a real run.
package main

import (
	"bufio"
	"fmt"
	"html"
	"os"
	"strings"
)

const (
	column, row = 7.8, 17.0
	width       = 110
)

func main() {
	var lines []string
	sc := bufio.NewScanner(os.Stdin)
	for sc.Scan() {
		l := strings.ReplaceAll(sc.Text(), "\t", "    ")
		for {
			r := []rune(l)
			if len(r) <= width {
				lines = append(lines, l)
				break
			}
			lines = append(lines, string(r[:width]))
			l = "      " + string(r[width:])
		}
	}
	if err := sc.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	h := float64(len(lines))*row + 28
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">`+"\n", width*column+28, h)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" rx="8" fill="#16181d"/>`+"\n")
	for i, l := range lines {
		fmt.Fprintf(w, `<text x="14" y="%.0f" fill="%s" xml:space="preserve">%s</text>`+"\n", 24+float64(i)*row, color(l), html.EscapeString(l))
	}
	fmt.Fprintln(w, `</svg>`)
}

// color is that of a line by what it begins with, as the program marks them.
func color(l string) string {
	switch t := strings.TrimSpace(l); {
	case strings.HasPrefix(t, "●"):
		return "#6cc7d9"
	case strings.HasPrefix(t, "✓"):
		return "#7fc97f"
	case strings.HasPrefix(t, "✗"):
		return "#e0707a"
	case strings.HasPrefix(t, ">"), strings.HasPrefix(t, "$"):
		return "#ffffff"
	case strings.HasPrefix(t, "—"), strings.HasPrefix(t, "["):
		return "#8a8f98"
	}
	return "#d5d8de"
}

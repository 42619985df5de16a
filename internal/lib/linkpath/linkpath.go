// Package linkpath tells where a path leads once links are followed, as the
// system would follow them: ".." is the parent of the link's target, and the
// last parts need not exist. It only looks; it owns nothing.
package linkpath

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the number of links the system follows before it gives up.
const maxLinks = 40

// Targets returns the places that the absolute path leads to on its way
// through links, the final one last, each clean and other than path itself.
// It returns nil if path has no links, and also "/" and every prefix walked
// so far if links form a loop, so that nobody takes the path for harmless.
func Targets(path string) []string {
	clean := filepath.Clean(path)
	at := filepath.VolumeName(path) + string(filepath.Separator)
	rest := strings.Split(filepath.ToSlash(path[len(filepath.VolumeName(path)):]), "/")
	var out []string
	add := func(p string) {
		if p = filepath.Clean(p); p != clean && (len(out) == 0 || out[len(out)-1] != p) {
			out = append(out, p)
		}
	}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := os.Readlink(next)
		if err != nil {
			at = next // no link, or not there
			continue
		}
		if links++; links > maxLinks {
			add(at)
			return append(out, string(filepath.Separator))
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
		add(filepath.Join(at, filepath.Join(rest...)))
	}
	add(at)
	return out
}

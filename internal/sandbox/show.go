package sandbox

import (
	"os"
	"slices"
)

// A Shown is a file that commands see with other contents than it has,
// read-only. It is for bubblewrap: at other levels the file is as it is.
type Shown struct {
	Path string
	Data []byte
}

// shown are those of r that can be shown: files that are there, by their real
// paths, and not inside of what is hidden.
func shown(r Rules, l layout) []Shown {
	var out []Shown
	for _, s := range r.Show {
		path, ok := real(s.Path)
		if !ok {
			continue
		}
		fi, err := os.Stat(path)
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		hidden := slices.ContainsFunc(l.mounts, func(m mount) bool { return m.kind == hidden && within(path, m.path) })
		again := slices.ContainsFunc(out, func(o Shown) bool { return o.Path == path })
		if !hidden && !again {
			out = append(out, Shown{path, s.Data})
		}
	}
	return out
}

// A View is how commands see a file.
type View string

const (
	AsIs   View = "as it is"
	Hidden View = "hidden"
	Other  View = "with other contents"
)

// View tells how a command under r would see path, as things stand now.
func (b *Box) View(r Rules, path string) View {
	q, ok := real(path)
	if !ok || b.level == Weak || b.level == None {
		return AsIs
	}
	l := layOut(b.o, r)
	view := AsIs
	for _, m := range l.mounts { // a directory stands before what is in it
		if within(q, m.path) {
			if view = AsIs; m.kind == hidden {
				view = Hidden
			}
		}
	}
	if view == AsIs && b.level == Full && slices.ContainsFunc(shown(r, l), func(s Shown) bool { return s.Path == q }) {
		return Other
	}
	return view
}

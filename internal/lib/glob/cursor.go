package glob

import "slices"

// A Cursor is a position in the tree of paths: what of a pattern is still to
// be matched below a directory. It is a value; Step makes a new one.
type Cursor struct {
	p    *Pattern
	at   []position
	done bool
}

type position struct{ alt, seg int32 }

// Root returns the cursor of the directory that relative patterns start in.
func (p *Pattern) Root() Cursor { return p.begin(false) }

// AbsoluteRoot returns the cursor of "/", for alternatives that begin with a slash.
func (p *Pattern) AbsoluteRoot() Cursor { return p.begin(true) }

func (p *Pattern) begin(absolute bool) Cursor {
	c := Cursor{p: p, at: make([]position, 0, len(p.alts))}
	for i := range p.alts {
		if p.alts[i].absolute == absolute {
			c.add(int32(i), 0)
		}
	}
	return c
}

// add enters a position and, past a **, the one behind it.
func (c *Cursor) add(alt, seg int32) {
	pos := position{alt, seg}
	if slices.Contains(c.at, pos) {
		return
	}
	segs := c.p.alts[alt].segs
	if int(seg) == len(segs) {
		c.done = true
		return
	}
	c.at = append(c.at, pos)
	if segs[seg].any {
		c.add(alt, seg+1)
	}
}

// Step returns the cursor of the entry called name in this directory.
func (c Cursor) Step(name string) Cursor {
	next := Cursor{p: c.p}
	for _, pos := range c.at {
		s := &c.p.alts[pos.alt].segs[pos.seg]
		switch {
		case s.any:
			next.add(pos.alt, pos.seg)
		case s.match(name):
			next.add(pos.alt, pos.seg+1)
		}
	}
	return next
}

// Match reports whether the path that led here matches the pattern.
func (c Cursor) Match() bool { return c.done }

// Dead reports whether neither this path nor any below it matches.
func (c Cursor) Dead() bool { return !c.done && len(c.at) == 0 }

// Deeper reports whether a path below this one may match.
func (c Cursor) Deeper() bool { return len(c.at) > 0 }

// Names reports whether name is spelled out at this place: matched by a
// segment without wildcards.
func (c Cursor) Names(name string) bool {
	for _, pos := range c.at {
		if s := &c.p.alts[pos.alt].segs[pos.seg]; s.plain && s.literal == name {
			return true
		}
	}
	return false
}

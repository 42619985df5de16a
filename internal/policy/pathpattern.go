package policy

import (
	"path"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/glob"
)

// A pathPattern is a gitignore pattern with its anchor. It matches a path,
// and everything below a path that it matches.
type pathPattern struct {
	anchor string   // absolute directory
	segs   []string // "**" is any number of segments
	any    bool     // at any depth below the anchor
	// self: a last "**" also matches the directory before it. Rules that
	// forbid do: what is done to the directory is done to all in it.
	self bool
	fold bool
}

// compilePath reads the specifier of a Read or Edit rule.
func (p *Policy) compilePath(r Rule, spec string) (*pathPattern, string) {
	spec = strings.TrimSpace(spec)
	strict := r.Verdict != agent.Allow
	pp := &pathPattern{self: strict || strings.HasPrefix(r.Text, "Read"), fold: p.cfg.FoldCase}
	rest := spec
	relative, dotted := false, false
	switch {
	case strings.HasPrefix(spec, "!"):
		return nil, "a pattern cannot be negated; use a deny rule"
	case strings.HasPrefix(spec, "//"):
		pp.anchor, rest = "/", spec[2:]
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		if p.cfg.Home == "" {
			return nil, "there is no home directory"
		}
		pp.anchor, rest = p.cfg.Home, strings.TrimPrefix(spec[1:], "/")
	case strings.HasPrefix(spec, "/"):
		if pp.anchor = r.Base; pp.anchor == "" {
			pp.anchor = p.cfg.Cwd
		}
		rest = spec[1:]
	case len(spec) > 2 && spec[1] == ':' && (spec[2] == '\\' || spec[2] == '/'):
		pp.anchor, rest = "/"+strings.ToLower(spec[:1]), strings.ReplaceAll(spec[3:], `\`, "/")
	default:
		pp.anchor, relative = p.cfg.Cwd, true
		for strings.HasPrefix(rest, "./") {
			rest, dotted = strings.TrimLeft(rest[2:], "/"), true
		}
	}
	if rest == "." {
		rest = ""
	}
	for seg := range strings.SplitSeq(rest, "/") {
		switch seg {
		case "", ".":
		case "..":
			if len(pp.segs) > 0 {
				return nil, "a pattern holds .. only at its start"
			}
			pp.anchor, relative = path.Dir(pp.anchor), false
		default:
			pp.segs = append(pp.segs, seg)
		}
	}
	if relative {
		bare := len(pp.segs) == 1 && pp.segs[0] != "**"
		tree := len(pp.segs) == 2 && pp.segs[1] == "**" && pp.segs[0] != "**"
		pp.any = bare && (strict || !dotted) || tree && strict
	}
	return pp, ""
}

// match reports whether p covers abs, which is clean and absolute.
func (p *pathPattern) match(abs string) bool {
	anchor := p.anchor
	if p.fold {
		abs, anchor = strings.ToLower(abs), strings.ToLower(anchor)
	}
	rel, ok := below(abs, anchor)
	if !ok {
		return false
	}
	if len(p.segs) == 0 {
		return true
	}
	if p.any && len(p.segs) == 1 {
		for name := range strings.SplitSeq(rel, "/") {
			if p.segment(p.segs[0], name) {
				return true
			}
		}
		return false
	}
	var parts []string
	if rel != "" {
		parts = strings.Split(rel, "/")
	}
	if p.matchFrom(p.segs, parts) {
		return true
	}
	for i := 1; p.any && i < len(parts); i++ {
		if p.matchFrom(p.segs, parts[i:]) {
			return true
		}
	}
	return false
}

// matchFrom matches segs against the front of parts: what is left of parts
// lies below the match.
func (p *pathPattern) matchFrom(segs, parts []string) bool {
	for len(segs) > 0 {
		if segs[0] == "**" {
			if len(segs) == 1 {
				return len(parts) > 0 || p.self
			}
			for i := 0; i <= len(parts); i++ {
				if p.matchFrom(segs[1:], parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		if !p.segment(segs[0], parts[0]) {
			return false
		}
		segs, parts = segs[1:], parts[1:]
	}
	return true
}

// segment reports whether one segment of the pattern matches one name.
func (p *pathPattern) segment(seg, name string) bool {
	if p.fold {
		seg = strings.ToLower(seg)
	}
	return seg == name || glob.MatchSegment(seg, name)
}

// mayCover reports whether p may match something below dir.
func (p *pathPattern) mayCover(dir string) bool {
	anchor := p.anchor
	if p.fold {
		dir, anchor = strings.ToLower(dir), strings.ToLower(anchor)
	}
	if _, ok := below(anchor, dir); ok {
		return true
	}
	rel, ok := below(dir, anchor)
	if !ok {
		return false
	}
	if p.any || rel == "" {
		return true
	}
	parts := strings.Split(rel, "/")
	for i, seg := range p.segs {
		if seg == "**" || i >= len(parts) {
			return true
		}
		if !p.segment(seg, parts[i]) {
			return false
		}
	}
	return true
}

// below returns the path of abs relative to dir, "" if they are the same.
func below(abs, dir string) (rel string, ok bool) {
	if abs == dir {
		return "", true
	}
	if dir != "/" {
		dir += "/"
	}
	return strings.CutPrefix(abs, dir)
}

// escapePath returns a path so that compilePath takes its characters literally.
func escapePath(s string) string {
	if !strings.ContainsAny(s, `\*?[]`) {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(s)
}

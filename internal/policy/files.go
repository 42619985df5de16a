package policy

import (
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
)

// inside reports whether all of paths lie in the working directories.
func (p *Policy) inside(paths []string) bool {
	if len(paths) == 0 {
		return false
	}
	for _, x := range paths {
		if !within(x, p.work, p.cfg.FoldCase) {
			return false
		}
	}
	return true
}

func within(x string, dirs []string, fold bool) bool {
	if fold {
		x = strings.ToLower(x)
	}
	for _, d := range dirs {
		if fold {
			d = strings.ToLower(d)
		}
		if _, ok := below(x, d); ok {
			return true
		}
	}
	return false
}

// covered reports whether allow rules of the given tools (Read, Edit) cover
// every one of paths; free ones need none inside the working directories.
// The rule is the last that was needed, nil if none was.
func (p *Policy) covered(paths []string, free bool, tools ...string) (last *rule, ok bool) {
	for _, x := range paths {
		if free && within(x, p.work, p.cfg.FoldCase) {
			continue
		}
		i := slices.IndexFunc(p.allow, func(r *rule) bool {
			return r.path != nil && slices.Contains(tools, r.tool) && r.path.match(x)
		})
		if i < 0 {
			return nil, false
		}
		last = p.allow[i]
	}
	return last, len(paths) > 0
}

// editsFree reports whether the mode lets files in the working directories be edited.
func (p *Policy) editsFree() bool {
	return p.cfg.Mode == agent.ModeAcceptEdits || p.cfg.Mode == agent.ModeAuto
}

// DeniedPath reports whether a Read rule denies path, an absolute one, or
// what it leads to. Listings leave such paths out.
func (p *Policy) DeniedPath(abs string) bool {
	var paths []string
	for _, r := range p.deny {
		if r.path == nil || r.tool != "Read" {
			continue
		}
		if paths == nil {
			paths = p.spellings(abs)
		}
		for _, x := range paths {
			if r.path.match(x) {
				return true
			}
		}
	}
	return false
}

// settlePaths takes p's approval back if a path that it touches needs
// one of its own.
func (q *question) settlePaths(p *part, exact bool) {
	if p.Covered {
		return
	}
	for _, a := range q.accesses[p.from:p.to] {
		why := q.pathNeeds(a)
		if why == "" {
			continue
		}
		// What the program itself does with its arguments is for the rule
		// that allows the program; redirections and the read-only set are not.
		if byRule := strings.HasPrefix(p.by, "rule:"); byRule && (exact || !a.path.Redirect) {
			continue
		}
		p.ok, p.note, p.path = false, why, a.text
		return
	}
}

// pathNeeds returns "" if the access needs no question of its own, otherwise why.
func (q *question) pathNeeds(a access) string {
	if a.kind == programs.Reads || a.kind == programs.Enters {
		if len(a.paths) == 0 {
			return "it reads " + a.text + ", which is not spelled out"
		}
		if why := q.hidden(a); why != "" {
			return why
		}
		if _, ok := q.covered(a.paths, true, "Read", "Edit"); ok || harmlessDevice(a.paths) {
			return ""
		}
		return "it " + a.kind.String() + " " + q.farthest(a.paths) + ", outside the working directories"
	}
	if len(a.paths) == 0 {
		return "it writes to " + a.text + ", which is not spelled out"
	}
	if q.cfg.Mode == agent.ModePlan {
		return "it writes to " + a.paths[0] + "; plan mode only looks"
	}
	if _, ok := q.covered(a.paths, q.editsFree() && a.path.Pattern == "", "Edit"); ok {
		return ""
	}
	return "it " + a.kind.String() + " " + a.paths[0]
}

// farthest is the first of paths outside the working directories, or the first.
func (p *Policy) farthest(paths []string) string {
	for _, x := range paths {
		if !within(x, p.work, p.cfg.FoldCase) {
			return x
		}
	}
	return paths[0]
}

func harmlessDevice(paths []string) bool {
	for _, p := range paths {
		switch p {
		case "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/stdin":
		default:
			return false
		}
	}
	return true
}

// hidden says which Read rule might be broken by reading a whole tree or all
// that a pattern matches.
func (q *question) hidden(a access) string {
	if !a.path.Tree && (a.path.Pattern == "" || q.cfg.Expand != nil) || q.boxed {
		return ""
	}
	for _, r := range q.deny {
		if r.path == nil || r.tool != "Read" {
			continue
		}
		for _, x := range a.paths {
			if r.path.mayCover(x) {
				return "it may read what the rule " + r.Text + " (" + r.Where() + ") denies below " + x
			}
		}
	}
	return ""
}

// protectedPath reports whether x is a file or lies in a directory that
// programs read their orders from.
func protectedPath(x string) bool {
	name, rest := "", x
	for more := true; more; {
		name, rest, more = strings.Cut(rest, "/")
		if len(name) < 2 || name[0] != '.' {
			continue
		}
		switch strings.ToLower(name) {
		case ".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn":
			return true
		case ".claude":
			if next, _, _ := strings.Cut(rest, "/"); !strings.EqualFold(next, "worktrees") {
				return true
			}
		case ".config":
			if next, _, _ := strings.Cut(rest, "/"); strings.EqualFold(next, "git") {
				return true
			}
		}
	}
	return len(name) > 5 && protectedFile(strings.ToLower(name))
}

func protectedFile(name string) bool {
	switch name {
	case ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".zshrc",
		".zprofile", ".zshenv", ".zlogin", ".zlogout", ".profile", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs",
		".pnp.loader.mjs", ".pnpmfile.cjs", "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion", ".bazeliskrc",
		".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
		"gradle-wrapper.properties", "maven-wrapper.properties", ".devcontainer.json", ".ripgreprc", "pyrightconfig.json",
		".mcp.json", ".claude.json":
		return true
	}
	return false
}

// protected stops writes to protected paths, whatever rules in files allow.
func (q *question) protected() (Judgement, bool) {
	if q.cfg.Mode == agent.ModeBypass || q.boxed && q.cfg.Sandbox.AutoAllow {
		return Judgement{}, false
	}
	for _, a := range q.accesses {
		if a.kind != programs.Writes && a.kind != programs.Deletes {
			continue
		}
		for _, x := range a.paths {
			if !protectedPath(q.relative(x)) || q.sessionRule(a.paths) {
				continue
			}
			return Judgement{Step: StepProtected, Decision: agent.Decision{
				Verdict: agent.Ask, Why: agent.WhySafety, By: "protected:" + x, Blocked: x,
				Reason: x + " is protected: programs take their orders from it",
			}}, true
		}
	}
	return Judgement{}, false
}

// relative takes the working directory off x, so that a session inside a
// protected directory is not asked about every file.
func (q *question) relative(x string) string {
	if rel, ok := below(x, q.cfg.Cwd); ok && strings.Contains(q.cfg.Cwd, "/.claude/worktrees/") {
		return rel
	}
	return x
}

// sessionRule reports whether a person approved writing paths in this session.
func (q *question) sessionRule(paths []string) bool {
	for _, r := range q.allow {
		if r.Layer != LayerSession || r.path == nil || r.tool != "Edit" {
			continue
		}
		all := true
		for _, x := range paths {
			all = all && r.path.match(x)
		}
		if all {
			return true
		}
	}
	return false
}

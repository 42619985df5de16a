package policy

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/programs"
	"github.com/seed-eb844fcb/cinch/internal/lib/visible"
)

// warnings are the lines a person must see before answering. Nothing in them
// is cut, and what does not show is made visible.
func (q *question) warnings() []string {
	var out []string
	said := map[string]bool{}
	add := func(format string, args ...any) {
		line, _ := visible.Text(fmt.Sprintf(format, args...))
		if !said[line] {
			said[line] = true
			out = append(out, line)
		}
	}
	if q.shell {
		if shown, n := visible.Text(q.command); n > 0 {
			out = append(out, fmt.Sprintf("%d characters do not show; with them visible: %s", n, shown))
		}
		if n := visible.Blanks(q.command); n >= 20 {
			add("%d blanks in a row", n)
		}
		if why := q.unclear(); why != "" {
			add("cannot be judged: %s", why)
		}
		for i := range q.parts {
			q.warnPart(&q.parts[i], add)
		}
	}
	for _, a := range q.accesses {
		q.warnAccess(a, add)
	}
	if q.host != "" {
		add("reaches %s", q.host)
	}
	if q.unbox {
		add("leaves the sandbox")
	}
	return out
}

func (q *question) unclear() string {
	if q.script == nil {
		return ""
	}
	return q.script.Untrusted()
}

func (q *question) warnPart(p *part, add func(string, ...any)) {
	if p.Opaque != "" {
		add("cannot be told: %s", p.Opaque)
		return
	}
	program := p.Program()
	if program == "" || p.Defined || p.by == "read-only" {
		return
	}
	if q.cfg.Lookup != nil && q.tool != "PowerShell" {
		if file := q.cfg.Lookup(program); file != "" {
			add("runs %s", file)
		}
	}
	if p.Code != "" {
		add("%s runs code from the command line", program)
	}
	for _, w := range p.Argv[1:] {
		if i := strings.Index(w.Text, "://"); i > 0 {
			if u, err := url.Parse(w.Text); err == nil && u.Host != "" {
				add("reaches %s", u.Host)
			}
		}
	}
	switch program {
	case "ssh", "scp", "sftp", "rsync", "ftp", "telnet", "nc", "ncat":
		add("%s reaches another machine", program)
	case "sudo", "doas", "su", "pkexec":
		add("%s runs with other rights", program)
	}
}

func (q *question) warnAccess(a access, add func(string, ...any)) {
	quiet := a.kind == programs.Reads || a.kind == programs.Enters
	if len(a.paths) == 0 {
		if a.part < 0 || !q.parts[a.part].ok {
			add("%s %s: what that is cannot be told", a.kind, a.text)
		}
		return
	}
	outside := !q.inside(a.paths)
	if quiet && !outside || a.part >= 0 && harmlessDevice(a.paths) {
		return
	}
	note := ""
	if outside {
		note = ", outside the working directories"
	}
	shown := a.paths[0]
	if a.path.Pattern != "" {
		shown = strings.TrimSuffix(shown, "/") + "/" + a.path.Pattern
	}
	if a.path.Tree {
		note = " and all below it" + note
	}
	add("%s %s%s", a.kind, shown, note)
	for _, x := range a.paths[1:] {
		if a.path.Abs == nil || len(a.path.Abs) == 1 {
			add("%s leads to %s", shown, x)
		} else {
			add("or %s %s", a.kind, x)
		}
	}
}

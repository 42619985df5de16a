package programs

import (
	"path"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/shellcmd"
)

// writer handles programs that write or delete the paths they are given.
func (p *pather) writer(name string) {
	ops := p.operands()
	switch name {
	case "touch", "mkdir", "mkfifo", "mknod", "truncate", "tee", "split", "csplit":
		p.each(ops, Writes)
	case "chmod", "chown", "chgrp", "setfacl", "chattr":
		if len(ops) > 1 {
			p.each(ops[1:], Writes)
		}
	case "rm":
		p.deletes(ops, p.recursive(ops))
	case "rmdir", "unlink", "shred":
		for _, o := range ops {
			p.add(o, Deletes)
		}
	case "cp", "mv", "ln", "install", "rsync", "scp":
		p.copies(name, ops)
	case "dd":
		for _, a := range p.args {
			if v, ok := strings.CutPrefix(a.Text, "of="); ok {
				p.add(shellcmd.Word{Text: v, Source: v, Known: a.Known, Prefix: v}, Writes)
			} else if v, ok := strings.CutPrefix(a.Text, "if="); ok {
				p.add(shellcmd.Word{Text: v, Source: v, Known: a.Known, Prefix: v}, Reads)
			}
		}
	case "curl", "wget":
		for i, a := range p.args {
			t := a.Text
			next := i+1 < len(p.args)
			switch {
			case name == "curl" && (t == "-o" || t == "--output") && next, name == "wget" && (t == "-O" || t == "--output-document") && next:
				p.add(p.args[i+1], Writes)
			case (t == "-T" || t == "--upload-file" || t == "--post-file" || t == "-K" || t == "--config") && next:
				p.add(p.args[i+1], Reads)
			case next && (t == "-d" || t == "--data" || t == "--data-binary" || t == "-F" || t == "--form") && strings.Contains(p.args[i+1].Text, "@"):
				_, file, _ := strings.Cut(p.args[i+1].Text, "@")
				p.add(shellcmd.Word{Text: file, Source: file, Known: p.args[i+1].Known}, Reads)
			}
		}
	}
}

func (p *pather) each(words []shellcmd.Word, a Access) {
	for _, w := range words {
		p.add(w, a)
	}
	p.values()
}

// recursive reports whether rm is told, or may be told, to delete trees.
func (p *pather) recursive(ops []shellcmd.Word) bool {
	if p.option("rR", "recursive") {
		return true
	}
	for _, a := range p.args {
		if a.Known && a.Text == "--" {
			return false
		}
		// A word that is not spelled out may be the option.
		if a.Split && !a.Known && (a.Prefix == "" || a.Prefix[0] == '-') && a.Source != more {
			return true
		}
		if !a.Known && (a.Prefix == "" || a.Prefix[0] == '-') && len(p.args) > 1 {
			return true
		}
	}
	return false
}

func (p *pather) deletes(ops []shellcmd.Word, tree bool) {
	if len(ops) == 0 && p.isGit() {
		ops = []shellcmd.Word{shellcmd.Literal(".")}
	}
	for _, o := range ops {
		d := p.add(o, Deletes)
		d.Tree = tree
		if d.Pattern != "" && strings.Trim(d.Pattern, "*?.[]!^/") != "" {
			// Some children, not all: they stand for themselves.
			for i := range d.Abs {
				d.Abs[i] = strings.TrimSuffix(d.Abs[i], "/") + "/" + d.Pattern
			}
		}
	}
}

func (p *pather) isGit() bool { return path.Base(p.command.Argv[0].Text) == "git" }

// copies handles programs with sources and a destination.
func (p *pather) copies(name string, ops []shellcmd.Word) {
	var dest shellcmd.Word
	target := false
	for i, a := range p.args {
		if v, ok := strings.CutPrefix(a.Text, "--target-directory="); ok {
			dest, target = shellcmd.Word{Text: v, Source: v, Known: a.Known}, true
		}
		if (a.Text == "-t" || a.Text == "--target-directory") && i+1 < len(p.args) && name != "rsync" {
			dest, target = p.args[i+1], true
			for k, o := range ops {
				if o.Source == dest.Source {
					ops = append(ops[:k:k], ops[k+1:]...)
					break
				}
			}
		}
	}
	if !target {
		if len(ops) < 2 {
			p.each(ops, Writes)
			return
		}
		dest, ops = ops[len(ops)-1], ops[:len(ops)-1]
	}
	tree := name == "rsync" || p.option("rRa", "recursive", "archive")
	for _, o := range ops {
		src := p.add(o, Reads)
		src.Tree = tree
		if name == "mv" {
			p.add(o, Deletes)
		}
		// If the destination is a directory, this is what gets written.
		if o.Known && !o.Glob {
			into := dest
			into.Text = strings.TrimSuffix(dest.Text, "/") + "/" + path.Base(o.Text)
			into.Source = dest.Source
			p.add(into, Writes).Tree = tree
		}
	}
	d := p.add(dest, Writes)
	d.Tree = tree
	if name == "rsync" {
		for _, a := range p.args {
			if strings.HasPrefix(a.Text, "--del") {
				p.add(dest, Deletes).Tree = true
				break
			}
		}
	}
}

// find handles find: its starting points, and what it does to what it finds.
func (p *pather) find() {
	i := 0
	for i < len(p.args) && p.args[i].Known && (p.args[i].Text == "-H" || p.args[i].Text == "-L" || p.args[i].Text == "-P") {
		i++
	}
	var starts []shellcmd.Word
	for i < len(p.args) && !strings.HasPrefix(p.args[i].Prefix, "-") && p.args[i].Text != "(" && p.args[i].Text != "!" {
		starts = append(starts, p.args[i])
		i++
	}
	if len(starts) == 0 {
		starts = []shellcmd.Word{shellcmd.Literal(".")}
	}
	deletes, reads, narrow := false, false, false
	for ; i < len(p.args); i++ {
		switch t := p.args[i].Text; t {
		case "-delete":
			deletes = true
		case "-exec", "-execdir", "-ok", "-okdir":
			reads = true
			for k := i + 1; k < len(p.args) && p.args[k].Text != ";" && p.args[k].Text != "+"; k++ {
				switch path.Base(p.args[k].Text) {
				case "rm", "rmdir", "unlink", "shred":
					deletes = true
				}
			}
		case "-newer", "-anewer", "-cnewer", "-samefile", "-files0-from":
			if i+1 < len(p.args) {
				p.add(p.args[i+1], Reads)
			}
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i+1 < len(p.args) {
				p.add(p.args[i+1], Writes)
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex":
			narrow = narrow || i+1 < len(p.args) && p.args[i+1].Known && strings.Trim(p.args[i+1].Text, "*?.[]/") != ""
		case "-o", "-or", ",", "!", "-not":
			narrow = false
		}
	}
	for _, s := range starts {
		p.add(s, Reads).Tree = reads
		if deletes {
			d := p.add(s, Deletes)
			d.Tree, d.Some = true, narrow
		}
	}
}

package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A generator writes shell commands that try to run a program behind the
// back of whoever reads them. The same seed gives the same commands.
type generator struct {
	*rand.Rand
	depth int
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0x5eed))}
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// Programs that some rule set allows, and programs that leave a mark when they run.
var (
	tame   = []string{"echo", "npm --version", "git status", "git log -1", "cat a.txt", "grep x a.txt", "ls", "ls -la sub", "pwd", "true", "printf '%s\\n' x", "head -n1 a.txt", "wc -l a.txt", "sort a.txt", "test -f a.txt", "[ -n x ]", "cd sub", "sed -n 1p a.txt", "find . -name 'x*'", "echo a b", "make all", "cut -c1 a.txt"}
	marked = []string{"touch p", "rm x", "curl u", "evil", "evil a b", "touch 'p q'", "rm -f x", "tee p"}
)

func (g *generator) command() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 4 {
		return g.simple()
	}
	switch g.IntN(22) {
	case 0:
		return g.command() + g.pick("; ", " && ", " || ", " | ", " |& ", "\n", " & ", ";", "&&", "|") + g.command()
	case 1:
		return "(" + g.command() + ")"
	case 2:
		return "{ " + g.command() + "; }"
	case 3:
		return "if " + g.command() + "; then " + g.command() + g.pick("", "; else "+g.command()) + "; fi"
	case 4:
		return "for i in " + g.pick("a b", "$X", "*.txt", "{1..3}", g.word()) + "; do " + g.command() + "; done"
	case 5:
		return g.pick("while", "until") + " " + g.command() + "; do " + g.command() + "; break; done"
	case 6:
		return "case " + g.word() + " in " + g.pick("a", "*", "x|y", g.word()) + ") " + g.command() + ";; " + g.pick("", "*) "+g.command()+";; ") + "esac"
	case 7:
		f := g.pick("f", "f", "evil", "touch")
		def := f + "() { " + g.command() + "; }"
		return g.pick("", "", "false && ", "true || ", "(", "if false; then ", "! ") + def + g.pick("; ", " & ", "); ", "; fi; ", "\n") + g.pick(f, f+" a", "g", g.command(), "bash -c "+f, "env "+f, "("+f+")")
	case 8:
		return "! " + g.command()
	case 9:
		return g.pick("time ", "time -p ", "exec ", "command ", "builtin ", "timeout 5 ", "nice ", "nice -n 3 ", "nohup ", "stdbuf -oL ", "env ", "env A=1 ", "xargs ", "xargs -n1 ", "sudo ", "eval ", "command -p ", "timeout -s 9 2 ", "noglob ") + g.simple()
	case 10:
		return g.pick("bash -c ", "sh -c ", "eval ", "bash -ec ", "trap ") + g.quoted(g.command()) + g.pick("", " EXIT", " x y")
	case 11:
		return g.simple() + " <<" + g.heredoc()
	case 12:
		return g.assign() + g.pick(" ", "; ", "\n") + g.simple()
	case 13:
		return "[[ " + g.word() + " " + g.pick("==", "=~", "!=", "-eq", "<", "-nt") + " " + g.word() + " ]]"
	case 14:
		return g.pick("((", "let ", "echo $((", "echo $[") + g.arith() + "))"
	case 15:
		return "find . " + g.pick("-name x ", "") + g.pick("-exec ", "-execdir ", "-ok ", "-delete ") + g.pick(marked...) + g.pick(` \;`, " {} +", "")
	default:
		return g.simple()
	}
}

func (g *generator) simple() string {
	var b strings.Builder
	if g.IntN(8) == 0 {
		b.WriteString(g.assign() + " ")
	}
	switch g.IntN(12) {
	case 0:
		b.WriteString(g.pick(marked...))
	case 1:
		b.WriteString(g.disguise(g.pick(marked...)))
	default:
		b.WriteString(g.pick(tame...))
	}
	for range g.IntN(3) {
		b.WriteString(" " + g.word())
	}
	if g.IntN(6) == 0 {
		b.WriteString(g.redirect())
	}
	if g.IntN(20) == 0 {
		b.WriteString(" # " + g.pick(marked...))
	}
	return b.String()
}

// disguise writes the program of a command in another way.
func (g *generator) disguise(c string) string {
	name, rest, _ := strings.Cut(c, " ")
	rest = " " + rest
	i := 1 + g.IntN(len(name)-1)
	switch g.IntN(12) {
	case 0:
		return `\` + name + rest
	case 1:
		return name[:i] + `""` + name[i:] + rest
	case 2:
		return name[:i] + `\` + name[i:] + rest
	case 3:
		return "'" + name + "'" + rest
	case 4:
		return "$'" + fmt.Sprintf(`\x%02x`, name[0]) + name[1:] + "'" + rest
	case 5:
		return "$(echo " + name + ")" + rest
	case 6:
		return "{" + strings.ReplaceAll(c, " ", ",") + "}"
	case 7:
		return name[:i] + "\\\n" + name[i:] + rest
	case 8:
		return "/stub/" + name + rest
	case 9:
		return "/stu?/" + name[:i] + "[" + name[i:i+1] + "]" + name[i+1:] + rest
	case 10:
		return "x=" + name + "; $x" + rest
	default:
		return "${y:-" + name + "}" + rest
	}
}

func (g *generator) subst() string {
	c := g.pick(g.pick(marked...), g.pick(tame...), g.disguise(g.pick(marked...)))
	switch g.IntN(14) {
	case 0, 1:
		return "$(" + c + ")"
	case 2, 3:
		return "`" + c + "`"
	case 4:
		return "<(" + c + ")"
	case 5:
		return ">(" + c + ")"
	case 6:
		return "${x:-$(" + c + ")}"
	case 7:
		return "${v@P}"
	case 8:
		return "$((a[$(" + c + ")]))"
	case 9:
		return "$\\\n(" + c + ")"
	case 10:
		return "`echo \\`" + c + "\\``"
	case 11:
		return "${a[`" + c + "`]}"
	case 12:
		return "${!x}"
	default:
		return "$( ( " + c + " ) )"
	}
}

func (g *generator) word() string {
	switch g.IntN(14) {
	case 0:
		return g.subst()
	case 1:
		return `"` + g.pick("a ", "", "b") + g.subst() + `"`
	case 2:
		return "'" + g.pick("$(touch p)", "`touch p`", "a b", ";touch p;", "") + "'"
	case 3:
		return g.pick("$X", "${X}", `"$X"`, "$1", `"$@"`, "$i", `"$i"`, "$HOME/x", "~", "${#X}", "$?")
	case 4:
		return g.pick("*", "*.txt", "a?", "[ab].txt", "{a,b}", "{1..3}", "x{,y}", "sub/*")
	case 5:
		return g.pick(`\;`, `\|`, `\$(touch p)`, "\\`", `a\ b`, `"\$(touch p)"`, "$'a\\nb'", `$'\'; touch p; \''`, `$"x"`)
	case 6:
		return g.pick("-x", "--output=p", "-o", "-exec", "--", "-v", "-i", "--pre=touch")
	case 7:
		return g.pick("#", "a#b", "!", "{", "}", "=", "[", "]", "]]", "))", "%", "@", "^", "~", "~+")
	default:
		return g.pick("a", "b", "a.txt", "sub", "x=1", "foo")
	}
}

func (g *generator) assign() string {
	name := g.pick("X", "Y", "PATH", "NODE_ENV", "x", "v", "IFS", "LANG", "PS4", "a[0]", "a["+g.subst()+"]", "BASH_ENV", "i", "x+")
	return name + "=" + g.pick("1", "a", g.word(), "'$(touch p)'", "'a[$(touch p)]'", "("+g.word()+")", "/trap", "/trap:$PATH", "", "\"$("+g.pick(marked...)+")\"")
}

func (g *generator) arith() string {
	return g.pick("1+1", "x", "x+1", "a["+g.subst()+"]", "i++", "x=y", g.subst(), "1<2", "$x", "${#x}", "0x1f", "x[0]")
}

func (g *generator) redirect() string {
	return g.pick(" >p", " >/dev/null", " 2>&1", " >>p", " <a.txt", " &>p", " >|p", " 2>p", " <>p", " >&p", " <<<"+g.word(), " < "+g.subst(), " > "+g.subst(), " {fd}>p", " 2>/dev/null", " >&2")
}

func (g *generator) heredoc() string {
	mark := g.pick("E", "'E'", `"E"`, `\E`, "-E", "-'E'", "E'F'")
	end := strings.NewReplacer("'", "", `"`, "", `\`, "", "-", "").Replace(mark)
	return mark + "\n" + g.pick("x", g.subst(), "`"+g.pick(marked...)+"`", "\\$("+g.pick(marked...)+")", "$X", "'$(touch p)'") + "\n" + end + g.pick("", "\n"+g.simple())
}

func (g *generator) quoted(s string) string {
	switch g.IntN(4) {
	case 0:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	case 1:
		return "$'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	default:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
}

// mutate changes a few bytes, so that odd places of the grammar are reached.
func (g *generator) mutate(s string) string {
	const odd = "$()`'\"\\\n;&|{}<>#!*?[]=@~ \t\r^%-,:"
	b := []byte(s)
	for range 1 + g.IntN(3) {
		if len(b) == 0 {
			break
		}
		i := g.IntN(len(b))
		c := odd[g.IntN(len(odd))]
		switch g.IntN(3) {
		case 0:
			b[i] = c
		case 1:
			b = append(b[:i], b[i+1:]...)
		default:
			b = append(b[:i], append([]byte{c}, b[i:]...)...)
		}
	}
	return string(b)
}

// soup is a run of tokens around a marked program that may be data or code,
// according to who reads it.
func (g *generator) soup() string {
	tokens := []string{"'", "'", `"`, `"`, "\\", "$(", ")", "`", "#", "\n", "${", "}", ";", " ", " ", "a", "<<E", "\nE\n", "$", "(", "((", "))", "$((", "[[ ", " ]]",
		"<<<", "<<-'E'", "\\\n", "$'", `$"`, "{", "&", "|", "!", "<(", ">(", "x=", "${x:-", "${x/", "${x#", "case x in x) ", " ;; esac", "=", "~", "*", "[", "]", "\t", "@P", "if true; then ", "; fi", "for x in a; do ", "; done", "() { ", "function f { ", "let ", "[x]="}
	c := g.pick("echo ", "echo ", "", "cat ", "true ", "[[ x == ", "x=", "printf %s ", "cat <<E\n", "echo $(", "echo \"", "echo '", "for i in ", "case a in ")
	for range 2 + g.IntN(8) {
		if g.IntN(4) == 0 {
			c += g.pick("touch p", " touch p", "touch p ", "evil", ";touch p;")
		}
		c += tokens[g.IntN(len(tokens))]
	}
	if g.IntN(3) == 0 {
		c += g.pick("touch p", "\ntouch p", "\nE", "'", `"`, ")", "`", "}")
	}
	return c
}

// declaration is a builtin that changes variables or the shell, followed by a use.
func (g *generator) declaration() string {
	n := g.pick("x", "PATH", "a", "PS4", "f", "IFS", "BASH_ENV", "x[0]", "'a[$(touch p)]'", "HOME")
	v := g.pick("1", "/stub", "/trap", "'a[$(touch p)]'", "'$(touch p)'", "touch", g.word())
	d := g.pick("export ", "declare ", "declare -i ", "declare -n ", "declare -a ", "local ", "readonly ", "typeset ", "read ", "mapfile ", "unset ", "printf -v ", "printf ", "let ", "set ", "shopt -s ", "alias ", "hash -p /stub/touch ", "trap ", "enable -n ", "getopts x ", "test -v ", "[ -v ")
	use := g.pick("echo $((x))", "echo ${a[x]}", "$x", "echo ${!x}", "echo ${x@P}", "[[ x -eq 1 ]]", "f", "git a", "npm --version", "sort a.txt", "find .", "echo $x", "[ $x ]", "echo ${x:x}", "set -x; echo", "ls", "bash -c 'echo a'")
	return d + n + g.pick("=", " ", "=(", "+=") + v + g.pick("", ")", " p", " <<< 'a[$(touch p)]'", " ]") + g.pick("; ", " && ", "\n") + use
}

// lure makes a harmless name stand for something else: by the path in which
// programs are looked up, or by a function that may not be there.
func (g *generator) lure() string {
	use := g.pick("sort a.txt", "find . -name x", "sed -n 1p a.txt", "sort a.txt | sed -n 1p")
	if g.IntN(2) == 0 {
		set := g.pick("PATH=/trap", "export PATH=/trap", "PATH=/trap:$PATH", "declare PATH=/trap", "read PATH <<< /trap", "read -r PATH <<< /trap", "printf -v PATH /trap",
			"unset PATH; : ${PATH:=/trap}", "typeset PATH=/trap", "PATH=/trap true", "mapfile -t PATH <<< /trap", "x=PATH; declare $x=/trap", "declare -n y=PATH; y=/trap", "cd /; PATH=trap")
		return g.pick(set+g.pick("; ", " && ", "\n")+use, "for PATH in /trap; do "+use+"; done", "{ "+set+"; }; "+use, "if "+set+"; then "+use+"; fi", "f() { "+set+"; "+use+"; }; f", "eval "+set+"; "+use, "("+set+"; "+use+")")
	}
	f := g.pick("evil", "touch", "rm")
	def := f + "() { " + g.pick(tame...) + "; }"
	return g.pick(def+"; ", "false && "+def+"; ", "true || "+def+"; ", "("+def+"); ", def+" & ", "if false; then "+def+"; fi; ", "{ "+def+"; }; ", "x=$("+def+"); ", def+" | true; ", "while false; do "+def+"; done; ", "! "+def+"; ") +
		g.pick(f, f+" p", "("+f+" p)", "env "+f, "xargs "+f, "timeout 2 "+f, "bash -c "+f, "eval "+f, "command "+f, "nice "+f, "exec "+f, f+" | true")
}

// next is one more command of the corpus.
func (g *generator) next() string {
	switch g.IntN(16) {
	case 0, 1, 2, 3:
		return g.soup()
	case 4, 5:
		return g.declaration()
	case 6:
		return g.lure()
	}
	c := g.command()
	if g.IntN(3) == 0 {
		c = g.mutate(c)
	}
	return c
}

package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-eb844fcb/cinch/internal/ui/tui/cell"
)

// A highlighter colours code line by line, from what all languages of a kind
// share: words, strings, numbers, comments. It never fails and never waits.
type highlighter struct {
	k    kind
	open string // what ends the comment or string that goes over line ends, or ""
	was  cell.Style
}

// A kind is a family of languages.
type kind struct {
	line   []string // begin a comment up to the end of the line
	block  [][2]string
	quotes string
	long   []string // quotes of strings that go over line ends
	words  string   // keywords, with blanks around each
	diff   bool
	none   bool
}

var (
	styleWord    = cell.Style{FG: cell.Magenta}
	styleString  = cell.Style{FG: cell.Green}
	styleNumber  = cell.Style{FG: cell.Yellow}
	styleComment = cell.Style{Dim: true, Italic: true}
)

// kindOf is the kind of the language a fence names.
func kindOf(lang string) kind {
	lang, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(lang)), " ")
	cLike := kind{line: []string{"//"}, block: [][2]string{{"/*", "*/"}}, quotes: `"'`}
	switch lang {
	case "go", "golang":
		cLike.long = []string{"`"}
		cLike.words = " break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false "
		return cLike
	case "js", "javascript", "jsx", "ts", "typescript", "tsx", "mjs":
		cLike.long = []string{"`"}
		cLike.words = " async await break case catch class const continue default delete do else enum export extends finally for from function if implements import in instanceof interface let new null of return static super switch this throw true false try type typeof undefined var void while yield "
		return cLike
	case "rust", "rs":
		cLike.quotes = `"`
		cLike.words = " as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while "
		return cLike
	case "c", "cpp", "c++", "h", "cc", "java", "kotlin", "kt", "cs", "csharp", "swift", "scala", "dart", "php":
		cLike.words = " auto bool break case catch char class const continue default delete do double else enum extends extern false final float for fun func if implements import include int interface let long namespace new null nullptr override package private protected public return short signed sizeof static struct super switch template this throw true try typedef union unsigned using val var virtual void volatile while "
		return cLike
	case "css", "scss", "less":
		return cLike
	case "py", "python":
		return kind{line: []string{"#"}, quotes: `"'`, long: []string{`"""`, "'''"},
			words: " and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield self "}
	case "rb", "ruby":
		return kind{line: []string{"#"}, quotes: `"'`, words: " alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield "}
	case "sh", "bash", "zsh", "shell", "console", "makefile", "make", "dockerfile":
		return kind{line: []string{"#"}, quotes: `"'`, words: " case do done elif else esac export fi for function if in local return select set then until while FROM RUN COPY CMD ENV WORKDIR "}
	case "yaml", "yml", "toml", "ini", "conf", "hcl", "tf":
		return kind{line: []string{"#"}, quotes: `"'`, words: " true false null yes no on off "}
	case "json", "jsonc", "json5":
		return kind{line: []string{"//"}, quotes: `"`, words: " true false null "}
	case "sql":
		return kind{line: []string{"--"}, block: [][2]string{{"/*", "*/"}}, quotes: `'"`, words: " select from where insert into values update set delete create table drop alter add index join left right inner outer on group by order having limit and or not null primary key foreign references as distinct union all case when then else end SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE DROP ALTER ADD INDEX JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT AND OR NOT NULL PRIMARY KEY FOREIGN REFERENCES AS DISTINCT UNION ALL CASE WHEN THEN ELSE END "}
	case "lua", "haskell", "hs":
		return kind{line: []string{"--"}, quotes: `"'`, words: " and break case class data do else elseif end false for function if import in instance let local module nil not of or repeat return then true type until where while "}
	case "html", "xml", "svg":
		return kind{block: [][2]string{{"<!--", "-->"}}, quotes: `"`}
	case "diff", "patch":
		return kind{diff: true}
	}
	return kind{none: true}
}

func newHighlighter(lang string) highlighter { return highlighter{k: kindOf(lang)} }

// line colours one line of code.
func (h *highlighter) line(s string) cell.Line {
	switch {
	case h.k.none:
		return cell.Plain(s)
	case h.k.diff:
		return diffLine(s)
	}
	var out cell.Line
	plain := 0
	i := 0
	emit := func(end int, st cell.Style) {
		if i > plain {
			out = append(out, cell.Span{Text: s[plain:i]})
		}
		out = append(out, cell.Span{Text: s[i:end], Style: st})
		i, plain = end, end
	}
	if h.open != "" {
		end := strings.Index(s, h.open)
		if end < 0 {
			return cell.Styled(s, h.was)
		}
		end += len(h.open)
		h.open = ""
		emit(end, h.was)
	}
	for i < len(s) {
		end, st := h.token(s, i)
		switch {
		case end == i:
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
		case st == cell.Style{}:
			i = end
		default:
			emit(end, st)
		}
	}
	if plain < len(s) || len(out) == 0 {
		out = append(out, cell.Span{Text: s[plain:]})
	}
	return out
}

// token is the end of what begins at s[i], and its style; i itself if nothing does.
func (h *highlighter) token(s string, i int) (int, cell.Style) {
	rest := s[i:]
	for _, c := range h.k.line {
		if strings.HasPrefix(rest, c) && (c != "#" || i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			return len(s), styleComment
		}
	}
	for _, b := range h.k.block {
		if strings.HasPrefix(rest, b[0]) {
			return h.through(s, i+len(b[0]), b[1], styleComment)
		}
	}
	for _, q := range h.k.long {
		if strings.HasPrefix(rest, q) {
			return h.through(s, i+len(q), q, styleString)
		}
	}
	c := rest[0]
	if strings.IndexByte(h.k.quotes, c) >= 0 {
		for j := 1; j < len(rest); j++ {
			switch rest[j] {
			case '\\':
				j++
			case c:
				return i + j + 1, styleString
			}
		}
		return i, cell.Style{} // an apostrophe
	}
	if !word(rune(c)) && c < utf8.RuneSelf {
		return i, cell.Style{}
	}
	n := 0
	for n < len(rest) {
		r, size := utf8.DecodeRuneInString(rest[n:])
		if !word(r) && !(r == '.' && n > 0 && c >= '0' && c <= '9') {
			break
		}
		n += size
	}
	switch {
	case c >= '0' && c <= '9':
		return i + n, styleNumber
	case n > 0 && strings.Contains(h.k.words, " "+rest[:n]+" "):
		return i + n, styleWord
	}
	return i + n, cell.Style{}
}

// through goes to the next end, which may be on another line.
func (h *highlighter) through(s string, from int, end string, st cell.Style) (int, cell.Style) {
	if j := strings.Index(s[from:], end); j >= 0 {
		return from + j + len(end), st
	}
	h.open, h.was = end, st
	return len(s), st
}

func word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func diffLine(s string) cell.Line {
	switch {
	case strings.HasPrefix(s, "+++"), strings.HasPrefix(s, "---"), strings.HasPrefix(s, "diff "):
		return cell.Styled(s, heading)
	case strings.HasPrefix(s, "+"):
		return cell.Styled(s, cell.Style{FG: cell.Green})
	case strings.HasPrefix(s, "-"):
		return cell.Styled(s, cell.Style{FG: cell.Red})
	case strings.HasPrefix(s, "@@"):
		return cell.Styled(s, cell.Style{FG: cell.Cyan})
	}
	return cell.Plain(s)
}

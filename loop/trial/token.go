package trial

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind is the kind of a token.
type kind int

const (
	word   kind = iota // a name or a keyword
	number             // a literal, like the following kinds
	text               // in quotes
	char               // one character in quotes, which is not text
	pattern
	sign    // an operator or a bracket
	newline // where a line ends
	bare    // a word of a shell
)

// A lexeme is a part of a source file. Comments and blanks are none.
type lexeme struct {
	kind    kind
	at, end int
	from    int  // where the content of a text begins
	to      int  // and ends
	filled  bool // a text has values in it
}

// A language tells the tokenizer how to read source text.
type language struct {
	name    string
	hash    bool   // # begins a comment
	slashes bool   // // and /* begin one
	quotes  string // quotes around texts
	chars   bool   // ' encloses one character
	regexp  bool   // / may begin a pattern
	triple  bool   // three quotes enclose a text of several lines
}

var clike = language{name: "c", slashes: true, quotes: `"`, chars: true, triple: true}

// languages are the tokenizer's languages, by a file's extension.
var languages = func() map[string]*language {
	python := language{name: "py", hash: true, quotes: `"'`, triple: true}
	script := language{name: "js", slashes: true, quotes: "\"'`", regexp: true}
	ruby := language{name: "rb", hash: true, quotes: "\"'`", regexp: true}
	php := language{name: "php", hash: true, slashes: true, quotes: "\"'`"}
	perl := language{name: "pl", hash: true, quotes: `"'`}
	c, rust, java, kotlin := clike, clike, clike, clike
	rust.name, java.name, kotlin.name = "rs", "java", "kt"
	all := map[string]*language{".rs": &rust, ".java": &java, ".rb": &ruby, ".php": &php, ".phpt": &php}
	for l, endings := range map[*language]string{
		&python: ".py .pyw .pyi", &script: ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte .snap",
		&kotlin: ".kt .kts .scala .groovy .swift", &perl: ".t .pl .pm .exs .ex",
		&c: ".c .h .cc .cpp .cxx .hpp .hh .cs .m .mm .d .zig",
	} {
		for ending := range strings.FieldsSeq(endings) {
			all[ending] = l
		}
	}
	return all
}()

// languageOf returns the language of a file; nil if it is unknown.
func languageOf(name string, source string) *language {
	if l := languages[strings.ToLower(path.Ext(name))]; l != nil {
		return l
	}
	first, _, _ := strings.Cut(source, "\n")
	if path.Ext(name) == "" && strings.HasPrefix(first, "#!") {
		for word, ending := range map[string]string{
			"python": ".py", "node": ".js", "ruby": ".rb", "php": ".php", "deno": ".ts", "bun": ".ts", "perl": ".pl",
		} {
			if strings.Contains(first, word) {
				return languages[ending]
			}
		}
	}
	return nil
}

// signs are operators of several characters, the longest first.
var signs = []string{
	"===", "!==", "<=>", "==", "!=", "<=", ">=", "=>", "->", "::", "?.", "&&", "||", ":=", "=~", "!~", "+=", "-=",
	"<<", ">>",
}

// A scanner splits a source file into tokens.
type scanner struct {
	*language
	src    string
	at     int
	tokens []lexeme
	vain   int // bytes read for texts that do not end
}

// ends reports whether a text that begins there is looked for to its end. A malformed file may begin thousands that
// have none.
func (s *scanner) ends() bool { return s.vain <= 64*len(s.src) }

// scan returns the tokens of a source file. For any input it ends, and never panics.
func scan(l *language, src string) []lexeme {
	s := &scanner{language: l, src: src}
	if l.name == "php" {
		if i := strings.Index(src, "<?"); i >= 0 {
			s.at = i + len("<?")
		}
	}
	for s.at < len(s.src) {
		begin := s.at
		s.next()
		if s.at <= begin {
			s.at = begin + 1
		}
	}
	return s.tokens
}

// rest returns the unread part.
func (s *scanner) rest() string { return s.src[min(s.at, len(s.src)):] }

// has reports whether a text follows.
func (s *scanner) has(t string) bool { return strings.HasPrefix(s.rest(), t) }

// skip moves past the next occurrence of a text, or to the end.
func (s *scanner) skip(t string) {
	if i := strings.Index(s.rest(), t); i >= 0 {
		s.at += i + len(t)
		return
	}
	s.at = len(s.src)
}

// add adds a token that ends at the position.
func (s *scanner) add(k kind, from int) {
	s.tokens = append(s.tokens, lexeme{kind: k, at: from, end: s.at, from: from, to: s.at})
}

// next reads a token, a comment or a blank.
func (s *scanner) next() {
	from := s.at
	r, size := utf8.DecodeRuneInString(s.rest())
	switch {
	case r == '\n':
		s.at++
		s.add(newline, from)
	case unicode.IsSpace(r):
		s.at += size
	case s.has("\\\n"), s.has("\\\r\n"): // the line continues
		s.skip("\n")
	case s.comment():
	case s.quoted():
	case isLetter(r) || r == '$' || r == '@':
		for s.at < len(s.src) {
			r, size := utf8.DecodeRuneInString(s.rest())
			if !isLetter(r) && !unicode.IsDigit(r) && r != '$' && (r != '@' || s.at > from) {
				break
			}
			s.at += size
		}
		if s.name == "rb" && (s.has("?") || s.has("!")) && !s.has("!=") {
			s.at++
		}
		s.add(word, from)
	case unicode.IsDigit(r) || r == '.' && s.digitAt(1):
		s.number(from)
	default:
		for _, op := range signs {
			if s.has(op) {
				s.at += len(op)
				s.add(sign, from)
				return
			}
		}
		s.at += size
		s.add(sign, from)
	}
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || r == '_' }

// digitAt reports whether there is a digit at an offset.
func (s *scanner) digitAt(i int) bool {
	return s.at+i < len(s.src) && s.src[s.at+i] >= '0' && s.src[s.at+i] <= '9'
}

// number reads a number with its suffix.
func (s *scanner) number(from int) {
	for s.at < len(s.src) {
		c := s.src[s.at]
		exponent := (c == '+' || c == '-') && s.at > from && strings.IndexByte("eE", s.src[s.at-1]) >= 0 &&
			!strings.HasPrefix(s.src[from:], "0x")
		if !(c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || exponent ||
			c == '.' && s.digitAt(1)) {
			break
		}
		s.at++
	}
	s.add(number, from)
}

// comment skips a comment, or a line of the preprocessor; ok is false if there is none.
func (s *scanner) comment() (ok bool) {
	begin := s.at == 0 || s.src[s.at-1] == '\n'
	switch {
	case s.name == "rb" && begin && s.has("=begin"):
		s.skip("\n=end")
	case s.hash && s.has("#") && !(s.name == "php" && s.has("#[")):
		s.line()
	case s.slashes && s.has("//"):
		s.line()
	case s.slashes && s.has("/*"):
		s.skip("*/")
	case s.name == "c" && s.has("#") && s.first():
		s.line()
	default:
		return false
	}
	return true
}

// first reports whether only blanks precede the position in its line.
func (s *scanner) first() bool {
	before := strings.TrimRight(s.src[:s.at], " \t\r\f\v")
	return before == "" || strings.HasSuffix(before, "\n")
}

// line moves to the end of the line.
func (s *scanner) line() {
	if i := strings.IndexByte(s.rest(), '\n'); i >= 0 {
		s.at += i
		return
	}
	s.at = len(s.src)
}

// prefixes precede the quotes of texts.
const prefixes = "rRbBuUfFL$@"

// prefixed returns the possible place of the quote in a text that begins here.
func (s *scanner) prefixed() int {
	i := s.at
	if s.name == "rb" || s.name == "php" || s.name == "pl" || s.name == "js" {
		return i // the language has no prefixes before quotes
	}
	for i < len(s.src) && i < s.at+3 && strings.IndexByte(prefixes, s.src[i]) >= 0 {
		i++
	}
	return i
}

// quoted reads a text, a character or a pattern; ok is false if there is none.
func (s *scanner) quoted() (ok bool) {
	from, i := s.at, s.prefixed()
	if s.name == "rs" && i > from && i < len(s.src) && s.src[i] == '#' {
		return s.hashed(from, i)
	}
	if i >= len(s.src) {
		return false
	}
	quote := s.src[i]
	before := s.src[from:i]
	switch {
	case s.regexp && quote == '/':
		return s.pattern(from)
	case s.chars && quote == '\'' && i == from:
		return s.character(from)
	case s.name == "c" && before == "R" && quote == '"':
		open := strings.IndexByte(s.src[i:], '(')
		return open >= 0 && s.until(from, i+open+1, ")"+s.src[i+1:i+open]+`"`)
	case strings.IndexByte(s.quotes, quote) < 0:
		return false
	case s.triple && strings.HasPrefix(s.src[i:], strings.Repeat(string(quote), 3)):
		return s.until(from, i+3, strings.Repeat(string(quote), 3))
	}
	raw := strings.ContainsAny(before, "@") || s.name == "rs" && before == "r"
	return s.closed(from, i+1, quote, raw)
}

// until reads a text that ends with a text; ok is false if it does not end.
func (s *scanner) until(from, begin int, end string) (ok bool) {
	if !s.ends() {
		return false
	}
	i := strings.Index(s.src[begin:], end)
	if i < 0 {
		s.vain += len(s.src) - begin
		return false
	}
	s.at = begin + i + len(end)
	s.tokens = append(s.tokens, lexeme{kind: text, at: from, end: s.at, from: begin, to: begin + i})
	return true
}

// hashed reads a raw text of Rust.
func (s *scanner) hashed(from, i int) (ok bool) {
	n := 0
	for i+n < len(s.src) && s.src[i+n] == '#' {
		n++
	}
	if i+n >= len(s.src) || s.src[i+n] != '"' {
		return false
	}
	return s.until(from, i+n+1, `"`+strings.Repeat("#", n))
}

// closed reads a text up to its quote. Only between backquotes, and in Ruby and PHP, it has several lines.
func (s *scanner) closed(from, begin int, quote byte, raw bool) (ok bool) {
	depth := 0 // of values in a template
	for i := begin; i < len(s.src) && s.ends(); i++ {
		switch c := s.src[i]; {
		case c == '\\' && !raw:
			i++
		case quote == '`' && s.name == "js" && strings.HasPrefix(s.src[i:], "${"):
			depth++
			i++
		case depth > 0 && c == '}':
			depth--
		case depth > 0:
		case c == quote:
			s.at = i + 1
			content := s.src[begin:i]
			s.tokens = append(s.tokens, lexeme{
				kind: text, at: from, end: s.at, from: begin, to: i, filled: strings.ContainsAny(content, "$#{%"),
			})
			return true
		case c == '\n' && quote != '`' && s.name != "rb" && s.name != "php" && s.name != "rs" && s.name != "pl" && !raw:
			return false
		}
	}
	s.vain += len(s.src) - begin
	return false
}

// character reads one character in quotes. A lifetime may look like one.
func (s *scanner) character(from int) (ok bool) {
	i := from + 1
	if i < len(s.src) && s.src[i] == '\\' {
		i++
	}
	if i >= len(s.src) {
		return false
	}
	_, size := utf8.DecodeRuneInString(s.src[i:])
	if i += size; i >= len(s.src) || s.src[i] != '\'' {
		return false
	}
	s.at = i + 1
	s.tokens = append(s.tokens, lexeme{kind: char, at: from, end: s.at, from: from + 1, to: i})
	return true
}

// pattern reads a regular expression, where one is possible.
func (s *scanner) pattern(from int) (ok bool) {
	if n := len(s.tokens); n > 0 {
		switch last := s.tokens[n-1]; last.kind {
		case number, text, char, pattern:
			return false
		case sign:
			if c := s.src[last.at]; c == ')' || c == ']' || c == '}' {
				return false
			}
		case word:
			spaced := last.end < from && from+1 < len(s.src) && s.src[from+1] != ' '
			if s.src[last.at:last.end] != "return" && !(s.name == "rb" && spaced) {
				return false
			}
		}
	}
	class := false
	for i := from + 1; i < len(s.src) && s.src[i] != '\n'; i++ {
		switch c := s.src[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			for s.at = i + 1; s.at < len(s.src) && s.src[s.at] >= 'a' && s.src[s.at] <= 'z'; {
				s.at++
			}
			s.tokens = append(s.tokens, lexeme{kind: pattern, at: from, end: s.at, from: from + 1, to: i})
			return true
		}
	}
	return false
}

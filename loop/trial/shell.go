package trial

import (
	"iter"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"ralph/internal/lazy"
	display "ralph/internal/text"
)

// isShell reports whether a file is a script of a shell.
func isShell(name, src string) bool {
	switch path.Ext(name) {
	case ".sh", ".bash", ".bats", ".ksh", ".zsh", ".dash":
		return true
	case "", ".t":
		first, _, _ := strings.Cut(src, "\n")
		return shebang().MatchString(first)
	}
	return false
}

var shebang = lazy.Regexp(`^#!.*\b(?:ba|da|k|z)?sh\b`)

// A shellReading finds the expectations of a script.
type shellReading struct {
	src    string
	found  []expectation
	either []stretch // alternatives: a change may replace one by the other, so their conditions may change
	maybe  []stretch // conditions around commands: the files there may change
	denied []stretch // negated commands
}

// A stretch is a part of a text.
type stretch struct{ at, end int }

// inAny reports whether a place is in one of the stretches.
func inAny(list []stretch, at int) bool {
	return slices.ContainsFunc(list, func(s stretch) bool { return s.at <= at && at < s.end })
}

// choices notes the alternatives and conditions of a script.
func (r *shellReading) choices(file syntax.Node) {
	of := func(n syntax.Node) stretch { return stretch{int(n.Pos().Offset()), int(n.End().Offset())} }
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			switch {
			case n.Op == syntax.OrStmt && compares(n.X) && compares(n.Y):
				r.either = append(r.either, of(n))
			case n.Op == syntax.AndStmt && !compares(n.Y):
				r.maybe = append(r.maybe, of(n.X))
			}
		case *syntax.IfClause:
			for _, c := range n.Cond {
				r.maybe = append(r.maybe, of(c))
			}
		case *syntax.WhileClause:
			for _, c := range n.Cond {
				r.maybe = append(r.maybe, of(c))
			}
		case *syntax.Stmt:
			if n.Negated {
				r.denied = append(r.denied, of(n))
			}
		}
		return true
	})
}

// compares reports whether a part of a script has a comparison or a condition.
func compares(n syntax.Node) (is bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.TestClause:
			is = true
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				is = is || slices.Contains([]string{"test", "[", "grep", "egrep", "fgrep"}, n.Args[0].Lit())
			}
		}
		return !is
	})
	return is
}

// builtins are commands that compare nothing.
var builtins = lazy.Regexp(`^(?:echo|printf|cd|exit|return|set|export|local|source|\.|cat|rm|mkdir|cp|mv|` +
	`touch|sleep|kill|trap|sh|bash|python3?|node|ruby|php|perl|make|cc|gcc|go|cargo|awk|sed|cut|tr|head|tail|sort|wc|` +
	`env|eval|exec|run|plan|chmod|git|ln|read|shift|unset|true|false|:|declare|readonly|sudo|xargs|timeout|load|setup|` +
	`skip|fail|die|fatal|error|log)$`)

// maxNesting is the number of nested brackets and statements beyond which a script is not parsed.
const maxNesting = 10_000

// readShell returns the expectations of a script; none if it cannot be parsed.
func readShell(name, src string) []expectation {
	if display.Nested(src) > maxNesting {
		return nil
	}
	r := &shellReading{src: src}
	for _, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX} {
		if path.Ext(name) == ".bats" {
			lang = syntax.LangBats
		}
		file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(src), name)
		if err != nil {
			continue
		}
		r.choices(file)
		syntax.Walk(file, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				return r.call(n)
			case *syntax.WordIter:
				for _, w := range n.Items {
					if o, ok := r.literal(w, true); ok && strings.ContainsAny(r.src[o.at:o.end], " :,|") {
						r.row(o.at, o.end)
					}
				}
			case *syntax.Stmt:
				r.fed(n)
			case *syntax.BinaryTest:
				r.compared(n.X, n.Y, n.Op.String())
			case *syntax.BinaryArithm:
				switch n.Op {
				case syntax.Eql:
					r.compared(n.X, n.Y, n.Op.String())
				default:
				}
			}
			return true
		})
		break
	}
	return r.found
}

// keep adds an expectation that can be changed. One whose opposite may be expected names no equal value.
func (r *shellReading) keep(e expectation) {
	for i, o := range e.options {
		e.options[i].equal = o.equal && !inAny(r.maybe, o.at) && !inAny(r.denied, o.at)
	}
	if len(e.options) > 0 && !inAny(r.either, e.options[0].at) {
		r.found = append(r.found, e)
	}
}

// fed reads the lines that a loop is given.
func (r *shellReading) fed(n *syntax.Stmt) {
	if _, loop := n.Cmd.(*syntax.WhileClause); !loop {
		return
	}
	for _, d := range n.Redirs {
		if d.Hdoc == nil {
			continue
		}
		for at, line := range lines(r.src, int(d.Hdoc.Pos().Offset()), int(d.Hdoc.End().Offset())) {
			r.row(at, at+len(line))
		}
	}
}

// lines returns the lines that begin between two places in a text.
func lines(src string, from, to int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		if from < 0 || to > len(src) || from > to {
			return
		}
		for line := range strings.Lines(src[from:to]) {
			if !yield(from, line) {
				return
			}
			from += len(line)
		}
	}
}

// row reads a row of values, such as a line that a loop reads: the last one is expected.
func (r *shellReading) row(at, end int) {
	said := strings.TrimRight(r.src[at:end], "'\"\n")
	if last := strings.LastIndexAny(said, " \t:,|"); last > 0 && last+1 < len(said) {
		t := lexeme{kind: bare, at: at + last + 1, end: at + len(said)}
		r.keep(expectation{options: []option{{at: t.at, end: t.end, token: t, expected: true, equal: true}}})
	}
}

// compared reads a comparison of two words.
func (r *shellReading) compared(x, y syntax.Node, op string) {
	if slices.Contains([]string{"-nt", "-ot", "-ef"}, op) {
		return
	}
	var e expectation
	for _, side := range []syntax.Node{y, x} {
		if o, ok := r.literal(side, true); ok {
			e.options = append(e.options, o)
		}
	}
	if by, from := contrary[op], int(x.End().Offset()); by != "" && from <= int(y.Pos().Offset()) && len(e.options) > 0 {
		at := from + strings.Index(r.src[from:int(y.Pos().Offset())], op)
		o := option{swap: true, last: true, at: at, end: at + len(op), open: by}
		switch conditional := inAny(r.maybe, at) || inAny(r.denied, at); {
		case at < from:
		case conditional:
			e.options = append(e.options, o)
		case !slices.Contains([]string{"=", "==", "-eq"}, op):
			e.options = []option{o} // it holds for more values than it names
		}
	}
	for _, side := range []syntax.Node{y, x} {
		e.options = append(e.options, r.inputs(side)...)
	}
	r.keep(e)
}

// contrary maps operators to their opposites.
var contrary = map[string]string{
	"=": "!=", "==": "!=", "!=": "=", "-eq": "-ne", "-ne": "-eq", "-lt": "-ge", "-ge": "-lt", "-gt": "-le", "-le": "-gt",
}

// literal returns a word that is a literal alone; ok is false for others.
func (r *shellReading) literal(n syntax.Node, expected bool) (o option, ok bool) {
	w, ok := n.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		return o, false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if strings.ContainsAny(p.Value, `\*?[{~`) || p.Value == "" {
			return o, false
		}
	case *syntax.SglQuoted:
		if p.Dollar {
			return o, false
		}
	case *syntax.DblQuoted:
		for _, part := range p.Parts {
			if _, plain := part.(*syntax.Lit); !plain {
				return o, false
			}
		}
	default:
		return o, false
	}
	at, end := int(w.Pos().Offset()), int(w.End().Offset())
	if at < 0 || end > len(r.src) || at >= end {
		return o, false
	}
	return option{at: at, end: end, token: lexeme{kind: bare, at: at, end: end}, expected: expected, equal: expected}, true
}

// plainWord matches unquoted words that are values rather than options, programs or files.
var plainWord = lazy.Regexp(`^(?:-?\d+(?:\.\d+)?|'[^'/]*'|"[^"$/]*")$`)

// inputs returns the literals that commands within a word are given.
func (r *shellReading) inputs(n syntax.Node) (list []option) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			for i, w := range call.Args {
				if o, ok := r.literal(w, false); ok && i > 0 && plainWord().MatchString(r.src[o.at:o.end]) {
					list = append(list, o)
				}
			}
		}
		return true
	})
	slices.Reverse(list)
	return list
}

// call reads a command that compares; more reports whether there may be others within it.
func (r *shellReading) call(n *syntax.CallExpr) (more bool) {
	if len(n.Args) == 0 {
		for _, a := range n.Assigns {
			if a.Name != nil && wanted().MatchString(a.Name.Value) && a.Value != nil {
				if o, ok := r.literal(a.Value, true); ok {
					r.keep(expectation{options: []option{o}})
				}
			}
		}
		return true
	}
	name := n.Args[0].Lit()
	args := n.Args[1:]
	switch {
	case name == "test" || name == "[":
		r.test(args)
		return false
	case name == "grep" || name == "egrep" || name == "fgrep":
		for _, a := range args {
			if lit := a.Lit(); strings.HasPrefix(lit, "-") {
				continue
			}
			if o, ok := r.literal(a, true); ok {
				r.keep(expectation{options: []option{o}})
			}
			break
		}
		return false
	case name == "" || builtins().MatchString(path.Base(name)):
		return true
	}
	return r.helper(name, args)
}

// helper reads a command that compares a literal with a computed value; more reports whether it is
// none.
func (r *shellReading) helper(name string, args []*syntax.Word) (more bool) {
	var e expectation
	computes := false
	for _, a := range slices.Backward(args) {
		o, ok := r.literal(a, true)
		if !ok {
			computes = computes || computed(a)
			continue
		}
		said := r.src[o.at:o.end]
		if !strings.HasPrefix(said, "-") && !operators().MatchString(said) && !paths().MatchString(said) {
			o.expected = len(e.options) == 0 // the last part
			o.equal = o.expected
			e.options = append(e.options, o)
		}
	}
	if !computes && !asserts().MatchString(name) {
		return true
	}
	for _, a := range args {
		e.options = append(e.options, r.inputs(a)...)
	}
	r.keep(e)
	return false
}

// computed reports whether a command prints the text of a word.
func computed(w *syntax.Word) (is bool) {
	syntax.Walk(w, func(n syntax.Node) bool {
		_, sub := n.(*syntax.CmdSubst)
		is = is || sub
		return !is
	})
	return is
}

// paths matches unquoted words that look like the names of files.
var paths = lazy.Regexp(`^[^'"]*(?:/|[^\d'"]\.\w+$)`)

var operators = lazy.Regexp(`^['"]?(?:=|==|!=|<|>|-eq|-ne|-lt|-gt|-le|-ge|equals|is)['"]?$`)

// test reads the arguments of test: comparisons, and conditions on one word, which are negated.
func (r *shellReading) test(args []*syntax.Word) {
	for i, a := range args {
		switch op := a.Lit(); op {
		case "=", "==", "!=", "-eq", "-ne", "-lt", "-gt", "-le", "-ge":
			if i > 0 && i+1 < len(args) {
				r.compared(args[i-1], args[i+1], op)
			}
		case "-n", "-z", "-f", "-d", "-e", "-s", "-x", "-r":
			if i == 0 {
				at := int(a.Pos().Offset())
				if inAny(r.maybe, at) {
					continue
				}
				r.keep(expectation{options: []option{{wrap: true, at: at, end: at, open: "! "}}})
			}
		}
	}
}

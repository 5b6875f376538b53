package trial

import (
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// asserts matches names that tests use to state expectations; equals matches those for equal values. Methods are
// such names after a value that a runner gives to a test. Lines are the words of Ruby and Kotlin after the tested
// expression. boolean takes one value, and an optional message.
var (
	asserts = lazy.Regexp(
		`(?i)^(?:g_|ck_|cr_|test_|xct|munit_|lib)?assert|^(?:expect|refute|ensure|check|verify|must_|should)`,
		`(?i)^(?:same|equals?|eq|ok|is|like|want|cmp_ok)$|^is_?(?:deeply|equal|not)|^deep_?(?:equal|strict)`,
		`(?i)^(?:strict|not)_?equal|^require(?:_?true|_?false|_?equal|_eq$|_that$)`)
	faults  = lazy.Regexp(`(?:Error|Exception|Failed)$|^(?:hasA|a)ssertions$`)
	spoken  = lazy.Regexp(`^(?:true|false|truthy|falsy|match|throws|strictSame|not|notOk|null|undefined)$`) // of t
	matcher = lazy.Regexp(`^to[A-Z]`)
	near    = lazy.Regexp(`(?i)close_?to|approx`)
	full    = lazy.Regexp(`(?i)^(?:same|equals?|eq|ok|is|like|want)$`)
	equals  = lazy.Regexp(`(?i)eq|same|to_?be$|^is$|^is_deeply|^assert_?that|shouldbe|^be$|should$|is_?true|is_?false`)
	differs = lazy.Regexp(`(?i)not|differ|refute|(?:^|_)ne$`)
	methods = lazy.Regexp(`^(?:t|tap|assert|a|chai|self|this|expect|cy|test|[A-Z]\w*)$`)
	boolean = lazy.Regexp(
		`(?i)^(?:assert|ok|check|verify|ensure|expect|is_?true|is_?false|require|g_assert|assert_?that)!?$`,
		`(?i)(?:true|false|truthy|falsy|null|nil|none|empty)$`)
	ordered = lazy.Regexp(`(?i)less|greater|above|below|least|most|within|operator|not|differ|refute|(?:^|_)n[et]$`,
		`(?i)_[lg][et]$`)
	negated = lazy.Regexp(`^(?:assert|ok|check|CHECK|REQUIRE|verify|ensure|g_assert|ck_assert|debug_assert)$`)
	wanted  = lazy.Regexp(`(?i)^(?:want|wanted|expect|expected|expectation|exp|should_?be)` +
		`(?:s|_?(?:out|output|result|value|values))?$`)
	tables     = lazy.Regexp(`(?i)^(?:\w*(?:cases|tests|table|examples|samples|rows)|data|tt|each|parametrize|in|of)$`)
	attributes = lazy.Regexp(`^(?:InlineData|TestCase|DataRow)$`)
	labels     = lazy.Regexp(`(?i)^(?:name|desc|description|title|id|label|msg|message|path|file|filename|url)$`)
	declares   = lazy.Regexp(`^(?:def|func|function|fn|fun|void|int|bool|class|struct|sub|static|public|private)$`)
	controls   = lazy.Regexp(`__name__|__FILE__|^\$?arg[cv]$|^args$|^errno$|^typeof$|platform|version|^process$|^NULL$`)
	excepts    = map[string]bool{"delta": true, "places": true, "msg": true, "message": true, "timeout": true, "id": true}
)

// opposites maps each assertion to the opposite one of the same form.
var opposites = func() map[string]string {
	both := map[string]string{
		"assertTrue": "assertFalse", "assertIn": "assertNotIn", "assertIsNone": "assertIsNotNone",
		"assertIsInstance": "assertNotIsInstance", "assertNull": "assertNotNull", "assertContains": "assertNotContains",
		"assertEmpty": "assertNotEmpty", "isTrue": "isFalse", "assert_true": "assert_false", "ASSERT_TRUE": "ASSERT_FALSE",
		"EXPECT_TRUE": "EXPECT_FALSE", "toBeTruthy": "toBeFalsy", "toBeDefined": "toBeUndefined",
		"be_truthy": "be_falsey", "true": "false", "truthy": "falsy",
		"assert_includes": "refute_includes", "assert_empty": "refute_empty", "assert_nil": "refute_nil",
		"True": "False", "Nil": "NotNil", "Contains": "NotContains", "Empty": "NotEmpty", "NoError": "Error",
		"assertNotEqual": "assertEqual", "notEqual": "equal", "notStrictEqual": "strictEqual",
		"assert_not_equal": "assert_equal",
		"refute_equal":     "assert_equal", "refute": "assert",
		"assertLess": "assertGreaterEqual", "assertGreater": "assertLessEqual", "assertLessThan": "assertGreaterThanOrEqual",
		"assertGreaterThan": "assertLessThanOrEqual", "isLessThan": "isGreaterThanOrEqualTo",
		"isGreaterThan": "isLessThanOrEqualTo", "Less": "GreaterOrEqual", "Greater": "LessOrEqual",
		"assert_operator": "refute_operator", "EXPECT_LT": "EXPECT_GE", "EXPECT_GT": "EXPECT_LE", "ASSERT_LT": "ASSERT_GE",
		"ASSERT_GT": "ASSERT_LE", "assertNotEquals": "assertEquals", "assertNotSame": "assertSame",
		"assert_ne": "assert_eq", "NotEqual": "Equal", "isNull": "isNotNull", "isEmpty": "isNotEmpty", "notOk": "ok",
	}
	all := map[string]string{}
	for a, b := range both {
		all[a] = b
		if !differs().MatchString(a) || strings.Contains(a, "Null") {
			all[b] = a
		}
	}
	delete(all, "equal") // equality has a literal, or its opposite proves little
	return all
}()

// A reading finds the expectations of a source file.
type reading struct {
	l      *language
	src    string
	tokens []lexeme
	ends   []int // for a bracket, the index of the closing one; else 0
	found  []expectation
}

// read returns the expectations of a source file, in the order of its lines.
func read(l *language, src string) []expectation {
	r := &reading{l: l, src: src, tokens: scan(l, src)}
	r.match()
	r.walk(0, len(r.tokens))
	if len(r.found) == 0 {
		r.plain()
	}
	return r.found
}

// is returns the text of a token; "" for none.
func (r *reading) is(i int) string {
	if i < 0 || i >= len(r.tokens) {
		return ""
	}
	return r.src[r.tokens[i].at:r.tokens[i].end]
}

// kind returns the kind of a token; a newline for none.
func (r *reading) kind(i int) kind {
	if i < 0 || i >= len(r.tokens) {
		return newline
	}
	return r.tokens[i].kind
}

// match finds the pairs of brackets.
func (r *reading) match() {
	r.ends = make([]int, len(r.tokens))
	var open []int
	for i, t := range r.tokens {
		if t.kind != sign {
			continue
		}
		switch r.is(i) {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if n := len(open); n > 0 {
				r.ends[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
}

// walk finds expectations between two tokens.
func (r *reading) walk(i, end int) {
	for i < end {
		next := i + 1
		if r.kind(i) == word {
			switch {
			case r.l.name == "py" && r.is(i) == "assert":
				next = r.statement(i)
			case r.asserting(i):
				next = r.assertion(i)
			case wanted().MatchString(r.is(i)):
				next = r.assigned(i)
			case r.l.name == "js" && r.is(i) == "each" && r.kind(i+1) == text:
				r.template(r.tokens[i+1])
			case r.l.name == "js" && r.is(i) == "exports" && r.is(i+1) == "[" && r.is(i+3) == "]":
				next = r.assigned(i + 3) // a snapshot
			case r.l.name == "c" && attributes().MatchString(r.is(i)) && r.is(i+1) == "(":
				r.row(i+2, r.ends[i+1])
			case tables().MatchString(r.is(i)), r.is(i) == "for" && r.is(i-1) == ".",
				r.is(i) == "return" && r.l.name == "php": // of a data provider
				r.table(i)
			}
		} else if r.kind(i) == text && wanted().MatchString(r.src[r.tokens[i].from:r.tokens[i].to]) {
			next = r.assigned(i)
		}
		i = max(next, i+1)
	}
}

// asserting reports whether a name begins an assertion.
func (r *reading) asserting(i int) bool {
	name, before, after := r.is(i), r.is(i-1), r.is(i+1)
	if r.of(i) == "t" && spoken().MatchString(name) {
		return after == "("
	}
	if !asserts().MatchString(name) || faults().MatchString(name) || r.declared(i) {
		return false
	}
	lower := strings.ToLower(name)
	switch {
	case after == "." && faults().MatchString(r.is(i+2)):
		return false
	case full().MatchString(name) && (before == "." || before == "->"):
		return methods().MatchString(r.is(i-2)) && after == "("
	case full().MatchString(name) && after != "(" && !strings.Contains(lower, "eq") && lower != "same":
		return false
	case after == "(", after == "!" && r.is(i+2) == "(", after == "." && lower != "check" && lower != "verify",
		strings.HasPrefix(lower, "should"), strings.HasPrefix(lower, "must_"):
		return true
	}
	return r.bare() && r.kind(i+1) != newline && !strings.Contains("=,)", after) && !strings.HasPrefix(lower, "check")
}

// bare reports whether calls have no brackets.
func (r *reading) bare() bool { return r.l.name == "rb" || r.l.name == "pl" }

// of returns the name before a name's dot.
func (r *reading) of(i int) string {
	if r.is(i-1) != "." {
		return ""
	}
	return r.is(i - 2)
}

// declared reports whether a name is declared, after a keyword or a type.
func (r *reading) declared(i int) bool {
	before := r.is(i - 1)
	return r.kind(i-1) == word && (declares().MatchString(before) ||
		r.l.name == "c" && r.is(i+1) == "(" && before != "return" && before != "else")
}

// line returns the end of a statement: the end of its line, unless the next line continues with a dot. It ends at
// maxLine tokens, because each of thousands of open brackets may begin a statement.
func (r *reading) line(i int) int {
	for limit := min(len(r.tokens), i+maxLine); i < limit; {
		switch s := r.is(i); {
		case r.kind(i) == newline:
			n := i
			for r.kind(n) == newline && n < len(r.tokens) {
				n++
			}
			if r.is(n) != "." && r.is(n) != "->" && r.is(n) != "?." {
				return i
			}
			i = n
		case s == ";" || s == ")" || s == "]" || s == "}" || s == ",":
			return i
		case (s == "&&" || s == "||") && r.l.name != "rb":
			return i
		case r.ends[i] > i:
			i = r.ends[i]
		}
		i++
	}
	return i
}

// maxLine is the maximum number of tokens of a statement, outside of its brackets.
const maxLine = 1000

// statement reads an assertion that is a statement of Python.
func (r *reading) statement(i int) int {
	end := i + 1
	for end < len(r.tokens) && r.kind(end) != newline && r.is(end) != ";" {
		if r.ends[end] > end {
			end = r.ends[end]
		}
		end++
	}
	args := r.split(i+1, end)
	if len(args) == 0 {
		return end
	}
	e := r.ofArgs("assert", args[:1])
	if first := args[0]; (len(e.options) == 0 || !e.options[0].expected) && !r.fed(args[:1]) {
		from, to := r.tokens[first.from].at, r.tokens[first.to-1].end
		e.options = append([]option{{wrap: true, at: from, end: to, open: "not (", shut: ")"}}, e.options...)
	}
	if first := args[0]; r.several(first) {
		from, to := r.tokens[first.from].at, r.tokens[first.to-1].end
		e.options = append(e.options, option{wrap: true, last: true, at: from, end: to, open: "not (", shut: ")"})
	}
	r.keep(e)
	return end
}

// assertion reads an assertion by a call, with the rest of its chain, and returns where it ends.
func (r *reading) assertion(i int) int {
	name, at := i, i+1
	for r.is(at) == "." && r.kind(at+1) == word { // assert.strict.equal
		name, at = at+1, at+2
	}
	if r.is(at) == "!" {
		at++
	}
	var e expectation
	end := at
	switch {
	case r.is(at) == "(" && r.ends[at] > at:
		end = r.ends[at] + 1
		if r.blocks(at+1, end-1) {
			r.walk(at+1, end-1)
		} else {
			e = r.ofCall(name, r.split(at+1, end-1))
		}
	case strings.HasPrefix(r.is(i), "should") || strings.HasPrefix(r.is(i), "must_"):
	case r.is(at) == "{" && r.ends[at] > at && r.l.name == "rb":
		r.walk(at+1, r.ends[at])
		end = r.ends[at] + 1
	case r.kind(at) != newline && r.bare():
		end = r.line(at)
		stop := end
		for r.is(stop) == "," { // the line continues
			stop = r.line(stop + 1)
		}
		if r.blocks(at, stop) {
			return at
		}
		e = r.ofCall(name, r.split(at, stop))
		r.keep(e)
		return stop
	}
	if tail := r.line(end); tail > end && r.chains(end) {
		e = r.chained(e, end, tail)
		end = tail
	}
	r.keep(e)
	return end
}

// chains reports whether the next token continues with an assertion.
func (r *reading) chains(i int) bool {
	for r.kind(i) == newline && i < len(r.tokens) {
		i++
	}
	switch r.is(i) {
	case ".", "->", "?.", "::", "!":
		return true
	}
	return r.kind(i) != sign && (r.l.name == "rb" || r.l.name == "kt" || strings.HasPrefix(r.is(i-1), "should"))
}

// chained puts the expectations of a chain of calls, such as .toBe(3), before others.
func (r *reading) chained(e expectation, from, to int) expectation {
	var list, more, opposite []option
	fed := false
	for i := from; i < to; i++ {
		name := r.is(i)
		if o := r.turned(i); o.swap {
			more = append(more, o)
		}
		if r.kind(i) == word && r.is(i+1) == "(" && r.ends[i+1] > 0 && r.ends[i+1] < to {
			if r.blocks(i+2, r.ends[i+1]) {
				continue
			}
			args := r.split(i+2, r.ends[i+1])
			if o := r.opposed(i); o.swap {
				opposite = append(opposite, o)
			}
			fed = fed || len(args) > 0 && r.named(args[0])
			for _, o := range r.ofCall(i, args).options {
				o.expected = true
				if o.swap {
					more = append(more, o)
				} else {
					list = append(list, o)
				}
			}
			i = r.ends[i+1]
			continue
		}
		if by := opposites[name]; r.kind(i) == word && by != "" && truth[name] == "" && !r.turned(i).swap {
			more = append(more, option{swap: true, at: r.tokens[i].at, end: r.tokens[i].end, open: by})
		}
		if o := r.opposed(i); o.swap {
			opposite = append(opposite, o)
		}
		list = append(list, r.literals(i, i+1, true, true)...)
	}
	if len(list) > 0 { // their subject is an input
		for i := range e.options {
			e.options[i].expected, e.options[i].equal = false, false
		}
	}
	if !fed && len(more)+len(list) == 0 { // a replaced matcher notices its opposite, and no other value
		more = opposite
	}
	e.options = slices.Concat(list, more, e.options)
	return e
}

// named reports whether an argument is a name, whose value may be changed at its declaration.
func (r *reading) named(s span) bool {
	c := r.is(s.from)[:1]
	return r.kind(s.from) == word && strings.ToLower(c) == c && len(r.literals(s.from, s.to, true, true)) == 0
}

// opposed returns the opposite of a word in a JavaScript chain.
func (r *reading) opposed(i int) (o option) {
	o = option{at: r.tokens[i].at, end: r.tokens[i].end}
	switch name := r.is(i); {
	case r.l.name != "js" || r.kind(i) != word || r.is(i-2) == "not" || r.is(i+2) == "not":
	case name == "to" && r.is(i+1) == ".":
		o.swap, o.open = true, "to.not"
	case matcher().MatchString(name) && !strings.HasSuffix(name, "Snapshot"): // snapshots have none
		o.swap, o.open = true, "not."+name
	}
	return o
}

// turned returns the opposite of a chain's word that orders values or negates the chain.
func (r *reading) turned(i int) (o option) {
	o = option{last: true, at: r.tokens[i].at, end: r.tokens[i].end}
	switch name := r.is(i); {
	case r.kind(i) != word:
	case name == "not" && r.is(i+1) == ".":
		o.swap, o.end = true, r.tokens[i+1].end
	case name == "not_to" || name == "to_not":
		o.swap, o.open = true, "to"
	case name == "to" && r.l.name == "rb" && (r.is(i+1) == "be" || r.is(i+1) == "satisfy"):
		o.swap, o.open = true, "not_to"
	case r.l.name == "js" && ordered().MatchString(name) && strings.HasPrefix(name, "toBe") && r.is(i-2) != "not":
		o.swap, o.open = true, "not."+name
	}
	return o
}

// blocks reports whether there is code between two tokens, which may contain assertions.
func (r *reading) blocks(from, to int) bool {
	for i := from; i < to; i++ {
		switch r.is(i) {
		case "function", "lambda", "do", "|", ";", "fn":
			return true
		case "=>":
			if !r.bare() && r.l.name != "php" { // its place after keys
				return true
			}
		}
	}
	return false
}

// A span is from one token up to another.
type span struct{ from, to int }

// split returns the arguments between two tokens.
func (r *reading) split(from, to int) (list []span) {
	begin := from
	add := func(end int) {
		a := span{begin, end}
		for a.from < a.to && r.kind(a.from) == newline {
			a.from++
		}
		for a.to > a.from && r.kind(a.to-1) == newline {
			a.to--
		}
		if a.from < a.to {
			list = append(list, a)
		}
	}
	for i := from; i < to; i++ {
		if r.is(i) == "," {
			add(i)
			begin = i + 1
		} else if r.ends[i] > i {
			i = min(r.ends[i], to)
		}
	}
	add(to)
	return list
}

// ofCall returns the expectations of an assertion by its name and arguments.
func (r *reading) ofCall(name int, args []span) expectation {
	called := r.is(name)
	e := r.ofArgs(called, args)
	t := r.tokens[name]
	var swap []option
	if opposite := opposites[called]; opposite != "" && !r.fed(args) {
		last := ordered().MatchString(called) || slices.ContainsFunc(args, r.several)
		swap = append(swap, option{swap: true, last: last, at: t.at, end: t.end, open: opposite})
	} else if negated().MatchString(called) && len(args) > 0 && !r.message(args[0]) && !r.fed(args) {
		from, to := r.tokens[args[0].from].at, r.tokens[args[0].to-1].end
		swap = append(swap, option{wrap: true, last: r.several(args[0]), at: from, end: to, open: "!(", shut: ")"})
	}
	i := slices.IndexFunc(e.options, func(o option) bool { return !o.expected })
	switch {
	case differs().MatchString(called): // another difference would prove little
		e.options = append(swap, e.options...)
	case i < 0:
		e.options = append(e.options, swap...)
	default:
		e.options = slices.Insert(e.options, i, swap...)
	}
	return e
}

// ofArgs returns the literals in arguments: expected values first, then others. Messages are left out.
func (r *reading) ofArgs(name string, args []span) (e expectation) {
	same := equals().MatchString(name) && !differs().MatchString(name)
	args = r.compared(name, args)
	var inputs []option
	for _, a := range args {
		if r.kind(a.from) == word && (r.is(a.from+1) == "=" || r.is(a.from+1) == ":") {
			if excepts[r.is(a.from)] {
				continue
			}
			a.from += 2
		}
		sides, equal := r.sides(a)
		for _, s := range sides {
			switch {
			case r.pure(s) && len(sides) > 1:
				e.options = append(e.options, r.literals(s.from, s.to, true, equal)...)
			case r.pure(s):
				e.options = append(e.options, r.literals(s.from, s.to, true, same)...)
			default:
				inputs = append(inputs, r.literals(s.from, s.to, false, false)...)
			}
		}
	}
	if slices.Reverse(inputs); !r.fed(args) {
		e.options = append(e.options, inputs...)
	}
	return e
}

// compared returns the arguments of an assertion without messages, names and tolerances.
func (r *reading) compared(name string, args []span) []span {
	if len(args) > 1 && boolean().MatchString(name) && r.message(args[len(args)-1]) {
		args = args[:len(args)-1]
	}
	if len(args) > 2 && r.message(args[0]) && (r.pure(args[1]) || r.pure(args[2])) &&
		(r.l.name == "java" || !r.message(args[len(args)-1])) {
		args = args[1:] // the compared value follows its name
	}
	if len(args) > 2 && (r.pure(args[0]) || r.pure(args[1])) {
		args = args[:2]
	}
	if len(args) == 2 && near().MatchString(name) && r.pure(args[0]) {
		args = args[:1]
	}
	return args
}

// fed reports whether the compared values are elsewhere, where they are changed.
func (r *reading) fed(args []span) bool {
	for _, a := range args {
		for i := a.from; i < a.to; i++ {
			calls := r.is(i+1) == "(" || r.is(i) == "expect" && r.is(i+1) == "."
			if r.kind(i) == word && wanted().MatchString(r.is(i)) && !calls {
				return true
			}
		}
		sides, _ := r.sides(a)
		literal := func(s span) bool { return len(r.literals(s.from, s.to, false, false)) > 0 }
		if len(sides) > 1 && !slices.ContainsFunc(sides, literal) {
			return true
		}
	}
	return false
}

// sides returns the sides of the comparisons in an argument, and whether one is of equality.
func (r *reading) sides(a span) (list []span, equal bool) {
	begin := a.from
	for i := a.from; i < a.to; i++ {
		switch s := r.is(i); s {
		case "==", "===", "!=", "!==", "<", ">", "<=", ">=", "in", "is", "and", "or", "&&", "||", "=~":
			if r.kind(i) == word && r.l.name != "py" {
				continue
			}
			equal = equal || s == "==" || s == "===" || s == "is"
			list = append(list, span{begin, i})
			begin = i + 1
		default:
			if r.ends[i] > i {
				i = r.ends[i]
			}
		}
	}
	list = append(list, span{begin, a.to})
	return slices.DeleteFunc(list, func(s span) bool { return s.from >= s.to }), equal
}

// several reports whether a condition holds for more values than it names: it orders them, excludes them, or has an
// alternative that names none.
func (r *reading) several(a span) bool {
	begin, either := a.from, false
	names := func(s span) bool {
		sides, equal := r.sides(s)
		return len(sides) == 2 && (equal || r.l.name == "py") && (r.pure(sides[0]) || r.pure(sides[1]))
	}
	for i := a.from; i < a.to; i++ {
		switch r.is(i) {
		case "<", ">", "<=", ">=", "!=", "!==", "not":
			return true
		case "or", "||":
			either = true
			if !names(span{begin, i}) {
				return true
			}
			begin = i + 1
		default:
			if r.ends[i] > i && (i == a.from || r.kind(i-1) != word) && r.is(i) == "(" { // around a part of it
				if r.several(span{i + 1, min(r.ends[i], a.to)}) {
					return true
				}
			}
			if r.ends[i] > i {
				i = r.ends[i]
			}
		}
	}
	return either && !names(span{begin, a.to})
}

// constants are words for values.
var constants = lazy.Regexp(`^(?:[Tt]rue|[Ff]alse|None|nil|null|undefined|new|not|vec|String|from|to_string|array|` +
	`Some|Ok|List|of|asList|Arrays|Err|b|u8|i32|i64|u32|u64|f64|usize|int|long|float|double|str|bool|const|BigInt|Set|` +
	`Map|set|frozenset|dict|tuple|list|Decimal|Symbol|TRUE|FALSE|as_str|to_owned|to_vec|into)$`)

// pure reports whether a span has only literals and collections of them.
func (r *reading) pure(s span) bool {
	some := false
	for i := s.from; i < s.to; i++ {
		switch r.kind(i) {
		case number, text, char, pattern:
			some = true
		case word:
			key := r.is(i+1) == ":" || r.is(i+1) == "=>" || r.is(i+1) == "="
			if !constants().MatchString(r.is(i)) && !key {
				return false
			}
			some = some || truth[r.is(i)] != ""
		}
	}
	return some
}

// message reports whether an argument is a text alone.
func (r *reading) message(s span) bool {
	return s.to == s.from+1 && r.kind(s.from) == text ||
		s.to > s.from+1 && r.kind(s.from) == text && (r.is(s.from+1) == "." || r.is(s.from+1) == "+" || r.is(s.from+1) == "%")
}

// truth are the words for true and false, and their opposites.
var truth = map[string]string{
	"true": "false", "false": "true", "True": "False", "False": "True", "TRUE": "FALSE", "FALSE": "TRUE",
	"YES": "NO", "NO": "YES",
}

// literals returns the literals between two tokens.
func (r *reading) literals(from, to int, expected, equal bool) (list []option) {
	for i := max(from, 0); i < to && i < len(r.tokens); i++ {
		t := r.tokens[i]
		key := r.is(i+1) == ":" && r.l.name != "rb" && r.l.name != "c" || r.is(i+1) == "=>"
		if key && i+1 < to && t.kind != sign {
			continue
		}
		switch {
		case t.kind == number || t.kind == text || t.kind == char || t.kind == pattern:
		case t.kind == word && truth[r.is(i)] != "":
		default:
			continue
		}
		list = append(list, option{at: t.at, end: t.end, token: t, expected: expected, equal: expected && equal})
	}
	return list
}

// keep adds an expectation that can be changed.
func (r *reading) keep(e expectation) {
	if len(e.options) > 0 {
		r.found = append(r.found, e)
	}
}

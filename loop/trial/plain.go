package trial

// plain finds comparisons with literals in files without assertions, and calls with both a literal and a value that
// another call returns: helpers that assert have any name.
func (r *reading) plain() {
	for i := range r.tokens {
		switch s := r.is(i); {
		case (s == "==" || s == "!=" || s == "===" || s == "!==" || s == "<" || s == ">") && r.kind(i) == sign:
			if r.controls(i) {
				continue
			}
			var e expectation
			for _, side := range []int{i + 1, i - 1} {
				e.options = append(e.options, r.literals(side, side+1, true, s != "<" && s != ">")...)
			}
			if len(e.options) > 0 && (s == "<" || s == ">") && !r.conditional(i) {
				continue
			}
			if t := r.tokens[i]; s[0] == '=' && len(e.options) > 0 && r.conditional(i) { // it excludes the value
				e.options = append(e.options, option{swap: true, last: true, at: t.at, end: t.end, open: "!" + s[1:]})
			}
			r.keep(e)
		case s == "(" && r.kind(i-1) == word && r.ends[i] > i && r.begins(i-1):
			r.helper(i)
		}
	}
}

// begins reports whether a name, with the parts before its dots, begins a statement.
func (r *reading) begins(i int) bool {
	for r.is(i-1) == "." && r.kind(i-2) == word {
		i -= 2
	}
	before := r.is(i - 1)
	return r.kind(i-1) == newline || before == ";" || before == "{" || before == "}"
}

// controls reports whether a comparison decides on how a program runs: it is of its arguments, its name, or a loop's.
func (r *reading) controls(i int) bool {
	for n := i - 1; n >= 0 && n > i-30 && r.kind(n) != newline && r.is(n) != ";" && r.is(n) != "{"; n-- {
		if s := r.is(n); s == "for" || s == "while" || n > i-6 && controls().MatchString(s) {
			return true
		}
	}
	return controls().MatchString(r.is(i+1)) || controls().MatchString(r.is(i+3))
}

// conditional reports whether a comparison is part of a condition.
func (r *reading) conditional(i int) bool {
	for n := i - 1; n >= 0 && n > i-30 && r.kind(n) != newline; n-- {
		if s := r.is(n); s == "if" || s == "elif" || s == "unless" || s == "elsif" {
			return true
		}
	}
	return false
}

// helper reads a call in a statement that compares a literal with the result of another call.
func (r *reading) helper(i int) {
	if name := r.is(i - 1); declares().MatchString(name) || name == "print" || name == "echo" || r.is(r.ends[i]+1) == "{" {
		return
	}
	args := r.split(i+1, r.ends[i])
	calls := false
	var list []option
	for _, a := range args {
		if r.pure(a) {
			list = append(r.literals(a.from, a.to, true, true), list...)
		}
		for n := a.from; n < a.to; n++ {
			calls = calls || r.kind(n) == word && r.is(n+1) == "("
		}
	}
	if calls && len(list) > 0 && len(args) > 1 {
		r.keep(expectation{options: list})
	}
}

package trial

import (
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// assigned reads a value that a name such as want gets, and returns where it ends.
func (r *reading) assigned(i int) int {
	at := i + 1
	if r.is(at) == ":" && r.kind(at+1) == word && r.is(at+2) == "=" { // a type
		at += 2
	}
	switch r.is(at) {
	case "=", ":", ":=", "=>":
	default:
		return at
	}
	end := r.line(at + 1)
	if s := (span{at + 1, end}); end > at+1 && r.pure(s) {
		r.keep(expectation{options: r.literals(s.from, s.to, true, true)})
		return end
	}
	return at
}

// table reads rows of values after a name. From each it takes the value with a name such as want,
// else the last one.
func (r *reading) table(i int) {
	at := i + 1
	for ; at < len(r.tokens) && at < i+12 && r.kind(at) != newline; at++ {
		if s := r.is(at); r.ends[at] > at && r.rows(at) > 0 {
			break
		} else if s == ";" {
			return
		} else if r.ends[at] > at && s != "(" {
			at = r.ends[at]
		}
	}
	if at >= len(r.tokens) || r.ends[at] <= at {
		return
	}
	for row := at + 1; row < r.ends[at]; row++ {
		if r.ends[row] <= row {
			continue
		}
		r.row(row+1, r.ends[row])
		row = r.ends[row]
	}
}

// filler matches the values in a template.
var filler = lazy.Regexp(`\$\{([^}]*)\}`)

// template reads a table in a text. From each row it takes the value in the column with a name such
// as want, else the last one.
func (r *reading) template(t lexeme) {
	at, column, columns := t.from, -1, 0
	for line := range strings.SplitAfterSeq(r.src[t.from:t.to], "\n") {
		values := filler().FindAllStringSubmatchIndex(line, -1)
		if len(values) == 0 && columns == 0 {
			names := strings.Split(strings.TrimSpace(line), "|")
			columns = len(names) * min(1, len(names[0]))
			column = slices.IndexFunc(names, func(n string) bool { return wanted().MatchString(strings.TrimSpace(n)) })
			column = (column + columns) % max(1, columns)
		} else if len(values) == columns && columns > 0 {
			from, to := values[column][2], values[column][3]
			row := &reading{l: r.l, src: r.src, tokens: scan(r.l, line[from:to])}
			for i := range row.tokens {
				o := &row.tokens[i]
				o.at, o.end, o.from, o.to = o.at+at+from, o.end+at+from, o.from+at+from, o.to+at+from
			}
			r.keep(expectation{options: row.literals(0, len(row.tokens), true, true)})
		}
		at += len(line)
	}
}

// rows counts the bracketed rows between brackets.
func (r *reading) rows(at int) (n int) {
	if r.is(at) == "(" {
		return 0
	}
	for i := at + 1; i < r.ends[at]; i++ {
		if r.ends[i] > i {
			if r.kind(i-1) != word && len(r.split(i+1, r.ends[i])) > 1 || r.is(i-1) == "param" {
				n++
			}
			i = r.ends[i]
		}
	}
	return n
}

// row reads a row of a table.
func (r *reading) row(from, to int) {
	var last []option
	for _, a := range r.split(from, to) {
		key := ""
		for n := a.from; n < a.to && n < a.from+3; n++ {
			if s := r.is(n + 1); (s == ":" || s == "=" || s == "=>") && r.kind(n) != sign {
				key = strings.Trim(r.is(n), `"'`+"`")
				a.from = n + 2
				break
			}
		}
		if labels().MatchString(key) || excepts[key] || !r.pure(a) {
			continue
		}
		list := r.literals(a.from, a.to, true, true)
		if wanted().MatchString(key) {
			return // it is read by that name
		}
		if len(list) > 0 {
			last = append(list, last...)
		}
	}
	for i := range last {
		last[i].expected, last[i].equal = i == 0, false // it may be an input, too
	}
	r.keep(expectation{options: last})
}

// Package trial changes the expectations of tests, and judges the results: a test that passes with any expectation does
// not look at its subject (docs/gate.md). It is pure.
package trial

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// Rounds is the maximum number of mutants of a test.
const Rounds = 3

// Values is an additional round, in which all expected values are changed, and nothing else.
const Values = Rounds

// An expectation is an assertion or a comparison of a test, with its possible changes, the best first.
type expectation struct{ options []option }

// An option is a literal that can be changed, a name that can be swapped for its opposite, or a condition that can be
// negated.
type option struct {
	at, end    int // in the text
	token      lexeme
	expected   bool // the value that is expected, rather than an input
	last       bool // for the last round: more values are valid than are named, and the opposite fails for all of them
	equal      bool // an equal value is expected
	swap, wrap bool
	open, shut string // the replacement, or the text around it
}

// Expectations are the expectations of one file.
type Expectations struct {
	name string
	text string
	list []expectation
}

// Read finds the expectations of a test file. In an unknown language, or an unreadable file, it finds none.
func Read(name string, content []byte) Expectations {
	e := Expectations{name: name, text: string(content)}
	if len(content) == 0 || len(content) > maxText || strings.IndexByte(e.text, 0) >= 0 {
		return e
	}
	switch l := languageOf(name, e.text); {
	case path.Ext(name) == ".go":
		e.list = readGo(e.text)
	case l != nil:
		e.list = read(l, e.text)
	case isShell(name, e.text):
		e.list = readShell(name, e.text)
	}
	slices.SortStableFunc(e.list, func(a, b expectation) int { return a.options[0].at - b.options[0].at })
	return e
}

// maxText is the size of the largest file that is read, in bytes.
const maxText = 1 << 20

// Name returns the file's.
func (e Expectations) Name() string { return e.name }

// Rank returns a number for ordering files, determined by a seed.
func (e Expectations) Rank(seed string) uint64 { return draws(seed+"\x00"+e.name, -1) }

// Len returns the number of expectations.
func (e Expectations) Len() int { return len(e.list) }

// Firm returns the number of expectations that name the expected value.
func (e Expectations) Firm() (n int) {
	for _, x := range e.list {
		if slices.ContainsFunc(x.options, func(o option) bool { return o.expected && !o.swap }) {
			n++
		}
	}
	return n
}

// A splice replaces a part of a text.
type splice struct {
	at, end int
	by      string
}

// Mutant returns the file with one literal changed in each of the expectations in only, or in all of them if only is
// nil. The seed, the file and the round determine which, and how. It is nil if nothing can be changed.
func (e Expectations) Mutant(seed string, round int, only func(i int) bool) []byte {
	var list []splice
	own := fmt.Sprintf("%s\x00%s\x00%x", seed, e.name, sha256.Sum256([]byte(e.text)))
	last := 0
	for i, x := range e.list {
		if only != nil && !only(i) {
			continue
		}
		draw := draws(own, i)
		var edits []splice
		if round >= Rounds-1 {
			edits = e.changeAll(x, draw, round < Values)
		}
		if len(edits) == 0 {
			o, variant := x.choose(draw, round)
			edits = e.change(o, draw, variant)
		}
		if len(edits) == 0 || edits[0].at < last {
			continue // expectations overlap only in a malformed file
		}
		list, last = append(list, edits...), edits[len(edits)-1].end
	}
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	at := 0
	for _, s := range list {
		b.WriteString(e.text[at:s.at] + s.by)
		at = s.end
	}
	b.WriteString(e.text[at:])
	return []byte(b.String())
}

// draws returns a number that a seed and a place determine.
func draws(seed string, i int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", seed, i))
	return binary.BigEndian.Uint64(sum[:])
}

// choose returns the option of a round, and how often it was chosen before. The first is an expected value, if there
// is one.
func (x expectation) choose(draw uint64, round int) (o option, variant int) {
	n := slices.IndexFunc(x.options, func(o option) bool { return !o.expected })
	if n < 0 {
		n = len(x.options)
	}
	order := slices.DeleteFunc(slices.Clone(x.options), func(o option) bool { return o.last && o.wrap })
	if len(order) > 0 && order[0].equal && !slices.ContainsFunc(order, func(o option) bool { return o.last }) {
		order = slices.DeleteFunc(order, func(o option) bool { return !o.equal }) // another input may break code
	}
	if len(order) == 0 {
		order = x.options
	}
	n = min(n, len(order))
	if n > 1 { // expected values are equally good
		by := int(draw % uint64(n))
		order = slices.Concat(order[by:n], order[:by], order[n:])
	}
	return order[round%len(order)], round / len(order)
}

// changeAll changes all expected values, so that a test which accepts one of several fails in any case. With
// opposites, a condition that permits more values than it names is replaced by its opposite. It is nil if neither is
// possible.
func (e Expectations) changeAll(x expectation, draw uint64, opposites bool) (edits []splice) {
	var values, all []option
	was := map[string]bool{}
	for _, o := range x.options {
		if o.last && opposites {
			return e.change(o, draw, 0)
		}
		if !o.swap && !o.wrap {
			all = append(all, o)
			was[e.text[o.at:o.end]] = true
			if o.expected {
				values = append(values, o)
			}
		}
	}
	if len(values) == 0 {
		values = all
	}
	if len(values) < 2 {
		return nil
	}
	slices.SortFunc(values, func(a, b option) int { return a.at - b.at })
	for _, o := range values {
		for variant := range mostVariants {
			made := e.change(o, draw, Rounds+variant)
			if len(made) == 1 && !was[made[0].by] || o.token.kind == word {
				edits = append(edits, made...)
				break
			}
		}
	}
	return edits
}

// mostVariants is the maximum number of other values that are tried while they equal one of the
// changed ones.
const mostVariants = 50

// change returns how an option is changed; nil if it cannot be.
func (e Expectations) change(o option, draw uint64, variant int) []splice {
	switch {
	case o.wrap:
		return []splice{{o.at, o.at, o.open}, {o.end, o.end, o.shut}}
	case o.swap:
		return []splice{{o.at, o.end, o.open}}
	}
	was := e.text[o.at:o.end]
	var by string
	switch o.token.kind {
	case word:
		by = truth[was]
	case number:
		by = changedNumber(was, draw, variant)
	case char:
		by = changedChar(was)
	case text, pattern:
		if content := e.text[o.token.from:o.token.to]; strings.Contains(content, "|") { // perhaps a pattern
			by = was[:o.token.from-o.at] + "(?:" + content + ")" + letter(draw, variant, true) + was[o.token.to-o.at:]
			break
		}
		by = was[:o.token.to-o.at] + letter(draw, variant, o.token.filled || o.token.kind == pattern) + was[o.token.to-o.at:]
	default:
		by = changedWord(was, draw, variant)
	}
	if by == was {
		return nil
	}
	return []splice{{o.at, o.end, by}}
}

// letter returns a character to add to a text: another kind in each variant. After a placeholder it is not a letter,
// which would extend the placeholder's name.
func letter(draw uint64, variant int, filled bool) string {
	kinds := []string{"qxzjk", "7394", "~;_"}
	if filled {
		kinds = []string{"~;", ":,", "@;"}
	}
	set := kinds[variant%len(kinds)]
	return set[draw%uint64(len(set)):][:1]
}

// digits matches a number up to its fraction, exponent or suffix.
var digits = lazy.Regexp(`^(\d[\d_]*)(.*)$`)

// changedNumber returns another number of the same form: larger or smaller by one, in later
// variants by more.
func changedNumber(was string, draw uint64, variant int) string {
	if len(was) > 1 && was[0] == '0' && strings.IndexByte("xXbBoO0123456789", was[1]) >= 0 {
		i := strings.LastIndexAny(was, "0123456789abcdefABCDEF") // another last digit
		by := "1"
		if c := was[i]; c == '1' {
			by = "0"
		} else if c > '1' && was[1] != 'b' {
			by = string(rune('1' + (c-'1'+1)%7))
		}
		return was[:i] + by + was[i+1:]
	}
	if strings.HasPrefix(was, ".") {
		return "1" + was
	}
	m := digits().FindStringSubmatch(was)
	if m == nil {
		return was
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(m[1], "_", ""), 10)
	if !ok {
		return was
	}
	delta := int64(1)
	if variant > 0 {
		delta = int64(variant) + 1 + int64(draw%5)
	}
	by := big.NewInt(delta)
	edge := new(big.Int).And(n, new(big.Int).Add(n, big.NewInt(1))).Sign() == 0 && n.BitLen() > 6 // 127, 255, …
	if less := new(big.Int).Sub(n, by); less.Sign() >= 0 && (edge || n.BitLen() > 30 || draw%2 == 0 && less.Sign() > 0) {
		return less.String() + m[2]
	}
	return new(big.Int).Add(n, by).String() + m[2]
}

// changedChar returns another character of the same form.
func changedChar(was string) string {
	switch content := was[1 : len(was)-1]; content {
	case `\n`:
		return `'\t'`
	case "q":
		return "'z'"
	}
	return "'q'"
}

// changedWord returns another word of a shell, in the same form: a number, or a text with or
// without quotes.
func changedWord(was string, draw uint64, variant int) string {
	if digits().MatchString(was) && strings.Trim(was, "0123456789.") == "" {
		return changedNumber(was, draw, variant)
	}
	if len(was) > 1 && (was[0] == '\'' || was[0] == '"') {
		content := was[1 : len(was)-1]
		if content != "" && strings.Trim(content, "0123456789") == "" {
			return was[:1] + changedNumber(content, draw, variant) + was[len(was)-1:]
		}
		return was[:len(was)-1] + letter(draw, variant, false) + was[len(was)-1:]
	}
	return was + letter(draw, variant%2, false)
}

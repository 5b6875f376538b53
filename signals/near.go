package signals

import (
	"slices"
	"strings"
	"unicode"

	"ralph"
)

// learnings is rule 8: it merges the session's learnings with known ones
// and with each other. A repetition raises the count of the learning that
// it repeats, and replaces its text if it has more words.
func learnings(f Facts) []Learn {
	var out []Learn
	read := reader{}
	for _, s := range f.Said {
		p, ok := s.Payload.(Learned)
		if !ok {
			continue
		}
		l := Learn{
			Comments:  []int64{s.ID},
			Text:      strings.TrimSpace(p.Text),
			Kind:      p.Kind,
			Scope:     p.EffectiveScope(),
			Rationale: strings.TrimSpace(p.Rationale),
		}
		l.Claim = Claims(l.Text + "\n" + l.Rationale)
		if i := slices.IndexFunc(out, func(o Learn) bool { return o.Scope == l.Scope && read.near(o.Text, l.Text) }); i >= 0 {
			out[i].Comments = append(out[i].Comments, s.ID)
			out[i].Text, out[i].Rationale = fuller(out[i].Text, l.Text), fuller(out[i].Rationale, l.Rationale)
			out[i].Claim = out[i].Claim || l.Claim
			continue
		}
		out = append(out, merged(f, l, read))
	}
	return out
}

// merged compares a learning with the known ones for the same audience. It counts
// for the first one that says the same; those that say the contrary are recorded.
func merged(f Facts, l Learn, read reader) Learn {
	known := slices.DeleteFunc(slices.Clone(f.Known), func(k ralph.Learning) bool {
		return !sameAudience(f.Task, k, l.Scope)
	})
	same, contrary := against(l.Text, known, read)
	if same != nil {
		l.Into, l.Text, l.Rationale = same.ID, fuller(same.Text, l.Text), fuller(same.Rationale, l.Rationale)
	}
	l.Contradicts = contrary
	return l
}

// Against returns the first known learning that says the same as a text.
// If there is none, it returns the ids of those that say the contrary.
func Against(text string, known []ralph.Learning) (same *ralph.Learning, contrary []int64) {
	return against(text, known, reader{})
}

func against(text string, known []ralph.Learning, read reader) (same *ralph.Learning, contrary []int64) {
	said := read.of(text)
	for i, k := range known {
		other := read.of(k.Text)
		if !alike(other, said) {
			continue
		}
		switch compare(other.tokens(), said.tokens()) {
		case Repeats:
			return &known[i], nil
		case Contradicts:
			contrary = append(contrary, k.ID)
		}
	}
	return nil, contrary
}

// headLetters is the number of letters compared first: stems differ after them.
const headLetters = 4

// headOf returns the first letters of a word, in lower case.
func headOf(w string) string {
	w = strings.TrimLeft(w, "`*_\"'([{")
	return strings.ToLower(w[:min(len(w), headLetters)])
}

// A reader prepares each text for comparison once: a session may report many learnings, and each is compared
// with all the others.
type reader map[string]*prepared

// A prepared is a text with what comparisons need of it.
type prepared struct {
	text  string
	words int
	heads map[string]int
	said  *tokens // nil until a full comparison needs it
}

func (r reader) of(text string) *prepared {
	p := r[text]
	if p == nil {
		p = &prepared{text: text, heads: map[string]int{}}
		for w := range strings.FieldsSeq(text) {
			p.words++
			p.heads[headOf(w)]++
		}
		r[text] = p
	}
	return p
}

func (r reader) near(a, b string) bool {
	return alike(r.of(a), r.of(b)) && compare(r.of(a).tokens(), r.of(b).tokens()) == Repeats
}

func (p *prepared) tokens() tokens {
	if p.said == nil {
		t := tokenise(p.text)
		p.said = &t
	}
	return *p.said
}

// alike reports whether enough words of a text begin alike to make a full
// comparison worthwhile. This rules out nearly all of thousands of known learnings.
func alike(a, b *prepared) bool {
	common := 0
	for head, n := range a.heads {
		if b.heads[head] > 0 {
			common += n
		}
	}
	return 3*common >= min(a.words, len(b.heads))
}

// sameAudience reports whether a known learning goes into the same prompts
// as one with this scope from a session of the task.
func sameAudience(t Task, k ralph.Learning, scope string) bool {
	if k.Scope != scope {
		return false
	}
	switch scope {
	case ralph.ScopeFeature:
		return k.Feature == t.Feature
	case ralph.ScopeTask:
		return k.TaskID == t.ID
	}
	return true
}

// taughtNew reports whether any learning is new. That counts as a change
// by the session (docs/pipeline.md, "Stagnation").
func taughtNew(ls []Learn) bool {
	return slices.ContainsFunc(ls, func(l Learn) bool { return l.Into == 0 })
}

// fuller returns the text with more words, or the old one if they have the same number.
func fuller(old, new string) string {
	if len(words(new)) > len(words(old)) {
		return new
	}
	return old
}

// A Relation says how two texts relate.
type Relation string

// The relations of two texts.
const (
	Unrelated   Relation = ""
	Repeats     Relation = "repeats"     // they say the same, or one says it more fully
	Contradicts Relation = "contradicts" // the same words except for a negation or an opposite
)

// Compare tells repetitions from contradictions by words alone. It is
// cautious: two entries for one fact cost a line in a prompt, while two
// facts merged into one lose a fact (docs/learnings.md has measurements).
func Compare(a, b string) Relation { return compare(tokenise(a), tokenise(b)) }

// The shares of common words from which texts are the same or opposite; of common pairs of neighbours; and of the
// shorter text's words in the longer one.
const (
	sameShare     = 0.7
	oppositeShare = 0.6
	orderShare    = 0.3
	insideShare   = 0.95
	insideWords   = 4
)

// tokens is a text prepared for comparison.
type tokens struct {
	raw    string          // the text in lower case
	text   string          // its words
	order  []string        // all stems that carry meaning, in order
	set    map[string]bool // those that are neither a negation nor an opposite
	base   map[string]bool // those of set that are not part of an exact name
	marks  map[string]bool // exact names: words with a digit, paths, flags and the like
	fields map[string]bool // what stands between blanks
	turned bool            // an odd number of negations
	sides  map[int]int     // opposites: by pair, the sides that the text has
}

func tokenise(text string) tokens {
	t := tokens{
		raw:    strings.ToLower(strings.TrimSpace(text)),
		text:   strings.Join(words(text), " "),
		order:  stems(text),
		set:    map[string]bool{},
		base:   map[string]bool{},
		marks:  map[string]bool{},
		fields: map[string]bool{},
		sides:  map[int]int{},
	}
	opposed := map[string]bool{}
	for _, w := range words(text) {
		if negations[w] {
			t.turned = !t.turned
			opposed[w] = true
		}
		for _, s := range sideOf[w] {
			t.sides[s[0]] |= 1 << s[1]
			opposed[w] = true
		}
	}
	var unnamed []string
	for name := range strings.FieldsSeq(text) {
		name = strings.Trim(name, ".,;:!?()[]{}\"'`*_")
		t.fields[strings.ToLower(name)] = true
		if exactName(name) {
			t.marks[strings.ToLower(name)] = true
			continue
		}
		unnamed = append(unnamed, name)
	}
	keep := func(set map[string]bool, text string) {
		var plain []string
		for _, w := range words(text) {
			if !opposed[w] {
				plain = append(plain, w)
			}
		}
		for _, w := range stems(strings.Join(plain, " ")) {
			set[w] = true
		}
	}
	keep(t.set, text)
	keep(t.base, strings.Join(unnamed, " "))
	return t
}

// exactName reports whether every character of a word matters: versions,
// ports, paths, flags, names in code.
func exactName(w string) bool {
	if w == "" {
		return false
	}
	return strings.IndexFunc(w, unicode.IsDigit) >= 0 ||
		strings.ContainsAny(w, "/_=<>@$\\") ||
		strings.HasPrefix(w, "--") ||
		strings.Contains(w[1:], ".") ||
		strings.IndexFunc(w[1:], unicode.IsUpper) >= 0 && strings.IndexFunc(w, unicode.IsLower) >= 0
}

func compare(a, b tokens) Relation {
	if a.text == b.text || goesOn(a, b) || goesOn(b, a) {
		return Repeats
	}
	if len(a.set) == 0 || len(b.set) == 0 {
		return Unrelated
	}
	share, common := shared(a.set, b.set)
	turned, named := a.turned != b.turned || opposed(a, b), differ(a, b)
	switch {
	case turned && named == bothDiffer:
		return Unrelated
	case turned:
		if share >= oppositeShare && common+agreed(a, b) >= 2 {
			return Contradicts
		}
		return Unrelated
	case named == bothDiffer: // they speak of different things, such as module 1 and module 2
		return Unrelated
	case neighbours(a.order, b.order) < orderShare || lacks(a, b) && lacks(b, a):
		return Unrelated
	case named == same && share >= sameShare:
		return Repeats
	}
	shorter, longer := a, b
	if len(a.set) > len(b.set) {
		shorter, longer = b, a
	}
	if n := len(shorter.set); n >= insideWords && float64(common) >= insideShare*float64(n) &&
		(within(shorter, longer) || n == len(longer.set) && within(longer, shorter)) {
		return Repeats
	}
	return Unrelated
}

// goesOn reports whether the longer text continues the shorter one after a punctuation mark.
func goesOn(shorter, longer tokens) bool {
	rest, ok := strings.CutPrefix(longer.raw, strings.TrimRight(shorter.raw, ".!"))
	return ok && len(shorter.set) > 0 && rest != "" && strings.ContainsRune(",;:.", rune(rest[0]))
}

// shared returns the share of words that two sets have in common, and their number.
func shared(a, b map[string]bool) (share float64, common int) {
	for w := range a {
		if b[w] {
			common++
		}
	}
	return float64(common) / float64(max(len(a)+len(b)-common, 1)), common
}

// lacks reports whether b lacks something that a says. If each text lacks something of the
// other, a word was replaced, which makes it a different fact, however long the rest is.
func lacks(a, b tokens) bool {
	for w := range a.base {
		if !b.base[w] {
			return true
		}
	}
	for pair := range a.sides {
		if _, ok := b.sides[pair]; !ok {
			return true
		}
	}
	return false
}

// agreed counts the pairs of opposites in which both texts have the same side.
func agreed(a, b tokens) (n int) {
	for pair, side := range a.sides {
		if b.sides[pair] == side {
			n++
		}
	}
	return n
}

// opposed reports whether the texts have different sides of a pair of opposites.
func opposed(a, b tokens) bool {
	for pair, side := range a.sides {
		if other, ok := b.sides[pair]; ok && side != other && side != 3 && other != 3 {
			return true
		}
	}
	return false
}

// A difference says how the exact names of two texts differ.
type difference int

const (
	same       difference = iota
	oneHasMore            // one text names everything that the other names
	bothDiffer            // each names something that the other does not
)

func differ(a, b tokens) difference {
	lack := func(x, y tokens) bool {
		for w := range x.marks {
			if !y.fields[w] {
				return true
			}
		}
		return false
	}
	switch onlyA, onlyB := lack(a, b), lack(b, a); {
	case onlyA && onlyB:
		return bothDiffer
	case onlyA || onlyB:
		return oneHasMore
	}
	return same
}

// within reports whether the longer text has all names of the shorter one,
// and no condition that the shorter one lacks.
func within(shorter, longer tokens) bool {
	for m := range shorter.marks {
		if !longer.fields[m] {
			return false
		}
	}
	for pair := range longer.sides {
		if _, ok := shorter.sides[pair]; !ok {
			return false
		}
	}
	return true
}

// neighbours returns the share of neighbouring word pairs that two texts have in
// common, relative to the text with fewer pairs: "A calls B" is not "B calls A".
func neighbours(a, b []string) float64 {
	pairs := func(list []string) map[[2]string]bool {
		set := map[[2]string]bool{}
		for i := 1; i < len(list); i++ {
			set[[2]string{list[i-1], list[i]}] = true
		}
		return set
	}
	pa, pb := pairs(a), pairs(b)
	if len(pa) == 0 || len(pb) == 0 {
		return 1
	}
	common := 0
	for p := range pa {
		if pb[p] {
			common++
		}
	}
	return float64(common) / float64(min(len(pa), len(pb)))
}

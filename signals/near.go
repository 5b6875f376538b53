package signals

import (
	"slices"
	"strings"
	"unicode"

	"ralph"
)

// learnings is rule 8: what the session learned, merged with what is known and
// with itself. A repetition raises the count of what it repeats; one with more
// words replaces its text.
func learnings(f Facts) []Learn {
	var out []Learn
	for _, s := range f.Said {
		p, ok := s.Payload.(Learned)
		if !ok {
			continue
		}
		l := Learn{Comments: []int64{s.ID}, Text: strings.TrimSpace(p.Text), Kind: p.Kind, Scope: p.EffectiveScope(), Rationale: strings.TrimSpace(p.Rationale)}
		if l.Scope == ralph.ScopeFeature && f.Task.Feature == "" {
			// Without a feature there is nobody else to tell it to.
			l.Scope = ralph.ScopeTask
		}
		if i := slices.IndexFunc(out, func(o Learn) bool { return o.Scope == l.Scope && Near(o.Text, l.Text) }); i >= 0 {
			out[i].Comments = append(out[i].Comments, s.ID)
			out[i].Text, out[i].Rationale = fuller(out[i].Text, l.Text), fuller(out[i].Rationale, l.Rationale)
			continue
		}
		for _, k := range f.Known {
			if sameAudience(f.Task, k, l.Scope) && Near(k.Text, l.Text) {
				l.Into, l.Text, l.Rationale = k.ID, fuller(k.Text, l.Text), fuller(k.Rationale, l.Rationale)
				break
			}
		}
		out = append(out, l)
	}
	return out
}

// sameAudience reports whether a known learning goes into the same prompts as
// one of this scope that the task's session learned.
func sameAudience(t ralph.Task, k ralph.Learning, scope string) bool {
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

// taughtNew reports whether any of it was not known before; that counts as a
// change of the session (docs/pipeline.md, "Stagnation").
func taughtNew(ls []Learn) bool {
	return slices.ContainsFunc(ls, func(l Learn) bool { return l.Into == 0 })
}

// fuller is the text that says more; the older one if they say as much.
func fuller(old, new string) string {
	if len(words(new)) > len(words(old)) {
		return new
	}
	return old
}

// nearEnough is the share of common words from which two texts count as one. It
// is on the careful side: two entries for one thing cost a line in a prompt, two
// things merged into one cost a fact.
const nearEnough = 0.8

// negations turn a sentence around without changing much of its words.
var negations = map[string]bool{
	"no": true, "not": true, "never": true, "none": true, "without": true, "cannot": true,
	"neither": true, "nor": true, "isnt": true, "arent": true, "dont": true, "doesnt": true, "didnt": true, "cant": true,
	"wont": true, "shouldnt": true, "mustnt": true, "wasnt": true, "werent": true, "forbids": true, "forbidden": true,
	"disallowed": true, "disabled": true, "unsupported": true,
}

// Near reports whether two texts say the same in nearly the same words: they
// share most of their words, and neither negates nor counts what the other does not.
func Near(a, b string) bool {
	wa, wb := wordSet(a), wordSet(b)
	if len(wa) == 0 || len(wb) == 0 {
		return len(wa) == len(wb) && strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	common := 0
	for w := range wa {
		if wb[w] {
			common++
		} else if decisive(w) {
			return false
		}
	}
	for w := range wb {
		if !wa[w] && decisive(w) {
			return false
		}
	}
	return float64(common) >= nearEnough*float64(len(wa)+len(wb)-common)
}

// decisive words may not differ between two texts that say the same.
func decisive(w string) bool {
	return negations[w] || strings.IndexFunc(w, unicode.IsDigit) >= 0
}

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words(s) {
		set[w] = true
	}
	return set
}

// words are the runs of letters and digits of a text in lower case; an
// apostrophe within a word is left out, so that "don't" is one word.
func words(s string) []string {
	s = strings.NewReplacer("'", "", "’", "").Replace(strings.ToLower(s))
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

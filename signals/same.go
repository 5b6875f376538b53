package signals

import (
	"slices"
	"strings"
	"unicode"

	"ralph"
)

// learnings applies rule 8: it merges the session's learnings with known ones and with each other. A repetition raises
// the count of the learning that it repeats, and replaces its text if it has more words.
func learnings(f Facts) []Learn {
	var out []Learn
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
		if i := slices.IndexFunc(out, func(o Learn) bool { return o.Scope == l.Scope && Same(o.Text, l.Text) }); i >= 0 {
			out[i].Comments = append(out[i].Comments, s.ID)
			out[i].Text, out[i].Rationale = fuller(out[i].Text, l.Text), fuller(out[i].Rationale, l.Rationale)
			out[i].Claim = out[i].Claim || l.Claim
			continue
		}
		known := slices.DeleteFunc(slices.Clone(f.Known), func(k ralph.Learning) bool {
			return !sameAudience(f.Task, k, l.Scope)
		})
		if same := Repeated(l.Text, known); same != nil {
			l.Into, l.Text, l.Rationale = same.ID, fuller(same.Text, l.Text), fuller(same.Rationale, l.Rationale)
		}
		out = append(out, l)
	}
	return out
}

// Repeated returns the first of some learnings with the same meaning as a text; nil if there is
// none.
func Repeated(text string, known []ralph.Learning) *ralph.Learning {
	said := wordsOf(text)
	for i, k := range known {
		if same(said, wordsOf(k.Text)) {
			return &known[i]
		}
	}
	return nil
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
// by the session (docs/outcomes.md, rule 3).
func taughtNew(ls []Learn) bool {
	return slices.ContainsFunc(ls, func(l Learn) bool { return l.Into == 0 })
}

// fuller returns the text with more words, or the old one if they have the same number.
func fuller(old, new string) string {
	if len(wordsOf(new)) > len(wordsOf(old)) {
		return new
	}
	return old
}

// Same reports whether two texts mean the same: they have the same words in the same order, or one continues
// after a pause where the other ends. In any language one more word can reverse a sentence, so anything less
// similar counts as different.
func Same(a, b string) bool { return same(wordsOf(a), wordsOf(b)) }

func same(a, b []word) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := len(a)
	return n > 0 && slices.EqualFunc(a, b[:n], func(x, y word) bool { return x.text == y.text }) &&
		(len(b) == n || b[n-1].pauses)
}

// A word of a text, in its form for comparison.
type word struct {
	text   string
	pauses bool // a punctuation mark follows
}

const (
	pauses  = ".,;:!?。，、；：！？"
	closing = pauses + "\"'`)»”’“"
	opening = "\"'`(«“„‘"
)

// spaced separates the sentences of scripts that put no blank between them, and removes Markdown's emphasis.
var spaced = strings.NewReplacer("**", "", "。", "。 ", "，", "， ", "、", "、 ", "；", "； ", "：", "： ", "！", "！ ", "？", "？ ")

// wordsOf splits a text into words without the punctuation and quotes around them. Words of letters alone are
// lower-cased; case distinguishes others, such as flags and names in code.
func wordsOf(text string) (list []word) {
	for field := range strings.FieldsSeq(spaced.Replace(text)) {
		core := strings.TrimRight(strings.TrimLeft(field, opening), closing)
		_, after, _ := strings.Cut(field, core)
		mark := core == "" || core == "–" || core == "—"
		if (mark || strings.HasPrefix(field, "(")) && len(list) > 0 {
			list[len(list)-1].pauses = true
		}
		if mark {
			continue
		}
		if strings.IndexFunc(core, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) < 0 {
			core = strings.ToLower(core)
		}
		list = append(list, word{core, strings.ContainsAny(after, pauses)})
	}
	return list
}

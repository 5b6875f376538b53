// Package prompt makes the text that a session's agent begins with. The agent
// can read nothing else of ralph's, so whatever it is to know stands in it.
//
// It is pure. It never asks a database, a file or a clock, never ranks, and
// never decides what a task may see: that arrives as [Data]. It guarantees that
// the same data make the same bytes; that no text of an agent or a person can
// pass for ralph's own or end the fence in which it is quoted; that the budget
// is kept by leaving out in a fixed order; and that the task, the answers, what
// remains of it, what people said since its last session and blocking flags are
// there whole, whatever the budget.
//
// Texts of the task and of its discipline are fenced like all the others. They
// are what the agent is to do, and the rules say so; the fence shows where they
// end, so that a task that was pasted from elsewhere, or suggested by an agent,
// cannot go on as if it were ralph. Only the task's title stands outside, made
// one line, at the end of a heading that begins with ralph's words.
package prompt

import (
	"sort"
	"strings"
)

// A Prompt is the text of a prompt and what there is to say about it.
type Prompt struct {
	Text     string
	Sections []SectionSize // in the order of the text; together they are the text
	Err      error         // why the project's template could not make it; nil otherwise
	LeftOut  []string      // what the budget had no room for, for people: "7 of 9 files"; empty if all is there

	// TooLong is why no session should begin with it: what people said since the
	// last one, or a blocking flag, has no room. It is empty if all has.
	TooLong string
}

// A SectionSize is how much of a prompt one section takes.
type SectionSize struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens"` // an estimate
}

// sections makes the sections of a prompt in their order: what changes least
// from session to session comes first, so that the model's prompt cache holds
// (docs, "The prompt").
func sections(d Data) []section {
	return []section{
		role(d),
		discipline(d),
		learnings(d),
		task(d),
		answers(d),
		continuation(d),
		problems(d),
		comments(d),
		files(d),
		checkpoint(d),
	}
}

// Build makes the prompt of a task's next session. A section with nothing in it
// is left out. If what is never shortened exceeds the budget by itself it is
// kept all the same, and LeftOut says so.
func Build(d Data) Prompt {
	p := newPlan(sections(d))
	p.beyond = d.LearningsBeyond
	if d.Template != nil {
		return d.Template.build(d, p)
	}
	drop := p.fit(d.MaxTokens)
	return p.render(drop, d.MaxTokens)
}

// A section is a part of the prompt under one heading.
type section struct {
	name   string
	groups []group
	head   string // the heading and what ralph says first
}

// A group is a list of items under one introduction. It is shown if one of its
// items is.
type group struct {
	head  string
	items []item
	foot  string
}

// An item is what is kept or left out as a whole.
type item struct {
	text  string
	short string // stands for it where it is left out
	cut   int    // bytes that its own limit has cut from it
	class class  // what it is, which says when it is left out
	rank  int    // within its class those of the highest rank are left out first

	turn                int // it is the turn-th to be left out, from 1; 0 for never
	weight, shortWeight int // of text and short
}

// render writes the prompt without the first drop items of the order in which
// they are left out.
func (p *plan) render(drop, budget int) Prompt {
	var parts []SectionSize
	var text strings.Builder
	for i := range p.sections {
		start := text.Len()
		p.sections[i].write(drop, func(s string, _ int) { text.WriteString(s) })
		if text.Len() > start {
			parts = append(parts, SectionSize{Name: p.sections[i].name, Bytes: text.Len() - start})
		}
	}
	out := p.leftOut(drop)
	if line := leftOutLine(out, budget); line != "" {
		text.WriteString(line)
		parts = append(parts, SectionSize{Name: "left out", Bytes: len(line)})
	}
	whole, at := text.String(), 0
	for i := range parts {
		parts[i].Tokens = EstimateTokens(whole[at : at+parts[i].Bytes])
		at += parts[i].Bytes
	}
	built := Prompt{Text: whole, Sections: parts, LeftOut: out}
	built.exceed(p, budget)
	return built
}

// write hands out what is shown of the section, piece by piece with its weight;
// nothing, not even its heading, if none of its items is.
func (s *section) write(drop int, emit func(text string, weight int)) {
	headed := false
	for gi := range s.groups {
		g := &s.groups[gi]
		open := false
		for i := range g.items {
			text, w := g.items[i].shown(drop)
			if text == "" {
				continue
			}
			if !headed {
				emit(s.head, weigh(s.head))
				headed = true
			}
			if !open {
				emit(g.head, weigh(g.head))
				open = true
			}
			emit(text, w)
		}
		if open {
			emit(g.foot, weigh(g.foot))
		}
	}
}

// shown is what stands in the prompt for the item, and its weight.
func (it *item) shown(drop int) (string, int) {
	if it.out(drop) {
		return it.short, it.shortWeight
	}
	return it.text, it.weight
}

// out reports whether the item is among the first drop to be left out.
func (it *item) out(drop int) bool { return it.turn != 0 && it.turn <= drop }

// first moves those for which is holds to the front and keeps the order otherwise.
func first[T any](all []T, is func(T) bool) []T {
	sorted := append([]T(nil), all...)
	sort.SliceStable(sorted, func(i, j int) bool { return is(sorted[i]) && !is(sorted[j]) })
	return sorted
}

// Package prompt builds the text that a session's agent starts with. The agent can read nothing else of ralph's, so the
// text has everything that the agent has to know.
//
// The package is pure: it never asks a database, a file or a clock, never ranks, and never decides what a task may see;
// all that arrives as [Data]. It guarantees four things. The same data yield the same bytes. No text of an agent or a
// person can pass for ralph's own or end the fence that quotes it. Items are left out in a fixed order to stay within
// the budget. The task, the answers, the remaining work, people's words since the last session and blocking flags are
// always shown in full.
//
// Texts of the task and its discipline are fenced like all others. The rules tell the agent that they are
// instructions. The fence shows their end, so that a task that was pasted from elsewhere, or suggested by an agent,
// cannot continue in ralph's name. Only the task's title is outside of a fence, as a single line at the end of a
// heading that begins with ralph's words.
package prompt

import (
	"sort"
	"strings"
)

// A Prompt is the text of a prompt, and facts about it.
type Prompt struct {
	Text     string
	Sections []SectionSize // in the order of the text, which they add up to
	Err      error         // why the project's template failed; else nil
	LeftOut  []string      // for people, the omitted part: "7 of 9 files"; empty if there is none

	// TooLong is the reason why no session should begin with this prompt: there is no room for people's words since the
	// last session, or for a blocking flag. It is "" if there is room.
	TooLong string
}

// A SectionSize is the size of one section of a prompt.
type SectionSize struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens"` // an estimate
}

// sections returns the sections of a prompt in order. The sections that change least between sessions come first, for
// the model's prompt cache (docs, "The prompt").
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

// Build builds the prompt of a task's next session. It omits empty sections. Parts that
// are never shortened are kept even if they alone exceed the budget; LeftOut then reports
// that.
func Build(d Data) Prompt {
	l := newLayout(sections(d))
	l.beyond = d.LearningsBeyond
	if d.Template != nil {
		return d.Template.build(d, l)
	}
	drop := l.fit(d.MaxTokens)
	return l.render(drop, d.MaxTokens)
}

// A section is a part of the prompt under one heading.
type section struct {
	name   string
	groups []group
	head   string // the heading and ralph's introduction
}

// A group is a list of items under one introduction, which is shown only with at least one
// item.
type group struct {
	head  string
	items []item
	foot  string
}

// An item is kept or left out completely.
type item struct {
	text  string
	short string // replaces the text when that is left out
	cut   int    // bytes cut off because of its own limit
	class class  // its kind, which determines when it is left out
	rank  int    // in a class, items with the highest rank are left out first

	turn                int // position in the order of leaving out, from 1; 0 for never
	weight, shortWeight int // of text and short
}

// render writes the prompt without the first drop items in the order of leaving out.
func (l *layout) render(drop, budget int) Prompt {
	var parts []SectionSize
	var text strings.Builder
	for i := range l.sections {
		start := text.Len()
		l.sections[i].write(drop, func(s string, _ int) { text.WriteString(s) })
		if text.Len() > start {
			parts = append(parts, SectionSize{Name: l.sections[i].name, Bytes: text.Len() - start})
		}
	}
	out := l.leftOut(drop)
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
	built.exceed(l, budget)
	return built
}

// write prints the visible pieces of the section with their weights. Without a visible
// item it prints nothing, not even the heading.
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

// shown returns the visible text of the item, and its weight.
func (it *item) shown(drop int) (string, int) {
	if it.out(drop) {
		return it.short, it.shortWeight
	}
	return it.text, it.weight
}

// out reports whether the item is among the first drop items to be left out.
func (it *item) out(drop int) bool { return it.turn != 0 && it.turn <= drop }

// first moves the elements for which is returns true to the front, and keeps the order otherwise.
func first[T any](all []T, is func(T) bool) []T {
	sorted := append([]T(nil), all...)
	sort.SliceStable(sorted, func(i, j int) bool { return is(sorted[i]) && !is(sorted[j]) })
	return sorted
}

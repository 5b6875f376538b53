package prompt

import (
	"fmt"
	"strings"

	"ralph/internal/text"
)

// checkpoint shows the state of the last session when it was cut off (docs, "The prompt", section 10).
func checkpoint(d Data) section {
	s := section{name: "checkpoint", head: "## Checkpoint: where the last session was cut off\n\n"}
	if d.Checkpoint == nil {
		return s
	}
	c := *d.Checkpoint
	how, known := endings[c.Ending]
	if !known {
		how = "was ended by a failure of the agent"
	}
	line := fmt.Sprintf("Attempt %d %s while it was %s.", c.Attempt, how, word(string(c.State), nameMarks))
	if c.Open {
		line = "A chat before this one stood here."
	}
	if c.Iteration > 0 {
		line += fmt.Sprintf(" It was in its iteration %d.", c.Iteration)
	}
	if c.TokensUsed > 0 && c.TokensLimit > 0 {
		line += fmt.Sprintf(" Its context was %d %% full (%d of %d tokens).",
			c.TokensUsed*100/c.TokensLimit, c.TokensUsed, c.TokensLimit)
	}
	line += " Nobody has checked its work: look at the work tree first, then go on from there.\n\n"
	g := group{items: []item{{text: line}}}
	add := func(q quotation, rank int) {
		g.items = append(g.items, item{text: q.text, cut: q.cut, class: lastSummary, rank: rank})
	}
	label := func(what string) string { return by(c.Author, "", c.Created, what) }
	add(quote(label("work completed"), bullets(c.Completed)), 1)
	if text.Clean(bullets(c.Remaining)) != "" {
		g.items = append(g.items, item{text: fence(label("remaining work"), bullets(c.Remaining))})
	}
	add(quote(label("tests"), c.Tests), 2)
	add(quoteEnd(label("what it said last"), c.Note), 3)
	s.groups = []group{g}
	if len(c.Files) > 0 {
		head := "It had changed, with lines added and removed:\n\n"
		if c.Open {
			head = "It had changed:\n\n"
		}
		s.groups = append(s.groups, fileGroup(head, c.Files))
	}
	return s
}

func bullets(list []string) string {
	lines := make([]string, len(list))
	for i, l := range list {
		lines[i] = "- " + text.Clean(l)
	}
	return strings.Join(lines, "\n")
}

package prompt

import (
	"fmt"
	"sort"
	"strings"
)

// A class is what an item is, as far as the budget is concerned.
type class int

// The classes in the order in which they are left out: all of one before any of
// the next. Of those up to blockingFlags nothing is ever left out.
const (
	kept class = iota
	newComments
	blockingFlags
	fileLines
	plainComments
	agentLearnings
	infoFlags
	dependencySummaries
	warningFlags
	stuckReasons
	failedOutput
	lastSummary
	peoplesLearnings
	classes
)

// nouns says for people what the classes are.
var nouns = [classes]string{
	kept:                "",
	newComments:         "comments",
	fileLines:           "files",
	plainComments:       "earlier comments",
	agentLearnings:      "learnings of agents",
	infoFlags:           "flags of severity info",
	dependencySummaries: "summaries of dependencies",
	warningFlags:        "flags of severity warning",
	stuckReasons:        "reasons of stuck sessions",
	failedOutput:        "outputs of failed commands",
	lastSummary:         "texts of the last session",
	peoplesLearnings:    "learnings of people",
	blockingFlags:       "blocking flags",
}

// Weights count sevenths of a token, so that the estimates of pieces add up to
// the estimate of the whole.
const (
	asciiWeight = 2
	otherWeight = 7
	perToken    = 7
)

// EstimateTokens is about how many tokens a model makes of s: one for 3.5
// characters of ASCII, which is what Claude's makers give for English and a
// little more than code comes to, and one for every other character, which is
// more than most scripts take. It is an estimate on the safe side; tokenizers
// differ and none is public.
func EstimateTokens(s string) int { return (weigh(s) + perToken - 1) / perToken }

func weigh(s string) int {
	w := 0
	for _, r := range s {
		if r < 0x80 {
			w += asciiWeight
		} else {
			w += otherWeight
		}
	}
	return w
}

// A plan is every item that a prompt could show and the order in which they are
// left out.
type plan struct {
	sections []section
	beyond   int          // learnings of agents that did not come so far
	turns    int          // how many items can be left out
	counts   [classes]int // of items by class
}

func newPlan(all []section) *plan {
	p := &plan{sections: all}
	var can []*item
	for si := range p.sections {
		for gi := range p.sections[si].groups {
			items := p.sections[si].groups[gi].items
			for i := range items {
				it := &items[i]
				if it.text == "" {
					continue
				}
				it.weight, it.shortWeight = weigh(it.text), weigh(it.short)
				p.counts[it.class]++
				if it.class > blockingFlags {
					can = append(can, it)
				}
			}
		}
	}
	sort.SliceStable(can, func(i, j int) bool {
		if can[i].class != can[j].class {
			return can[i].class < can[j].class
		}
		return can[i].rank > can[j].rank
	})
	for i, it := range can {
		it.turn = i + 1
	}
	p.turns = len(can)
	return p
}

// fit is the number of items that have to be left out so that the prompt stays
// within the budget: all that can be, if it never does.
func (p *plan) fit(budget int) int {
	fits := func(drop int) bool { return p.tokens(drop, budget) <= budget }
	if fits(0) {
		return 0
	}
	return sort.Search(p.turns, fits)
}

// tokens is the estimate for the prompt without the first drop items.
func (p *plan) tokens(drop, budget int) int {
	total := weigh(leftOutLine(p.leftOut(drop), budget))
	for i := range p.sections {
		p.sections[i].write(drop, func(_ string, w int) { total += w })
	}
	return (total + perToken - 1) / perToken
}

// leftOut says for people what is not shown: whole items by class, in the order
// in which they were left out, then what was cut from those that are shown.
func (p *plan) leftOut(drop int) []string {
	var out [classes]int
	cutItems, cutBytes := 0, 0
	for si := range p.sections {
		for gi := range p.sections[si].groups {
			items := p.sections[si].groups[gi].items
			for i := range items {
				switch it := &items[i]; {
				case it.out(drop):
					out[it.class]++
				case it.cut > 0:
					cutItems++
					cutBytes += it.cut
				}
			}
		}
	}
	out[agentLearnings] += p.beyond
	counts := p.counts
	counts[agentLearnings] += p.beyond
	var said []string
	for c, n := range out {
		if n > 0 {
			said = append(said, fmt.Sprintf("%d of %d %s", n, counts[c], nouns[c]))
		}
	}
	if cutItems > 0 {
		said = append(said, fmt.Sprintf("%d bytes of %d long texts", cutBytes, cutItems))
	}
	return said
}

// leftOutLine is the line that tells the agent what is not shown; "" if all is.
func leftOutLine(out []string, budget int) string {
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("Left out to keep this prompt short (budget: %d tokens): %s.\n", budget, strings.Join(out, ", "))
}

// exceed notes that what is never left out has no room in the budget.
func (p *Prompt) exceed(plan *plan, budget int) {
	n := EstimateTokens(p.Text)
	if n <= budget {
		return
	}
	p.LeftOut = append(p.LeftOut, fmt.Sprintf("nothing more: "+
		"rules, discipline, task, answers, what remains, what people said since the last session and blocking flags "+
		"are never shortened and come to about %d tokens, more than the budget of %d", n, budget))
	var words []string
	for c, one := range map[class]string{newComments: "new comment", blockingFlags: "blocking flag"} {
		switch n := plan.counts[c]; {
		case n == 1:
			words = append(words, "1 "+one)
		case n > 1:
			words = append(words, fmt.Sprintf("%d %ss", n, one))
		}
	}
	if len(words) > 0 {
		sort.Sort(sort.Reverse(sort.StringSlice(words)))
		p.TooLong = fmt.Sprintf("%s with the rules, the task and its answers come to about %d tokens, "+
			"more than the %d that a prompt may have", strings.Join(words, " and "), n, budget)
	}
}

package prompt

import (
	"fmt"
	"sort"
	"strings"
)

// A class is the kind of an item, for the budget.
type class int

// The classes in the order of omission, each completely before the next. Those up to
// blockingFlags are never left out.
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

// nouns names the classes for people.
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

// Weights count sevenths of a token, so that the estimates of pieces add up exactly to the estimate of the whole.
const (
	asciiWeight = 2
	otherWeight = 7
	perToken    = 7
)

// EstimateTokens estimates the number of tokens of s. It counts one for every
// 3.5 characters of ASCII, which is Anthropic's figure for English and somewhat more
// than code needs, and one for every other character, which is more than most scripts
// need. The estimate is on the safe side; tokenizers differ and none is public.
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

// A layout has every item that a prompt could show, and the order in which they are left out.
type layout struct {
	sections []section
	beyond   int          // agents' learnings that were left out beforehand
	turns    int          // number of items that can be left out
	counts   [classes]int // number of items per class
}

func newLayout(all []section) *layout {
	l := &layout{sections: all}
	var can []*item
	for si := range l.sections {
		for gi := range l.sections[si].groups {
			items := l.sections[si].groups[gi].items
			for i := range items {
				it := &items[i]
				if it.text == "" {
					continue
				}
				it.weight, it.shortWeight = weigh(it.text), weigh(it.short)
				l.counts[it.class]++
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
	l.turns = len(can)
	return l
}

// fit returns the number of items to leave out to keep the prompt within the budget: all
// possible ones, if it never fits.
func (l *layout) fit(budget int) int {
	fits := func(drop int) bool { return l.tokens(drop, budget) <= budget }
	if fits(0) {
		return 0
	}
	return sort.Search(l.turns, fits)
}

// tokens returns the estimate for the prompt without the first drop items.
func (l *layout) tokens(drop, budget int) int {
	total := weigh(leftOutLine(l.leftOut(drop), budget))
	for i := range l.sections {
		l.sections[i].write(drop, func(_ string, w int) { total += w })
	}
	return (total + perToken - 1) / perToken
}

// leftOut lists the omitted parts for people: whole items per class, in the order of omission, then the cuts within
// shown items.
func (l *layout) leftOut(drop int) []string {
	var out [classes]int
	cutItems, cutBytes := 0, 0
	for si := range l.sections {
		for gi := range l.sections[si].groups {
			items := l.sections[si].groups[gi].items
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
	out[agentLearnings] += l.beyond
	counts := l.counts
	counts[agentLearnings] += l.beyond
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

// leftOutLine returns the line that tells the agent about omitted items; "" if there are none.
func leftOutLine(out []string, budget int) string {
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("Left out to keep this prompt short (budget: %d tokens): %s.\n", budget, strings.Join(out, ", "))
}

// exceed records that the mandatory parts alone exceed the budget.
func (p *Prompt) exceed(all *layout, budget int) {
	n := EstimateTokens(p.Text)
	if n <= budget {
		return
	}
	p.LeftOut = append(p.LeftOut, fmt.Sprintf("nothing more: "+
		"rules, discipline, task, answers, what remains, what people said since the last session and blocking flags "+
		"are never shortened and come to about %d tokens, more than the budget of %d", n, budget))
	var words []string
	for c, one := range map[class]string{newComments: "new comment", blockingFlags: "blocking flag"} {
		switch n := all.counts[c]; {
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

package prompt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/prompt"
)

func names(p prompt.Prompt) []string {
	var all []string
	for _, s := range p.Sections {
		all = append(all, s.Name)
	}
	return all
}

func TestSectionsStandInTheirOrderAndEmptyOnesAreLeftOut(t *testing.T) {
	for _, tt := range []struct {
		name string
		data prompt.Data
		want []string
	}{
		{"a prompt with everything", everything(), []string{"role", "discipline", "learnings", "task", "answers", "continuation", "problems", "comments", "files", "checkpoint"}},
		{"a fresh task", fresh(), []string{"role", "task"}},
		{"no data at all", prompt.Data{MaxTokens: 5000}, []string{"role", "task"}},
		{"blank texts", prompt.Data{
			Discipline: ralph.Discipline{Name: "x", Instructions: " \n"}, FeatureHuman: "\n", ProjectLearnings: []ralph.Learning{{Text: " "}},
			Comments: []ralph.Comment{{Body: "\t"}}, Flags: []ralph.Comment{{}}, Stuck: []prompt.StuckSession{{}}, MaxTokens: 5000,
		}, []string{"role", "task"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := prompt.Build(tt.data)
			if diff := cmp.Diff(tt.want, names(p)); diff != "" {
				t.Errorf("sections (-want +got):\n%s", diff)
			}
			if len(p.LeftOut) > 0 {
				t.Errorf("left out %q; want nothing", p.LeftOut)
			}
		})
	}
}

func TestSectionSizesAreThoseOfTheText(t *testing.T) {
	for _, s := range samples {
		p := prompt.Build(s.data())
		rest := p.Text
		for _, size := range p.Sections {
			part := rest[:size.Bytes]
			rest = rest[size.Bytes:]
			if !strings.HasPrefix(part, "#") && size.Name != "left out" {
				t.Errorf("%s: section %s begins with %.20q; want a heading", s.name, size.Name, part)
			}
			if size.Tokens != prompt.EstimateTokens(part) {
				t.Errorf("%s: section %s has %d tokens; want %d", s.name, size.Name, size.Tokens, prompt.EstimateTokens(part))
			}
		}
		if rest != "" {
			t.Errorf("%s: %q is in no section", s.name, rest)
		}
	}
}

func TestTheSameDataMakeTheSameBytes(t *testing.T) {
	for _, s := range samples {
		want := prompt.Build(s.data())
		data := s.data()
		for range 5 {
			if diff := cmp.Diff(want, prompt.Build(data)); diff != "" {
				t.Errorf("%s: built again (-first +again):\n%s", s.name, diff)
			}
		}
		if diff := cmp.Diff(s.data(), data); diff != "" {
			t.Errorf("%s: building changed the data:\n%s", s.name, diff)
		}
	}
}

func TestEveryVerbIsNamedAsTheModelKnowsIt(t *testing.T) {
	text := prompt.Build(fresh()).Text
	for _, v := range ralph.Verbs {
		if want := "\n- `mcp__ralph__ralph_signal_" + string(v) + "` — "; strings.Count(text, want) != 1 {
			t.Errorf("%d lines begin with %q; want 1", strings.Count(text, want), want)
		}
	}
}

func TestTheRulesAreTheSameForEveryTask(t *testing.T) {
	a, b := fresh(), everything()
	b.Commit = ""
	pa, pb := prompt.Build(a), prompt.Build(b)
	if pa.Text[:pa.Sections[0].Bytes] != pb.Text[:pb.Sections[0].Bytes] {
		t.Error("the first section differs between two tasks of a project; want the same, for the prompt cache")
	}
}

func TestAnAnswerHasTheExactWordsOfQuestionAndAnswer(t *testing.T) {
	for _, tt := range []struct{ name, question, answer, want string }{
		{"ordinary", "Sync or async?", "Sync.", `ANSWER to your question "Sync or async?": Sync.`},
		{"quotation marks within the question", `Is "x" a name?`, `"y" is`, `ANSWER to your question "Is "x" a name?": "y" is`},
		{"an answer of several lines", "Which?", "The first.\n\n- and quickly", "ANSWER to your question \"Which?\": The first.\n\n- and quickly"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := fresh()
			d.Answers = []prompt.Answer{{Question: tt.question, Answer: tt.answer, Author: "human", At: day(1), Own: true}}
			_, blocks := parse(t, prompt.Build(d).Text)
			want := block{label: "human (person), 2026-03-01 09:30 UTC", text: tt.want}
			if got := blocks[len(blocks)-1]; got != want {
				t.Errorf("shown as %q; want %q", got, want)
			}
		})
	}
}

func TestAQuestionThatCouldPassForItsAnswerIsQuotedByItself(t *testing.T) {
	for _, question := range []string{"May I?\": yes\nMay I not?", "May I?\": yes, said the person", "Several\nlines?", strings.Repeat("long ", 200) + "?"} {
		d := fresh()
		d.Answers = []prompt.Answer{{Question: question, Answer: "No.\nNever.", Author: "human", At: day(1), Own: true}}
		_, blocks := parse(t, prompt.Build(d).Text)
		want := []block{
			{label: "agent, question", text: question},
			{label: "human (person), 2026-03-01 09:30 UTC, ANSWER to this question", text: "No.\nNever."},
		}
		if diff := cmp.Diff(want, blocks[len(blocks)-2:], cmp.AllowUnexported(block{})); diff != "" {
			t.Errorf("question %.30q (-want +got):\n%s", question, diff)
		}
	}
}

func TestAStuckSessionsReasonIsSaidOnce(t *testing.T) {
	text := prompt.Build(stuckTwice()).Text
	for _, s := range stuckTwice().Stuck {
		if n := strings.Count(text, s.Reason); n != 1 {
			t.Errorf("%q is there %d times; want once", s.Reason, n)
		}
	}
}

func TestAReplyToNothingStandsByItself(t *testing.T) {
	gone := int64(99)
	d := fresh()
	d.Comments = []ralph.Comment{{ID: 1, ParentID: &gone, Body: "left alone", Author: "human", AuthorKind: ralph.ByHuman, Created: day(1)}}
	if text := prompt.Build(d).Text; !strings.Contains(text, "\n~~~ human (person), 2026-03-01 09:30 UTC, comment 1\nleft alone\n") {
		t.Error("the reply is not shown as a comment of its own")
	}
}

func TestEstimateTokensIsOneForThreeAndAHalfCharacters(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
	}{{"", 0}, {"a", 1}, {"1234567", 2}, {"12345678", 3}, {"漢字", 2}, {strings.Repeat("x", 7000), 2000}} {
		if got := prompt.EstimateTokens(tt.in); got != tt.want {
			t.Errorf("EstimateTokens(%.10q) = %d; want %d", tt.in, got, tt.want)
		}
	}
}

// kept has the texts of d that no budget shortens.
func kept(d prompt.Data) []string {
	all := append([]string{d.Task.Title, d.Task.Description, d.LastSession.Remaining, d.Discipline.Instructions, d.FeatureText}, d.Task.Acceptance...)
	for _, c := range d.LastSession.Failed {
		all = append(all, "$ "+c.Command)
	}
	for _, c := range d.Verify {
		all = append(all, "$ "+c)
	}
	for _, a := range d.Answers {
		all = append(all, a.Answer, a.Question)
	}
	return all
}

func TestTheBudgetIsMetWhereverItCanBe(t *testing.T) {
	d := tight()
	d.MaxTokens = 0
	least := prompt.EstimateTokens(prompt.Build(d).Text) + 2 // the line that names it grows with its digits
	for budget := 0; budget < 2*least; budget += 7 {
		d.MaxTokens = budget
		p := prompt.Build(d)
		n := prompt.EstimateTokens(p.Text)
		if budget >= least && n > budget {
			t.Errorf("budget %d: %d tokens, though %d are possible", budget, n, least)
		}
		over := slices.ContainsFunc(p.LeftOut, func(s string) bool { return strings.HasPrefix(s, "nothing more: ") })
		if over != (n > budget) {
			t.Errorf("budget %d: %d tokens, left out %q", budget, n, p.LeftOut)
		}
		inPrompt := strings.Contains(p.Text, "\nLeft out to keep this prompt short")
		if whole := len(p.LeftOut) == 0; inPrompt == whole {
			t.Errorf("budget %d: left out %q; said in the prompt: %t", budget, p.LeftOut, inPrompt)
		}
	}
}

func TestMandatoryPartsAreComplete(t *testing.T) {
	d := tight()
	for i, text := range []*string{
		&d.Task.Description, &d.Task.Acceptance[0], &d.Discipline.Instructions, &d.FeatureText, &d.LastSession.Remaining,
		&d.LastSession.Failed[0].Command, &d.Verify[0], &d.Answers[0].Answer, &d.Answers[2].Answer, &d.Answers[2].Question,
	} {
		*text = fmt.Sprintf("begins %d ", i) + strings.Repeat("on and on ", ralph.MaxText/10-10) + "to its end"
	}
	for _, budget := range []int{0, 1, 500, 3000, 24000, 1 << 40} {
		d.MaxTokens = budget
		text := prompt.Build(d).Text
		for _, want := range kept(d) {
			if !strings.Contains(text, want) {
				t.Errorf("budget %d: %.40q is not there whole", budget, want)
			}
		}
	}
}

func TestAnswersGivenSinceTheLastSessionStandFirst(t *testing.T) {
	d := fresh()
	d.Answers = []prompt.Answer{
		{Question: "Old?", Answer: "old", Own: true},
		{Question: "New?", Answer: "new", New: true, Own: true},
		{Question: "Older?", Answer: "older", TaskID: 9},
		{Question: "Newer?", Answer: "newer", New: true, TaskID: 9},
	}
	_, blocks := parse(t, prompt.Build(d).Text)
	want := []block{
		{label: "person", text: `ANSWER to your question "New?": new`},
		{label: "person, asked by TASK-9 of the same feature", text: `ANSWER to your question "Newer?": newer`},
		{label: "person", text: `ANSWER to your question "Old?": old`},
		{label: "person, asked by TASK-9 of the same feature", text: `ANSWER to your question "Older?": older`},
	}
	if diff := cmp.Diff(want, blocks[len(blocks)-4:], cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestTheOrderOfOmission(t *testing.T) {
	d := everything()
	order := []string{ // each disappears from the prompt before the ones after it
		"backoff.go\n", "backoff_test.go",
		"Is a pause of a minute", "legacy/", "No, take ten seconds", // the late reply outlives the younger comment
		"row lock",
		"README speaks", "with one try", "greets", "Tokens are logged",
		"fake server closes", "vendored client", "wrong host", "got 4 tries", "Wrote the backoff", "eventually consistent",
	}
	d.ProjectLearnings = nil // their ranks equal the feature's
	d.Comments = d.Comments[:3]
	d.Stuck = stuckTwice().Stuck
	d.Stuck[0].Attempt, d.Stuck[1].Attempt = 5, 6 // neither is the last session
	d.DependsOn[1].Summary = "It greets."
	d.LastSession.Failed[1].Tail = "wrong host"
	full := prompt.EstimateTokens(prompt.Build(d).Text)
	gone := 0
	for budget := full; budget >= 0; budget-- {
		d.MaxTokens = budget
		text := prompt.Build(d).Text
		for gone < len(order) && !strings.Contains(text, order[gone]) {
			gone++
		}
		for _, still := range order[gone:] {
			if !strings.Contains(text, still) {
				t.Fatalf("budget %d: %q is gone before %q", budget, still, order[gone])
			}
		}
	}
	if gone != len(order) {
		t.Errorf("with no budget at all %q is still there", order[gone])
	}
}

func TestNoMoreIsLeftOutThanHasTo(t *testing.T) {
	d := everything()
	full := prompt.Build(d)
	d.MaxTokens = prompt.EstimateTokens(full.Text)
	if got := prompt.Build(d); got.Text != full.Text || len(got.LeftOut) > 0 {
		t.Errorf("a prompt that just fits is left out of: %q", got.LeftOut)
	}
	for i := range 100 { // enough to make up for the additional line
		d.Files = append(d.Files, ralph.FileChange{Path: fmt.Sprintf("some/where/else%03d.go", i)})
	}
	d.MaxTokens += 100
	small := prompt.Build(d)
	if room := d.MaxTokens - prompt.EstimateTokens(small.Text); room > 12 {
		t.Errorf("%d tokens of the budget are not used, though a file takes fewer", room)
	}
}

func TestLearningsOfLowRankAreLeftOutWhicheverTheirScope(t *testing.T) {
	d := fresh()
	for i := range 20 {
		d.ProjectLearnings = append(d.ProjectLearnings, ralph.Learning{Text: fmt.Sprintf("project %02d", i), Origin: ralph.ByAgent})
		d.FeatureLearnings = append(d.FeatureLearnings, ralph.Learning{Text: fmt.Sprintf("feature %02d", i), Origin: ralph.ByAgent})
	}
	d.ProjectLearnings[19].Origin = ralph.ByHuman
	d.MaxTokens = prompt.EstimateTokens(prompt.Build(d).Text) - 100
	text := prompt.Build(d).Text
	for _, want := range []string{"project 00", "feature 00", "project 19"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is gone; want the best of both scopes and what people wrote", want)
		}
	}
	for _, unwanted := range []string{"project 18", "feature 19"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q is there; want the worst of both scopes gone", unwanted)
		}
	}
	if strings.Index(text, "project 19") > strings.Index(text, "project 00") {
		t.Error("what a person wrote stands after what agents learned")
	}
}

func BenchmarkBuildWithTenThousandLearnings(b *testing.B) {
	d := everything()
	for i := range 10000 {
		d.ProjectLearnings = append(d.ProjectLearnings, ralph.Learning{
			Text: fmt.Sprintf("Learning %d: %s", i, strings.Repeat("words ", 20)), Kind: "discovery", Origin: ralph.ByAgent, TaskID: 3, LastSeen: day(1),
		})
	}
	for b.Loop() {
		prompt.Build(d)
	}
}

// TestPeoplesWordsAreComplete: comments by people since the last session and blocking flags are shown in full, and
// TooLong says so if there is no room for them.
func TestPeoplesWordsAreComplete(t *testing.T) {
	d := fresh()
	long := strings.Repeat("on and on ", ralph.MaxText/10-10) + "to its end"
	d.Comments = []ralph.Comment{{ID: 1, Kind: ralph.Note, AuthorKind: ralph.ByHuman, Body: "an old one"}, {ID: 2, Kind: ralph.Note, AuthorKind: ralph.ByHuman, Body: "said: " + long}}
	d.NewComments = map[int64]bool{2: true}
	d.Flags = []ralph.Comment{{ID: 3, TaskID: d.Task.ID, Verb: ralph.VerbFlag, Payload: []byte(`{"what":"flagged: ` + long + `","severity":"blocking","category":"bug"}`)}}
	for _, budget := range []int{0, 1, 500, 3000, 24000, 1 << 40} {
		d.MaxTokens = budget
		built := prompt.Build(d)
		for _, want := range []string{"said: " + long, "flagged: " + long} {
			if !strings.Contains(built.Text, want) {
				t.Errorf("budget %d: %.20q is not there whole", budget, want)
			}
		}
		if n := prompt.EstimateTokens(built.Text); (n > budget) != strings.HasPrefix(built.TooLong, "1 new comment and 1 blocking flag ") {
			t.Errorf("budget %d: %d tokens, too long: %q", budget, n, built.TooLong)
		}
	}
	d.Comments, d.Flags, d.MaxTokens = nil, nil, 0
	if built := prompt.Build(d); built.TooLong != "" {
		t.Errorf("without a word of anybody it is too long: %s", built.TooLong)
	}
}

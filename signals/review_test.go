package signals_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

func TestWeigh(t *testing.T) {
	change := signals.ChangedLines([]ralph.FileDiff{
		{Path: "a.go", Diff: "@@ -1,3 +1,4 @@\n a\n+b\n@@ -20 +21,0 @@\n-c\n"},
		{Path: "logo.png", Left: "it is not text"},
		{Path: "gone.go", Diff: "@@ -1,2 +0,0 @@\n-a\n-b\n"},
	})
	at := func(file string, line int, severity string) ralph.Objection {
		return ralph.Objection{File: file, Line: line, What: "w", Why: "y", Severity: severity}
	}
	blocking := []ralph.Objection{at("a.go", 4, ralph.ObjectionBlocking)}
	for _, tt := range []struct {
		name string
		seen signals.ReviewSeen
		want string // what the reason contains; "" if it is a review
	}{
		{"approved after a look", signals.ReviewSeen{Looked: 1, Approved: true}, ""},
		{"objected after a look", signals.ReviewSeen{Looked: 1, Objected: blocking}, ""},
		{"objected before its time was up", signals.ReviewSeen{Ending: ralph.TimedOut, Looked: 1, Objected: blocking}, ""},
		{"remarks beside an approval", signals.ReviewSeen{
			Looked: 1, Approved: true, Objected: []ralph.Objection{at("a.go", 1, ralph.ObjectionRemark)},
		}, ""},
		{"approved blindly", signals.ReviewSeen{Approved: true}, "it read nothing and ran nothing"},
		{"objected blindly", signals.ReviewSeen{Objected: blocking}, "it read nothing and ran nothing"},
		{"said nothing", signals.ReviewSeen{Looked: 3}, "without an approval or a blocking objection"},
		{"remarked alone", signals.ReviewSeen{
			Looked: 1, Objected: []ralph.Objection{at("a.go", 1, ralph.ObjectionRemark)},
		}, "without an approval"},
		{"objected to a line between the hunks", signals.ReviewSeen{
			Looked: 1, Objected: []ralph.Objection{at("a.go", 12, ralph.ObjectionBlocking)},
		}, "lines that the change does not have (a.go:12)"},
		{"objected to another file, then approved", signals.ReviewSeen{
			Looked: 1, Approved: true, Objected: []ralph.Objection{at("b.go", 0, ralph.ObjectionRemark)},
		}, "lines that the change does not have (b.go)"},
		{"objected where a line was removed", signals.ReviewSeen{
			Looked: 1, Objected: []ralph.Objection{at("a.go", 21, ralph.ObjectionBlocking)},
		}, ""},
		{"objected to a file without lines", signals.ReviewSeen{
			Looked: 1, Objected: []ralph.Objection{at("logo.png", 3, ralph.ObjectionBlocking)},
		}, ""},
		{"objected to a line of a removed file", signals.ReviewSeen{
			Looked: 1, Objected: []ralph.Objection{at("gone.go", 2, ralph.ObjectionBlocking)},
		}, ""},
		{"both", signals.ReviewSeen{Looked: 1, Approved: true, Objected: blocking}, "approves and objects at once"},
		{"could not work", signals.ReviewSeen{Ending: ralph.RateLimited, Why: "limit"}, "its agent could not work: limit"},
		{"left the question out", signals.ReviewSeen{Looked: 1, Approved: true, Asked: true}, "did not say whether"},
		{"objected instead of an answer", signals.ReviewSeen{Looked: 1, Objected: blocking, Asked: true}, ""},
		{"answered", signals.ReviewSeen{Looked: 1, Only: true, Asked: true, Asks: ralph.AsksYes}, ""},
		{"answered blindly", signals.ReviewSeen{Only: true, Asked: true, Asks: ralph.AsksYes}, "it read nothing"},
		{"answered, and judged nothing else that it was asked", signals.ReviewSeen{Looked: 1, Asked: true, Asks: ralph.AsksYes}, "without an approval"},
		{"gave no answer", signals.ReviewSeen{Looked: 1, Only: true, Asked: true}, "did not say whether"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.seen.Ending == "" {
				tt.seen.Ending = ralph.Finished
			}
			got := signals.Weigh(tt.seen, change)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("it is none as %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLinesThatAChangeLacks: an objection is about a line of a hunk, or about a changed file as a whole.
func TestLinesThatAChangeLacks(t *testing.T) {
	change := signals.ChangedLines([]ralph.FileDiff{
		{Path: "a.go", Diff: "@@ -2,3 +2,4 @@\n a\n+b\n@@ -20 +21,0 @@\n-c\n"},
		{Path: "logo.png", Left: "it is not text"},
	})
	const lacks = "the change has no line %d of a.go; it has 2-5, 21-21"
	for _, tt := range []struct {
		file string
		line int
		want string
	}{
		{"a.go", 0, ""},
		{"a.go", 1, fmt.Sprintf(lacks, 1)},
		{"a.go", 2, ""},
		{"a.go", 5, ""},
		{"a.go", 6, fmt.Sprintf(lacks, 6)},
		{"a.go", 20, fmt.Sprintf(lacks, 20)},
		{"a.go", 21, ""},
		{"a.go", 22, fmt.Sprintf(lacks, 22)},
		{"logo.png", 3, ""},
		{"b.go", 0, "the change does not touch b.go"},
	} {
		if got := change.Lacks(ralph.Objection{File: tt.file, Line: tt.line}); got != tt.want {
			t.Errorf("%s:%d: %q, want %q", tt.file, tt.line, got, tt.want)
		}
	}
}

// TestObjectionsThatRefuse: a reviewer's blocking objection refuses a done, until a person decides.
func TestObjectionsThatRefuse(t *testing.T) {
	review := func(severity, none string) ralph.Review {
		return ralph.Review{Agent: "codex", None: none, Objections: []ralph.Objection{{Severity: severity}}}
	}
	blocking := review(ralph.ObjectionBlocking, "")
	for _, tt := range []struct {
		name    string
		reviews []ralph.Review
		rounds  int
		want    int
	}{
		{"an approval", []ralph.Review{{Agent: "codex"}}, 0, 0},
		{"a remark", []ralph.Review{review(ralph.ObjectionRemark, "")}, 0, 0},
		{"no review", []ralph.Review{review(ralph.ObjectionBlocking, "it read nothing")}, 0, 0},
		{"the first candidate", []ralph.Review{blocking, {Agent: "gemini"}, blocking}, 1, 2},
		{"the second candidate", []ralph.Review{blocking}, 2, 0},
	} {
		refusal := signals.Refused(nil, nil, ralph.Evidence{Reviews: tt.reviews, Rounds: tt.rounds}, rules)
		if got := len(refusal.Objected); got != tt.want {
			t.Errorf("%s: %d objections refuse, want %d", tt.name, got, tt.want)
		}
	}
}

func TestChosenReviewers(t *testing.T) {
	configured := []signals.Reviewer{
		{Agent: "codex", Prompt: "p"},
		{Agent: "claude", Model: "opus", Lines: 200, Prompt: "p"},
		{Agent: "gemini", Files: []string{"auth"}, Prompt: "p"},
		{Agent: "both", Lines: 5, Files: []string{"auth"}, Prompt: "p"},
		{Agent: "codex", Model: "small", Files: []string{"twice"}, Prompt: "p"},
	}
	against := []ralph.Objection{{Severity: ralph.ObjectionBlocking}}
	objects := []ralph.Review{{Agent: "stands-in", For: "gemini", Objections: against}}
	small := []ralph.Review{{Agent: "codex", For: "codex/small", Objections: against}}
	for _, tt := range []struct {
		named, file string
		lines       int
		before      []ralph.Review
		want        []string
	}{
		{"", "main.go", 10, nil, []string{"codex"}},
		{"", "main.go", 200, nil, []string{"codex", "claude/opus"}},
		{"", "auth", 4, nil, []string{"codex", "gemini"}},
		{"", "auth", 5, nil, []string{"codex", "gemini", "both"}},
		{"", "auth", 5, objects, []string{"gemini", "codex", "both"}},
		{"", "twice", 4, small, []string{"codex/small", "codex"}},
		{"none", "auth", 500, nil, nil},
		{"claude", "main.go", 1, nil, []string{"claude/opus"}},
		{"codex", "main.go", 1, nil, []string{"codex"}},
		{"other", "main.go", 1, nil, []string{"other"}},
	} {
		t.Run(fmt.Sprint(tt.named, tt.file, tt.lines, len(tt.before)), func(t *testing.T) {
			files := []ralph.FileChange{{Path: tt.file, Added: tt.lines - 1, Removed: 1}}
			var got []string
			for _, r := range signals.Chosen(configured, tt.named, files, tt.before, slices.Contains) {
				got = append(got, r.Name())
				if configured := r.Agent != "other"; configured != (r.Prompt == "p") {
					t.Errorf("its prompt is another one: %+v", r)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("chosen: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRoundsCountCandidates(t *testing.T) {
	objects := []ralph.Objection{{Severity: ralph.ObjectionBlocking}}
	reviews := []ralph.Review{
		{Tree: "1", Objections: objects},
		{Tree: "1", Objections: objects},
		{Tree: "2"},
		{Tree: "3", None: "n", Objections: objects},
		{Tree: "4", Objections: objects},
		{Tree: "5"},
	}
	if got := signals.Rounds(reviews); got != 2 {
		t.Errorf("%d candidates were objected to, want 2", got)
	}
}

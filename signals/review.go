package signals

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/patch"
)

// ReviewRounds is the number of rejected candidates of a task after which a person decides.
const ReviewRounds = 2

// ReviewSeen holds ralph's observations of a reviewing session.
type ReviewSeen struct {
	Ending   ralph.Ending // ending of its agent
	Why      string       // the agent's reason for that ending
	Looked   int          // calls that read or ran something
	Asked    bool         // the reviewer was asked whether the task asks for the changed tests
	Only     bool         // the reviewer was asked nothing else
	Approved bool
	Checked  string // its report of its checks
	Asks     string // its answer
	AsksWhy  string
	Objected []ralph.Objection
}

// Weigh decides whether a review counts: its session must have looked at the change. It returns a clause with the
// reason why it does not count, else "".
func Weigh(seen ReviewSeen, change Changed) (none string) {
	blocking := slices.ContainsFunc(seen.Objected, func(o ralph.Objection) bool {
		return o.Severity == ralph.ObjectionBlocking
	})
	var astray []string
	for _, o := range seen.Objected {
		if change.Lacks(o) != "" {
			astray = append(astray, o.At())
		}
	}
	closed := seen.Approved || blocking || seen.Only && seen.Asks != ""
	switch {
	case !closed && seen.Ending != ralph.Finished:
		return "its agent could not work: " + seen.Why
	case seen.Only && !closed:
		return "it did not say whether the task asks for the changed tests"
	case !closed && len(astray) == 0:
		return "it ended without an approval or a blocking objection"
	case seen.Looked == 0:
		return "it read nothing and ran nothing"
	case len(astray) > 0:
		return "it objects to lines that the change does not have (" + FileList(astray) + ")"
	case seen.Approved && blocking:
		return "it approves and objects at once"
	case seen.Asked && !blocking && seen.Asks == "":
		return "it did not say whether the task asks for the changed tests"
	}
	return ""
}

// Changed maps each changed file to its lines: the hunks of the change with their context, numbered as after the
// change. A file without known lines counts completely.
type Changed map[string][]Span

// A Span is a range of lines, including both ends.
type Span struct{ From, To int }

// ChangedLines reads the lines of a change from its hunks.
func ChangedLines(files []ralph.FileDiff) Changed {
	changed := Changed{}
	for _, f := range files {
		changed[f.Path] = nil
		for line := range strings.Lines(f.Diff) {
			// From is 0 for a removed or emptied file.
			if h, ok := patch.ParseHunk(line); ok && h.NewFrom > 0 {
				changed[f.Path] = append(changed[f.Path], Span{h.NewFrom, h.NewFrom + max(h.NewLines, 1) - 1})
			}
		}
	}
	return changed
}

// Lacks explains in a clause why an objection is not about the change; "" if it is.
func (c Changed) Lacks(o ralph.Objection) string {
	spans, ok := c[o.File]
	switch {
	case !ok:
		return fmt.Sprintf("the change does not touch %s", o.File)
	case o.Line == 0 || len(spans) == 0:
		return ""
	case slices.ContainsFunc(spans, func(s Span) bool { return s.From <= o.Line && o.Line <= s.To }):
		return ""
	}
	list := make([]string, len(spans))
	for i, s := range spans {
		list[i] = fmt.Sprintf("%d-%d", s.From, s.To)
	}
	return fmt.Sprintf("the change has no line %d of %s; it has %s", o.Line, o.File, FileList(list))
}

// objected returns the reviews that object, while the author may fix it.
func objected(e ralph.Evidence) []ralph.Review {
	if e.Rounds >= ReviewRounds {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Reviews), func(r ralph.Review) bool {
		return r.None != "" || len(r.Blocking()) == 0
	})
}

// ObjectedTo reports whether a reviewer objects to the change of this evidence.
func ObjectedTo(reviews []ralph.Review) bool {
	return slices.ContainsFunc(reviews, func(r ralph.Review) bool { return r.None == "" && len(r.Blocking()) > 0 })
}

// Rounds counts the candidates to which reviewers objected.
func Rounds(reviews []ralph.Review) int {
	trees := map[string]bool{}
	for _, r := range reviews {
		if ObjectedTo([]ralph.Review{r}) {
			trees[r.Tree] = true
		}
	}
	return len(trees)
}

// A Reviewer is a configured reviewer of changes.
type Reviewer struct {
	Agent  string
	Model  string   // "" leaves it to the agent
	Lines  int      // changes of at least this many lines; 0 is any
	Files  []string // changes of matching files; none is any
	Prompt string   // instructions beside ralph's own; "" for none
}

// Name identifies a reviewer: its agent, with its model after a slash.
func (r Reviewer) Name() string {
	if r.Model == "" {
		return r.Agent
	}
	return r.Agent + "/" + r.Model
}

// Chosen returns the reviewers of a change in order: the configured ones whose conditions hold, or the one named by the
// task or its discipline. Reviewers that objected to an earlier candidate come first. Match reports whether a file is
// among the globs.
func Chosen(
	configured []Reviewer, named string, files []ralph.FileChange, before []ralph.Review,
	match func(globs []string, file string) bool,
) (list []Reviewer) {
	switch named {
	case ralph.NoReview:
		return nil
	case "":
		lines := 0
		for _, f := range files {
			lines += f.Added + f.Removed
		}
		for _, r := range configured {
			touches := len(r.Files) == 0 ||
				slices.ContainsFunc(files, func(f ralph.FileChange) bool { return match(r.Files, f.Path) })
			if lines >= r.Lines && touches {
				list = append(list, r)
			}
		}
	default:
		i := slices.IndexFunc(configured, func(r Reviewer) bool { return r.Agent == named })
		list = []Reviewer{{Agent: named}}
		if i >= 0 {
			list[0].Model, list[0].Prompt = configured[i].Model, configured[i].Prompt
		}
	}
	objects := func(r Reviewer) int {
		for _, b := range before {
			if b.For == r.Name() && ObjectedTo([]ralph.Review{b}) {
				return 0
			}
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b Reviewer) int { return objects(a) - objects(b) })
	return list
}

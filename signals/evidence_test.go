package signals_test

import (
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

// TestVerdictOfADone checks what people read about a done, depending on the evidence.
func TestVerdictOfADone(t *testing.T) {
	green := []ralph.Check{{Command: "make test", Passed: true}}
	here := ralph.Standing{Git: true, Branch: "main", Commit: "1f3c9abdef", Began: "main"}
	with := func(change func(*ralph.Evidence)) ralph.Evidence {
		e := ralph.Evidence{Standing: here}
		change(&e)
		return e
	}
	ann := ralph.Commit{ID: "aaaaaaaaaaaa", Subject: "Fix login", Author: "Ann", From: "main"}
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  string
	}{
		{"without git", signals.Facts{Verify: green}, "done and verified: it works"},
		{"with git", signals.Facts{Verify: green, Evidence: ralph.Evidence{Standing: here}}, "done and verified (main at 1f3c9ab): it works"},
		{
			"nothing verifies it",
			signals.Facts{Evidence: ralph.Evidence{Standing: here}},
			"done (nothing is configured to verify it; main at 1f3c9ab): it works",
		},
		{
			"before the first commit",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Standing: ralph.Standing{Git: true, Branch: "main", Began: "main", Uncommitted: 1}}},
			"done and verified (main before its first commit, 1 uncommitted file): it works",
		},
		{
			"detached",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Standing: ralph.Standing{Git: true, Commit: "1f3c9abdef"}}},
			"done and verified (detached HEAD at 1f3c9ab): it works",
		},
		{"all that can be told", signals.Facts{Verify: green, Untouched: true, Evidence: with(func(e *ralph.Evidence) {
			e.Uncommitted, e.Killed = 2, []string{"sleep 100"}
			e.Aside, e.Stashes = []ralph.Aside{{Branch: "feature-x", Commits: 1}, {Branch: "y", Commits: 2}}, []string{"WIP on main"}
			e.Drives = []ralph.Touch{{File: "Makefile", Command: "make test"}, {File: "x.mk", Command: "make test"}}
			e.Drift, e.Taken, e.Uncontained = []string{"report.xml"}, []string{"notes.txt"}, true
			e.Emptied, e.Approximate, e.Hidden = []string{"lib"}, true, []string{"deps/", "new.txt"}
		})}, "done and verified (main at 1f3c9ab, 2 uncommitted files; no changes; approximately: there is no git program; 1 commit on feature-x is not on main, so it was not verified; " +
			"2 commits on y are not on main, so they were not verified; stashed and not verified: WIP on main; " +
			"emptied lib, a repository of its own (git submodule update --init); ignored by git since this session: deps/, new.txt; changed Makefile, x.mk, which `make test` runs; " +
			"committed what a person had not: notes.txt; changed while it was checked: report.xml; killed: sleep 100; " +
			"agent not contained): it works"},
		{
			"long and many commands are cut",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Killed: []string{
				strings.Repeat("x", 100), "b", "c", "d", "e", "f", "g",
			}}},
			"done and verified (killed: " + strings.Repeat("x", 59) + "…, b, c, d, e and 2 more): it works",
		},
		{
			"of a command, its first line",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Killed: []string{"sh -c 'a\nb'"}}},
			"done and verified (killed: sh -c 'a): it works",
		},
		{
			"a command that just fits is not cut",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Killed: []string{strings.Repeat("x", 60)}}},
			"done and verified (killed: " + strings.Repeat("x", 60) + "): it works",
		},
		{
			"a switched branch",
			signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) { e.Branch, e.Switched = "feature-x", true })},
			"done was refused: HEAD is on feature-x, the session began on main: go back to main with your work",
		},
		{
			"a detached HEAD",
			signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) { e.Branch, e.Switched = "", true })},
			"done was refused: HEAD is detached, the session began on main: go back to main with your work",
		},
		{
			"a branch instead of a detached HEAD",
			signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) { e.Branch, e.Began, e.Switched = "feature-x", "", true })},
			"done was refused: HEAD is on feature-x, the session began on a detached HEAD: go back to a detached HEAD with your work",
		},
		{
			"a switched branch where nothing verifies",
			signals.Facts{Evidence: with(func(e *ralph.Evidence) { e.Branch, e.Switched = "feature-x", true })},
			"done was refused: HEAD is on feature-x, the session began on main: go back to main with your work",
		},
		{
			"a lost commit",
			signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) { e.Lost = []ralph.Commit{ann} })},
			`done was refused: 1 commit from before the session is no longer in main: aaaaaaa "Fix login" by Ann; bring it back`,
		},
		{"as many lost commits as are named, on a switched branch", signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) {
			e.Branch, e.Switched, e.Lost = "feature-x", true, []ralph.Commit{ann, ann, ann}
		})}, `done was refused: HEAD is on feature-x, the session began on main: go back to main with your work, 3 commits from before the session are no longer in main: ` +
			`aaaaaaa "Fix login" by Ann, aaaaaaa "Fix login" by Ann, aaaaaaa "Fix login" by Ann; bring them back`},
		{"many lost commits, one of them pruned", signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) {
			e.Lost = []ralph.Commit{ann, {ID: "bbbbbbbbbbbb"}, ann, ann, ann}
		})}, `done was refused: 5 commits from before the session are no longer in any branch: aaaaaaa "Fix login" by Ann, bbbbbbb (its object is gone), aaaaaaa "Fix login" by Ann, and 2 more; bring them back`},
		{
			"a secret",
			signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) { e.Taken, e.Secrets = []string{".env"}, []string{".env"} })},
			"done was refused: .env looks like a secret of a person's and was committed: undo that, so that no branch has it",
		},
		{
			"many secrets, with other files of a person's",
			signals.Facts{Verify: green, Evidence: with(func(e *ralph.Evidence) {
				e.Secrets = []string{".env", "a.pem", "b.pem", "c.pem", "d.pem", "e.pem"}
				e.Taken = append([]string{"draft.md"}, e.Secrets...)
			})},
			"done was refused: .env, a.pem, b.pem, c.pem, d.pem, e.pem look like secrets of a person's and were committed: " +
				"undo that, so that no branch has them (with what a person had not committed either: draft.md)",
		},
		{"a command that changes a protected file, also where people review them", signals.Facts{
			Verify: green, Rules: signals.Rules{ReviewProtect: true},
			Evidence: with(func(e *ralph.Evidence) {
				e.Rewritten = []ralph.Touch{{File: "tests/check.sh", Command: "sh build.sh"}}
			}),
		}, "done was refused: tests/check.sh is protected and was changed while `sh build.sh` ran"},
		{"commits of repositories within that nobody else could get", signals.Facts{
			Verify: green, Evidence: with(func(e *ralph.Evidence) { e.Within = []string{"sub is at aaa", "lib is at bbb"} }),
		}, "done was refused: sub is at aaa, lib is at bbb, so that nobody else could have what lands: push those commits there, " +
			"or have the files be the project's own"},
		{"red and on another branch", signals.Facts{
			Verify:   []ralph.Check{{Command: "make test", Exit: 2}},
			Evidence: with(func(e *ralph.Evidence) { e.Branch, e.Switched = "x", true }),
		}, "done was refused: `make test` exits 2, HEAD is on x, the session began on main: go back to main with your work"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts
			review := f.Rules.ReviewProtect
			f.Ending, f.Said, f.Confirmed, f.Rules = ralph.Finished, say(done), true, rules
			f.Rules.ReviewProtect = review
			d := signals.Decide(f)
			if d.StatusReason != tt.want {
				t.Errorf("got\n%s\nwant\n%s", d.StatusReason, tt.want)
			}
			if accepted := strings.HasPrefix(tt.want, "done and") || strings.HasPrefix(tt.want, "done ("); d.Accepted != accepted {
				t.Errorf("accepted is %t", d.Accepted)
			}
		})
	}
}

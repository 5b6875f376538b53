package signals_test

import (
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/signals"
)

// TestVerdictOfADone checks people's text about a done, for different evidence.
func TestVerdictOfADone(t *testing.T) {
	green := []ralph.Check{{Command: "make test", Passed: true}}
	commits := func(n int) (list []ralph.CommitNote) {
		for range n {
			list = append(list, ralph.CommitNote{ID: "abcdefabcd", Author: "Ada"})
		}
		return list
	}
	untaken := func(n int) (list []ralph.Untaken) {
		for range n {
			list = append(list, ralph.Untaken{Path: "a", Why: "is a socket"})
		}
		return list
	}
	ada, socket := strings.Repeat("commit abcdefa is by Ada; ", 5), strings.Repeat("a is a socket, ", 5)
	blocking := []ralph.Objection{{Severity: ralph.ObjectionBlocking, File: "a.go", Line: 3, What: "it leaks"}}
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  string
	}{
		{"nothing else", signals.Facts{Verify: green}, "done and verified: it works"},
		{"nothing verifies it", signals.Facts{}, "done (nothing is configured to verify it): it works"},
		{"all that can be told", signals.Facts{Verify: green, Untouched: true, Evidence: ralph.Evidence{
			Killed: []string{"sleep 100"},
			Aside:  []ralph.Aside{{Branch: "feature-x", Commits: 1}, {Branch: "y", Commits: 2}}, Stashes: []string{"WIP on main"},
			Drives:      []ralph.Touch{{File: "Makefile", Command: "make test"}, {File: "x.mk", Command: "make test"}},
			Uncontained: true,
		}}, "done and verified (no changes; 1 commit on feature-x is not part of the work, so it was not verified; " +
			"2 commits on y are not part of the work, so they were not verified; stashed and not verified: WIP on main; " +
			"changed Makefile, x.mk, which `make test` runs; killed: sleep 100; agent not contained): it works"},
		{"more that can be told", signals.Facts{
			Verify: []ralph.Check{{Command: "make test", Passed: true, Flaky: []string{"TestA"}, Copied: []ralph.Copied{{
				Folder: "node_modules", Command: "npm ci", Cause: ralph.NoNetwork,
			}}}},
			Evidence: ralph.Evidence{Modules: []string{"lib"}, Debris: []string{"a.py~"}, Strangers: 2},
		}, "done and verified (flaky: TestA failed 1 of 2; node_modules is a copy of yours: `npm ci` failed (no network); " +
			"once merged, `git submodule update` brings lib to your checkout; left out: a.py~; " +
			"2 attempts of other programs to speak as the agent refused): it works"},
		{"only approving reviews are told", signals.Facts{Verify: green, Evidence: ralph.Evidence{Rounds: 2, Reviews: []ralph.Review{
			{Agent: "codex", Checked: "all"}, {Agent: "gemini", None: "it read nothing"}, {Agent: "claude", Objections: blocking},
		}}}, "waits for approval of a reviewer's open objections (claude objects: a.go:3: it leaks), " +
			"a change that was not reviewed (no review by gemini: it read nothing); done and verified (reviewed and approved by codex: all): it works"},
		{
			"five commits in the name of others",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Commits: commits(5)}},
			"done and verified (" + strings.TrimSuffix(ada, "; ") + "): it works",
		},
		{
			"more of them",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Commits: commits(6)}},
			"done and verified (" + ada + "1 commit more with an author, date or words of others): it works",
		},
		{"all that refuses", signals.Facts{Verify: green, Evidence: ralph.Evidence{
			Untaken: untaken(6), Hidden: []string{"it adds\nand more"}, Blind: []string{"it subtracts\nand more"},
			Reviews: []ralph.Review{{Agent: "claude", Objections: blocking}},
		}}, "done was refused: " + socket + "1 file more cannot be taken either, a check that you do not see failed: it adds, " +
			"a check that you do not see passes with any expectation: it subtracts, claude objects: a.go:3: it leaks"},
		{
			"five files that cannot be taken",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Untaken: untaken(5)}},
			"done was refused: " + strings.TrimSuffix(socket, ", "),
		},
		{
			"commits in the name of others",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Commits: []ralph.CommitNote{
				{ID: "0123456789", Author: "Ada <ada@x>", Words: []string{"[skip ci]", "Closes #7"}},
				{ID: "abcdefabcd", Date: ralph.At(time.Unix(0, 0))},
			}}},
			"done and verified (commit 0123456 is by Ada <ada@x>, says [skip ci], Closes #7; " +
				"commit abcdefa is dated 1970-01-01): it works",
		},
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
			"a secret",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Secrets: []string{".env"}}},
			"done was refused: .env looks like a secret of a person's and was committed: undo that, so that no commit of yours has it",
		},
		{
			"two secrets",
			signals.Facts{Verify: green, Evidence: ralph.Evidence{Secrets: []string{".env", "a.pem"}}},
			"done was refused: .env, a.pem look like secrets of a person's and were committed: " +
				"undo that, so that no commit of yours has them",
		},
		{
			"files that configure runs",
			signals.Facts{Verify: green, Merges: true, Evidence: ralph.Evidence{Gate: ralph.Gate{Guarded: []ralph.Blob{{Path: "ralph.yaml"}}}}},
			"waits for approval of guarded files (ralph.yaml); done and verified: it works",
		},
		{"a command that changes a protected file, also where people review them", signals.Facts{
			Verify: green, Rules: signals.Rules{ReviewProtect: true},
			Evidence: ralph.Evidence{Rewritten: []ralph.Touch{{File: "tests/check.sh", Command: "sh build.sh"}}},
		}, "done was refused: tests/check.sh is protected and was changed while `sh build.sh` ran"},
		{"commits of repositories within that nobody else could get", signals.Facts{
			Verify: green, Evidence: ralph.Evidence{Within: []string{"sub is at aaa", "lib is at bbb"}},
		}, "done was refused: sub is at aaa, lib is at bbb, so that nobody else could fetch the merged work: push those commits there, " +
			"or have the files be the project's own"},
		{"red and with a secret", signals.Facts{
			Verify: []ralph.Check{{Command: "make test", Exit: 2}}, Evidence: ralph.Evidence{Secrets: []string{".env"}},
		}, "done was refused: `make test` exits 2, .env looks like a secret of a person's and was committed: " +
			"undo that, so that no commit of yours has it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts
			review := f.Rules.ReviewProtect
			f.Ending, f.Said, f.Vouched, f.Rules = ralph.Finished, say(done), true, rules
			f.Rules.ReviewProtect = review
			d := signals.Decide(f)
			if d.StatusReason != tt.want {
				t.Errorf("got\n%s\nwant\n%s", d.StatusReason, tt.want)
			}
			if accepted := !strings.HasPrefix(tt.want, "done was refused"); d.Accepted != accepted {
				t.Errorf("accepted is %t", d.Accepted)
			}
		})
	}
}

// TestUntakenPathsAreNamed: in full unless a path would fill the line, and always with the reason.
func TestUntakenPathsAreNamed(t *testing.T) {
	for _, tt := range []struct{ path, why, want string }{
		{"a/b.txt", "is deep", "a/b.txt is deep"},
		{strings.Repeat("x/", 99) + "xy", "is deep", strings.Repeat("x/", 99) + "xy is deep"},
		{strings.Repeat("x/", 100) + "x", "is deep", strings.Repeat("x/", 29) + "x… (101 levels deep) is deep"},
		{"a", strings.Repeat("y", 401), "a " + strings.Repeat("y", 399) + "…"},
	} {
		if got := signals.NotTaken(ralph.Untaken{Path: tt.path, Why: tt.why}); got != tt.want {
			t.Errorf("of %s it says %q, want %q", tt.path, got, tt.want)
		}
	}
}

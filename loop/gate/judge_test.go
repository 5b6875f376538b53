package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ralph/internal/testresult"
	"ralph/loop/gate"
)

// run reads a run: names of tests that passed, failed after "-", were skipped after "~", have no status after "?"; a
// number is a summary in text, with "/" and how many were skipped; "red" is a command that failed, "none" one that
// reports nothing. A "+" stands for a space in a name.
func run(text string) []gate.Run {
	if text == "" {
		return nil
	}
	r := gate.Run{Command: "check", Passed: true, Tests: &testresult.Results{Tests: map[string]testresult.Status{}}}
	for word := range strings.FieldsSeq(text) {
		var n int
		switch word = strings.ReplaceAll(word, "+", " "); {
		case word == "red":
			r.Passed = false
		case word == "none":
			r.Tests = nil
		case word[0] == '-':
			r.Tests.Tests[word[1:]] = testresult.Failed
		case word[0] == '~':
			r.Tests.Tests[word[1:]] = testresult.Skipped
		case word[0] == '?':
			r.Tests.Tests[word[1:]] = testresult.Unknown
			r.Tests.Named++
		default:
			passed, skipped, _ := strings.Cut(word, "/")
			if _, err := fmt.Sscanf(passed, "%d", &n); err == nil {
				c := r.Tests.Counts["check"]
				c.Lines, c.Passed = c.Lines+1, c.Passed+n
				if _, err := fmt.Sscanf(skipped, "%d", &n); err == nil {
					c.Skipped += n
				}
				r.Tests.Text, r.Tests.Counts = true, map[string]testresult.Count{"check": c}
			} else {
				r.Tests.Tests[word] = testresult.Passed
				r.Tests.Named++
			}
		}
	}
	return []gate.Run{r}
}

func TestJudge(t *testing.T) {
	const test, setting, removed, moved, away = "test", "setting", "removed", "moved", "away"
	for _, c := range []struct {
		name, files           string
		target, now, old, new string
		want                  string
	}{
		// As in the table of docs/gate.md, row by row.
		{"gone, and its former self fails", removed, "p.TestA p.TestB", "p.TestB", "red -p.TestA p.TestB", "", "lost p.TestA"},
		{"skipped", test, "p.TestA p.TestB", "~p.TestA p.TestB", "red -p.TestA p.TestB", "", "lost p.TestA"},
		{"not run", test, "p.TestA p.TestB", "p.TestB", "red p.TestB", "", "lost p.TestA"},
		{"the setting that ran it was changed", setting, "p.TestA", "p.TestA", "red -p.TestA", "p.TestA", "lost p.TestA"},
		{"there, passes, and passes on the old code", test, "p.TestA", "p.TestA", "red -p.TestA", "p.TestA", "loosened p.TestA"},
		{"there, passes, and fails on the old code", test, "p.TestA", "p.TestA", "red -p.TestA", "red -p.TestA", "changed p.TestA"},
		{"renamed", test, "p.TestA p.TestB", "p.TestC p.TestB", "p.TestA p.TestB", "", ""},
		{"moved to another file", test, "a.py::test_a", "b.py::test_a", "a.py::test_a", "", ""},
		{"does not compile, by name", test, "p.TestA p.TestB", "p.TestA p.TestB", "red -p", "red p.TestA", "loosened p.TestA, changed p.TestB"},

		{"nothing is changed", "", "p.TestA", "p.TestA", "", "", ""},
		{"tests are added", "", "p.TestA", "p.TestA p.TestB", "", "", ""},
		{"the former tests pass", test, "p.TestA", "p.TestA", "p.TestA", "", ""},
		{"gone without a gate file", "", "p.TestA p.TestB", "p.TestB", "", "", "lost p.TestA"},
		{"skipped without a gate file", "", "p.TestA p.TestB", "~p.TestA p.TestB", "", "", "lost p.TestA"},
		{"gone, though its former self passes", removed, "p.TestA p.TestB", "p.TestB", "p.TestA p.TestB", "", "lost p.TestA"},
		{"skipped, though its former self passes", test, "p.TestA p.TestB", "~p.TestA p.TestB", "p.TestA p.TestB", "", "lost p.TestA"},
		{"two gone, one new", test, "p.TestA p.TestB", "p.TestC", "p.TestA p.TestB", "", "lost p.TestB"},
		{"gone, and a trivial one in its place", test, "p.TestA", "p.TestC", "red -p.TestA", "", "lost p.TestA"},
		{"fails, and the command does not mind", test, "p.TestA p.TestB", "-p.TestA p.TestB", "p.TestA p.TestB", "", "lost p.TestA"},
		{"skipped before, too", test, "~p.TestA p.TestB", "p.TestB", "p.TestB", "", ""},
		{"failed before, too", test, "red -p.TestA p.TestB", "p.TestB", "red -p.TestA p.TestB", "", ""},
		{"nobody knows of the old code", test, "p.TestA", "p.TestA", "red -p.TestA", "", "changed p.TestA"},
		{"a subtest is gone", test, "p.TestA p.TestA/v1.2 p.TestA/b", "p.TestA p.TestA/b", "p.TestA p.TestA/v1.2 p.TestA/b", "", "lost p.TestA/v1.2"},
		{"a title with dots", test, "sum.adds+1.5+and+2", "sum.adds+1.5+and+3+now", "sum.adds+1.5+and+2", "", ""},
		{"a title with dots, in another suite", test, "sum.fits+1.5", "calc.hits+1.5", "sum.fits+1.5", "", "lost sum.fits 1.5"},
		{"a title with dots, moved", test, "sum.adds+1.5", "calc.adds+1.5", "sum.adds+1.5", "", ""},
		{"a title without a suite, renamed", test, "adds+1", "takes+2", "adds+1", "", ""},
		{"a name without a suite, renamed", test, "adds", "takes", "adds", "", ""},
		{"moved to another package", test, "p.TestA p.TestB", "q.TestA p.TestB", "p.TestA p.TestB", "", ""},
		{"a subtest with dots, in another package", test, "p.TestA/v1.2", "q.TestB/v3.2", "p.TestA/v1.2", "", "lost p.TestA/v1.2"},
		{"moved to another class", test, "a.py::A::test_x", "b.py::BC::test_x", "a.py::A::test_x", "", ""},
		{"moved to another block", test, "sum+>+adds", "calc+>+more+>+adds", "sum+>+adds", "", ""},
		{"failed before, and the next one is gone", "", "red -p.TestA p.TestB", "p.TestA", "", "", "lost p.TestB"},

		{"no test runs any more", test, "p.TestA", "none", "p.TestA", "", "refused: `check` passes, but runs no test, where 1 passes on the target"},
		{"all are skipped", test, "p.TestA p.TestB", "~p.TestA ~p.TestB", "", "", "refused: `check` passes, but runs no test, where 2 pass on the target"},
		{"none is counted any more", "", "3", "none", "", "", "refused: `check` passes, but runs no test, where 3 pass on the target"},
		{"a test prints a summary where the runner has none", "", "p.TestA p.TestB", "p.TestA p.TestB 0", "", "", ""},
		{"a test prints one, and one is gone", "", "p.TestA p.TestB", "p.TestA 0", "", "", "lost p.TestB"},
		{"fewer are counted", "", "3", "2", "", "", "lost check"},
		{"fewer are counted in a file with a name", test, "a.test.js 3", "a.test.js 2", "a.test.js 3", "", "lost check"},
		{"more are counted", "", "3", "4", "", "", ""},

		// Names in text, and summaries.
		{"no status, and as many", "", "T.a T.b 2", "?T.a T.b 2", "", "", ""},
		{"no name, and as many", "", "T.a T.b 2", "T.b 2", "", "", ""},
		{"no name, and more", "", "T.a T.b 2", "T.b T.c 3", "", "", ""},
		{"another name that was printed", "", "T.a built 1", "T.a 1", "", "", ""},
		{"no status, and another one is gone", "", "T.a T.b T.c 3", "?T.a T.b 2", "", "", "lost T.c"},
		{"no status, and fewer", "", "T.a T.b 2", "?T.a T.b 1", "", "", "lost T.a"},
		{"no name, and fewer", "", "T.a T.b 2", "T.b 1", "", "", "lost T.a"},
		{"no status, and no summary", "", "T.a T.b 2", "?T.a T.b", "", "", "lost T.a"},
		{"no status, and no summary before either", "", "T.a T.b", "?T.a T.b", "", "", ""},
		{"no status, and one is skipped", "", "T.a T.b 2", "?T.a T.b T.c 2/1", "", "", "lost T.a"},
		{"no status, and the one that is skipped is known", "", "T.a T.b 2", "?T.a T.b ~T.c 2/1", "", "", ""},
		{"no name, and another one", "", "T.a T.b 2", "T.b T.c 2", "", "", ""},
		{"another name that was printed, and changed files", test, "T.a built 1", "T.a 1", "T.a built 1", "", ""},
		{"other names that are printed, in changed files", test, "T.a T.b 2", "T.b built done 2", "T.a T.b 2", "", ""},
		{"no name, and a summary that was printed", "", "T.a T.b 2", "T.b 1 2", "", "", "lost T.a"},
		{"no name, of a command that was red", "", "red T.a T.b 2", "T.b 2", "", "", "lost T.a"},
		{"a name that was printed, and fewer", "", "T.a T.b 2", "T.a T.b 1", "", "", "lost check"},
		{"no name, and another one in a changed file", test, "T.a T.b 2", "T.b U.c 2", "T.a T.b 2", "", "lost T.a"},
		{"no name, and one without a status in a changed file", test, "T.a T.b 2", "T.b ?U.c 2", "T.a T.b 2", "", "lost T.a"},
		{"no name in a changed file", test, "T.a T.b 2", "T.b 2", "T.a T.b 2", "", ""},
		{"the former tests have no status", test, "T.a T.b 2", "T.a T.b 2", "?T.a T.b 2", "", ""},
		{"the former tests have no name", test, "T.a T.b 2", "T.a T.b 2", "T.b 2", "", ""},
		{"the former tests fail, without a status", test, "T.a T.b 2", "T.a T.b 2", "red ?T.a T.b 2", "red 2", "changed check"},
		{"emptied, without a status", test, "T.a T.b 2", "?T.a T.b 2", "red -T.a T.b 2", "?T.a T.b 2", "loosened T.a"},
		{"names of a report are sure", "", "T.a T.b", "T.b T.c", "", "", "lost T.a"},

		{"moved with its code", away, "a.TestA", "b/a.TestA", "red", "", ""},
		{"moved with its code under the same name", away, "TestA", "TestA", "red -TestA", "red", ""},
		{"moved with its code, and one is missing", away, "a.TestA a.TestB", "b/a.TestA", "red", "", "lost a.TestB"},
		{"moved with its code, and another one in its place", away, "a.TestA", "a.TestC", "red", "", "lost a.TestA"},

		// Commands without names.
		{"moved with its code, without names", away, "none", "none", "red none", "", "lost check"},
		{"imports changed with moved code, without names", "imports", "none", "none", "red none", "", ""},
		{"passes under the old gate", test, "none", "none", "none", "", ""},
		{"a script was changed", setting, "none", "none", "red none", "none", "lost check"},
		{"a test was removed", removed, "none", "none", "red none", "none", "lost check"},
		{"a test was removed that the new code passes", removed, "none", "none", "none", "", "lost check"},
		{"a test was removed, and counts are as before", removed, "2", "2", "2", "", "lost check"},
		{"a test was moved", moved, "none", "none", "none", "", ""},
		{"a test was loosened", test, "none", "none", "red none", "none", "loosened check"},
		{"a test was changed", test, "none", "none", "red none", "red none", "changed check"},
		{"it was red before", test, "red none", "none", "red none", "none", ""},
		{"it is refused anyway", test, "none", "red none", "red none", "none", ""},
		{"its names pass, and it fails with what it ran", setting, "p.TestA", "p.TestA", "red p.TestA", "", "lost check"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var files []gate.Changed
			file := gate.File{Path: "a_test.go", Was: []byte("a"), Is: []byte("b")}
			switch c.files {
			case test, "imports":
				files = []gate.Changed{{File: file, Kind: gate.Test}}
			case setting:
				files = []gate.Changed{{File: file, Kind: gate.Setting}}
			case removed, moved, away:
				file.Is = nil
				files = []gate.Changed{{File: file, Kind: gate.Test}}
				if c.files != removed {
					files = append(files, gate.Changed{File: gate.File{Path: "b_test.go", Is: file.Was}, Kind: gate.Test})
				}
			}
			found, refused := gate.Judge(gate.Results{
				Moved: c.files == away || c.files == "imports", Files: files, Target: run(c.target), Now: run(c.now), Old: run(c.old), New: run(c.new),
			})
			var got []string
			for _, f := range found {
				got = append(got, strings.Trim(string(f.Kind)+" "+f.Name(), "`"))
				if f.Why == "" || f.Command != "check" {
					t.Errorf("without a reason or a command: %+v", f)
				}
			}
			if refused != "" {
				got = append(got, "refused: "+refused)
			}
			if got := strings.ReplaceAll(strings.Join(got, ", "), "lost `", "lost "); strings.Replace(got, " `check", " check", 1) !=
				strings.Replace(c.want, " `check", " check", 1) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestRemovedTestFiles: a removed one is lost unless an added test file has at least half of its lines.
func TestRemovedTestFiles(t *testing.T) {
	gone := func(name, text string) gate.Changed {
		return gate.Changed{File: gate.File{Path: name, Was: []byte(text)}, Kind: gate.Test}
	}
	there := func(kind gate.Kind, text string) gate.Changed {
		return gate.Changed{File: gate.File{Path: "b_test.go", Is: []byte(text)}, Kind: kind}
	}
	for _, c := range []struct {
		name  string
		files []gate.Changed
		want  string // the beginning of the reason; "" if nothing is lost
	}{
		{"half of it is there", []gate.Changed{gone("a_test.go", "a\nb\n"), there(gate.Test, "a\nc\n")}, ""},
		{"a third of it is there", []gate.Changed{gone("a_test.go", "a\nb\nc\n"), there(gate.Test, "a\n")}, "a_test.go removed"},
		{"nothing of it is there", []gate.Changed{gone("a_test.go", "a\nb\n"), there(gate.Test, "c\n")}, "a_test.go removed"},
		{"its blank lines are there", []gate.Changed{gone("a_test.go", "a\n\n\n"), there(gate.Test, "b\n\n")}, "a_test.go removed"},
		{"it is in another layout", []gate.Changed{gone("a_test.go", "a\n"), there(gate.Test, "  a\n")}, ""},
		{"a setting has its lines", []gate.Changed{gone("a_test.go", "a\n"), there(gate.Setting, "a\n")}, "a_test.go removed"},
		{"a fixture", []gate.Changed{gone("testdata/a.json", "a\n")}, ""},
		{"after a fixture", []gate.Changed{gone("testdata/a.json", "a\n"), gone("a_test.go", "a\n")}, "a_test.go removed"},
		{"three", []gate.Changed{gone("a.py", "1"), gone("b.py", "2"), gone("c.py", "3")}, "a.py, b.py, c.py removed"},
		{"five", []gate.Changed{gone("a.py", "1"), gone("b.py", "2"), gone("c.py", "3"), gone("d.py", "4"), gone("e.py", "5")}, "a.py, b.py, c.py and 2 more removed"},
	} {
		why := ""
		found, _ := gate.Judge(gate.Results{Files: c.files, Target: run("none"), Now: run("none"), Old: run("none")})
		for _, f := range found {
			why += f.Why
		}
		if !strings.HasPrefix(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestSeveralCommands: each is judged, whatever became of those before.
func TestSeveralCommands(t *testing.T) {
	runs := func(texts ...string) (list []gate.Run) {
		for i, text := range texts {
			for _, r := range run(text) {
				r.Command = fmt.Sprint(i)
				list = append(list, r)
			}
		}
		return list
	}
	found, refused := gate.Judge(gate.Results{
		Target: runs("A", "B", "C D"), Now: runs("", "red -B", "C"),
	})
	if len(found) != 1 || found[0].Test != "D" || found[0].Command != "2" || refused != "" {
		t.Errorf("%+v %s", found, refused)
	}
	proved, _ := gate.Prove(gate.Results{
		Target: runs("A", "none", "C"), Now: runs("A B", "none", "C D"), New: runs("", "red none", "red C -D"),
	})
	if strings.Join(proved, " ") != "`1` D" {
		t.Errorf("%q", proved)
	}
}

// TestPasses: commands that failed before or fail now say nothing of the old gate.
func TestPasses(t *testing.T) {
	for _, c := range []struct {
		target, now, old string
		want             bool
	}{
		{"A", "A", "", false}, // it was not tried
		{"A", "A", "A", true},
		{"A", "A", "red -A", false},
		{"red -A", "A", "red -A", true},
		{"A", "red -A", "red -A", true},
		{"", "A", "red -A", true},
		{"A", "", "red -A", true},
	} {
		if got := gate.Passes(gate.Results{Target: run(c.target), Now: run(c.now), Old: run(c.old)}); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestBoth: a test has passed twice, and as many are counted as in the run with fewer.
func TestBoth(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"A B", "A -B", "A -B"},
		{"A -B", "A B", "A -B"},
		{"A", "~A", "~A"},
		{"A", "B", "A"},
		{"red A", "A", "red A"},
		{"A", "red A", "red A"},
		{"A", "none", "A"},
		{"none", "A", "none"},
		{"3", "2", "2"},
		{"2", "3", "2"},
		{"A", "", "A"},
		{"", "A", ""},
	} {
		a := run(c.a)
		if diff := cmp.Diff(run(c.want), gate.Both(a, run(c.b)), cmpopts.IgnoreFields(testresult.Results{}, "Named")); diff != "" {
			t.Errorf("%s, %s:\n%s", c.a, c.b, diff)
		}
		if diff := cmp.Diff(run(c.a), a); diff != "" {
			t.Errorf("%s, %s: it changes the first run:\n%s", c.a, c.b, diff)
		}
	}
}

func TestProve(t *testing.T) {
	for _, c := range []struct {
		name, target, now, new, want string
		idle                         int
	}{
		{"a new test", "p.TestA", "p.TestA p.TestB", "red p.TestA -p.TestB", "p.TestB", 0},
		{"a new test that does not compile there", "p.TestA", "p.TestA p.TestB", "red -p", "p.TestB", 0},
		{"a new test that passes on both", "p.TestA", "p.TestA p.TestB", "p.TestA p.TestB", "", 1},
		{"a changed test", "p.TestA", "p.TestA", "red -p.TestA", "p.TestA", 0},
		{"a command without names", "none", "none", "red none", "`check`", 0},
		{"a command that was red", "red none", "none", "red none", "", 0},
		{"a new test without a name in text that passes", "T.a 1", "T.a T.b 2", "T.a 2", "", 1},
		{"a new test without a status", "T.a 1", "T.a T.b 2", "red T.a ?T.b 2", "", 1},
		{"a new test that is skipped", "p.TestA", "p.TestA ~p.TestB", "red p.TestA -p.TestB", "", 0},
		{"a command that only counts", "2", "3", "red 2", "`check`", 0},
		{"it was not tried", "p.TestA", "p.TestA p.TestB", "", "", 0},
	} {
		proved, idle := gate.Prove(gate.Results{Target: run(c.target), Now: run(c.now), New: run(c.new)})
		if strings.Join(proved, " ") != c.want || idle != c.idle {
			t.Errorf("%s: %q, %d", c.name, proved, idle)
		}
	}
}

// TestDoubtful: only failures of tests that passed on the target may be flaky.
func TestDoubtful(t *testing.T) {
	run := func(passed bool, tests map[string]testresult.Status) gate.Run {
		r := gate.Run{Command: "t", Passed: passed}
		if tests != nil {
			r.Tests = &testresult.Results{Tests: tests}
		}
		return r
	}
	type tests = map[string]testresult.Status
	const red, green = testresult.Failed, testresult.Passed
	for _, c := range []struct {
		name     string
		was, now gate.Run
		want     bool
	}{
		{"a test that passed", run(true, tests{"A": green}), run(false, tests{"A": red}), true},
		{"a new test", run(true, tests{"A": green}), run(false, tests{"A": green, "B": red}), false},
		{"one that failed before", run(false, tests{"A": red}), run(false, tests{"A": red}), false},
		{"a command", run(true, nil), run(false, nil), true},
		{"one that failed before, too", run(false, nil), run(false, nil), false},
		{"a run that passes", run(true, nil), run(true, nil), false},
	} {
		if got := gate.Doubtful(&c.was, c.now); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if gate.Doubtful(nil, run(false, nil)) {
		t.Error("a command that did not run before")
	}
}

package trial

import (
	"strings"
	"testing"

	"ralph/internal/testresult"
	"ralph/loop/gate"
)

// run returns the result of the command "t": a letter for each of the tests a, b and so on: p passed, f failed, u
// unknown, - is not named. After a colon comes the command's own result: p or f.
func run(says string) []gate.Run {
	names, passed, _ := strings.Cut(says, ":")
	r := gate.Run{Command: "t", Passed: passed == "p"}
	if names != "" {
		r.Tests = &testresult.Results{Tests: map[string]testresult.Status{}}
	}
	for i, s := range names {
		if s != '-' {
			r.Tests.Tests[string(rune('a'+i))] = map[rune]testresult.Status{
				'p': testresult.Passed, 'f': testresult.Failed, 'u': testresult.Unknown,
			}[s]
		}
	}
	return []gate.Run{r}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name, plain string
		rounds      []string // target, candidate
		want        string
		silent      int
	}{
		{"mutants fail on both", "pp:p", []string{"ff:f", "ff:f"}, "", 0},
		{"a test that notices nothing", "pp:p", []string{"ff:f", "fp:f"}, "b", 0},
		{"a mutant that says nothing", "pp:p", []string{"fp:f", "fp:f"}, "", 1},
		{"a mutant passes, another one does not", "pp:p", []string{"ff:f", "fp:f", "ff:f", "ff:f"}, "", 0},
		{"all mutants pass", "pp:p", []string{"ff:f", "fp:f", "ff:f", "fp:f", "ff:f", "fp:f"}, "b", 0},
		{"another mutant says nothing", "pp:p", []string{"ff:f", "fp:f", "fp:f", "fp:f"}, "b", 0},
		{"one of two accepted values", "pp:p", []string{"ff:f", "fp:f", "fp:f", "ff:f"}, "", 0},
		{"no names, and one of two accepted values", ":p", []string{":f", ":p", ":p", ":f"}, "", 0},
		{"it failed as it was", "pf:f", []string{"ff:f", "fp:f"}, "", 0},
		{"a status that cannot be told", "pp:p", []string{"ff:f", "fu:f"}, "", 0},
		{"it does not run", "pp:p", []string{"ff:f", "f-:f"}, "", 0},
		{"a row with its value in its name", "p-:p", []string{"-f:f", "-p:p"}, "b", 0},
		{"no names", ":p", []string{":f", ":f"}, "", 0},
		{"no names, and nothing is noticed", ":p", []string{":f", ":p"}, "`t`", 0},
		{"no names, and another mutant is noticed", ":p", []string{":f", ":p", ":f", ":f"}, "", 0},
		{"no names, and the mutant says nothing", ":p", []string{":p", ":p"}, "", 0},
		{"names, and an exit", "pp:p", []string{"ff:f", ":p"}, "`t`", 0},
		{"no rounds", "pp:p", nil, "", 0},
	} {
		var rounds []Round
		for i := 0; i+1 < len(c.rounds); i += 2 {
			rounds = append(rounds, Round{run(c.rounds[i]), run(c.rounds[i+1])})
		}
		v := Judge(run(c.plain), rounds)
		if got := strings.Join(v.Neutralised, " "); got != c.want || v.Silent != c.silent {
			t.Errorf("%s: %q, %d silent; want %q, %d", c.name, got, v.Silent, c.want, c.silent)
		}
	}
}

// TestIdle: a test that passes with a changed expectation proves nothing; a test without an expectation has no mutant.
func TestIdle(t *testing.T) {
	files := []Expectations{Read("test_a.py", []byte(
		"def test_one():\n    assert f(1) == 2\n\n\ndef test_two():\n    f(2)\n\n\ndef test_three():\n    assert f(3) == 4\n"))}
	named := []string{"test_a.py::test_one", "test_a.py::test_two", "test_a.py::test_three"}
	r := []gate.Run{{Command: "t", Tests: &testresult.Results{Tests: map[string]testresult.Status{
		named[0]: testresult.Passed, named[1]: testresult.Passed, named[2]: testresult.Failed,
	}}}}
	if got := Idle(files, r, named); len(got) != 1 || got[0] != named[0] {
		t.Errorf("idle: %q", got)
	}
}

func TestBase(t *testing.T) {
	for name, want := range map[string]string{
		"sum.TestSum/small": "TestSum", "a.py::T::test_f[1-2]": "test_f", "adds nothing": "adds nothing",
		"a.js > sums > adds two": "adds two", "test_p.P.test_f": "test_f", "TestSum#test_x": "TestSum#test_x", "": "",
	} {
		if got := Base(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

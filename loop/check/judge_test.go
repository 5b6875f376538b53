package check

import (
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/testresult"
)

func TestLimitsOfARedBaseline(t *testing.T) {
	named := ralph.Check{Command: "go test -json", Exit: 1}
	red, err := testresult.ParseGoJSON(strings.NewReader(
		`{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		strict bool
		result Outcome
		want   bool
	}{
		{"all is green", true, Outcome{Check: ralph.Check{Command: "lint", Passed: true}}, true},
		{"a command that names no tests", false, Outcome{Check: ralph.Check{Command: "make test", Exit: 2}}, false},
		{"one that names its tests is excused for them", false, Outcome{Check: named, Tests: red}, true},
		{"but not where that is strict", true, Outcome{Check: named, Tests: red}, false},
	} {
		v := &Verifier{Rules: Rules{Strict: tt.strict}}
		if got := v.excusable(tt.result); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestJudgeByTheBaseline(t *testing.T) {
	tests := func(failed ...string) *testresult.Results {
		r := &testresult.Results{Tests: map[string]testresult.Status{"TestGreen": testresult.Passed}}
		for _, f := range failed {
			r.Tests[f] = testresult.Failed
		}
		return r
	}
	const shared = "make test"
	red := func(command string, results *testresult.Results) Outcome {
		return Outcome{Check: ralph.Check{Command: command, Exit: 1}, Tests: results}
	}
	for _, tt := range []struct {
		name     string
		now      Outcome
		before   []Outcome
		strict   bool
		passed   bool
		failures []string
		excused  []string
	}{
		{"what passes, passes", Outcome{Check: ralph.Check{Command: shared, Passed: true}, Tests: tests()}, nil, false, true, nil, nil},
		{"without tests by name nothing is excused", red(shared, nil), []Outcome{red(shared, nil)}, false, false, nil, nil},
		{"without a baseline nothing is excused", red(shared, tests("TestOld")), nil, false, false, []string{"TestOld"}, nil},
		{"what failed before is excused", red(shared, tests("TestOld")), []Outcome{red(shared, tests("TestOld"))}, false, true, nil, []string{"TestOld"}},
		{"but not what fails newly", red(shared, tests("TestOld", "TestNew")), []Outcome{red(shared, tests("TestOld"))}, false, false, []string{"TestNew"}, []string{"TestOld"}},
		{"strictly nothing is", red(shared, tests("TestOld")), []Outcome{red(shared, tests("TestOld"))}, true, false, []string{"TestOld"}, nil},
		{"a command of the task's own is never excused", red("own", tests("TestOld")), []Outcome{red("own", tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
		{"nor by another command", red(shared, tests("TestOld")), []Outcome{red("other", tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
		{"nor by another one of the project", red(shared, tests("TestOld")), []Outcome{red("make lint", tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
		{"nor by a baseline that named no tests", red(shared, tests("TestOld")), []Outcome{red(shared, nil)}, false, false, []string{"TestOld"}, nil},
		{"nor one that crashed or took too long", Outcome{Check: ralph.Check{Command: shared, Exit: -1, Error: "took longer than 1m"}, Tests: tests("TestOld")}, []Outcome{red(shared, tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Compare(tt.now, tt.before, Commands{Shared: []string{"make lint", shared}, Own: []string{"own"}}, tt.strict)
			if c.Passed != tt.passed || !slices.Equal(c.Failures, tt.failures) || !slices.Equal(c.Excused, tt.excused) {
				t.Errorf("passed %t with the failures %q, excused %q", c.Passed, c.Failures, c.Excused)
			}
		})
	}
}

package trial

import (
	"maps"
	"slices"
	"strings"

	"ralph/internal/lazy"
	"ralph/internal/testresult"
	"ralph/loop/gate"
)

// A Round has the results of one mutant of the tests: on the target, and with the candidate's code. Both runs use the
// same commands.
type Round struct{ Target, Candidate []gate.Run }

// A Verdict is the result of rounds for tests.
type Verdict struct {
	Neutralised []string // tests, and commands in backquotes, that pass with any expectation
	Tests       int      // tests whose mutants also pass on the target: they have no say
	Silent      int      // those of them whose mutants pass on the target, too: they say nothing
}

// And joins two trials of the same tests: a test decided by one of them is decided.
func (v Verdict) And(o Verdict) Verdict {
	if v.Tests == 0 && len(v.Neutralised) == 0 {
		return o
	}
	for _, name := range o.Neutralised {
		if !slices.Contains(v.Neutralised, name) {
			v.Neutralised = append(v.Neutralised, name)
		}
	}
	v.Silent = min(v.Silent, o.Silent)
	return v
}

// Judge compares rounds. Plain is the result of the commands on the unchanged target: a test that failed there is
// not judged. A test or a command is neutralised if a mutant fails on the target and no mutant fails with the
// candidate. An assertion that accepts several values is not neutralised: one of its mutants fails with the
// candidate.
func Judge(plain []gate.Run, rounds []Round) (v Verdict) {
	if len(rounds) == 0 {
		return v
	}
	for _, was := range plain {
		names := map[string]bool{}
		blind := 0 // rounds in which the command does not notice
		sees := false
		for _, r := range rounds {
			target, candidate := find(r.Target, was.Command), find(r.Candidate, was.Command)
			if target == nil || candidate == nil {
				continue
			}
			for name := range tests(target) {
				names[name] = true
			}
			if sees = sees || !candidate.Passed; was.Passed && !target.Passed {
				blind++
			}
		}
		found := len(v.Neutralised)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if (was.Passed || passed(&was, name)) && neutral(rounds, was.Command, name) {
				v.Neutralised = append(v.Neutralised, name)
			}
		}
		if blind > 0 && !sees && len(v.Neutralised) == found {
			v.Neutralised = append(v.Neutralised, "`"+was.Command+"`")
		}
		v.count(&was, rounds)
	}
	return v
}

// count counts the tests of a command.
func (v *Verdict) count(was *gate.Run, rounds []Round) {
	for name, s := range tests(was) {
		if s != testresult.Passed {
			continue
		}
		v.Tests++
		if !slices.ContainsFunc(rounds, func(r Round) bool { return !passed(find(r.Target, was.Command), name) }) {
			v.Silent++
		}
	}
}

// neutral reports whether a test fails in at least one round on the target, passes with the candidate in all of these,
// and fails with it in no other.
func neutral(rounds []Round, command, name string) bool {
	fails := 0
	for _, r := range rounds {
		if tests(find(r.Target, command))[name] != testresult.Failed {
			if tests(find(r.Candidate, command))[name] == testresult.Failed {
				return false
			}
			continue
		}
		if !passed(find(r.Candidate, command), name) {
			return false
		}
		fails++
	}
	return fails > 0
}

// Missing reports whether a run names fewer tests than with the unchanged tests: some mutants do not load together,
// or the runner ends with the first test that fails.
func Missing(was, now []gate.Run) bool {
	for _, w := range was {
		if n := find(now, w.Command); n != nil && len(tests(n)) < len(tests(&w)) {
			return true
		}
	}
	return false
}

// Nameless returns the commands that passed and name no tests: files are tried one by one for them.
func Nameless(plain []gate.Run) (commands []string) {
	for _, r := range plain {
		if r.Passed && len(tests(&r)) == 0 {
			commands = append(commands, r.Command)
		}
	}
	return commands
}

// Sees reports whether one of the commands fails in a run.
func Sees(list []gate.Run, commands []string) bool {
	return slices.ContainsFunc(list, func(r gate.Run) bool { return !r.Passed && slices.Contains(commands, r.Command) })
}

// Idle returns the named tests that a run reports as passed, although one of their mutants was run. The files are the
// changed ones. A test without changeable expectations has no mutant.
func Idle(files []Expectations, run []gate.Run, named []string) (idle []string) {
	for _, name := range named {
		if base := Base(name); slices.ContainsFunc(files, func(e Expectations) bool { return e.states(base, named) }) &&
			slices.ContainsFunc(run, func(r gate.Run) bool { return passed(&r, name) }) {
			idle = append(idle, name)
		}
	}
	return idle
}

// parts are between the parts of a test's name.
var parts = lazy.Regexp(`::| > |\[.*$`)

// Base returns the last part of a test's name: its function or title.
func Base(name string) string {
	list := slices.DeleteFunc(parts().Split(name, -1), func(s string) bool { return s == "" })
	if len(list) == 0 {
		return name
	}
	base := list[len(list)-1]
	if !strings.Contains(base, " ") {
		base, _, _ = strings.Cut(base[strings.LastIndexByte(base, '.')+1:], "/")
	}
	return base
}

// states reports whether the file has an expectation after a name, and before any other of the
// named.
func (e Expectations) states(base string, named []string) bool {
	at := place(e.text, base)
	if at < 0 {
		return false
	}
	end := len(e.text)
	for _, other := range named {
		if o := place(e.text, Base(other)); o > at {
			end = min(end, o)
		}
	}
	return slices.ContainsFunc(e.list, func(x expectation) bool { return x.options[0].at > at && x.options[0].at < end })
}

// place returns the place of a complete name in a text; -1 for nowhere.
func place(text, name string) int {
	for from := 0; name != ""; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			break
		}
		at := from + i
		before := at == 0 || !isLetter(rune(text[at-1]))
		if end := at + len(name); before && (end == len(text) || !isLetter(rune(text[end]))) {
			return at
		}
		from = at + 1
	}
	return -1
}

// find returns a command's run; nil if there is none.
func find(list []gate.Run, command string) *gate.Run {
	i := slices.IndexFunc(list, func(r gate.Run) bool { return r.Command == command })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// tests returns the tests that a run names.
func tests(r *gate.Run) map[string]testresult.Status {
	if r == nil || r.Tests == nil {
		return nil
	}
	return r.Tests.Tests
}

// passed reports whether a run names a test as passed.
func passed(r *gate.Run, name string) bool { return tests(r)[name] == testresult.Passed }

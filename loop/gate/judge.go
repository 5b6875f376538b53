package gate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/testresult"
	"ralph/internal/text"
)

// A Run is the result of a command on a tree.
type Run struct {
	Command string
	Passed  bool
	Tests   *testresult.Results // nil if it names none
}

// status returns the command's result of a test; "" if it does not name it.
func (r *Run) status(test string) testresult.Status {
	if r == nil || r.Tests == nil {
		return ""
	}
	return r.Tests.Tests[test]
}

// passed reports whether the command names a test as passed.
func (r *Run) passed(test string) bool { return r.status(test) == testresult.Passed }

// counted reports whether both runs passed and count tests in text, the later one no fewer. Then a test that the
// later run does not name has run nevertheless.
func counted(was, now *Run) bool {
	return was != nil && now != nil && was.Passed && now.Passed && testresult.AsMany(was.Tests, now.Tests)
}

// Both returns the results that two verifications with the same commands share.
func Both(a, b []Run) (list []Run) {
	for i, r := range a {
		if i < len(b) {
			r.Passed = r.Passed && b[i].Passed
			if r.Tests != nil && b[i].Tests != nil {
				tests := *r.Tests
				tests.Tests = maps.Clone(tests.Tests)
				if !testresult.AsMany(&tests, b[i].Tests) {
					tests.Counts = b[i].Tests.Counts
				}
				for name, other := range b[i].Tests.Tests {
					if tests.Tests[name] == testresult.Passed {
						tests.Tests[name] = other
					}
				}
				r.Tests = &tests
			}
		}
		list = append(list, r)
	}
	return list
}

// Doubtful reports whether a failed run has a failure that may be a flaky test's: what failed passed in was.
func Doubtful(was *Run, now Run) bool {
	switch {
	case now.Passed || was == nil:
		return false
	case now.Tests == nil:
		return was.Passed
	}
	return slices.ContainsFunc(now.Tests.Failed(), was.passed)
}

// count returns how many tests passed: as summaries in text say, else by their names.
func (r *Run) count() int {
	switch {
	case r == nil || r.Tests == nil:
		return 0
	case len(r.Tests.Counts) > 0:
		return r.Tests.Count()
	}
	return r.names()
}

// names returns the number of tests that are named as passed.
func (r *Run) names() (n int) {
	if r.Tests == nil {
		return 0
	}
	for _, s := range r.Tests.Tests {
		if s == testresult.Passed {
			n++
		}
	}
	return n
}

// Results are all facts for a judgement. The runs are of the same commands.
type Results struct {
	Files  []Changed // the gate files that differ between target and candidate
	Target []Run     // the target
	Now    []Run     // the candidate
	Old    []Run     // new code under the old gate; nil if that was not tried
	New    []Run     // old code under the new gate; nil if that was not tried
	Moved  bool      // the change only moves files ([Moved])
}

// RunOf returns a command's run; nil if there is none.
func RunOf(list []Run, command string) *Run { return of(list, command) }

func of(list []Run, command string) *Run {
	i := slices.IndexFunc(list, func(r Run) bool { return r.Command == command })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// Judge compares the passing tests of the target with the passing ones now, row by row of the table in docs/gate.md.
// Refused is the reason why the change is refused outright; "" if it is not.
//
// Whether a test whose former self fails is loosened or changed depends on [Results.New]: without it, it is changed.
func Judge(r Results) (findings []ralph.Weakening, refused string) {
	set := slices.ContainsFunc(r.Files, func(c Changed) bool { return c.Kind == Setting })
	removed := slices.ContainsFunc(r.Files, func(c Changed) bool { return c.Kind == Test && c.Removed() })
	for _, was := range r.Target {
		now := of(r.Now, was.Command)
		if now == nil || !now.Passed {
			continue // it is refused for that, or its failures are known
		}
		old, anew := of(r.Old, was.Command), of(r.New, was.Command)
		// A test may print a summary where the runner prints none: then names count.
		if n := was.count(); n > 0 && now.count() == 0 && (len(was.Tests.Counts) > 0 || now.names() == 0) {
			return nil, fmt.Sprintf("`%s` passes, but runs no test, where %s on the target", was.Command, runs(n))
		}
		one := judgement{was: &was, now: now, old: old, anew: anew, set: set, moved: r.Moved}
		found := one.byName()
		if len(found) == 0 {
			found = one.byCommand(removed, vanished(r.Files))
		}
		findings = append(findings, found...)
	}
	return findings, ""
}

// Passes reports whether the new code passes the old gate for all tests that pass now and passed on the target.
func Passes(r Results) bool {
	return len(r.Old) > 0 && !slices.ContainsFunc(r.Old, func(old Run) bool {
		was, now := of(r.Target, old.Command), of(r.Now, old.Command)
		return !old.Passed && was != nil && was.Passed && now != nil && now.Passed
	})
}

func runs(n int) string {
	if n == 1 {
		return "1 passes"
	}
	return fmt.Sprintf("%d pass", n)
}

// A judgement is of one command.
type judgement struct {
	was, now, old, anew *Run
	set                 bool // a setting was changed, or a file that the command runs
	moved               bool // former selves cannot run where they were
}

// byName judges the tests that passed on the target.
func (j judgement) byName() (found []ralph.Weakening) {
	if j.was.Tests == nil {
		return nil
	}
	add := func(kind ralph.WeakeningKind, test, why string) {
		found = append(found, ralph.Weakening{Kind: kind, Test: test, Command: j.was.Command, Why: why})
	}
	var gone, away []string
	sure, known := j.sure(), j.accounted()
	for _, test := range slices.Sorted(maps.Keys(j.was.Tests.Tests)) {
		if !j.was.passed(test) {
			continue
		}
		status := j.now.status(test)
		there := status != "" || !sure
		if status == testresult.Unknown {
			there = known
		}
		formerly := j.ran(j.old, test) || j.old.status(test) == testresult.Unknown
		switch {
		case status == testresult.Failed:
			add(ralph.TestLost, test, "fails, and the command passes all the same")
		case status == testresult.Skipped:
			add(ralph.TestLost, test, "is skipped")
		case !there && formerly:
			gone = append(gone, test)
		case !there && j.moved:
			away = append(away, test)
		case !there:
			add(ralph.TestLost, test, "does not run any more")
		case j.old == nil || formerly || j.moved:
		case j.set:
			add(ralph.TestLost, test, "fails with the target's commands")
		case j.ran(j.anew, test):
			add(ralph.TestLoosened, test, "passes on the old code too, while its former self fails with the new code")
		default:
			add(ralph.TestChanged, test, "its former self fails with the new code")
		}
	}
	for _, test := range j.missing(gone, away) {
		add(ralph.TestLost, test, "does not run any more")
	}
	return found
}

// ran reports whether a test that passed on the target has passed in another run. For a test
// without a status, the command's status counts.
func (j judgement) ran(r *Run, test string) bool {
	switch r.status(test) {
	case testresult.Passed:
		return true
	case testresult.Unknown:
		return r.Passed
	case "":
		return counted(j.was, r)
	}
	return false
}

// lacks returns the number of tests that passed on the target and have one of the statuses in the
// candidate; "" is not a name.
func (j judgement) lacks(statuses ...testresult.Status) (n int) {
	for test := range j.was.Tests.Tests {
		if j.was.passed(test) && slices.Contains(statuses, j.now.status(test)) {
			n++
		}
	}
	return n
}

// sure reports whether a test that the candidate does not name is gone. Text output leaves doubt if as many tests run
// as on the target. If test files were changed, it is sure if other names replaced them.
func (j judgement) sure() bool {
	if !counted(j.was, j.now) {
		return true
	}
	was, now := j.was.Tests, j.now.Tests
	nameless := now.Count() - now.Named
	if j.old == nil || was.Named > was.Count() || nameless < 0 {
		return false // it names something other than tests
	}
	return j.lacks("") > nameless
}

// accounted reports whether a test of unknown status has run: as many tests run as on the target, or only others are
// missing. Without a summary the answer is no.
func (j judgement) accounted() bool {
	fewer := j.was.count() - j.now.count()
	return len(j.was.Tests.Counts) == 0 || counted(j.was, j.now) ||
		fewer > 0 && j.lacks("", testresult.Skipped, testresult.Failed) >= fewer
}

// missing returns the tests that have disappeared without a successor, and whose former versions pass. A successor
// is a new test of the same name elsewhere, or another new one in the same file. A test that is only absent needs a
// successor of the same name.
func (j judgement) missing(gone, away []string) (missing []string) {
	added := map[string]bool{}
	for test := range j.now.Tests.Tests {
		if _, known := j.was.Tests.Tests[test]; !known && j.now.passed(test) {
			added[test] = true
		}
	}
	take := func(fits func(test string) bool) bool {
		for _, test := range slices.Sorted(maps.Keys(added)) {
			if fits(test) {
				delete(added, test)
				return true
			}
		}
		return false
	}
	moved := func(test string) bool {
		_, name := split(test)
		return take(func(other string) bool { _, o := split(other); return o == name })
	}
	renamed := func(test string) bool {
		suite, _ := split(test)
		return take(func(other string) bool { s, _ := split(other); return s == suite })
	}
	return append(slices.DeleteFunc(away, moved), slices.DeleteFunc(slices.DeleteFunc(gone, moved), renamed)...)
}

// split returns the suite of a test, such as its package, class or file, and its own name.
func split(test string) (suite, name string) {
	for _, kind := range []string{"Test", "Example", "Fuzz", "Benchmark"} {
		if suite, rest, ok := strings.Cut(test, "."+kind); ok {
			return suite, kind + rest
		}
	}
	for _, sep := range []string{"::", " > "} {
		if i := strings.LastIndex(test, sep); i >= 0 {
			return test[:i], test[i+len(sep):]
		}
	}
	if strings.ContainsAny(test, " \t") { // a title, in which a dot has no meaning
		if i := strings.IndexAny(test, ". \t"); test[i] == '.' {
			return test[:i], test[i+1:]
		}
		return "", test
	}
	i := strings.LastIndexByte(test, '.')
	return test[:max(i, 0)], test[i+1:]
}

// byCommand judges a command whose tests have no names, or all pass.
// Vanished are the test files that are gone for good.
func (j judgement) byCommand(removed bool, vanished []string) []ralph.Weakening {
	w := ralph.Weakening{Command: j.was.Command}
	if was, now := j.was.count(), j.now.count(); now < was && (len(j.was.Tests.Counts) > 0 || j.was.names() < was) {
		w.Kind, w.Why = ralph.TestLost, fmt.Sprintf("runs %s, %d on the target", text.Count(now, "test"), was)
		return []ralph.Weakening{w}
	}
	switch {
	case len(vanished) > 0 && j.was.Passed && j.old != nil && (j.was.Tests == nil || j.was.names() == 0):
		w.Kind, w.Why = ralph.TestLost, shown(vanished)+" removed, and no other file has its tests"
		return []ralph.Weakening{w}
	case j.old == nil || j.old.Passed || !j.was.Passed || j.moved && (!removed || named(j.was)):
		return nil
	case j.set:
		w.Kind, w.Why = ralph.TestLost, "fails with the tests it ran on the target"
	case removed:
		w.Kind, w.Why = ralph.TestLost, "fails with the tests that were removed"
	case j.anew != nil && j.anew.Passed:
		w.Kind = ralph.TestLoosened
		w.Why = "its tests pass on the old code too, while their former selves fail with the new code"
	default:
		w.Kind, w.Why = ralph.TestChanged, "its former tests fail with the new code"
	}
	return []ralph.Weakening{w}
}

// shown names a few files.
func shown(files []string) string {
	const most = 3
	if len(files) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:most], ", "), len(files)-most)
	}
	return strings.Join(files, ", ")
}

// vanished returns the removed test files. A file counts as moved if an added file has half of its lines.
func vanished(files []Changed) (list []string) {
	has := map[string]bool{}
	for _, f := range files {
		if f.Kind == Test && f.Is != nil {
			for line := range bytes.Lines(f.Is) {
				has[string(bytes.TrimSpace(line))] = true
			}
		}
	}
	for _, f := range files {
		if f.Kind != Test || !f.Removed() || !programs[language(f.Path)] {
			continue // a fixture may serve any test
		}
		all, kept := 0, 0
		for line := range bytes.Lines(f.Was) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				all++
				if has[string(line)] {
					kept++
				}
			}
		}
		if kept*2 < all {
			list = append(list, f.Path)
		}
	}
	return list
}

// named reports whether a run's tests have names.
func named(r *Run) bool { return r.Tests != nil && len(r.Tests.Tests) > 0 }

// Prove returns the tests that prove a change. They pass now. With the old code under the new gate they fail, or do not
// compile if they are new. Idle counts new tests that pass with the old code, too.
func Prove(r Results) (proved []string, idle int) {
	for _, now := range r.Now {
		was, anew := of(r.Target, now.Command), of(r.New, now.Command)
		if anew == nil || !now.Passed {
			continue
		}
		if !named(&now) {
			if was != nil && was.Passed && !anew.Passed {
				proved = append(proved, "`"+now.Command+"`")
			}
			continue
		}
		for _, test := range slices.Sorted(maps.Keys(now.Tests.Tests)) {
			switch status := anew.status(test); {
			case !now.passed(test):
			case status == testresult.Failed, status == "" && !was.passed(test) && !anew.Passed:
				proved = append(proved, test)
			case !was.passed(test):
				idle++
			}
		}
	}
	return proved, idle
}

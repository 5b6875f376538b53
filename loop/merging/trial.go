package merging

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph/internal/text"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/loop/trial"
)

// The bounds of a trial after its first run: the number of further runs, and their total time in multiples of a
// verification.
const (
	mostRuns  = 14
	mostTimes = 3
	mostTook  = 2 // multiple of a verification that a run may take, with a minimum
	leastTime = 30 * time.Second
	mostFiles = 1000 // test files
	mostAlone = 8    // expectations that are tried one by one
)

// A suite has the tests of a commit, with their expectations.
type suite struct {
	commit string
	seed   string // constant, so that the run of a merged candidate also serves for the new target
	files  []trial.Expectations
	lay    map[string]func(text, parts []byte) []byte // for files that also contain code
}

// An experiment runs the target's tests with changed expectations on the candidate and on the target, and compares
// the results.
type experiment struct {
	*examination
	suite    suite
	plain    []gate.Run // runs of the unchanged target
	took     time.Duration
	runs     int
	until    time.Time
	unloaded bool // the candidate does not load the target's tests beside its own tests
	found    trial.Verdict
	left     int // files that were not tried one by one
	lost     int // expectations whose change does not load
	late     bool
}

// tries runs the target's tests with other expectations on the candidate's code: a test that still passes does
// not examine it.
func (e *examination) tries(ctx context.Context) (err error) {
	e.fewer()
	if e.found.Refused != "" || len(e.pairs) == 0 {
		return nil
	}
	x := &experiment{examination: e}
	for _, r := range e.results.Target {
		if now := gate.RunOf(e.results.Now, r.Command); now != nil && now.Passed && (r.Passed || r.Tests != nil) {
			x.plain = append(x.plain, r)
		}
	}
	if len(x.plain) == 0 {
		return nil
	}
	quick, took, err := e.took(ctx)
	if err != nil {
		return err
	}
	if !e.tried(quick) {
		if e.Check.Trial == check.TrialAuto {
			e.found.Trial.Unknown = "a verification takes too long (verify.trial)"
		}
		return nil
	}
	if x.suite, err = e.suite(ctx, e.rules, e.tip); err != nil || len(x.suite.files) == 0 {
		return err
	}
	x.suite.files = slices.DeleteFunc(x.suite.files, func(f trial.Expectations) bool {
		return slices.ContainsFunc(e.results.Files, func(c gate.Changed) bool { return c.Code && c.Path == f.Name() })
	}) // files that may be the tested code stay those of the candidate
	x.took, x.until = took, time.Now().Add(max(leastTime, mostTimes*took))
	if err := x.all(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	e.found.Trial.Neutralised, e.found.Trial.Tests = x.found.Neutralised, x.found.Tests
	e.found.Trial.Silent = x.found.Silent
	var unknown []string
	if x.lost > 0 {
		unknown = append(unknown, text.Count(x.lost, "expectation"))
	}
	if x.left > 0 {
		unknown = append(unknown, text.Count(x.left, "test file"))
	}
	if x.late {
		unknown = append(unknown, "a run that took too long")
	}
	e.found.Trial.Unknown = strings.Join(unknown, ", ")
	return nil
}

// fewer finds the changed test files that state fewer expectations than on the target, or expect fewer values.
func (e *examination) fewer() {
	for _, c := range e.results.Files {
		if c.Was == nil || c.Is == nil || c.Kind != gate.Test && !c.Code {
			continue
		}
		was, is := trial.Read(c.Path, c.Was), trial.Read(c.Path, c.Is)
		now, before, what := is.Len(), was.Len(), ""
		if now >= before {
			now, before, what = is.Firm(), was.Firm(), " with a value"
		}
		if now < before {
			e.found.Trial.Fewer = append(e.found.Trial.Fewer, fmt.Sprintf("%s (%d%s, %d before)", c.Path, now, what, before))
		}
	}
}

// took returns how long the verification of the candidate took, or that of the target if it is known and shorter: a
// slow candidate does not escape the trial.
func (e *examination) took(ctx context.Context) (quick, took time.Duration, err error) {
	tree, err := e.Tree.Whole(ctx, e.tip)
	if err != nil {
		return 0, 0, err
	}
	sum := func(tree string) (d time.Duration, all bool, err error) {
		list, all, err := e.stored(ctx, tree, e.commands.All())
		for _, o := range list {
			d += time.Duration(o.Check.Seconds * float64(time.Second))
		}
		return d, all, err
	}
	took, _, err = sum(e.on.Tree)
	if err != nil {
		return 0, 0, err
	}
	was, all, err := sum(tree)
	if quick = took; all {
		quick = min(took, was)
	}
	return quick, took, err
}

// tried reports whether there is a trial, according to verify.trial and the time of a verification.
func (e *examination) tried(took time.Duration) bool {
	switch e.Check.Trial {
	case check.TrialAlways:
		return true
	case check.TrialAuto:
		return took < trialAuto || gate.Alters(e.results.Files)
	}
	return false
}

// trialAuto is how long a verification may take at most for a trial of every change.
const trialAuto = time.Minute

// suite reads the tests of a commit.
func (m *Merger) suite(ctx context.Context, rules gate.Rules, commit string) (s suite, err error) {
	names, err := m.Tree.Names(ctx, commit)
	if err != nil {
		return s, err
	}
	s.commit = commit
	if s.seed, err = m.seed(); err != nil {
		return s, err
	}
	read := m.reads(ctx, commit)
	s.lay = map[string]func(text, parts []byte) []byte{}
	for _, name := range rules.TestFiles(names, read) {
		content := read(name)
		if with := gate.TestParts(name); with != nil && !rules.IsTest(name) {
			content, s.lay[name] = with(nil, content), with
		}
		if x := trial.Read(name, content); x.Len() > 0 && len(s.files) < mostFiles {
			s.files = append(s.files, x)
		}
	}
	slices.SortFunc(s.files, func(a, b trial.Expectations) int { return cmp.Compare(a.Rank(s.seed), b.Rank(s.seed)) })
	return s, nil
}

// seed returns a secret value: authors must not know which values change.
func (m *Merger) seed() (string, error) {
	name := filepath.Join(m.State, "trial.key")
	key, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		key = []byte(rand.Text())
		err = os.WriteFile(name, key, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("cannot keep the seed of trials: %w", err)
	}
	return string(key), nil
}

// A part is a test file, or some of its expectations.
type part struct {
	trial.Expectations
	from, to int
}

// parts returns whole files.
func parts(files []trial.Expectations) (list []part) {
	for _, f := range files {
		list = append(list, part{f, 0, f.Len()})
	}
	return list
}

// halves splits parts in two: their files, or the expectations of a single file.
func halves(list []part) (a, b []part) {
	if len(list) > 1 {
		return list[:len(list)/2], list[len(list)/2:]
	}
	p := list[0]
	middle := (p.from + p.to) / 2
	return []part{{p.Expectations, p.from, middle}}, []part{{p.Expectations, middle, p.to}}
}

// size returns the number of expectations in parts.
func size(list []part) (n int) {
	for _, p := range list {
		n += p.to - p.from
	}
	return n
}

// mutants runs commands on a commit with mutants of the suite's tests. Without lists the parts to leave out.
func (m *Merger) mutants(
	ctx context.Context, s suite, commit string, list []part, round int, without []gate.Edit, commands []string,
) ([]gate.Run, error) {
	read := m.reads(ctx, commit)
	edits := slices.Clone(without)
	for _, p := range list {
		content := p.Mutant(s.seed, round, func(i int) bool { return i >= p.from && i < p.to })
		if content == nil {
			continue
		}
		if with := s.lay[p.Name()]; with != nil {
			code := read(p.Name())
			if code == nil {
				continue
			}
			content = with(code, content)
		}
		edits = slices.DeleteFunc(edits, func(e gate.Edit) bool { return e.Path == p.Name() })
		edits = append(edits, gate.Edit{Path: p.Name(), Content: content})
	}
	return m.swapped(ctx, commit, s.commit, edits, commands, nil)
}

// all tries all tests together, then the undecided tests in smaller groups.
func (x *experiment) all(ctx context.Context) error {
	list := parts(x.suite.files)
	first, err := x.group(ctx, list)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if x.results.Moved { // tests do not load at their old paths
		return nil
	}
	if trial.Missing(first.Target, first.Candidate) && x.clash() {
		x.unloaded = true
		if first, err = x.group(ctx, list); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if x.hides(first) {
		if err := x.split(ctx, list); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return x.alone(ctx, list, first)
}

// group tries some tests, and then the passing ones with other mutants.
func (x *experiment) group(ctx context.Context, list []part) (first trial.Round, err error) {
	var rounds []trial.Round
	for n := range trial.Rounds {
		r, err := x.round(ctx, list, n)
		if err != nil || ctx.Err() != nil || r.Target == nil {
			return first, err
		}
		rounds = append(rounds, r)
		if n == 0 {
			first = r
		}
		if len(trial.Judge(x.plain, rounds).Neutralised) == 0 {
			break
		}
	}
	x.found = x.found.And(trial.Judge(x.plain, rounds))
	return first, nil
}

// round runs mutants on the target and, if a command fails there, on the candidate. It runs all commands in their
// order, because one may need another's output.
func (x *experiment) round(ctx context.Context, list []part, n int) (r trial.Round, err error) {
	if r.Target, err = x.bounded(ctx, x.tip, list, n); err != nil || r.Target == nil {
		return r, err
	}
	if n > 0 || slices.ContainsFunc(r.Target, func(run gate.Run) bool {
		return !run.Passed || run.Tests != nil && len(run.Tests.Failed()) > 0
	}) {
		r.Candidate, err = x.bounded(ctx, x.on.Commit, list, n)
	}
	return r, err
}

// bounded runs mutants for at most the time of one run. At a timeout the result has the tests that had finished.
func (x *experiment) bounded(ctx context.Context, commit string, list []part, n int) ([]gate.Run, error) {
	x.runs++
	within, stop := context.WithTimeout(ctx, mostTook*x.took+leastTime/mostTook)
	defer stop()
	var without []gate.Edit
	if x.unloaded && commit != x.tip {
		without = x.tests()
	}
	var commands []string
	for _, p := range x.plain {
		commands = append(commands, p.Command)
	}
	runs, err := x.mutants(within, x.suite, commit, list, n, without, commands)
	if within.Err() == nil || ctx.Err() != nil {
		return runs, err
	}
	x.late = true // a mutant may hang; the tests before it have finished
	for i := range runs {
		runs[i].Passed = commit == x.tip // so that the command itself never counts as neutralised
	}
	return runs, nil
}

// tests returns the edits that restore the target's version of the candidate's own tests.
func (x *experiment) tests() []gate.Edit {
	setting := func(c gate.Changed) bool { return c.Kind != gate.Test }
	return gate.Old(slices.DeleteFunc(slices.Clone(x.results.Files), setting))
}

// hides reports whether a round names fewer tests than exist: some mutants do not load, or prevent others from running.
// If the target's tests refuse the candidate, that is already known.
func (x *experiment) hides(r trial.Round) bool {
	return trial.Missing(x.plain, r.Target) ||
		len(x.examination.found.Weakened) == 0 && trial.Missing(r.Target, r.Candidate)
}

// clash reports whether the candidate has its own tests that may prevent the target's from loading.
func (x *experiment) clash() bool { return len(x.tests()) > 0 }

// spent reports whether no further run may begin.
func (x *experiment) spent(ctx context.Context) bool {
	return ctx.Err() != nil || x.runs >= mostRuns || time.Now().After(x.until)
}

// split tries halves of tests whose mutants do not load together, and halves of those.
func (x *experiment) split(ctx context.Context, list []part) error {
	if size(list) < 2 {
		x.lost += size(list)
		return nil
	}
	a, b := halves(list)
	for _, half := range [][]part{a, b} {
		if x.spent(ctx) {
			x.lost += size(half)
			continue
		}
		first, err := x.group(ctx, half)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if x.hides(first) {
			if err := x.split(ctx, half); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone tries each file, for commands that name no tests, and some expectations of each: another red test would hide a
// neutralised one.
func (x *experiment) alone(ctx context.Context, list []part, first trial.Round) error {
	nameless := slices.DeleteFunc(trial.Nameless(x.plain), func(c string) bool {
		r := gate.RunOf(first.Candidate, c)
		return r == nil || r.Passed
	})
	if len(nameless) == 0 {
		return nil
	}
	units := list
	if len(list) == 1 {
		units = nil
	}
	files := len(units)
	for i := range list {
		for n := list[i].from; n < list[i].to && size(list) > 1 && len(units) < files+mostAlone; n++ {
			units = append(units, part{list[i].Expectations, n, n + 1})
		}
	}
	for i, p := range units {
		if x.spent(ctx) {
			x.left += max(0, files-i)
			return ctx.Err()
		}
		now, err := x.bounded(ctx, x.on.Commit, []part{p}, 0)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if now == nil || trial.Sees(now, nameless) {
			continue
		}
		before := len(x.found.Neutralised)
		if _, err := x.group(ctx, []part{p}); err != nil || ctx.Err() != nil {
			return err
		}
		if len(x.found.Neutralised) > before {
			x.found.Neutralised[before] += " (" + p.Name() + ")"
			return nil
		}
	}
	return nil
}

// numb returns the named tests that pass on a commit with changed expectations: they prove nothing. Files are the
// changed test files. The next trial on the target reuses its first run.
func (m *Merger) numb(
	ctx context.Context, rules gate.Rules, commit string, files []gate.Changed, commands, named []string,
) (idle []string, err error) {
	if m.Check.Trial == "" || m.Check.Trial == check.TrialOff {
		return nil, nil
	}
	s, err := m.suite(ctx, rules, commit)
	if err != nil {
		return nil, err
	}
	var changed []trial.Expectations
	for _, f := range s.files {
		if slices.ContainsFunc(files, func(c gate.Changed) bool { return c.Path == f.Name() }) {
			changed = append(changed, f)
		}
	}
	if idle = named; len(changed) == 0 {
		return nil, nil
	}
	for _, round := range []int{0, 1, trial.Values} {
		if len(idle) == 0 {
			break
		}
		list := s.files
		if round > 0 {
			list = changed
		}
		runs, err := m.mutants(ctx, s, commit, parts(list), round, nil, commands)
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		idle = trial.Idle(changed, runs, idle)
	}
	return idle, nil
}

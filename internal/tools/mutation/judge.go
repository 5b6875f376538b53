package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// A verdict is the result for a mutant.
type verdict string

const (
	killed    verdict = "killed"
	timedOut  verdict = "timed out" // it hangs, which somebody would notice, too
	notViable verdict = "not viable"
	survived  verdict = "survived"
)

// active is the environment variable that selects the mutant in a test binary.
const active = "RALPH_MUTANT"

// A bench builds and runs tests. The module is not copied: the compiler reads other files in place
// of the mutated ones.
type bench struct {
	root   string // root folder of the module
	dir    string // for temporary files
	jobs   int
	only   *regexp.Regexp     // the tests that judge
	tests  []test             // fastest first
	blocks map[string][]block // all blocks, by file

	patience atomic.Int64 // number of tests without a mutant that took too long, because the machine is busy

	mu      sync.Mutex
	killers map[string][]test // tests that found mutants, by function, latest first
}

// A test is one test function, or a subtest of a slow one, with the blocks that it covered and its
// duration.
type test struct {
	pkg, name, part string
	took            time.Duration
	through         map[string][]block // by file
}

// A block is a piece of a file that is run as a whole.
type block struct{ from, to place }

// measure runs each test that may be needed by itself.
func (b *bench) measure(ctx context.Context, list []suspect) error {
	folders, packages := map[string]bool{}, map[string]bool{}
	for _, s := range list {
		folders["./"+filepath.ToSlash(filepath.Dir(s.file))] = true
		for _, pkg := range s.judges {
			packages[pkg] = true
		}
	}
	over := "-coverpkg=" + strings.Join(slices.Sorted(maps.Keys(folders)), ",")
	c, said, err := b.convene(ctx, nil, slices.Sorted(maps.Keys(packages)), "-cover", over)
	if err != nil || c == nil {
		return errors.Join(err, fmt.Errorf("the tests do not compile:\n%s", said))
	}
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(b.jobs)
	for pkg, binary := range c {
		names, err := exec.CommandContext(ctx, binary, "-test.list", "^Test").Output()
		if err != nil {
			return fmt.Errorf("tests of %s: %w", pkg, err)
		}
		for _, name := range strings.Fields(string(names)) {
			if !b.only.MatchString(name) {
				continue
			}
			jobs.Go(func() error { return b.look(ctx, binary, test{pkg: pkg, name: name}) })
		}
	}
	err = jobs.Wait()
	slices.SortFunc(b.tests, func(x, y test) int { return cmp.Compare(x.took, y.took) })
	return errors.Join(err, c.dissolve())
}

// long is the duration from which a test's subtests run separately.
const long = 300 * time.Millisecond

// look runs one test, or a part of it, without a mutant.
func (b *bench) look(ctx context.Context, binary string, t test) error {
	profile := filepath.Join(b.dir, strings.NewReplacer("/", "_").Replace(t.pkg+"."+t.name+"."+t.part))
	began := time.Now()
	t.took = 10 * time.Minute // not known yet
	v, said, err := b.run(ctx, binary, -1, []test{t}, "-test.v", "-test.coverprofile", profile)
	if err != nil || v != survived {
		return errors.Join(err, fmt.Errorf("%s/%s does not pass without a mutant either: %s\n%s", t.name, t.part, v, said))
	}
	t.took, t.through = time.Since(began), map[string][]block{}
	if parts := partsOf(said); t.part == "" && t.took > long && len(parts) > 0 {
		for _, part := range parts {
			if err := b.look(ctx, binary, test{pkg: t.pkg, name: t.name, part: part}); err != nil {
				return err
			}
		}
		return nil
	}
	all := map[string][]block{}
	lines, err := os.ReadFile(profile)
	for _, m := range profiled.FindAllStringSubmatch(string(lines), -1) {
		var n [4]int
		for i := range n {
			if n[i], err = strconv.Atoi(m[i+2]); err != nil {
				return err
			}
		}
		here := block{place{n[0], n[1]}, place{n[2], n[3]}}
		if all[m[1]] = append(all[m[1]], here); m[6] != "0" {
			t.through[m[1]] = append(t.through[m[1]], here)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tests = append(b.tests, t)
	maps.Copy(b.blocks, all)
	return err
}

// partsOf returns the subtests of a test that has run, by the first element of their names: -test.run chooses by these.
// A test may print something before the line, so it need not begin there.
func partsOf(said string) (parts []string) {
	for _, m := range begun.FindAllStringSubmatch(said, -1) {
		if !slices.Contains(parts, m[1]) {
			parts = append(parts, m[1])
		}
	}
	return parts
}

var begun = regexp.MustCompile(`=== RUN   \w+/([^/\s]+)`)

// profiled matches a line of a coverage profile for a file of this module.
var profiled = regexp.MustCompile(`(?m)^ralph/(\S+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// covering returns the tests that cover a mutant; if it is in no block, the tests that cover its function; outside of
// functions, all.
func (b *bench) covering(s suspect) (list []test) {
	is := func(b block) bool { return before(b.from, s.at) && before(s.at, b.to) }
	if !slices.ContainsFunc(b.blocks[s.file], is) {
		is = func(b block) bool { return before(s.reach[0], b.from) && before(b.from, s.reach[1]) }
	}
	for _, t := range b.tests {
		if slices.Contains(s.judges, t.pkg) && (s.function == "" || slices.ContainsFunc(t.through[s.file], is)) {
			list = append(list, t)
		}
	}
	return list
}

func before(a, b place) bool { return slices.Compare(a[:], b[:]) <= 0 }

// A court is the set of test binaries for one or more mutants, by package.
type court map[string]string

// convene builds the tests of packages with some files replaced. refused is the compiler's output
// if it fails.
func (b *bench) convene(
	ctx context.Context, files map[string][]byte, packages []string, flags ...string,
) (c court, refused string, err error) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return nil, "", err
	}
	replace := map[string]string{}
	errorsOf := map[string]bool{} // report all errors at once
	for name, source := range files {
		replaced := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replaced, source, 0o600); err != nil {
			return nil, "", err
		}
		replace[filepath.Join(b.root, name)] = replaced
		errorsOf["-gcflags=./"+filepath.ToSlash(filepath.Dir(name))+"=-e"] = true
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return nil, "", err
	}
	flags = slices.Concat(
		flags, []string{"-vet=off", "-ldflags=-w", "-overlay", list}, slices.Collect(maps.Keys(errorsOf)),
	)
	c = court{}
	for _, pkg := range packages {
		c[pkg] = filepath.Join(dir, fmt.Sprintf("%d.test", len(c)))
		args := slices.Concat([]string{"test", "-c", "-o", c[pkg]}, flags, []string{"./" + pkg})
		build := exec.CommandContext(ctx, "go", args...)
		build.Dir = b.root
		if out, err := build.CombinedOutput(); err != nil {
			return nil, string(out), errors.Join(ctx.Err(), os.RemoveAll(dir))
		}
	}
	return c, "", nil
}

// dissolve removes the binaries.
func (c court) dissolve() error {
	for _, binary := range c {
		return os.RemoveAll(filepath.Dir(binary))
	}
	return nil
}

// agree runs the tests for some mutants in the binary that contains them, with none active.
func (b *bench) agree(ctx context.Context, c court, list []suspect) error {
	needed := map[string][]test{}
	known := map[string]bool{}
	for _, s := range list {
		for _, t := range b.covering(s) {
			if key := t.pkg + " " + t.name; !known[key] {
				known[key] = true
				needed[t.pkg] = append(needed[t.pkg], test{pkg: t.pkg, name: t.name, took: 10 * time.Minute})
			}
		}
	}
	for pkg, tests := range needed {
		if v, said, err := b.run(ctx, c[pkg], -1, tests); err != nil || v != survived {
			return errors.Join(err, fmt.Errorf("the tests of %s do not pass without a mutant either: %s\n%s", pkg, v, said))
		}
	}
	return nil
}

// alone judges a mutant in its own binary.
func (b *bench) alone(ctx context.Context, s suspect) (verdict, error) {
	source, err := os.ReadFile(filepath.Join(b.root, s.file))
	if err != nil {
		return "", err
	}
	c, refused, err := b.convene(ctx, map[string][]byte{s.file: s.apply(source)}, b.packages(s))
	if err != nil || refused != "" {
		return notViable, err
	}
	v, err := b.judge(ctx, c, -1, s.function, b.covering(s))
	return v, errors.Join(err, c.dissolve())
}

// packages returns the packages with tests for some mutants.
func (b *bench) packages(list ...suspect) []string {
	packages := map[string]bool{}
	for _, s := range list {
		for _, t := range b.covering(s) {
			packages[t.pkg] = true
		}
	}
	return slices.Sorted(maps.Keys(packages))
}

// together builds many mutants at once: in each function the environment selects one of its
// mutated bodies. Mutants that do not compile are found by the compiler's messages and left
// out.
func (b *bench) together(ctx context.Context, list []suspect) (c court, refused map[int]bool, err error) {
	packages := b.packages(list...)
	refused = map[int]bool{}
	for {
		files, err := b.instrument(list, refused)
		if err != nil {
			return nil, nil, err
		}
		c, said, err := b.convene(ctx, files, packages)
		if err != nil || c != nil {
			return c, refused, err
		}
		before := len(refused)
		for _, m := range named.FindAllStringSubmatch(said, -1) {
			i, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, nil, err
			}
			refused[i] = true
		}
		if len(refused) == before {
			return nil, nil, fmt.Errorf("the tests do not compile with all mutants in them:\n%s", said)
		}
	}
}

// named matches the compiler's messages about mutants.
var named = regexp.MustCompile(`\bmutant(\d+)\.go:`)

// chooser is added to each package with mutants.
const chooser = `package %s

import (
	"os"
	"strconv"
)

var mutantOfTheTest = func() int {
	if n, err := strconv.Atoi(os.Getenv(%q)); err == nil {
		return n
	}
	return -1
}()
`

// instrument makes files that contain all mutants that are not refused.
func (b *bench) instrument(list []suspect, refused map[int]bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	choices := map[string]map[[2]int]*strings.Builder{} // by file and body
	for i, s := range list {
		if files[s.file] == nil {
			source, err := os.ReadFile(filepath.Join(b.root, s.file))
			if err != nil {
				return nil, err
			}
			files[s.file], choices[s.file] = source, map[[2]int]*strings.Builder{}
		}
		if refused[i] {
			continue
		}
		choice := choices[s.file][s.body]
		if choice == nil {
			choice = &strings.Builder{}
			choices[s.file][s.body] = choice
		}
		source := files[s.file]
		fmt.Fprintf(choice, "\ncase %d:\n//line mutant%d.go:1\n%s%s%s\n",
			i, i, source[s.body[0]:s.begin], s.with, source[s.end:s.body[1]])
		if s.results {
			choice.WriteString("panic(`it does not return`)\n")
		} else {
			choice.WriteString("return\n")
		}
	}
	for name, source := range maps.Clone(files) {
		var out bytes.Buffer
		from := 0
		for _, body := range slices.SortedFunc(maps.Keys(choices[name]), func(x, y [2]int) int { return x[0] - y[0] }) {
			line := bytes.Count(source[:body[0]], []byte("\n")) + 1
			fmt.Fprintf(&out, "%s\nswitch mutantOfTheTest {%s}\n//line %s:%d\n",
				source[from:body[0]], choices[name][body], filepath.Base(name), line)
			from = body[0]
		}
		out.Write(source[from:])
		files[name] = out.Bytes()
		pkg := packageName.FindSubmatch(source)[1]
		files[filepath.Join(filepath.Dir(name), "chosen_mutant.go")] = fmt.Appendf(nil, chooser, pkg, active)
	}
	return files, nil
}

var packageName = regexp.MustCompile(`(?m)^package (\w+)`)

// sitting is the approximate duration of the tests that run together before their results are
// checked.
const sitting = time.Second

// guesses is the number of tests that run first, taken from the finders of earlier mutants of the function.
const guesses = 3

// judge runs tests on one mutant of a function until one finds it: first the finders of other mutants there, then the
// fastest.
func (b *bench) judge(ctx context.Context, c court, number int, function string, tests []test) (verdict, error) {
	b.mu.Lock()
	tests = slices.Concat(b.killers[function][:min(guesses, len(b.killers[function]))], tests)
	b.mu.Unlock()
	for tests := range sittings(tests) {
		v, said, err := b.run(ctx, c[tests[0].pkg], number, tests)
		for v == timedOut && err == nil { // it hangs, or the machine is busier than it was
			began, enough := time.Now(), b.limit(tests)/4
			var without verdict
			if without, _, err = b.run(ctx, c[tests[0].pkg], -1, tests); without != timedOut && time.Since(began) < enough {
				break
			}
			b.patience.Add(1)
			v, said, err = b.run(ctx, c[tests[0].pkg], number, tests)
		}
		if err != nil {
			return "", err
		}
		if v != survived {
			b.note(function, tests, said)
			return v, nil
		}
	}
	return survived, nil
}

// sittings groups tests that run together: of one package, and either all whole or all parts.
func sittings(tests []test) iter.Seq[[]test] {
	return func(yield func([]test) bool) {
		for len(tests) > 0 {
			n, took := 1, tests[0].took
			for ; n < len(tests) && took+tests[n].took <= sitting; n++ {
				if tests[n].pkg != tests[0].pkg || (tests[n].part == "") != (tests[0].part == "") {
					break
				}
				took += tests[n].took
			}
			if !yield(tests[:n]) {
				return
			}
			tests = tests[n:]
		}
	}
}

// note remembers which test found a mutant.
func (b *bench) note(function string, tests []test, said string) {
	for _, m := range failed.FindAllStringSubmatch(said, -1) {
		i := slices.IndexFunc(tests, func(t test) bool { return t.name == m[1] && (t.part == "" || t.part == m[2]) })
		if i < 0 {
			continue
		}
		killer := tests[i]
		killer.part = cmp.Or(killer.part, m[2])
		b.mu.Lock()
		b.killers[function] = slices.Insert(slices.DeleteFunc(b.killers[function], func(t test) bool {
			return t.name == killer.name && t.part == killer.part
		}), 0, killer)
		b.mu.Unlock()
	}
}

// limit returns the time after which tests count as hanging.
func (b *bench) limit(tests []test) time.Duration {
	limit := 3 * time.Second
	for _, t := range tests {
		limit += 5 * t.took
	}
	return limit * time.Duration(1+b.patience.Load())
}

var failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\w+)/?([^/ ]*)\S* \(`)

// run runs the tests of a sitting on a mutant.
func (b *bench) run(
	ctx context.Context, binary string, number int, tests []test, flags ...string,
) (_ verdict, said string, err error) {
	temporary, err := os.MkdirTemp(b.dir, "tmp")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	var names, parts []string
	for _, t := range tests {
		if names = append(names, t.name); t.part != "" {
			parts = append(parts, regexp.QuoteMeta(t.part))
		}
	}
	limit := b.limit(tests)
	chosen := "^(" + strings.Join(names, "|") + ")$"
	if len(parts) > 0 {
		chosen += "/^(" + strings.Join(parts, "|") + ")$"
	}
	timed, cancel := context.WithTimeout(ctx, limit+10*time.Second) // the binary ends itself before
	defer cancel()
	test := exec.CommandContext(timed, binary, append(flags,
		"-test.failfast", "-test.timeout", limit.String(), "-test.run", chosen)...)
	var out bytes.Buffer
	test.Dir, test.Stdout, test.Stderr, test.WaitDelay = filepath.Join(b.root, tests[0].pkg), &out, &out, 10*time.Second
	test.Env = append(os.Environ(), "TMPDIR="+temporary, fmt.Sprintf("%s=%d", active, number))
	err = test.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		return survived, out.String(), nil
	case timed.Err() != nil || bytes.Contains(out.Bytes(), []byte("panic: test timed out after ")):
		return timedOut, out.String(), nil
	case errors.As(err, &exit):
		return killed, out.String(), nil
	}
	return "", "", err
}

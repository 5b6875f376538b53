// Command mutation makes one small change at a time to the rules, and lists the changes that no test notices.
// `make mutation` runs it; CONTRIBUTING.md says when.
//
// The table scope lists the code to change, and the packages whose tests must notice. A change that no test can notice
// is listed in accepted.txt with the reason; an entry that is not needed any more is an error, too.
//
// go-gremlins v0.6.0 was tried first. It skips the conditions of `case`, which it considers uncovered, counts mutants
// that do not compile as killed, drops no statements or cases, runs only a package's own tests, and has no list of
// accepted survivors.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"
)

// A target is a set of functions, and the packages whose tests must notice changes.
type target struct {
	files     string   // a glob, relative to the root of the module; without tests
	functions []string // regular expressions for whole names; none means everything, also outside of functions
	judges    []string // packages with the tests: folders, relative to the root of the module
}

//go:embed accepted.txt
var acceptedList string

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// options are the command line's flags.
type options struct {
	list bool
	all  bool
	jobs int
	only string
	root string
}

func run(args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.BoolVar(&o.list, "list", false, "list the mutants, and run nothing")
	flags.BoolVar(&o.all, "v", false, "also print what became of those that did not survive")
	flags.StringVar(&o.only, "run", "", "only the tests that match this `regexp` judge: those that you are writing")
	flags.IntVar(&o.jobs, "j", runtime.NumCPU(), "mutants at a time")
	flags.Usage = func() {
		fmt.Fprintln(log, "usage: mutation [flags] [REGEXP]\n\n"+
			"REGEXP chooses mutants by how -list prints them, such as 'signals/decide.go.* exhausted:'.")
		flags.PrintDefaults()
	}
	flags.StringVar(&o.root, "C", ".", "the root of ralph's module")
	if err := flags.Parse(args); err != nil {
		return err
	}
	filter, err := regexp.Compile(strings.Join(flags.Args(), " "))
	if err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	accepted, err := parseAccepted(acceptedList)
	if err != nil {
		return err
	}
	found, err := inScope(root)
	if err != nil {
		return err
	}
	if err := unknown(accepted, found); err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(s suspect) bool { return !filter.MatchString(s.String()) })
	if o.list {
		for _, s := range found {
			fmt.Fprintln(out, s)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{root: root, jobs: o.jobs, only: only, blocks: map[string][]block{}, killers: map[string][]test{}}
	return try(ctx, b, found, accepted, o, out)
}

// A suspect is a mutant of a target.
type suspect struct {
	mutant
	judges []string
}

// String returns a suspect on one line.
func (s suspect) String() string { return fmt.Sprintf("%s:%d %s", s.file, s.at[0], s.key()) }

// inScope returns the mutants of all targets.
func inScope(root string) (found []suspect, err error) {
	for _, t := range scope {
		files, err := doublestar.Glob(os.DirFS(root), t.files)
		if err != nil || len(files) == 0 {
			return nil, errors.Join(err, fmt.Errorf("no file matches %s: run it in the root of the module", t.files))
		}
		missing := map[string]*regexp.Regexp{}
		var names []*regexp.Regexp
		for _, f := range t.functions {
			name, err := regexp.Compile("^(" + f + ")$")
			if err != nil {
				return nil, err
			}
			names, missing[f] = append(names, name), name
		}
		wanted := func(function string) bool {
			maps.DeleteFunc(missing, func(_ string, name *regexp.Regexp) bool { return name.MatchString(function) })
			is := func(name *regexp.Regexp) bool { return name.MatchString(function) }
			return len(names) == 0 || slices.ContainsFunc(names, is)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return nil, err
			}
			list, err := mutants(file, source, wanted)
			if err != nil {
				return nil, err
			}
			for _, m := range list {
				found = append(found, suspect{m, t.judges})
			}
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("scope.go: no function of %s is %q", t.files, slices.Sorted(maps.Keys(missing)))
		}
	}
	return found, nil
}

// unknown returns an error for accepted survivors that are not mutants.
func unknown(accepted map[string]string, found []suspect) error {
	keys := map[string]bool{}
	for _, s := range found {
		keys[s.key()] = true
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(accepted)) {
		if !keys[key] {
			errs = append(errs, fmt.Errorf("accepted.txt: there is no such mutant any more: %s", key))
		}
	}
	return errors.Join(errs...)
}

// try judges the mutants and prints the survivors.
func try(
	ctx context.Context, b *bench, found []suspect, accepted map[string]string, o options, out io.Writer,
) (err error) {
	if b.dir, err = os.MkdirTemp("", "mutation-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	began := time.Now()
	if err := b.measure(ctx, found); err != nil {
		return err
	}
	var inside, outside []suspect
	for _, s := range found {
		if s.body == [2]int{} {
			outside = append(outside, s)
		} else {
			inside = append(inside, s)
		}
	}
	c, refused, err := b.together(ctx, inside)
	if err != nil {
		return err
	}
	if err := b.agree(ctx, c, found); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d mutants and %d tests are ready after %s\n", len(found), len(b.tests), since(began))
	var mu sync.Mutex
	verdicts := map[verdict]int{}
	var alive []suspect
	list := slices.Concat(inside, outside)
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(o.jobs)
	for i, s := range list {
		jobs.Go(func() (err error) {
			v := notViable
			switch {
			case i >= len(inside):
				v, err = b.alone(ctx, s)
			case !refused[i]:
				v, err = b.judge(ctx, c, i, s.function, b.covering(s))
			}
			mu.Lock()
			defer mu.Unlock()
			if verdicts[v]++; v == survived {
				alive = append(alive, s)
			}
			if err == nil && (o.all || v == survived && accepted[s.key()] == "") {
				fmt.Fprintf(out, "%s: %s\n", v, s)
			}
			return err
		})
	}
	if err := jobs.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d mutants in %s: %v\n", len(found), since(began), verdicts)
	return compare(found, alive, accepted)
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Second) }

// compare compares the survivors with the accepted ones. It returns an error for a survivor that is
// not accepted, and for an accepted mutant that is found now.
func compare(found, alive []suspect, accepted map[string]string) error {
	var errs []error
	living := map[string]bool{}
	unexplained := 0
	for _, s := range alive {
		living[s.key()] = true
		if accepted[s.key()] == "" {
			unexplained++
		}
	}
	told := map[string]bool{}
	for _, s := range found {
		if key := s.key(); accepted[key] != "" && !living[key] && !told[key] {
			told[key] = true
			errs = append(errs, fmt.Errorf("accepted.txt: this one is found by now, take it out: %s", key))
		}
	}
	if unexplained > 0 {
		errs = append(errs, fmt.Errorf("%d survived without a reason: write a test that notices, "+
			"take out what makes no difference, or say in internal/tools/mutation/accepted.txt why no test can", unexplained))
	}
	return errors.Join(errs...)
}

// parseAccepted parses the accepted survivors: each key on a separate line, followed by the
// indented reason why no test can notice it.
func parseAccepted(list string) (map[string]string, error) {
	accepted := map[string]string{}
	var keys []string
	reason := ""
	flush := func() error {
		for _, k := range keys {
			if accepted[k] != "" || reason == "" {
				return fmt.Errorf("accepted.txt: twice, or without a reason: %s", k)
			}
			accepted[k] = reason
		}
		keys, reason = nil, ""
		return nil
	}
	for line := range strings.Lines(list) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case line[0] == ' ' || line[0] == '\t':
			reason = strings.TrimSpace(reason + " " + text)
		default:
			if reason != "" {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			keys = append(keys, text)
		}
	}
	return accepted, flush()
}

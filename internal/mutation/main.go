// Command mutation breaks the rules, one small change at a time, and lists the
// changes that no test notices. `make mutation` runs it; CONTRIBUTING.md says when.
//
// What is broken, and whose tests are to notice, is one table: scope. A change that
// makes no difference that a test could see is written down in accepted.txt with
// the reason; an entry there that is not needed any more is an error too.
//
// go-gremlins v0.6.0 was tried first. It skips the conditions of `case`, for it takes
// them for code that is not covered, counts what does not compile as killed, drops
// no statement and no case, judges a package by its own tests alone, and knows no
// list of accepted survivors.
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
	"slices"
	"strings"
	"sync"
	"time"
)

// A target is a set of functions, and those whose tests hold them.
type target struct {
	files     string // a glob, relative to the root of the module; tests are left out
	functions string // a regular expression of whole names; "" for all, and for what is outside of functions
	judges    []judge
}

//go:embed accepted.txt
var acceptedList string

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	list   bool
	all    bool
	jobs   int
	limit  time.Duration
	filter *regexp.Regexp
}

func run(args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.BoolVar(&o.list, "list", false, "list the mutants, and run nothing")
	flags.BoolVar(&o.all, "v", false, "also print what became of those that did not survive")
	flags.IntVar(&o.jobs, "j", 1, "mutants at a time")
	flags.DurationVar(&o.limit, "limit", 2*time.Minute, "how long tests may take over a mutant")
	flags.Usage = func() {
		fmt.Fprintln(log, "usage: mutation [flags] [REGEXP]\n\nREGEXP chooses mutants by how they are printed, such as 'signals/decide.go exhausted:'.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.filter, err = regexp.Compile(strings.Join(flags.Args(), " ")); err != nil {
		return err
	}
	root, err := filepath.Abs(".")
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
	found = slices.DeleteFunc(found, func(s suspect) bool { return !o.filter.MatchString(s.key()) })
	if o.list {
		for _, s := range found {
			fmt.Fprintf(out, "%s:%d %s\n", s.file, s.line, s.key())
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return try(ctx, root, found, accepted, o, out)
}

// A suspect is a mutant of a target.
type suspect struct {
	mutant
	target int // in scope
}

// inScope are the mutants of all targets.
func inScope(root string) (found []suspect, err error) {
	for i, t := range scope {
		files, err := filepath.Glob(filepath.Join(root, t.files))
		if err != nil || len(files) == 0 {
			return nil, errors.Join(err, fmt.Errorf("no file matches %s: run it in the root of the module", t.files))
		}
		names, err := regexp.Compile("^(" + t.functions + ")$")
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			list, err := mutants(filepath.ToSlash(name), source, func(f string) bool { return t.functions == "" || names.MatchString(f) })
			if err != nil {
				return nil, err
			}
			for _, m := range list {
				found = append(found, suspect{m, i})
			}
		}
	}
	return found, nil
}

// unknown reports accepted survivors that are no mutants.
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
func try(ctx context.Context, root string, found []suspect, accepted map[string]string, o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{root: root, dir: dir, limit: o.limit}
	began := time.Now()
	verdicts := map[string]int{}
	var alive []suspect
	for i, t := range scope {
		list := slices.DeleteFunc(slices.Clone(found), func(s suspect) bool { return s.target != i })
		if len(list) == 0 {
			continue
		}
		err := b.trial(ctx, list, t.judges, o.jobs, func(s suspect, v verdict) {
			verdicts[string(v)]++
			if v == survived {
				alive = append(alive, s)
			}
			if o.all || v == survived && accepted[s.key()] == "" {
				fmt.Fprintf(out, "%s: %s:%d %s\n", v, s.file, s.line, s.key())
			}
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d mutants in %s: %v\n", len(found), time.Since(began).Round(time.Second), verdicts)
	return compare(found, alive, accepted)
}

// trial judges the mutants of one target: those of functions with one binary for all,
// the others with one each.
func (b *bench) trial(ctx context.Context, list []suspect, judges []judge, jobs int, tell func(suspect, verdict)) error {
	var inside, outside []suspect
	for _, s := range list {
		if s.body == [2]int{} {
			outside = append(outside, s)
		} else {
			inside = append(inside, s)
		}
	}
	c, refused, err := b.together(ctx, inside, judges)
	if err != nil {
		return err
	}
	if v, said, err := b.judge(ctx, c, -1, judges); err != nil || v != survived {
		return errors.Join(err, fmt.Errorf("the tests do not pass without a mutant either: %s\n%s", v, said))
	}
	var mu sync.Mutex
	err = inParallel(jobs, len(list), func(i int) error {
		var v verdict
		var err error
		switch {
		case i >= len(inside):
			i -= len(inside)
			v, err = b.alone(ctx, outside[i], judges)
			i += len(inside)
		case refused[i]:
			v = notViable
		default:
			v, _, err = b.judge(ctx, c, i, judges)
		}
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			tell(slices.Concat(inside, outside)[i], v)
		}
		return err
	})
	return errors.Join(err, c.dissolve())
}

// alone judges a mutant in a binary of its own.
func (b *bench) alone(ctx context.Context, s suspect, judges []judge) (verdict, error) {
	source, err := os.ReadFile(filepath.Join(b.root, s.file))
	if err != nil {
		return "", err
	}
	c, refused, err := b.convene(ctx, map[string][]byte{s.file: s.apply(source)}, judges)
	if err != nil || refused != "" {
		return notViable, err
	}
	v, _, err := b.judge(ctx, c, -1, judges)
	return v, errors.Join(err, c.dissolve())
}

// inParallel does n things, so many at a time, and stops at the first error.
func inParallel(jobs, n int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, jobs)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < n && err == nil; i++ {
		select {
		case next <- i:
		case err = <-failed:
		}
	}
	close(next)
	workers.Wait()
	close(failed)
	return errors.Join(err, <-failed)
}

// compare holds the survivors against those that are accepted. It is an error if one
// has no reason, or if one that was accepted is found by now.
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
		errs = append(errs, fmt.Errorf("%d survived without a reason: write a test that notices, take out what makes no difference, "+
			"or say in internal/mutation/accepted.txt why no test can", unexplained))
	}
	return errors.Join(errs...)
}

// parseAccepted reads the accepted survivors: the key of each on a line of its own,
// and below it, indented, why no test can tell it from the original.
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

// Command bench measures ralph against a floor: the cost of the same work without ralph, on the same machine, in the
// same run, alternately. It prints a table in Markdown; README.md explains each row and has the last results.
//
// No figure is absolute: a row has medians, their spread (the quartiles) and a ratio or a difference, and an aim for
// that. It is a program and no test, because times vary; tests count operations instead.
//
// It starts processes itself, without a supervisor, because a supervisor's time would count too. Each ends before
// its measurement does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A bench has the common state of the measurements.
type bench struct {
	ralph  string // the binary that is measured
	dir    string // for all created files, removed at the end
	module string // the root of the module, for builds
	small  bool   // everything as small as possible: to check that it works, not its speed
	rounds int    // rounds of each measurement
	log    io.Writer
}

// size returns the given number, or some hundreds at most if the bench is small.
func (b *bench) size(n int) int {
	if b.small {
		return min(n, 200)
	}
	return n
}

// lasts returns so long, or a second if the bench is small.
func (b *bench) lasts(d time.Duration) time.Duration {
	if b.small {
		return min(d, time.Second)
	}
	return d
}

// waits returns so many seconds, or a tenth of them if the bench is small.
func (b *bench) waits(seconds float64) float64 {
	if b.small {
		return seconds / 10
	}
	return seconds
}

// A measurement makes rows of the table.
type measurement struct {
	name    string
	measure func(*bench, context.Context) []row
}

// rows are the measurements, in the order of the table.
var rows = []measurement{
	{"session", (*bench).sessions},
	{"server", (*bench).servers},
	{"sandbox", (*bench).sandboxes},
	{"writers", (*bench).writers},
	{"scale", (*bench).scale},
	{"workers", (*bench).manyAtOnce},
	{"stream", (*bench).streams},
	{"files", (*bench).files},
	{"commands", (*bench).commands},
	{"growth", (*bench).growth},
	{"pages", (*bench).pages},
	{"workspaces", (*bench).workspaces},
	{"gate", (*bench).gate},
	{"crowd", (*bench).crowds},
	{"remote", (*bench).remote},
	{"sparse", (*bench).sparse},
	{"warm", (*bench).warm},
	{"idle", (*bench).idle},
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A failure ends a measurement. check and must throw it; measure catches it.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// caught turns a failure or a panic into an error.
func caught(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = errors.Join(f.error, *err)
	default:
		*err = errors.Join(fmt.Errorf("%v\n%s", f, debug.Stack()), *err)
	}
}

func run(args []string, out, log io.Writer) (err error) {
	defer caught(&err)
	if len(args) == 2 && args[0] == readArg {
		return readTranscript(args[1])
	}
	b := &bench{log: log}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	root := flags.String("C", ".", "the root of ralph's module, to which the other paths are relative")
	flags.StringVar(&b.ralph, "ralph", "./ralph", "the binary to measure")
	flags.IntVar(&b.rounds, "rounds", 5, "how often each measurement is made")
	flags.BoolVar(&b.small, "small", false, "once, at the smallest sizes: a test of the bench itself")
	only := flags.String("only", "", "the rows to measure, separated by commas; all of them if empty")
	document := flags.String("write", "", "a file in which the results are replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.small {
		b.rounds = 1
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	check(os.Chdir(*root))
	b.ralph, b.module = must(filepath.Abs(b.ralph)), must(os.Getwd())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	text := heading(machine())
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	var failed error
	for _, m := range chosen {
		begin := time.Now()
		measured, err := b.measure(ctx, m)
		if err != nil {
			fmt.Fprintf(log, "%s failed: %v\n", m.name, err)
			failed = errors.Join(failed, fmt.Errorf("%s failed", m.name))
			measured = []row{{what: m.name, value: "failed"}}
		}
		part := lines(measured)
		text += part
		if _, err := io.WriteString(out, part); err != nil {
			return err
		}
		fmt.Fprintf(log, "%s took %s\n", m.name, time.Since(begin).Round(time.Second))
		if ctx.Err() != nil {
			return errors.Join(failed, context.Cause(ctx))
		}
	}
	if failed != nil || *document == "" {
		return failed
	}
	return replaceResults(*document, text)
}

// choose returns the named measurements, in the order of the table.
func choose(only string) (chosen []measurement, err error) {
	if only == "" {
		return rows, nil
	}
	names := strings.Split(only, ",")
	for _, m := range rows {
		if i := slices.Index(names, m.name); i >= 0 {
			chosen, names = append(chosen, m), slices.Delete(names, i, i+1)
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("there are no rows of %s", strings.Join(names, ", "))
	}
	return chosen, nil
}

// measure makes one measurement, in its own folder. Its failure does not stop the others.
func (b *bench) measure(ctx context.Context, m measurement) (list []row, err error) {
	if b.dir, err = os.MkdirTemp("", "ralph-bench-*"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	defer caught(&err)
	return m.measure(b, ctx), nil
}

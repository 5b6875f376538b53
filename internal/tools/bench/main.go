// Command bench measures ralph against a floor: what the same work costs without
// ralph, on the same machine, in the same run, turn about. It prints a table in
// Markdown; docs/benchmarks.md explains each row and has the last results.
//
// Nothing it says is absolute: a row has medians, their spread (the quartiles)
// and a ratio or a difference, and an aim for that. It is a program and no test,
// because time is nothing to fail by; what must not get worse is counted in tests.
//
// It starts processes itself and without a supervisor, which would be measured
// too; each ends before its measurement does.
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
	"slices"
	"strings"
)

// A bench is what the measurements share.
type bench struct {
	ralph  string // the binary that is measured
	dir    string // for all that is made, removed at the end
	module string // the root of the module, for what is built
	full   bool   // also what takes an hour
	rounds int    // of each measurement
	log    io.Writer
}

// rows are the measurements, in the order of the table.
var rows = []struct {
	name    string
	measure func(*bench, context.Context) []row
}{
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
	{"warm", (*bench).warm},
	{"waiting", (*bench).waiting},
	{"idle", (*bench).idle},
	{"build", (*bench).builds},
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A failure ends the measurements: what they go by cannot be trusted any more. It is
// thrown, by those functions that have no error, and caught in run.
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

// caught is the failure that is thrown meanwhile.
func caught(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = errors.Join(f.error, *err)
	default:
		panic(f)
	}
}

func run(args []string, out, log io.Writer) (err error) {
	defer caught(&err)
	if len(args) == 2 && args[0] == readArg {
		return readTranscript(args[1])
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	b := &bench{log: log}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	root := flags.String("C", ".", "the root of ralph's module, to which the other paths are relative")
	flags.StringVar(&b.ralph, "ralph", "./ralph", "the binary to measure")
	flags.IntVar(&b.rounds, "rounds", 10, "how often each measurement is made")
	flags.BoolVar(&b.full, "full", false, "the idle hour and 5 million comments, too: about two hours")
	only := flags.String("only", strings.Join(names, ","), "the rows to measure")
	document := flags.String("write", "", "a file in which the results are replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	check(os.Chdir(*root))
	b.ralph, b.module = must(filepath.Abs(b.ralph)), must(os.Getwd())
	b.dir = must(os.MkdirTemp("", "ralph-bench-*"))
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	var measured []row
	for _, r := range rows {
		if !slices.Contains(strings.Split(*only, ","), r.name) {
			continue
		}
		fmt.Fprintln(log, "measuring:", r.name)
		measured = append(measured, r.measure(b, ctx)...)
	}
	text := table(machine(), measured)
	if _, err := io.WriteString(out, text); err != nil || *document == "" {
		return err
	}
	return replaceResults(*document, text)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A judge is a set of tests that mutants of a file are shown to.
type judge struct {
	pkg  string // a folder, relative to the root of the module
	run  string // as go test's flags of these names; "" for all, and for none
	skip string
}

// A verdict is what became of a mutant.
type verdict string

const (
	killed    verdict = "killed"
	timedOut  verdict = "timed out" // it hangs, which somebody would notice as well
	notViable verdict = "not viable"
	survived  verdict = "survived"
)

// active is the variable of the environment that says which mutant a test binary is.
const active = "RALPH_MUTANT"

// A bench builds tests and runs them. The module is not copied: the compiler is told
// to read other files in the place of the mutated ones.
type bench struct {
	root  string // of the module
	dir   string // for all that is made
	limit time.Duration
}

// A court is the test binaries of one or more mutants, by their packages.
type court map[string]string

// convene builds the tests of judges with some files replaced. What the compiler says
// is returned if it refuses.
func (b *bench) convene(ctx context.Context, files map[string][]byte, judges []judge) (c court, refused string, err error) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return nil, "", err
	}
	replace := map[string]string{}
	for name, source := range files {
		replaced := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replaced, source, 0o600); err != nil {
			return nil, "", err
		}
		replace[filepath.Join(b.root, name)] = replaced
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return nil, "", err
	}
	c = court{}
	for _, j := range judges {
		if c[j.pkg] != "" {
			continue
		}
		c[j.pkg] = filepath.Join(dir, fmt.Sprintf("%d.test", len(c)))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", list, "-o", c[j.pkg], "./"+j.pkg)
		for _, folder := range folders(files) { // all errors at once
			build.Args = slices.Insert(build.Args, 3, "-gcflags=./"+folder+"=-e")
		}
		build.Dir = b.root
		if out, err := build.CombinedOutput(); err != nil {
			return nil, string(out), errors.Join(ctx.Err(), os.RemoveAll(dir))
		}
	}
	return c, "", nil
}

// folders are those of the files.
func folders(files map[string][]byte) (list []string) {
	for name := range files {
		if folder := filepath.ToSlash(filepath.Dir(name)); !slices.Contains(list, folder) {
			list = append(list, folder)
		}
	}
	return list
}

// dissolve removes the binaries.
func (c court) dissolve() error {
	for _, binary := range c {
		return os.RemoveAll(filepath.Dir(binary))
	}
	return nil
}

// together builds many mutants at once: each function begins with a choice among its
// mutated bodies, and the environment of the test says which one it is. Those that do
// not compile are found by the compiler's messages and left out.
func (b *bench) together(ctx context.Context, list []suspect, judges []judge) (c court, refused map[int]bool, err error) {
	refused = map[int]bool{}
	for {
		files, err := b.instrument(list, refused)
		if err != nil {
			return nil, nil, err
		}
		c, said, err := b.convene(ctx, files, judges)
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

// named finds the mutants that the compiler has something to say of.
var named = regexp.MustCompile(`\bmutant(\d+)\.go:`)

// instrument makes files in which all mutants are that are not refused.
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
		fmt.Fprintf(choice, "\ncase %d:\n//line mutant%d.go:1\n%s%s%s\n", i, i, source[s.body[0]:s.begin], s.with, source[s.end:s.body[1]])
		if s.results {
			choice.WriteString("panic(`it does not return`)\n")
		} else {
			choice.WriteString("return\n")
		}
	}
	for name, source := range files {
		var out bytes.Buffer
		from := 0
		for _, body := range slices.SortedFunc(maps.Keys(choices[name]), func(x, y [2]int) int { return x[0] - y[0] }) {
			fmt.Fprintf(&out, "%s\nswitch mutantOfTheTest {%s}\n//line %s:%d\n", source[from:body[0]], choices[name][body], filepath.Base(name), bytes.Count(source[:body[0]], []byte("\n"))+1)
			from = body[0]
		}
		out.Write(source[from:])
		folder := filepath.Dir(name)
		pkg := packageName.FindSubmatch(source)[1]
		files[name] = out.Bytes()
		files[filepath.Join(folder, "mutant_of_the_test.go")] = fmt.Appendf(nil,
			"package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutantOfTheTest = func() int {\n\tif n, err := strconv.Atoi(os.Getenv(%q)); err == nil {\n\t\treturn n\n\t}\n\treturn -1\n}()\n", pkg, active)
	}
	return files, nil
}

var packageName = regexp.MustCompile(`(?m)^package (\w+)`)

// judge has the judges look at one mutant in turn, until one finds it.
func (b *bench) judge(ctx context.Context, c court, number int, judges []judge) (verdict, string, error) {
	for _, j := range judges {
		if v, out, err := b.run(ctx, c[j.pkg], number, j); v != survived || err != nil {
			return v, out, err
		}
	}
	return survived, "", nil
}

func (b *bench) run(ctx context.Context, binary string, number int, j judge) (_ verdict, said string, err error) {
	temporary, err := os.MkdirTemp(b.dir, "tmp")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	timed, cancel := context.WithTimeout(ctx, b.limit+10*time.Second) // the binary ends itself before
	defer cancel()
	test := exec.CommandContext(timed, binary, "-test.failfast", "-test.timeout", b.limit.String(), "-test.run", j.run, "-test.skip", j.skip)
	var out bytes.Buffer
	test.Dir, test.Stdout, test.Stderr, test.WaitDelay = filepath.Join(b.root, j.pkg), &out, &out, time.Second
	test.Env = append(os.Environ(), "TMPDIR="+temporary, fmt.Sprintf("%s=%d", active, number))
	err = test.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		return survived, "", nil
	case timed.Err() != nil || bytes.Contains(out.Bytes(), []byte("panic: test timed out after ")):
		return timedOut, out.String(), nil
	case errors.As(err, &exit):
		return killed, out.String(), nil
	}
	return "", "", err
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	timedOut  verdict = "timed out" // it hangs, which a test would notice as well
	notViable verdict = "not viable"
	survived  verdict = "survived"
)

// A bench builds and runs tests in a folder of its own. The module is not copied:
// the compiler is told to read another file in the place of the mutated one.
type bench struct {
	root  string // of the module
	dir   string // for all that is made
	limit time.Duration
}

// judge shows the tests a source of a file, and says how they take it. Judges of
// one package share its test binary.
func (b *bench) judge(ctx context.Context, file string, source []byte, judges []judge) (verdict, string, error) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(b.root, file): changed}})
	if err != nil {
		return "", "", err
	}
	if err := errors.Join(os.WriteFile(changed, source, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", "", err
	}
	built := map[string]string{}
	for _, j := range judges {
		binary := built[j.pkg]
		if binary == "" {
			binary = filepath.Join(dir, fmt.Sprintf("%d.test", len(built)))
			built[j.pkg] = binary
			build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", overlay, "-o", binary, "./"+j.pkg)
			build.Dir = b.root
			if out, err := build.CombinedOutput(); err != nil {
				return notViable, string(out), ctx.Err()
			}
		}
		v, out, err := b.run(ctx, dir, binary, j)
		if v != survived || err != nil {
			return v, out, err
		}
	}
	return survived, "", nil
}

// run has one judge look.
func (b *bench) run(ctx context.Context, dir, binary string, j judge) (verdict, string, error) {
	timed, cancel := context.WithTimeout(ctx, b.limit+10*time.Second) // the binary ends itself before
	defer cancel()
	test := exec.CommandContext(timed, binary, "-test.failfast", "-test.timeout", b.limit.String(), "-test.run", j.run, "-test.skip", j.skip)
	var out bytes.Buffer
	test.Dir, test.Stdout, test.Stderr, test.WaitDelay = filepath.Join(b.root, j.pkg), &out, &out, time.Second
	temporary := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return "", "", err
	}
	test.Env = append(os.Environ(), "TMPDIR="+temporary)
	err := test.Run()
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

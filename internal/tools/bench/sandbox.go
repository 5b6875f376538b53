package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"ralph/internal/proc"
	"ralph/internal/sandbox"
)

// verifications is the number of runs of each in a round.
const verifications = 10

// sandboxes compares `ralph verify` with an empty command in each sandbox and without one.
func (b *bench) sandboxes(ctx context.Context) (rows []row) {
	p := b.newProject(ctx, 1)
	text := must(os.ReadFile(filepath.Join(p.dir, "ralph.yaml")))
	check(os.WriteFile(filepath.Join(p.dir, "ralph.yaml"), append(text, "verify: ['true']\n"...), 0o600))
	p.time(ctx, p.ralph, "task", "add", "Nothing")
	broken := filepath.Join(b.dir, "broken")
	check(os.MkdirAll(broken, 0o700))
	check(os.WriteFile(filepath.Join(broken, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	without := broken + ":" + os.Getenv("PATH")
	modes := []struct{ name, mode, path string }{
		{"none", "off", os.Getenv("PATH")}, {"bubblewrap", "auto", os.Getenv("PATH")}, {"Landlock", "auto", without},
	}
	took := make([]samples, len(modes))
	for range b.rounds * verifications {
		for i, m := range modes {
			cmd := p.command(ctx, p.ralph, "verify")
			cmd.Env = append(cmd.Env, "RALPH_SANDBOX_MODE="+m.mode, "PATH="+m.path)
			took[i].took(output(cmd))
		}
	}
	for i, m := range modes[1:] {
		doctor := p.command(ctx, p.ralph, "doctor")
		doctor.Env = append(doctor.Env, "PATH="+m.path)
		said, _ := doctor.Output() // other things may be amiss
		if !regexp.MustCompile(`(?m)^\S+ +sandbox +` + m.name).Match(said) {
			continue // it would be another one's
		}
		more := difference(took[i+1], took[0])
		rows = append(rows, row{
			what: "`ralph verify` of `true` in " + m.name + " (floor: `sandbox: off`)", product: took[i+1], floor: took[0],
			value: more.signed(),
		})
	}
	return append(rows, b.layers(ctx, without)...)
}

// layers compares a command with all layers and the network of a check with the same command without
// them.
func (b *bench) layers(ctx context.Context, without string) (rows []row) {
	const count = 6 // of the tree, HOME, ~/.cache, Go's modules, npm's packages, and folders that the user does not have
	for _, path := range []string{os.Getenv("PATH"), without} {
		policy := sandbox.Policy{Network: true}
		policy.Add(sandbox.ReadOnly, "/")
		m := sandbox.Find(ctx, path, policy)
		if m.TryLayers(ctx, b.dir) != "" {
			continue
		}
		var view sandbox.View
		dir := must(os.MkdirTemp(b.dir, "layers-*"))
		for i := range count {
			at, upper := filepath.Join(dir, strconv.Itoa(i)), filepath.Join(dir, "upper", strconv.Itoa(i))
			check(os.MkdirAll(at, 0o700))
			view.Layers = append(view.Layers, sandbox.Layer{At: at, Lower: []string{at}, Upper: upper})
		}
		view.Network, view.Shm = true, true
		once := func(view sandbox.View) time.Duration {
			began := time.Now()
			spec := proc.Spec{Args: []string{"/bin/true"}, Dir: dir}
			leave := must(sandbox.Box{Mechanism: m, Policy: policy, View: view}.Enter(&spec))
			must(proc.Run(ctx, spec, 0, nil))
			leave()
			check(os.RemoveAll(filepath.Join(dir, "upper")))
			return time.Since(began)
		}
		var with, none samples
		for range b.rounds * verifications {
			none.took(once(sandbox.View{}))
			with.took(once(view))
		}
		more := difference(with, none)
		rows = append(rows, row{
			what: "`true` with a check's layers in " + m.Name + " (floor: without)", product: with, floor: none,
			value: more.signed(), aim: "at most 50 ms", met: more.median() <= 50,
		})
	}
	return rows
}

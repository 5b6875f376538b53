package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
)

// verifications is how often each is made in a round.
const verifications = 10

// sandboxes compares `ralph verify` of a command that does nothing in each sandbox with the
// same without one.
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
			value: "+" + more.String(),
		})
	}
	return rows
}

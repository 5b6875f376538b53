package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// changesTests is an agent that adds a test, or changes one and code.
const changesTests = `task Add
  run echo true >tests/$(date +%s%N)_test.sh
  done {"summary": "It was done."}
task Change
  run echo '# more' >>tests/a_test.sh; echo '# more' >>code.sh
  done {"summary": "It was done."}
`

// gate counts the verifications of a change before its merge: one, and another one if it touches gate files.
func (b *bench) gate(ctx context.Context) (rows []row) {
	p := b.newProject(ctx, 1)
	ran := filepath.Join(must(os.MkdirTemp(b.dir, "ran-*")), "ran")
	check(os.Mkdir(filepath.Join(p.dir, "tests"), 0o700))
	config := string(must(os.ReadFile(filepath.Join(p.dir, "ralph.yaml")))) + fmt.Sprintf(
		"permissions: {writable: [%q]}\nverify: {commands: [\"echo >>%s; sh tests/a_test.sh\"], proof: \"off\"}\n",
		filepath.Dir(ran), ran)
	for name, text := range map[string]string{
		"claude.script": changesTests, ".gitignore": "*.sessions\n", "tests/a_test.sh": "true\n", "ralph.yaml": config,
	} {
		check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	p.time(ctx, "git", "add", "-A")
	p.time(ctx, "git", "commit", "-q", "-m", "settings")
	verified := func(title string) float64 {
		p.time(ctx, p.ralph, "task", "add", title)
		before := strings.Count(string(must(os.ReadFile(ran))), "\n")
		p.time(ctx, p.ralph, "run")
		return float64(strings.Count(string(must(os.ReadFile(ran))), "\n") - before)
	}
	check(os.WriteFile(ran, nil, 0o600))
	verified("Add") // the present state is verified, too
	var adds, changes samples
	for range b.rounds {
		adds.add(verified("Add"))
		changes.add(verified("Change"))
	}
	for _, r := range []struct {
		what string
		samples
		aim float64
	}{{"that only adds tests", adds, 1}, {"of a test and code", changes, 2}} {
		rows = append(rows, row{
			what: "verifications before a change is merged " + r.what, product: r.samples, value: number(r.median()),
			aim: number(r.aim), met: r.median() == r.aim,
		})
	}
	return rows
}

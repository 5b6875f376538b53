package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// changesTests is an agent that changes code alone, adds a test, changes one and code, or changes a setting and code.
const changesTests = `task Code
  run echo '# more' >>code.sh
  done {"summary": "It was done."}
task Add
  run echo true >tests/$(date +%s%N)_test.sh
  done {"summary": "It was done."}
task Change
  run echo '# more' >>tests/a_test.sh; echo '# more' >>code.sh
  done {"summary": "It was done."}
task Set
  run echo '# more' >>.env.test; echo '# more' >>code.sh
  done {"summary": "It was done."}
`

// gate counts the verifications of a change before its merge: one, another one if it touches gate files, and one or two
// for the trial, with the target and with the candidate.
func (b *bench) gate(ctx context.Context) (rows []row) {
	p := b.newProject(ctx, 1)
	ran := filepath.Join(must(os.MkdirTemp(b.dir, "ran-*")), "ran")
	check(os.Mkdir(filepath.Join(p.dir, "tests"), 0o700))
	config := string(must(os.ReadFile(filepath.Join(p.dir, "ralph.yaml")))) + fmt.Sprintf(
		"permissions: {writable: [%q]}\nverify: {commands: [\"echo >>%s; sh tests/a_test.sh\"], proof: \"off\"}\n",
		filepath.Dir(ran), ran)
	for name, text := range map[string]string{
		"claude.script": changesTests, ".gitignore": "*.sessions\n", "ralph.yaml": config, ".env.test": "A=1\n",
		"tests/a_test.sh": "test \"$(sh code.sh 1 2)\" = 3\n", "code.sh": "echo $(($1 + $2))\n",
	} {
		check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	p.time(ctx, "git", "add", "-A")
	p.time(ctx, "git", "commit", "-q", "-m", "settings")
	verified := func(title, trial string) float64 {
		check(os.Setenv("RALPH_VERIFY_TRIAL", trial))
		p.time(ctx, p.ralph, "task", "add", title)
		before := strings.Count(string(must(os.ReadFile(ran))), "\n")
		p.time(ctx, p.ralph, "run")
		return float64(strings.Count(string(must(os.ReadFile(ran))), "\n") - before)
	}
	defer func() { check(os.Unsetenv("RALPH_VERIFY_TRIAL")) }()
	check(os.WriteFile(ran, nil, 0o600))
	verified("Add", "off") // the present state is verified, too
	for _, c := range []struct {
		title, what string
		off, on     float64 // aims
	}{
		{"Code", "of code alone", 1, 2},
		{"Add", "that only adds tests", 1, 2},
		{"Change", "of a test and code", 2, 4},
		{"Set", "of a setting and code", 2, 3},
	} {
		var on, off samples
		for range b.rounds {
			off.add(verified(c.title, "off"))
		}
		verified(c.title, "auto") // the first one tries the target, too
		for range b.rounds {
			on.add(verified(c.title, "auto"))
		}
		rows = append(rows, row{
			what: "verifications before a change is merged " + c.what + " (floor: without the trial)", product: on, floor: off,
			value: difference(on, off).signed(), aim: fmt.Sprintf("%s after %s", number(c.on), number(c.off)),
			met: on.median() <= c.on && off.median() == c.off,
		})
	}
	return rows
}

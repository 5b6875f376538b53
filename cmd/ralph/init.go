package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"ralph/internal/config"
	"ralph/internal/worktree"
)

func newInit(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Make this directory a project: write ralph.yaml",
		Long: `Write ralph.yaml with the verification commands that fit what is found in the
directory, and create the database. A file that is there already is not changed.`,
		Example: "  cd my-project && ralph init",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := a.dir()
			if err != nil {
				return err
			}
			path := filepath.Join(root, configName)
			if exists(path) {
				return usage(fmt.Errorf("%s exists already; it was not changed", path))
			}
			top, common, err := worktree.Find(cmd.Context(), root)
			git := err == nil
			if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
				return err
			}
			// What refuses the queue refuses before anything is written.
			before := project{root: root, state: filepath.Join(root, plainState)}
			if git {
				if before.state, err = chooseState(cmd.Context(), root, top, common); err != nil {
					return err
				}
			}
			if err := checkPath(root, before.state); err != nil {
				return err
			}
			if _, err := before.hasQueue(); err != nil {
				return err
			}
			verify := likelyChecks(root)
			if err := os.WriteFile(path, config.Starter(verify), 0o644); err != nil {
				return fmt.Errorf("write %s: %w", path, err)
			}
			p, err := a.project(cmd.Context())
			if err != nil {
				return err
			}
			db, err := p.begin(cmd.Context())
			if err != nil {
				return err
			}
			found := map[string]any{"config": path, "git": git, "git_common_dir": common, "state": p.state, "verify": verify}
			return errors.Join(a.print(found, func(w io.Writer) error { return sayInit(w, path, p, verify) }), db.Close())
		},
	}
}

func sayInit(w io.Writer, path string, p *project, verify []string) error {
	fmt.Fprintf(w, "wrote %s\nstate is kept in %s\n", path, p.state)
	if !p.git {
		fmt.Fprintln(w, "no git repository: files changed by a session will not be known")
	}
	if len(verify) == 0 {
		fmt.Fprintln(w, "no verification command was found: set verify in ralph.yaml, or `done` is taken at its word")
	}
	for _, v := range verify {
		fmt.Fprintf(w, "verification: %s\n", v)
	}
	if len(verify) > 0 {
		fmt.Fprintln(w, "run it once yourself: what is red already refuses every task")
	}
	_, err := fmt.Fprintln(w, "next: ralph doctor, ralph task add TITLE --verify COMMAND, ralph run")
	return err
}

// likelyChecks are the verification commands that fit what is in a directory. What
// would fail in any case, such as the placeholder that npm init writes, is left out.
func likelyChecks(root string) []string {
	for _, c := range []struct {
		file, command string
		fits          func(text []byte) bool
	}{
		{"go.mod", "go test ./...", nil},
		{"Cargo.toml", "cargo test", nil},
		{"package.json", "npm test", hasTestScript},
		{"pyproject.toml", pytest(), nil},
		{"pom.xml", "mvn -q test", nil},
		{"mix.exs", "mix test", nil},
		{"Makefile", "make test", testTarget.Match},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err == nil && (c.fits == nil || c.fits(text)) {
			return []string{c.command}
		}
	}
	return nil
}

var testTarget = regexp.MustCompile(`(?m)^test\s*:`)

func hasTestScript(text []byte) bool {
	var manifest struct{ Scripts struct{ Test string } }
	return json.Unmarshal(text, &manifest) == nil && manifest.Scripts.Test != "" && !strings.Contains(manifest.Scripts.Test, "no test specified")
}

// pytest is how pytest is started here: python is not everywhere a Python 3.
func pytest() string {
	if _, err := exec.LookPath("python"); err == nil {
		return "python -m pytest -q"
	}
	return "python3 -m pytest -q"
}

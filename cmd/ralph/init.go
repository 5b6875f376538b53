package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
			_, common, err := worktree.Find(cmd.Context(), root)
			git := err == nil
			if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
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
			db, err := p.open(cmd.Context())
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
	_, err := fmt.Fprintln(w, "next: ralph doctor, ralph task add TITLE, ralph run")
	return err
}

// likelyChecks are the verification commands that fit what is in a directory.
func likelyChecks(root string) []string {
	for _, c := range []struct{ file, command string }{
		{"go.mod", "go test ./..."},
		{"Cargo.toml", "cargo test"},
		{"package.json", "npm test"},
		{"pyproject.toml", "python -m pytest -q"},
		{"pom.xml", "mvn -q test"},
		{"mix.exs", "mix test"},
		{"Makefile", "make test"},
	} {
		if exists(filepath.Join(root, c.file)) {
			return []string{c.command}
		}
	}
	return nil
}

package project

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/internal/worktree"
)

// A Hook is a git hook of the project for commits or pushes. It does not run in agents' clones.
type Hook struct {
	File string // its location, relative to the project's root if below it
	Runs string // its first command; "" if its tool knows the commands
	Same string // the separate command that does the same
}

// hookNames are the hooks that can refuse a commit or a push.
var hookNames = []string{"pre-commit", "commit-msg", "pre-push"}

// hookTools are the files of tools that run hooks, with the command that does so by itself.
var hookTools = []struct{ file, same string }{
	{".pre-commit-config.yaml", "pre-commit run --all-files"},
	{"lefthook.yml", "lefthook run pre-commit --all-files"},
	{"lefthook.yaml", "lefthook run pre-commit --all-files"},
	{".lefthook.yml", "lefthook run pre-commit --all-files"},
}

// Hooks lists a project's hooks by their files: those of husky, lefthook, pre-commit, and those in git's own
// folder of hooks.
func Hooks(ctx context.Context, root, common string) (list []Hook) {
	for _, tool := range hookTools {
		if state.Exists(filepath.Join(root, tool.file)) {
			list = append(list, Hook{File: tool.file, Same: tool.same})
		}
	}
	folders := []string{filepath.Join(root, ".husky"), filepath.Join(common, "hooks")}
	if own := worktree.HooksPath(ctx, root); own != "" {
		folders = append(folders, own)
	}
	for _, folder := range folders {
		for _, name := range hookNames {
			path := filepath.Join(folder, name)
			script, err := os.ReadFile(path)
			if err != nil || generated(script) {
				continue
			}
			file := path
			if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
				file = filepath.ToSlash(rel)
			}
			h := Hook{File: file, Runs: firstCommand(script), Same: "sh " + file}
			if !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
	}
	return list
}

// generated reports whether a hook only starts a tool's own hook, which the tool's file already names, or is Git
// LFS's, which checks nothing.
func generated(script []byte) bool {
	return slices.ContainsFunc([]string{"lefthook", "pre-commit.com", "git lfs"}, func(s string) bool {
		return bytes.Contains(script, []byte(s))
	})
}

// firstCommand returns the first line of a script that does something.
func firstCommand(script []byte) string {
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' && !strings.HasPrefix(line, ". ") && !strings.HasPrefix(line, "set -") {
			return text.Line(line, 100)
		}
	}
	return ""
}

package merging

import (
	"strings"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/gate"
)

// outside returns the changed files that a task's globs do not match, if it has any, and that it does not allow.
func (m *Merger) outside(pairs []worktree.Pair, task ralph.Task) (list []ralph.Blob) {
	if len(task.Files) == 0 {
		return nil
	}
	for _, p := range pairs {
		name, ours := strings.CutPrefix(p.Path, m.Tree.Below(""))
		if !ours || !gate.Within(task.Files, name) && !gate.Allows(task.Allow, []string{name}) {
			list = append(list, p.Blob)
		}
	}
	return list
}

// mostDependencies is the maximum number of recorded dependencies.
const mostDependencies = 100

// dependencies returns the dependencies that a change adds, removes or changes, up to mostDependencies.
func dependencies(pairs []worktree.Pair) []ralph.Dependency {
	var files []gate.File
	for _, p := range pairs {
		files = append(files, gate.File{Path: p.Path, Was: p.Was, Is: p.Is})
	}
	list := gate.Dependencies(files)
	return list[:min(len(list), mostDependencies)]
}

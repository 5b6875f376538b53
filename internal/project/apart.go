package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/sandbox"
	"ralph/loop/workspace"
)

// maxHidden is the maximum number of paths in the person's folder that are hidden one by one. Each needs a mount. If
// there are more, the whole folder is hidden.
const maxHidden = 400

// withhold hides the person's folder from commands in a workspace: in a check all of it, in a session the paths that
// git ignores. Targets of links that set-up made stay visible, as do programs in PATH, git's directory, and paths that
// people show.
func (p *Project) withhold(policy *sandbox.Policy, ws string, checks bool) {
	folder, tops := p.workspaceFolder(ws), p.tops()
	visible := func(paths []string) []string {
		return slices.DeleteFunc(paths, func(path string) bool {
			real, err := filepath.EvalSymlinks(path)
			return err != nil || !inAny(real, tops) || policy.Of(real) == sandbox.Hidden
		})
	}
	programs, linked := visible(p.programs()), workspace.Linked(folder)
	hidden, known := workspace.Ignored(folder)
	hidden = slices.DeleteFunc(hidden, func(path string) bool {
		return slices.ContainsFunc(programs, func(program string) bool { return within(program, path) })
	})
	if checks || !known || len(hidden) > maxHidden {
		hidden = append(tops, p.Root)
	}
	var links []string
	for _, path := range linked {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 && inAny(path, tops) {
			links = append(links, path)
		}
	}
	shown := append(visible(linked), programs...)
	asked := p.paths(p.Config.Sandbox.Show, p.agentEnv("HOME"))
	asked = append(asked, p.paths(p.Config.Permissions.Writable, p.agentEnv("HOME"))...)
	for _, path := range hidden {
		if !slices.Contains(asked, path) {
			policy.Add(sandbox.Hidden, path)
		}
	}
	policy.Show(shown...)
	for _, link := range links {
		if policy.Of(link) == sandbox.Hidden {
			policy.Links = append(policy.Links, link)
		}
	}
}

// tops returns the person's work trees of the repository, except one around the home directory.
func (p *Project) tops() (list []string) {
	dirs := []string{p.Top, p.Root}
	if filepath.Base(p.Common) == ".git" {
		dirs = append(dirs, filepath.Dir(p.Common))
	}
	others, _ := filepath.Glob(filepath.Join(p.Common, "worktrees", "*", "gitdir")) // a bad pattern matches none
	for _, file := range others {
		if text, err := os.ReadFile(file); err == nil {
			dirs = append(dirs, filepath.Dir(strings.TrimSpace(string(text))))
		}
	}
	home := p.agentEnv("HOME")
	for _, dir := range dirs {
		if filepath.IsAbs(dir) && !within(home, dir) && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// programs returns the folders of the programs in PATH, each with the folder it belongs to: node_modules of
// node_modules/.bin, .venv of .venv/bin.
func (p *Project) programs() (dirs []string) {
	for _, dir := range filepath.SplitList(p.agentEnv("PATH")) {
		if above := filepath.Dir(dir); !slices.Contains(p.tops(), above) {
			dir = above
		}
		dirs = append(dirs, dir)
	}
	return append(dirs, p.agentPrograms()...)
}

// inAny reports whether a path is one of the folders or in one.
func inAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
}

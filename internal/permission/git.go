package permission

import (
	"slices"
	"strings"
)

// gitPrograms are the suffixes of git configuration keys whose values git runs.
var gitPrograms = []string{
	".sshcommand", ".editor", ".pager", ".fsmonitor", ".textconv", ".external", ".program", ".helper", ".clean", ".smudge",
	".process", ".cmd", ".driver", ".gitproxy", ".askpass",
}

// gitRuns returns the commands that git is told to run.
func gitRuns(c command) (list []inner) {
	args := gitArgs(c)
	for _, entry := range gitSettings(c) {
		key, value, _ := strings.Cut(entry, "=")
		lower := strings.ToLower(key)
		text, shell := strings.CutPrefix(value, "!")
		switch {
		case strings.HasPrefix(lower, "alias.") && shell,
			slices.ContainsFunc(gitPrograms, func(end string) bool { return strings.HasSuffix(lower, end) }):
			list = append(list, script(text)...)
		case strings.HasPrefix(lower, "alias.") && len(args) > 0 && args[0] == key[len("alias."):]:
			list = append(list, script("git "+value+" "+strings.Join(args[1:], " "))...)
		}
	}
	if len(args) < 2 {
		return list
	}
	switch args[0] {
	case "submodule":
		if args[1] == "foreach" {
			list = append(list, script(strings.Join(afterOptions(args[2:], ""), " "))...)
		}
	case "bisect":
		if args[1] == "run" {
			list = append(list, inner{words: args[2:]})
		}
	case "rebase":
		for _, text := range optionValues(args, "x", "exec") {
			list = append(list, script(text)...)
		}
	case "filter-branch":
		for i, w := range args[:len(args)-1] {
			if strings.HasSuffix(w, "-filter") {
				list = append(list, script(args[i+1])...)
			}
		}
	}
	return list
}

// gitArgs returns git's subcommand and the words after it.
func gitArgs(c command) []string {
	if c.name() != "git" {
		return nil
	}
	return subcommand(c)
}

// gitOptions returns git's own options, before the subcommand.
func gitOptions(c command) []string { return c.args()[:len(c.args())-len(gitArgs(c))] }

// gitSettings returns the settings given by -c.
func gitSettings(c command) []string { return optionValues(gitOptions(c), "c", "") }

// plainGit reports whether git's own options leave the effects of its subcommands unchanged.
func plainGit(c command) bool {
	for _, setting := range gitSettings(c) {
		group, _, _ := strings.Cut(setting, ".")
		if !slices.Contains([]string{"user", "color", "advice"}, group) {
			return false
		}
	}
	for _, w := range gitOptions(c) {
		if strings.HasPrefix(w, "--") && !has([]string{w}, "--no-pager", "--no-optional-locks", "--literal-pathspecs") {
			return false
		}
	}
	return true
}

// gitTargets returns the files that git is told by name to change.
func (s *shell) gitTargets(c command) (writes, removes []string) {
	args := gitArgs(c)
	if len(args) == 0 {
		return nil, nil
	}
	rest := args[1:]
	writes = optionValues(rest, "", "output")
	switch args[0] {
	case "rm", "restore":
		removes = plain(rest)
	case "mv":
		writes, removes = append(writes, plain(rest)...), plain(rest)
	case "checkout":
		if i := slices.Index(rest, "--"); i >= 0 {
			removes = rest[i+1:]
		} else if names := operands(rest, "-b -B --orphan"); len(names) > 0 {
			removes = names[1:]
			if s.policy.Exists == nil || s.policy.Exists(s.path(c.dirs[0], names[0])) {
				removes = names
			}
		}
	case "clean":
		if removes = operands(rest, "-e --exclude"); len(removes) == 0 {
			removes = []string{"."}
		}
		if shortly(rest, "n") || has(rest, "--dry-run") {
			removes = nil
		}
	case "archive", "format-patch", "bundle":
		writes = append(writes, optionValues(rest, "o", "output-directory")...)
	case "clone":
		if list := operands(rest, cloneValued); len(list) > 1 {
			writes = append(writes, lastOf(list)...)
		}
	case "init":
		writes = append(writes, lastOf(operands(rest, "-b --initial-branch"))...)
	case "worktree":
		switch list := operands(rest, "-b -B --reason"); {
		case len(list) > 1 && list[0] == "add":
			writes = append(writes, list[1])
		case len(list) > 1:
			writes = append(writes, list[1:]...)
		}
	}
	return writes, removes
}

// cloneValued are the options of git clone that take a value.
const cloneValued = "-b -o -c -u -j --branch --origin --config --upload-pack --jobs --depth --reference --template " +
	"--separate-git-dir --filter --shallow-since --shallow-exclude"

// gitReads are the subcommands of git that change nothing in an existing repository.
var gitReads = []string{
	"", "status", "log", "diff", "show", "rev-parse", "rev-list", "ls-files", "ls-tree", "cat-file", "blame", "grep",
	"describe", "shortlog", "ls-remote", "help", "version", "--version", "merge-base", "name-rev", "var", "check-ignore",
	"count-objects", "diff-tree", "diff-index", "diff-files", "for-each-ref", "show-ref", "whatchanged", "annotate",
	"clone", "init",
}

// gitDirs returns the folders in which git changes something.
func (s *shell) gitDirs(c command) (dirs []string) {
	args := gitArgs(c)
	if c.name() != "git" || len(args) == 0 || slices.Contains(gitReads, args[0]) {
		return nil
	}
	if args[0] == "config" && has(args, "--global", "--system") || args[0] == "branch" && len(args) == 1 {
		return nil // belongs to another guard, or read-only
	}
	dir := c.dirs[0]
	for _, to := range optionValues(gitOptions(c), "C", "") {
		dir = s.path(dir, to)
	}
	dirs = append(dirs, dir)
	for _, option := range []string{"git-dir", "work-tree"} {
		for _, to := range optionValues(gitOptions(c), "", option) {
			dirs = append(dirs, s.path(dir, to))
		}
	}
	for _, set := range c.sets {
		if name, to, _ := strings.Cut(set, "="); name == "GIT_DIR" || name == "GIT_WORK_TREE" {
			dirs = append(dirs, s.path(dir, to))
		}
	}
	return dirs
}

package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A guard is a built-in rule.
type guard struct {
	name    string
	about   string // for docs/permissions.md
	instead string // what the agent is told to do
	hits    func(p Policy, q question) (why string)
}

// guards deny what a project's work does not need (unattended, "The agent's
// processes"). docs/permissions.md lists them.
var guards = []guard{
	{"unreadable", "a shell command that cannot be read", "Write it more simply.", func(_ Policy, q question) string {
		if q.unread {
			return "this shell command cannot be read"
		}
		return ""
	}},
	{
		"root",
		"root rights: sudo, su, doas, pkexec, run0",
		"Work without root rights, or signal blocked (external) and say what is missing.",
		eachCommand(asksForRoot),
	},
	{
		"force-push",
		"rewriting or deleting what is on a remote: git push with --force, --mirror, --delete, a leading + or :",
		"Push without force, or leave it to people.",
		eachCommand(pushesWithForce),
	},
	{
		"git-config",
		"changing git's configuration, remotes or hooks",
		"Pass an option for one command with git -c, or leave it to people.",
		guardGit,
	},
	{
		"ralph",
		"ralph's own state and configuration, and its commands that change something",
		"Say what you want by ralph's signals; people decide.",
		guardRalph,
	},
	{
		"agent-settings",
		"the agent's own settings in the project: .claude/settings*.json, .claude/hooks, .mcp.json",
		"Leave them to people.",
		guardSettings,
	},
	{
		"outside",
		"writing outside the project and the temporary directories",
		"Write within the project or to a temporary directory.",
		guardOutside,
	},
}

// Guards lists the built-in rules, name and what they deny, in the order in which
// they are tried.
func Guards() [][2]string {
	list := make([][2]string, len(guards))
	for i, g := range guards {
		list[i] = [2]string{g.name, g.about}
	}
	return list
}

func eachCommand(hit func(c command) string) func(Policy, question) string {
	return func(_ Policy, q question) string {
		for _, c := range q.commands {
			if why := hit(c); why != "" {
				return why
			}
		}
		return ""
	}
}

func asksForRoot(c command) string {
	if slices.Contains([]string{"sudo", "su", "doas", "pkexec", "run0"}, c.name()) {
		return "a session works without root rights"
	}
	return ""
}

// gitValues are git's own options that take a value.
var gitValues = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace"}

// gitArgs are the subcommand of git and what follows, without git's own options.
func gitArgs(c command) []string {
	if c.name() != "git" {
		return nil
	}
	words := c.words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if slices.Contains(gitValues, words[0]) && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	return words
}

func pushesWithForce(c command) string {
	args := gitArgs(c)
	if len(args) == 0 || args[0] != "push" {
		return ""
	}
	for i, a := range args[1:] {
		short := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--")
		switch {
		case short && strings.ContainsAny(a, "fd"), strings.HasPrefix(a, "--force"),
			a == "--mirror", a == "--delete", a == "--prune":
			return "git push " + a + " rewrites what others may have"
		case i > 0 && len(a) > 1 && (a[0] == '+' || a[0] == ':'):
			return "git push with " + a + " rewrites what others may have"
		}
	}
	return ""
}

// changesGit reports what a git command would change of the configuration.
func changesGit(c command) string {
	args := gitArgs(c)
	if len(args) == 0 {
		return ""
	}
	rest := args[1:]
	plain := slices.DeleteFunc(slices.Clone(rest), func(a string) bool { return strings.HasPrefix(a, "-") })
	has := func(list ...string) bool {
		return slices.ContainsFunc(rest, func(a string) bool { return slices.Contains(list, a) })
	}
	switch args[0] {
	case "config":
		reads := has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list", "--get-color", "--get-colorbool")
		if len(plain) > 0 && slices.Contains([]string{"get", "list"}, plain[0]) {
			reads = true
		}
		writes := has("--unset", "--unset-all", "--remove-section", "-e", "--edit", "--add")
		if reads || len(plain) == 1 && !writes && !slices.Contains([]string{"edit", "set", "unset"}, plain[0]) {
			return ""
		}
		return "git config changes git's configuration"
	case "remote":
		if len(plain) == 0 || slices.Contains([]string{"show", "get-url"}, plain[0]) {
			return ""
		}
		return "git remote " + plain[0] + " changes the remotes"
	}
	return ""
}

func guardGit(p Policy, q question) string {
	for _, c := range q.commands {
		if why := changesGit(c); why != "" {
			return why
		}
	}
	for _, c := range q.commands {
		if !slices.Contains([]string{"rm", "rmdir", "mv", "shred"}, c.name()) {
			continue
		}
		for _, target := range targets(c) {
			if path := p.absolute(c.dir, target); path == p.Project || below(p.Project, path) {
				return path + " holds git's own directory"
			}
		}
	}
	for _, path := range p.written(q) {
		rel, ok := inside(path, p.Project)
		if ok && (rel == ".git" || strings.HasPrefix(rel, ".git/config") || strings.HasPrefix(rel, ".git/hooks")) {
			return rel + " is git's own"
		}
	}
	return ""
}

// harmless are ralph's commands that change nothing.
var harmless = []string{
	"help", "version", "doctor", "status", "inbox", "timeline", "prompt", "report", "events", "completion", "man",
}

// looks are the second words of those that change nothing either.
var looks = []string{"list", "show", "log", "graph", "--help", "-h"}

func guardRalph(p Policy, q question) string {
	for _, c := range q.commands {
		if !strings.HasPrefix(c.words0(), "./") && c.name() == "ralph" && len(c.words) > 1 {
			verb := c.words[min(2, len(c.words)-1)]
			if !slices.Contains(harmless, c.words[1]) && !slices.Contains(looks, verb) {
				return "ralph " + c.words[1] + " is for people"
			}
		}
		for _, w := range c.words {
			if !strings.Contains(w, "$") && below(p.absolute(c.dir, w), p.State) {
				return "the state of ralph is its own"
			}
		}
	}
	for _, path := range append(p.written(q), q.path) {
		if below(path, p.State) {
			return "the state of ralph is its own"
		}
		if path != q.path || slices.Contains(p.Tools.Edits, q.tool) {
			if rel, ok := inside(path, p.Project); ok && rel == "ralph.yaml" {
				return "ralph.yaml is for people"
			}
		}
	}
	return ""
}

func (c command) words0() string {
	if len(c.words) == 0 {
		return ""
	}
	return c.words[0]
}

func guardSettings(p Policy, q question) string {
	for _, path := range p.written(q) {
		rel, ok := inside(path, p.Project)
		if ok && slices.ContainsFunc(p.Tools.Settings, func(s string) bool { return doublestar.MatchUnvalidated(s, rel) }) {
			return rel + " says what the agent may do"
		}
	}
	return ""
}

func guardOutside(p Policy, q question) string {
	for _, path := range p.written(q) {
		if !p.mayWrite(path) {
			return path + " is outside the project"
		}
	}
	return ""
}

// devices may be written to wherever they are.
var devices = []string{"/dev/null", "/dev/zero", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd", "/proc/self/fd"}

// mayWrite reports whether a path is in a folder that the agent may write to.
func (p Policy) mayWrite(path string) bool {
	for _, folder := range slices.Concat([]string{p.Project}, p.Writable, devices) {
		if below(path, folder) {
			return true
		}
	}
	return false
}

// written are the files that a question would write to, as far as it tells.
func (p Policy) written(q question) []string {
	var list []string
	if slices.Contains(p.Tools.Edits, q.tool) && q.path != "" {
		list = append(list, q.path)
	}
	for _, c := range q.commands {
		list = append(list, c.writes...)
		for _, target := range targets(c) {
			if !strings.Contains(target, "$") {
				list = append(list, p.absolute(c.dir, target))
			}
		}
	}
	return list
}

// targets are the arguments of a command that name what it changes.
func targets(c command) []string {
	var plain []string
	for _, w := range c.words[min(1, len(c.words)):] {
		if !strings.HasPrefix(w, "-") && w != "" {
			plain = append(plain, w)
		}
	}
	switch c.name() {
	case "rm", "rmdir", "unlink", "shred", "mkdir", "touch", "tee", "mv":
		return plain
	case "truncate":
		return lastOf(plain)
	case "chmod", "chown", "chgrp":
		return plain[min(1, len(plain)):]
	case "cp", "ln", "install", "rsync":
		return lastOf(plain)
	case "dd":
		for _, w := range plain {
			if file, ok := strings.CutPrefix(w, "of="); ok {
				return []string{file}
			}
		}
	case "sed", "perl":
		inPlace := func(w string) bool {
			short := strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--")
			return short && strings.Contains(w, "i") || strings.HasPrefix(w, "--in-place")
		}
		if slices.ContainsFunc(c.words, inPlace) {
			return lastOf(plain)
		}
	case "git":
		return gitDirs(c)
	case "find":
		if slices.Contains(c.words, "-delete") && len(plain) > 0 {
			return plain[:1]
		}
	}
	return nil
}

// gitReads are the subcommands of git that change nothing.
var gitReads = []string{
	"status", "log", "diff", "show", "rev-parse", "rev-list", "ls-files", "ls-tree",
	"cat-file", "blame", "grep", "describe", "shortlog", "ls-remote",
}

// gitDirs are the folders that git is told to work in, where it changes something.
func gitDirs(c command) (dirs []string) {
	if args := gitArgs(c); len(args) == 0 || slices.Contains(gitReads, args[0]) {
		return nil
	}
	for words := c.words[1:]; len(words) > 0 && strings.HasPrefix(words[0], "-"); words = words[1:] {
		option, dir, joined := strings.Cut(words[0], "=")
		if !joined && slices.Contains(gitValues, option) && len(words) > 1 {
			dir, words = words[1], words[1:]
		}
		if option == "-C" || option == "--git-dir" || option == "--work-tree" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func lastOf(list []string) []string {
	if len(list) < 2 {
		return list
	}
	return list[len(list)-1:]
}

// inside is a path relative to a folder that it is in.
func inside(path, folder string) (string, bool) {
	if !below(path, folder) {
		return "", false
	}
	rel, err := filepath.Rel(folder, path)
	return filepath.ToSlash(rel), err == nil
}

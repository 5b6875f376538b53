package permission

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/internal/lazy"
)

// A guard is a built-in rule.
type guard struct {
	name    string
	about   string // for docs/howto/permissions.md
	instead string // advice to the agent
	hits    func(p Policy, x part) (why string)
}

// guards deny actions that work on a project does not need (unattended, "The agent's processes").
// docs/howto/permissions.md lists them.
var guards = []guard{
	{
		"unreadable",
		"unreadable commands: a program whose name is computed, a script from a pipe or of eval",
		"Write it more simply: each program by its name, a script as a file.",
		func(_ Policy, x part) string { return x.unread },
	},
	{
		"root",
		"root rights: sudo, su, doas, pkexec, run0",
		"Work without root rights, or signal blocked (external) and name the missing thing.",
		matching(`^(sudo|su|doas|pkexec|run0|sudoedit)( |$)`, ``, "a session works without root rights"),
	},
	{
		"nested-agent",
		"starting another coding agent: claude, codex, gemini, aider, opencode and others, the configured one too, " +
			"also by npx",
		"Do the work in this session, or propose a task for it.",
		func(p Policy, x part) string {
			if x.command == nil {
				return ""
			}
			return startsAgent(*x.command, p.Agent)
		},
	},
	{
		"force-push",
		"rewriting or deleting commits on a remote: git push with --force, --mirror, --delete, a leading + or :",
		"Push without force, or leave it to people.",
		func(p Policy, x part) string { return cmp.Or(pushesWithForce(p, x), pushesBySetting(p, x)) },
	},
	{
		"git-config",
		"changing git's configuration, remotes or hooks, or removing its folder",
		"Pass an option for one command with git -c, or leave it to people.",
		guardGit,
	},
	{
		"ralph",
		"ralph's own state and configuration, and its commands that change things",
		"Say what you want by ralph's signals; people decide.",
		guardRalph,
	},
	{
		"agent-settings",
		"the agent's own settings in the project: .claude, .mcp.json",
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

// Guards lists the built-in rules, in their order, each with its name and the actions it denies.
func Guards() [][2]string {
	list := make([][2]string, len(guards))
	for i, g := range guards {
		list[i] = [2]string{g.name, g.about}
	}
	return list
}

// matching is a guard for simple commands, normalized: the program's name and its arguments, with and without the
// program's own options. It ignores harmless commands. In why, $1 is the first group.
func matching(denied, harmless, why string) func(Policy, part) string {
	denies, allows := lazy.Regexp(`(?s)`+denied), lazy.Regexp(`(?s)`+cmp.Or(harmless, `^$`))
	return func(_ Policy, x part) string {
		if x.command == nil {
			return ""
		}
		is, but := denies(), allows()
		for _, words := range [][]string{subcommand(*x.command), x.command.args()} {
			text := x.command.name()
			for _, w := range words {
				text += " " + strings.ReplaceAll(w, " ", unknown) // a blank parts words, and nothing else
			}
			if found := is.FindStringSubmatchIndex(text); found != nil && !but.MatchString(text) {
				return string(is.ExpandString(nil, why, text, found))
			}
		}
		return ""
	}
}

// agents are the programs and packages of coding agents.
var agents = strings.Fields(`claude claude-code codex gemini gemini-cli aider aider-chat opencode opencode-ai amp goose
	crush cursor-agent qwen qwen-code copilot cline kiro-cli droid auggie continue-cli openhands swe-agent plandex`)

// startsAgent detects a coding agent, also as a package with a version, as npx takes it. Printing a
// version or help does not count.
func startsAgent(c command, own string) string {
	name, args := c.name(), c.args()
	if strings.HasPrefix(name, "python") && len(args) > 1 && args[0] == "-m" {
		name, args = args[1], args[2:]
	}
	if slices.Contains(shells, name) || slices.Contains([]string{"node", "bun", "deno"}, name) {
		if files := afterOptions(args, shellValued); len(files) > 0 {
			name, args = filepath.Base(files[0]), files[1:]
		}
	}
	if name == "gh" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	name, _, _ = strings.Cut(name, "@")
	if !slices.Contains(agents, name) && (own == "" || name != own) ||
		len(args) == 1 && slices.Contains([]string{"--version", "-v", "-V", "--help", "-h", "help", "version"}, args[0]) {
		return ""
	}
	return "another coding agent (" + name + ") would work outside of this session's rules, limits and record"
}

// touches returns the project file that a part would write to, or remove with a folder, if a glob
// matches it; "" if none does.
func (p Policy) touches(x part, globs ...string) string {
	if x.file == nil || !x.file.write || x.file.filter {
		return ""
	}
	for _, path := range x.file.paths {
		if path == unknown || strings.HasSuffix(path, "/**") {
			continue // best effort, not a wall: most computed paths are something else
		}
		for _, g := range globs {
			if overlaps(escape(strings.TrimSuffix(p.Project, "/"))+"/"+g, path, x.file.removes && !x.file.tracked) {
				if rel, err := filepath.Rel(p.Project, path); err == nil {
					return filepath.ToSlash(rel)
				}
				return path
			}
		}
	}
	return ""
}

var (
	pushesWithForce = matching(`^git (?:push|send-pack) (?:.* )?`+
		`(-[a-zA-Z]*[fd][a-zA-Z]*|--(?:for|m|de|pru)\S*|[+:]\S+)(?: |$)`, ``, "git push $1 rewrites commits that "+
		"others may have")
	pushesBySetting = matching(
		`(?i)^git (?:-.* )?-c ?(\S+\.(?:push=[+:]\S*|mirror\S*)) (?:.* )?(?:push|send-pack)(?: |$)`, ``,
		"git push with $1 rewrites commits that others may have")

	changesConfig = matching(`^git config `,
		`^git config (?:.* )?(?:--get|--get-all|--get-regexp|--get-urlmatch|-l|--list|--get-color|`+
			`--get-colorbool)(?: |$)|^git config (?:-\S+ )*(?:get|list)(?: |$)|`+
			`^git config (?:--(?:global|local|system|worktree|null|show-\S+|type=\S+) |-z )*[^- ][^ ]*\.[^ ]*$`,
		"git config changes git's configuration")
	changesRemotes = matching(`^git remote (?:-\S+ )*([^- ]\S*)`, `^git remote (?:-\S+ )*(?:show|get-url)(?: |$)`,
		"git remote $1 changes the remotes")
)

func guardGit(p Policy, x part) string {
	if x.command != nil {
		return cmp.Or(changesConfig(p, x), changesRemotes(p, x))
	}
	if rel := p.touches(x, ".git", ".git/config*", ".git/hooks/**", ".git/info/**"); rel != "" {
		return rel + " is git's own, or holds it"
	}
	return ""
}

// harmlessVerbs are ralph's commands that change nothing.
var harmlessVerbs = []string{
	"help", "doctor", "status", "inbox", "timeline", "prompt", "report", "events", "completion", "man", "merge",
	"permission", "config",
}

// looks are the subcommands of the commands in looked that also change nothing.
var (
	looks  = []string{"list", "show", "log", "graph", "info", "get"}
	looked = strings.Fields(`amendment learning session task workspace`)
)

func guardRalph(p Policy, x part) string {
	if c := x.command; c != nil {
		own := strings.Contains(c.words[0], "/") && below(p.absolute(c.dirs[0], c.words[0]), p.Project)
		if words := plain(subcommand(*c)); c.name() == "ralph" && len(words) > 0 && !own &&
			!slices.Contains(harmlessVerbs, words[0]) && !has(c.words, "--help", "-h") &&
			!(len(words) > 1 && slices.Contains(looked, words[0]) && slices.Contains(looks, words[1])) {
			return "ralph " + strings.ReplaceAll(words[0], unknown, "$") + " is for people"
		}
		for _, w := range c.words {
			if below(p.Project, p.State) { // a workspace is in the state folder, and belongs to the session
				w = strings.ReplaceAll(w, p.Project, "")
			}
			if p.State != "" && strings.Contains(w, p.State) {
				return "the state of ralph is its own"
			}
		}
	}
	if x.file != nil {
		if slices.ContainsFunc(x.file.paths, p.ownState) {
			return "the state of ralph is its own"
		}
		if p.touches(x, "ralph.yaml") != "" {
			return "ralph.yaml is for people"
		}
	}
	return ""
}

// ownState reports whether a path is in ralph's state folder, except in the session's own workspace.
func (p Policy) ownState(path string) bool {
	is := below(path, p.State) || p.State != "" && !strings.Contains(path, "**") && path != unknown &&
		overlaps(escape(p.State)+"/**", path, false)
	return is && !(below(p.Project, p.State) && p.mayWrite(path))
}

func guardSettings(p Policy, x part) string {
	if rel := p.touches(x, p.Tools.Settings...); rel != "" &&
		!slices.ContainsFunc(p.Tools.Own, func(own string) bool { return doublestar.MatchUnvalidated(own, rel) }) {
		return rel + " sets the agent's rules"
	}
	return ""
}

func guardOutside(p Policy, x part) string {
	places := x.dirs
	if x.file != nil && x.file.write {
		places = x.file.paths[:1]
	}
	for _, path := range places {
		if path != unknown && !p.mayWrite(path) {
			return path + " is outside the project"
		}
	}
	return ""
}

// devices may always be written to.
var devices = []string{"/dev/null", "/dev/zero", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd", "/proc/self/fd"}

// mayWrite reports whether a path is in a folder that the agent may write to.
func (p Policy) mayWrite(path string) bool {
	in := func(folder string) bool { return below(path, folder) }
	return in(p.Project) || slices.ContainsFunc(p.Writable, in) || slices.ContainsFunc(devices, in)
}

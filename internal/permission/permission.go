// Package permission answers an agent's requests to use a tool, by rules (unattended, "The agent's processes").
//
// It is pure: a [Policy], a tool and its input give an [Answer]. It asks no person and stores and runs nothing; the
// caller records the answer. A shell command is parsed and split into its parts. The parts are each simple command,
// normalized, so that commands behind "&&", in "$(…)", in "sh -c" or after "timeout 5" are seen; the variables set
// for it; and the files that it writes and reads through redirections and arguments. This is not a sandbox: a
// program can do more than its name suggests.
//
// Each of these parts is judged by itself, in this order: deny rules, ask rules, built-in rules, allow rules, the
// default. An allow rule beats a built-in one if its own text names the action that the built-in one denies. The
// strictest answer counts. A command that cannot be parsed is never allowed.
package permission

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A Verdict is the decision on a request.
type Verdict string

// The verdicts, strictest first.
const (
	Deny  Verdict = "deny"
	Ask   Verdict = "ask" // a person decides
	Allow Verdict = "allow"
)

// A Policy is a project's rules.
type Policy struct {
	Allow   []string
	Ask     []string
	Deny    []string
	Default Verdict
	Guards  bool // apply the built-in rules

	Tools Tools // tools of the agent

	Project  string   // the project's root, absolute
	State    string   // folder of ralph's own state, absolute
	Writable []string // absolute folders outside the project that may be written to
	Home     string
	Agent    string // the configured agent program, in addition to the known ones

	// Resolve follows the symbolic links of an absolute path, as far as it exists; nil leaves paths
	// as they are.
	Resolve func(path string) string
	// Exists reports whether an absolute path exists; nil means that every path does.
	Exists func(path string) bool
}

// Tools names an agent's tools, as the agent and rules call them.
type Tools struct {
	Shell    string   // runs a command
	Edit     string   // stands for every tool that changes a file
	Edits    []string // the tools that change files
	Reads    []string // the tools that read files, whose rules have paths
	Fetch    string   // fetches a URL
	Others   []string // the agent's other own tools
	Servers  string   // prefix of the names of MCP servers' tools
	Settings []string // globs of files in a project that set the agent's permissions
	Own      []string // globs of those Settings that the agent writes itself
}

// A Use is a use of a tool.
type Use struct {
	Tool  string
	Input json.RawMessage
}

// An Answer is a verdict and its reason.
type Answer struct {
	Verdict Verdict
	Rule    string // the deciding rule as configured, or the name of a built-in one; "" for the default
	Reason  string // for the agent, one or two sentences
}

// Decide answers one request. input is the tool's input, as JSON; if it cannot be read, only the
// tool is judged.
func (p Policy) Decide(tool string, input json.RawMessage) Answer {
	rules := p.rules()
	a, found := Answer{Verdict: Allow}, false
	for _, x := range p.read(tool, input) {
		b := p.judge(rules, x)
		if b.Verdict == Allow && !x.needs() {
			continue
		}
		// Of several allowed parts, one without a rule determines the answer.
		if !found || strictness(b) < strictness(a) {
			a, found = b, true
		}
	}
	return a
}

// strictness orders answers, strictest first.
func strictness(a Answer) int {
	n := slices.Index([]Verdict{Deny, Ask, Allow}, a.Verdict) * 2
	if a.Verdict == Allow && a.Rule != "" {
		n++
	}
	return n
}

// Denied begins the message to an agent that must not do something.
const Denied = "denied by ralph"

const otherwise = "Do without it, or signal blocked (external) and say why you need it."

// judge answers for one part.
func (p Policy) judge(rules []Rule, x part) Answer {
	for _, verdict := range []Verdict{Deny, Ask} {
		for _, r := range rules {
			if r.verdict != verdict || !p.mayCover(r, x) {
				continue
			}
			a := Answer{Verdict: verdict, Rule: r.text}
			if verdict == Deny {
				a.Reason = fmt.Sprintf(Denied+": this project's rules deny %s%s. %s", r.text, p.doubt(r, x), otherwise)
			}
			return a
		}
	}
	var allows []Rule
	for _, r := range rules {
		if r.verdict == Allow && p.covers(r, x) {
			allows = append(allows, r)
		}
	}
	if p.Guards {
		for _, g := range guards {
			why := g.hits(p, x)
			if why == "" || slices.ContainsFunc(allows, func(r Rule) bool { return p.names(r, g) }) {
				continue
			}
			return Answer{Deny, g.name, fmt.Sprintf(Denied+" (%s): %s. %s", g.name, why, g.instead)}
		}
	}
	switch {
	case len(allows) > 0:
		return Answer{Allow, allows[0].text, ""}
	case x.unread != "" && len(rules) > 0 && p.Default != Deny:
		return Answer{Ask, "", ""} // it may be something that a rule is against
	case p.Default == Deny && x.needs():
		return Answer{Deny, "", Denied + ": no rule of this project allows it. " + otherwise}
	case p.Default == Ask && x.needs():
		return Answer{Ask, "", ""}
	}
	return Answer{Verdict: Allow, Rule: ""}
}

// names reports whether an allow rule explicitly names an action that a built-in rule denies: the rule's own text, with
// any text for each "*", would be denied.
func (p Policy) names(r Rule, g guard) bool {
	tool, field, anything := r.tool, "command", "x x"
	if r.file {
		field, anything = "file_path", "x"
		if tool == p.Tools.Edit && len(p.Tools.Edits) > 0 {
			tool = p.Tools.Edits[0]
		}
	}
	if r.bare || !r.file && tool != p.Tools.Shell {
		return false
	}
	text := strings.ReplaceAll(strings.TrimSuffix(r.pattern, ":*"), "*", anything)
	if r.file {
		text = strings.Replace(text, "//", "/", 1)
	}
	input, err := json.Marshal(map[string]string{field: text})
	return err == nil && slices.ContainsFunc(p.read(tool, input), func(x part) bool {
		return x.unread == "" && g.hits(p, x) != ""
	})
}

// A part is judged separately: a use of a tool or, in a shell command, a simple command,
// an assignment or a file. The field for its kind is set.
type part struct {
	tool string

	raw     string   // input of a tool other than the shell, as compact JSON
	url     string   // address to fetch
	file    *file    // written or read
	command *command // simple command
	dirs    []string // in which git would change something
	set     string   // NAME=value
	by      *command // the command that it is set for; nil for the shell itself
	unread  string   // why a shell command cannot be parsed
}

// needs reports whether a part needs a rule to be allowed when the default is not allow.
func (x part) needs() bool {
	switch {
	case x.command != nil:
		return !x.command.real && !x.command.through
	case x.set != "":
		return !harmless(x.set, x.by == nil)
	case x.file != nil && x.raw == "":
		return x.file.write && (x.file.by == nil || x.file.by.through) &&
			!slices.ContainsFunc(devices, func(d string) bool { return below(x.file.paths[0], d) })
	}
	return true
}

func (p Policy) read(tool string, input json.RawMessage) []part {
	var in struct {
		Command  *string `json:"command"`
		FilePath string  `json:"file_path"`
		Notebook string  `json:"notebook_path"`
		Path     string  `json:"path"`
		URL      string  `json:"url"`
	}
	use := part{tool: tool, raw: string(input)}
	if err := json.Unmarshal(input, &in); err != nil {
		// A field of an unexpected type counts as absent; the tool will refuse it itself.
		return []part{use}
	}
	use.url = in.URL
	for _, path := range []string{in.FilePath, in.Notebook, in.Path} {
		if path != "" {
			use.file = &file{paths: []string{p.absolute(p.Project, path)}, write: slices.Contains(p.Tools.Edits, tool)}
			break
		}
	}
	if tool != p.Tools.Shell || in.Command == nil {
		return []part{use}
	}
	return p.parse(*in.Command).parts()
}

// absolute returns a path as an absolute one, with home and links resolved.
func (p Policy) absolute(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		switch {
		case rest != "" && rest[0] != '/':
			path = "/" + path // another user's home
		case p.Home != "":
			path = p.Home + rest
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	if p.Resolve != nil {
		path = p.Resolve(path)
	}
	return path
}

// below reports whether a path is a folder or in it.
func below(path, folder string) bool {
	return folder != "" && (path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/"))
}

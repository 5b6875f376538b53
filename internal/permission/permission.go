// Package permission answers an agent's questions whether it may use a tool, by
// rules (unattended, "The agent's processes").
//
// It is pure: a [Policy], a tool and its input make an [Answer]. It never asks a
// person, keeps or runs anything; whoever uses it records the answer. Rules read a
// shell command by its syntax tree, so that what stands behind "&&", in "$(…)" or
// in "sh -c" is seen. They are no sandbox: a program can do what its name does not
// tell. What must hold against a hostile agent needs `sandbox: bwrap`.
//
// The order is deny, ask, allow (the configuration's), then the built-in rules,
// then the default. Of a shell command with several parts the strictest answer
// counts.
package permission

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// A Verdict is what a question comes to.
type Verdict string

// The verdicts, the strictest first.
const (
	Deny  Verdict = "deny"
	Ask   Verdict = "ask" // a person has the word
	Allow Verdict = "allow"
)

// A Policy is a project's rules. It travels as JSON to the process that answers.
type Policy struct {
	Allow   []string `json:"allow"`
	Ask     []string `json:"ask"`
	Deny    []string `json:"deny"`
	Default Verdict  `json:"default"`
	Guards  bool     `json:"guards"` // the built-in rules hold

	Tools Tools `json:"tools"` // of the agent that asks

	Project  string   `json:"project"`  // its root, absolute
	State    string   `json:"state"`    // the folder of ralph's own state, absolute
	Writable []string `json:"writable"` // absolute folders beside the project that may be written to
	Home     string   `json:"home"`

	// Resolve follows the symbolic links of an absolute path, as far as it exists;
	// nil takes paths as they are.
	Resolve func(path string) string `json:"-"`
}

// Tools are an agent's own, as it and rules call them.
type Tools struct {
	Shell    string   `json:"shell"`    // runs a command
	Edit     string   `json:"edit"`     // stands for every tool that changes a file
	Edits    []string `json:"edits"`    // those that do
	Reads    []string `json:"reads"`    // look at files, so that their rules have paths
	Fetch    string   `json:"fetch"`    // reads an address
	Settings []string `json:"settings"` // globs of files in a project that say what the agent may do
}

// An Answer is what the agent is told, and why.
type Answer struct {
	Verdict Verdict
	Rule    string // the rule that decided, as configured, or a built-in one's name; "" for the default
	Reason  string // for the agent, one sentence or two
}

// Decide answers one question. Input is the tool's, as JSON; what of it cannot be
// read is judged by the tool alone.
func (p Policy) Decide(tool string, input json.RawMessage) Answer {
	q := p.read(tool, input)
	if a, ok := p.configured(q); ok {
		return a
	}
	if p.Guards {
		for _, g := range guards {
			if why := g.hits(p, q); why != "" {
				return Answer{Deny, g.name, fmt.Sprintf("denied by ralph (%s): %s. %s", g.name, why, g.instead)}
			}
		}
	}
	switch p.Default {
	case Deny:
		return Answer{Deny, "", "denied by ralph: no rule of this project allows it. " + otherwise}
	case Ask:
		return Answer{Ask, "", ""}
	}
	return Answer{Allow, "", ""}
}

const otherwise = "Do without it, or signal blocked (external) and say what you need."

// configured applies the configuration's rules.
func (p Policy) configured(q question) (Answer, bool) {
	for _, list := range []struct {
		verdict Verdict
		rules   []string
		every   bool // each part of a shell command needs a rule
	}{{Deny, p.Deny, false}, {Ask, p.Ask, false}, {Allow, p.Allow, true}} {
		rule := p.match(list.rules, q, list.every)
		if rule == "" {
			continue
		}
		a := Answer{Verdict: list.verdict, Rule: rule}
		if list.verdict == Deny {
			a.Reason = fmt.Sprintf("denied by ralph: this project's rules deny %s. %s", rule, otherwise)
		}
		return a, true
	}
	return Answer{}, false
}

// match is the rule that covers a question, or each part of it; "" if none does.
func (p Policy) match(rules []string, q question, every bool) string {
	covered := ""
	for _, part := range q.parts() {
		hit := ""
		for _, text := range rules {
			rule, err := p.Tools.ParseRule(text)
			if err == nil && p.covers(rule, q, part) {
				hit = text
				break
			}
		}
		switch {
		case hit != "" && !every:
			return hit
		case hit == "" && every:
			return ""
		case hit != "":
			covered = hit
		}
	}
	return covered
}

// A question is a tool's use as far as rules look at it.
type question struct {
	tool     string
	raw      string    // the input, as compact JSON
	path     string    // of the file that is edited or read, absolute; "" if there is none
	url      string    // that is fetched
	commands []command // of a shell command, in order; what they contain included
	unread   bool      // the shell command is none that can be read
}

func (p Policy) read(tool string, input json.RawMessage) question {
	var in struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		URL      string `json:"url"`
	}
	q := question{tool: tool, raw: string(input)}
	if err := json.Unmarshal(input, &in); err != nil {
		// A field of an unexpected type counts as absent; the tool will refuse it itself.
		return q
	}
	q.url = in.URL
	for _, path := range []string{in.FilePath, in.Notebook, in.Path} {
		if path != "" {
			q.path = p.absolute(p.Project, path)
			break
		}
	}
	if tool == p.Tools.Shell {
		q.commands, q.unread = p.parse(in.Command)
	}
	return q
}

// parts are what needs a rule each: the commands of a shell command, else the use
// as a whole.
func (q question) parts() []command {
	if len(q.commands) == 0 {
		return []command{{}}
	}
	return q.commands
}

// absolute is a path as the file system has it.
func (p Policy) absolute(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && p.Home != "" && (rest == "" || rest[0] == '/') {
		path = p.Home + rest
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

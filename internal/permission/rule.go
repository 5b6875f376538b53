package permission

import (
	"net/url"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"ralph"
	"ralph/internal/text"
)

// A Rule is "Tool" or "Tool(pattern)".
//
// The tool's name may end in "*". Edit stands for every tool that changes a file. A pattern of Bash
// is compared with each simple command, normalized, where "*" stands for any text: Bash(git push
// *). A pattern of a file tool is a glob: relative to the project, to the root if it begins with
// "/", to the home folder with "~/". A pattern of WebFetch is domain:NAME. The pattern of any other
// tool is compared with its input as JSON.
type Rule struct {
	tool    string
	pattern string
	bare    bool // no pattern
	file    bool // the pattern is a path

	verdict Verdict // of a configured rule
	text    string  // as configured
}

// ParseRule parses a rule. The error is a [ralph.FieldError] that describes the format.
func (t Tools) ParseRule(text string) (Rule, error) {
	refuse := func(problem string) (Rule, error) {
		return Rule{}, &ralph.FieldError{
			Field:   "rule " + quoted(text),
			Problem: problem + `; a rule is a tool's name, as "WebFetch", or with a pattern, as "Bash(git push *)"`,
		}
	}
	tool, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	r := Rule{tool: strings.TrimSpace(tool), bare: !ok}
	r.file = slices.Contains(t.Edits, r.tool) || slices.Contains(t.Reads, r.tool)
	switch {
	case r.tool == "" || strings.ContainsAny(r.tool, " )"):
		return refuse("has no tool's name before its pattern")
	case !ok:
		return r, nil
	}
	pattern, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return refuse("does not end in a parenthesis")
	}
	if r.pattern = strings.TrimSpace(pattern); r.pattern == "" {
		return refuse("has an empty pattern")
	}
	if r.file && !doublestar.ValidatePattern(r.pattern) {
		return refuse("has a path that is not a valid glob")
	}
	return r, nil
}

// CheckDenies refuses a deny or ask rule without effect: its name is not a tool's, or no use of its tool matches its
// pattern. The error is a [ralph.FieldError].
func (t Tools) CheckDenies(rule string) error {
	r, err := t.ParseRule(rule)
	if err != nil {
		return err
	}
	refuse := func(problem string) error {
		return &ralph.FieldError{Field: "rule " + quoted(rule), Problem: problem}
	}
	known := slices.Concat([]string{t.Shell, t.Edit, t.Fetch}, t.Edits, t.Reads, t.Others)
	names := func(k string) bool { return wild(r.tool, k) }
	if !strings.HasPrefix(r.tool, t.Servers) && !slices.ContainsFunc(known, names) {
		if near := text.Near(r.tool, known); near != "" {
			return refuse("names no tool: did you mean " + near + "?")
		}
		some := []string{t.Edit, t.Reads[0], t.Shell, t.Fetch, t.Servers + "*"}
		return refuse("names no tool: such names are " + strings.Join(some, ", "))
	}
	segments := strings.Split(r.pattern, "/")
	switch {
	case r.file && strings.HasSuffix(r.pattern, "/"):
		return refuse("matches no file: write " + quoted(r.tool+"("+r.pattern+"**)") + " for all below the folder")
	case r.file && slices.Contains(segments, ".."):
		return refuse(`matches no file: write the path from the project, from "/" or from "~/", without ".."`)
	case r.tool == t.Fetch && !r.bare && !strings.HasPrefix(r.pattern, "domain:"):
		return refuse("matches no address: write " + quoted(t.Fetch+"(domain:example.com)"))
	}
	return nil
}

func quoted(s string) string { return `"` + s + `"` }

// rules returns the configured rules. It skips invalid ones, which loading the configuration has
// already refused.
func (p Policy) rules() (list []Rule) {
	for _, of := range []struct {
		verdict Verdict
		texts   []string
	}{{Deny, p.Deny}, {Ask, p.Ask}, {Allow, p.Allow}} {
		for _, text := range of.texts {
			if r, err := p.Tools.ParseRule(text); err == nil {
				r.verdict, r.text = of.verdict, text
				list = append(list, r)
			}
		}
	}
	return list
}

// about reports whether a rule is about a tool.
func (t Tools) about(r Rule, tool string) bool {
	return wild(r.tool, tool) || r.tool == t.Edit && slices.Contains(t.Edits, tool)
}

// forFile reports whether a rule for file tools applies to a shell command's access to a file.
func (t Tools) forFile(r Rule, f file) bool {
	if f.write {
		return slices.Contains(t.Edits, r.tool)
	}
	return slices.Contains(t.Reads, r.tool)
}

// mayCover reports whether a deny or ask rule may apply to a part; in doubt it does.
func (p Policy) mayCover(r Rule, x part) bool {
	matches := func(text string) bool { return matchCommand(r.pattern, text) }
	switch shell := x.tool == ""; {
	case shell && x.file != nil && p.Tools.forFile(r, *x.file):
		return r.bare || slices.ContainsFunc(x.file.paths, func(path string) bool {
			return overlaps(p.glob(r), path, x.file.removes)
		})
	case shell && (!p.Tools.about(r, p.Tools.Shell) || r.file):
		return false
	case shell && r.bare:
		return true
	case x.command != nil:
		return slices.ContainsFunc(x.command.texts(), matches)
	case x.set != "":
		return matches(strings.ReplaceAll(x.set, unknown, "$"))
	case shell:
		return false
	}
	return p.about(r, x)
}

// covers reports whether an allow rule covers a whole part.
func (p Policy) covers(r Rule, x part) bool {
	switch shell := x.tool == ""; {
	case x.unread != "":
		return false
	case shell && x.file != nil && p.Tools.forFile(r, *x.file):
		return r.bare || !slices.ContainsFunc(x.file.paths, func(path string) bool {
			return strings.Contains(path, unknown) || !doublestar.MatchUnvalidated(p.glob(r), path)
		})
	case shell && (!p.Tools.about(r, p.Tools.Shell) || r.file):
		return false
	case shell && (r.bare || r.pattern == "*"):
		return true
	case x.command != nil:
		return r.allows(*x.command)
	case x.file != nil && shell:
		return x.file.by != nil && r.allows(*x.file.by)
	case x.set != "":
		return matchCommand(r.pattern, strings.ReplaceAll(x.set, unknown, "$")) || x.by != nil && r.allowsSet(*x.by)
	case shell:
		return false
	}
	return p.about(r, x)
}

// about reports whether a rule applies to the use of a tool other than the shell.
func (p Policy) about(r Rule, x part) bool {
	switch {
	case !p.Tools.about(r, x.tool):
		return false
	case r.bare:
		return true
	case r.file:
		return x.file != nil && doublestar.MatchUnvalidated(p.glob(r), x.file.paths[0])
	case x.tool == p.Tools.Fetch:
		return matchDomain(r.pattern, x.url)
	}
	return wild(r.pattern, x.raw)
}

// allows reports whether a rule allows a command, or its wrapper by name: the text before the first "*" in "sudo
// apt-get install *" names the command behind sudo.
func (r Rule) allows(c command) bool {
	matches := func(text string) bool { return matchCommand(r.pattern, text) }
	if slices.ContainsFunc(c.allowed(), matches) || r.allowsSet(c) {
		return true
	}
	if c.real || c.outer == nil || len(c.outer.words) < len(c.words) {
		return false
	}
	first := len(c.outer.words) - len(c.words)
	if !slices.Equal(c.outer.words[first:], c.words) {
		return false
	}
	written, _, _ := strings.Cut(strings.TrimSuffix(r.pattern, ":*"), "*")
	return strings.HasPrefix(written+" ", strings.Join(c.outer.words[:first+1], " ")+" ") && r.allows(*c.outer)
}

// allowsSet reports whether a rule allows a command with the variables set for it.
func (r Rule) allowsSet(c command) bool {
	return len(c.sets) > 0 && !c.real && !strings.HasPrefix(r.pattern, "*") &&
		matchCommand(r.pattern, readable([]string{strings.Join(append(slices.Clone(c.sets), c.words...), " ")})[0])
}

// matchCommand also accepts the form "git push:*", which matches every command that begins with
// "git push".
func matchCommand(pattern, text string) bool {
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		return text == prefix || strings.HasPrefix(text, prefix+" ")
	}
	if prefix, ok := strings.CutSuffix(pattern, " *"); ok && text == prefix {
		return true // no argument at all
	}
	return wild(pattern, text)
}

// glob converts a rule's file pattern to one for absolute paths.
func (p Policy) glob(r Rule) string {
	pattern := strings.TrimPrefix(r.pattern, "./")
	rooted := strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "~/")
	if strings.HasPrefix(pattern, "//") { // an absolute path in the agent's own rules
		pattern = pattern[1:]
	}
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		pattern = escape(strings.TrimSuffix(p.Home, "/")) + "/" + rest
	}
	if !rooted {
		pattern = escape(strings.TrimSuffix(p.Project, "/")) + "/" + pattern
	}
	return pattern
}

// overlaps reports whether a path, possibly a shell glob, may match a pattern or, with removes, be
// a folder that contains a match.
func overlaps(pattern, path string, removes bool) bool {
	if path == unknown || doublestar.MatchUnvalidated(pattern, path) {
		return true
	}
	want, have := strings.Split(pattern, "/"), strings.Split(strings.TrimSuffix(path, "/"), "/")
	if meet(want, have) {
		return true
	}
	n := len(have)
	return removes && n < len(want) && !isWild(strings.Join(want[:n+1], "")) && meet(want[:n], have)
}

func isWild(s string) bool { return strings.ContainsAny(s, `*?[{\`) }

// meet reports whether two globs, by segments, may match the same path.
func meet(want, have []string) bool {
	switch {
	case len(want) == 0 && len(have) == 0:
		return true
	case len(want) > 0 && want[0] == "**":
		return meet(want[1:], have) || len(have) > 0 && meet(want, have[1:])
	case len(have) > 0 && have[0] == "**":
		return meet(want, have[1:]) || len(want) > 0 && meet(want[1:], have)
	case len(want) == 0 || len(have) == 0:
		return false
	}
	return meetSegment(want[0], have[0]) && meet(want[1:], have[1:])
}

func meetSegment(want, have string) bool {
	switch {
	case !isWild(have):
		return want == have || isWild(want) && doublestar.MatchUnvalidated(want, have)
	case strings.HasPrefix(want, ".") && !strings.HasPrefix(have, "."):
		return false // the shell's "*" does not match a leading dot
	case !isWild(want):
		return doublestar.MatchUnvalidated(strings.NewReplacer("{", `\{`).Replace(have), want)
	}
	return true
}

// doubt explains to an agent that a rule was applied in doubt.
func (p Policy) doubt(r Rule, x part) string {
	if x.file != nil && x.tool == "" && !r.bare && slices.ContainsFunc(x.file.paths, func(path string) bool {
		return path == unknown || strings.HasSuffix(path, "/**")
	}) {
		return ", and a path is computed that may be one of these: write it out"
	}
	return ""
}

// escape turns a path into a pattern that matches only itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(path)
}

func matchDomain(pattern, address string) bool {
	domain, ok := strings.CutPrefix(pattern, "domain:")
	u, err := url.Parse(address)
	if !ok || err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	domain = strings.ToLower(strings.TrimPrefix(domain, "*."))
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// wild matches a text against a pattern in which "*" stands for any text, including line breaks.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

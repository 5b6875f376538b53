package permission

import (
	"net/url"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"ralph"
)

// A Rule is "Tool" or "Tool(pattern)".
//
// The tool's name may end in "*". Edit stands for every tool that changes a file.
// The pattern of Bash is compared with each simple command, "*" standing for any
// text: Bash(git push *). That of tools with a file is a glob of the path: from
// the project, from the root if it begins with "/", from home with "~/". That of
// WebFetch is domain:NAME. Any other tool's is compared with its input as JSON.
type Rule struct {
	tool    string
	pattern string
	bare    bool // without a pattern
	file    bool // the pattern is a path
}

// ParseRule reads a rule. The error is a [ralph.FieldError] that says what a rule
// looks like.
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
		return refuse("has a path that is no valid glob")
	}
	return r, nil
}

func quoted(s string) string { return `"` + s + `"` }

// covers reports whether a rule covers a part of a question.
func (p Policy) covers(r Rule, q question, part command) bool {
	if !wild(r.tool, q.tool) && (r.tool != p.Tools.Edit || !slices.Contains(p.Tools.Edits, q.tool)) {
		return false
	}
	switch {
	case r.bare:
		return true
	case q.tool == p.Tools.Shell:
		return !q.unread && matchCommand(r.pattern, part.text)
	case r.file:
		return q.path != "" && p.matchPath(r.pattern, q.path)
	case q.tool == p.Tools.Fetch:
		return matchDomain(r.pattern, q.url)
	}
	return wild(r.pattern, q.raw)
}

// matchCommand also takes the form "git push:*", which stands for all that begins so.
func matchCommand(pattern, text string) bool {
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		return text == prefix || strings.HasPrefix(text, prefix+" ")
	}
	if prefix, ok := strings.CutSuffix(pattern, " *"); ok && text == prefix {
		return true // no argument at all
	}
	return wild(pattern, text)
}

func (p Policy) matchPath(pattern, path string) bool {
	rooted := strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "~/")
	pattern = strings.TrimPrefix(pattern, "./")
	if strings.HasPrefix(pattern, "//") { // as the agent's own rules write an absolute path
		pattern = pattern[1:]
	}
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		pattern = strings.TrimSuffix(p.Home, "/") + "/" + rest
	}
	if !rooted {
		pattern = escape(strings.TrimSuffix(p.Project, "/")) + "/" + pattern
	}
	return doublestar.MatchUnvalidated(pattern, path)
}

// escape makes a path a pattern of itself.
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

// wild compares a text with a pattern in which "*" stands for any text, line
// breaks included.
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

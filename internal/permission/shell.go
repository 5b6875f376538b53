package permission

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A command is one simple command of a shell command.
type command struct {
	words  []string // what is computed at run time is "$"
	text   string   // the words, a blank between them
	dir    string   // where it runs, as far as a literal cd tells
	writes []string // absolute paths that its redirections write to
}

// name is the program without its folder.
func (c command) name() string {
	if len(c.words) == 0 {
		return ""
	}
	return path.Base(c.words[0])
}

// maxDepth is how deep commands within commands are looked for.
const maxDepth = 8

// parse reads a shell command into its simple commands. unread says that it is
// none, or hides too much.
func (p Policy) parse(text string) (list []command, unread bool) {
	s := shell{policy: p, dir: p.Project}
	s.parse(text, 0)
	return s.list, s.unread
}

// A shell collects simple commands.
type shell struct {
	policy Policy
	dir    string
	list   []command
	unread bool
}

func (s *shell) parse(text string, depth int) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || depth > maxDepth {
		s.unread = true
		return
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			s.statement(n, depth)
		case *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
			// They start no program; what is in them is walked.
		}
		return true
	})
}

// statement takes in a simple command with its redirections; those of a compound
// one are a command without a name.
func (s *shell) statement(n *syntax.Stmt, depth int) {
	c := command{dir: s.dir}
	for _, r := range n.Redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
			if target := literal(r.Word); !strings.Contains(target, "$") {
				c.writes = append(c.writes, s.policy.absolute(s.dir, target))
			}
		}
	}
	if call, ok := n.Cmd.(*syntax.CallExpr); ok {
		for _, w := range call.Args {
			c.words = append(c.words, literal(w))
		}
	}
	if len(c.words) == 0 && len(c.writes) == 0 {
		return
	}
	s.add(c, depth)
}

// add takes in a command, and what it runs in its turn.
func (s *shell) add(c command, depth int) {
	c.text = strings.Join(c.words, " ")
	s.list = append(s.list, c)
	if c.name() == "cd" && len(c.words) == 2 && !strings.Contains(c.words[1], "$") {
		s.dir = s.policy.absolute(s.dir, c.words[1])
	}
	if depth > maxDepth {
		s.unread = true
		return
	}
	if script, ok := script(c); ok {
		s.parse(script, depth+1)
		return
	}
	if inner := wrapped(c); len(inner) > 0 {
		s.add(command{words: inner, dir: c.dir}, depth+1)
	}
}

// literal is a word as far as it can be read.
func literal(w *syntax.Word) string {
	var b strings.Builder
	parts(&b, w.Parts)
	return b.String()
}

func parts(b *strings.Builder, list []syntax.WordPart) {
	for _, part := range list {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			parts(b, p.Parts)
		default:
			b.WriteString("$")
		}
	}
}

// unescape drops the backslashes of a literal: r\m is rm.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// script is the text that a command hands to a shell.
func script(c command) (string, bool) {
	switch c.name() {
	case "eval":
		return strings.Join(c.words[1:], " "), true
	case "sh", "bash", "dash", "zsh", "ksh":
		for i, w := range c.words[1:] {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "c") && i+2 < len(c.words) {
				return c.words[i+2], true
			}
		}
	}
	return "", false
}

// wrappers run the command that follows them, with the options of theirs that take
// a value.
var wrappers = map[string][]string{
	"env":      {"-u", "-C", "-S"},
	"nohup":    nil,
	"time":     nil,
	"nice":     {"-n"},
	"ionice":   {"-c", "-n", "-p"},
	"timeout":  {"-s", "-k"},
	"xargs":    {"-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s"},
	"command":  nil,
	"builtin":  nil,
	"exec":     {"-a"},
	"stdbuf":   {"-i", "-o", "-e"},
	"setsid":   nil,
	"unbuffer": nil,
	"watch":    {"-n"},
	"chroot":   nil,
	"strace":   {"-e", "-o", "-p"},
	"busybox":  nil,
}

// wrapped is the command that a wrapper runs, or find with -exec.
func wrapped(c command) []string {
	if c.name() == "find" {
		for i, w := range c.words {
			if w == "-exec" || w == "-execdir" || w == "-ok" || w == "-okdir" {
				inner := c.words[i+1:]
				if end := slices.IndexFunc(inner, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
					inner = inner[:end]
				}
				return inner
			}
		}
		return nil
	}
	valued, ok := wrappers[c.name()]
	if !ok {
		return nil
	}
	words := c.words[1:]
	for len(words) > 0 {
		w := words[0]
		switch {
		case slices.Contains(valued, w) && len(words) > 1:
			words = words[2:]
		case strings.HasPrefix(w, "-"), c.name() == "env" && strings.Contains(w, "="):
			words = words[1:]
		case c.name() == "timeout" && w != "" && w[0] >= '0' && w[0] <= '9',
			c.name() == "chroot" && len(words) > 1 && strings.HasPrefix(w, "/"):
			words = words[1:]
		default:
			return words
		}
	}
	return nil
}

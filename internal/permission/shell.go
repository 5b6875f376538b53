package permission

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"ralph/internal/text"
)

// Bounds for parsing one shell command. Beyond them it is unreadable.
const (
	maxText     = 256 << 10 // bytes
	maxNesting  = 1000      // brackets open at once in the text
	maxDepth    = 8         // of commands in the scripts of commands
	maxCommands = 2000
	maxBraces   = 256 // words that one word with braces expands to
)

// A file is one that a command would write or read.
type file struct {
	// paths are absolute: resolved in the likeliest folder first, then in other folders, and
	// unresolved. They may be globs; unknown if computed.
	paths   []string
	write   bool
	removes bool     // recursively
	filter  bool     // it is a glob of some files below a folder
	tracked bool     // git writes or removes tracked files there, never its own folder
	by      *command // the command with it as argument; nil for a redirection
}

// A shell collects the effects of a shell command.
type shell struct {
	policy   Policy
	dirs     []string
	vars     map[string]string // known values of variables
	fickle   map[string]bool   // variables that may have another value than in vars
	strictly bool              // treat fickle variables as unknown
	commands []command
	files    []file
	sets     []command // assignments without a command
	unread   string    // why it cannot be parsed
}

// parse parses a shell command.
func (p Policy) parse(text string) *shell {
	s := &shell{policy: p, dirs: []string{p.Project}}
	s.parse(text, 0)
	return s
}

func (s *shell) give(up string) {
	if s.unread == "" {
		s.unread = up
	}
}

func (s *shell) parse(source string, depth int) {
	switch {
	case depth > maxDepth || len(s.commands) > maxCommands:
		s.give("this shell command hides others too deep")
		return
	case strings.Contains(source, unknown):
		s.give("a part of this shell command is computed before it is run as one")
		return
	case len(source) > maxText || text.Nested(source) > maxNesting:
		s.give("this shell command is too long to be read")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(source), "")
	if err != nil {
		s.give("this shell command cannot be read")
		return
	}
	defer func(vars map[string]string, fickle map[string]bool) {
		s.vars, s.fickle = vars, fickle
	}(s.vars, s.fickle)
	s.vars, s.fickle = map[string]string{}, fickle(file)
	if s.policy.Home != "" {
		s.vars["HOME"] = s.policy.Home
	}
	for _, stmt := range file.Stmts {
		s.statement(stmt, depth)
		s.remember(stmt, true)
	}
}

// list reads statements one after the other.
func (s *shell) list(stmts []*syntax.Stmt, depth int) {
	for _, stmt := range stmts {
		s.statement(stmt, depth)
		s.remember(stmt, false)
	}
}

// aside reads something whose cd has no later effect.
func (s *shell) aside(read func()) {
	dirs := s.dirs
	read()
	s.dirs = dirs
}

// within reads the parts of a node, mainly substitutions.
func (s *shell) within(node syntax.Node, depth int) {
	syntax.Walk(node, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			s.list([]*syntax.Stmt{n}, depth)
			return false
		case *syntax.CmdSubst:
			s.aside(func() { s.list(n.Stmts, depth) })
			return false
		case *syntax.ProcSubst:
			s.aside(func() { s.list(n.Stmts, depth) })
			return false
		case *syntax.DeclClause:
			for _, a := range n.Args {
				if a.Name != nil && !a.Naked {
					s.sets = append(s.sets, command{sets: []string{s.assignment(a)}, dirs: s.dirs})
				} else if a.Value != nil && n.Variant.Value != "export" && shortly([]string{a.Value.Lit()}, "n") {
					s.give("a variable by another one's name cannot be read")
				}
			}
		case *syntax.WordIter:
			s.computes(n.Name.Value)
		case *syntax.BinaryArithm:
			if n.Op == syntax.Assgn || n.Op >= syntax.AddAssgn && n.Op <= syntax.PowAssgn {
				s.computes(literal(n.X))
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				s.computes(literal(n.X))
			}
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				s.computes(n.Param.Value)
			}
		}
		return true
	})
}

// union returns the folders of both lists, those of the first one first.
func union(a, b []string) []string {
	list := slices.Clone(a)
	for _, dir := range b {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	if len(list) > 8 {
		list = append(list[:7], unknown)
	}
	return list
}

// statement reads one statement with its redirections.
func (s *shell) statement(n *syntax.Stmt, depth int) {
	if len(s.commands) > maxCommands {
		s.give("this shell command hides others too deep")
		return
	}
	if n.Background || n.Coprocess {
		defer func(dirs []string) { s.dirs = dirs }(s.dirs)
	}
	stdin := s.redirections(n.Redirs, depth)
	before := s.dirs
	switch cmd := n.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(cmd, stdin, depth)
	case *syntax.BinaryCmd:
		s.binary(cmd, depth)
	case *syntax.Subshell:
		s.aside(func() { s.list(cmd.Stmts, depth) })
	case *syntax.Block:
		s.list(cmd.Stmts, depth)
	case *syntax.FuncDecl:
		s.aside(func() { s.statement(cmd.Body, depth) })
	case *syntax.CoprocClause:
		s.give("a coprocess cannot be read")
	case nil:
	default:
		s.within(cmd, depth)
		s.dirs = union(s.dirs, before)
	}
}

func (s *shell) binary(n *syntax.BinaryCmd, depth int) {
	before := s.dirs
	switch n.Op {
	case syntax.AndStmt:
		s.statement(n.X, depth)
		after := s.dirs
		s.statement(n.Y, depth)
		s.dirs = union(s.dirs, after) // Y may not have run
		if !changesDir(n.X) {
			s.dirs = union(s.dirs, before)
		}
	case syntax.OrStmt:
		s.statement(n.X, depth)
		after := s.dirs
		s.dirs = union(before, after)
		s.statement(n.Y, depth)
		if call, ok := n.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 &&
			slices.Contains([]string{"exit", "return"}, call.Args[0].Lit()) {
			s.dirs = after
		} else {
			s.dirs = union(after, s.dirs)
		}
	default: // a pipe: each side is a subshell
		s.aside(func() { s.statement(n.X, depth) })
		s.aside(func() { s.statement(n.Y, depth) })
	}
}

// changesDir reports whether a statement is a cd, which is assumed to succeed.
func changesDir(n *syntax.Stmt) bool {
	switch cmd := n.Cmd.(type) {
	case *syntax.CallExpr:
		return len(cmd.Args) > 0 && cmd.Args[0].Lit() == "cd"
	case *syntax.BinaryCmd:
		return cmd.Op == syntax.AndStmt && changesDir(cmd.X)
	}
	return false
}

// redirections records the files that redirections write and read. It returns the text of a
// here-document if it is readable.
func (s *shell) redirections(list []*syntax.Redirect, depth int) (stdin *string) {
	for _, r := range list {
		s.within(r.Word, depth)
		target := s.word(r.Word.Parts, false)
		other := r.N != nil && r.N.Value != "0" // not the standard input
		if other && strings.HasPrefix(r.N.Value, "{") {
			s.computes(strings.Trim(r.N.Value, "{}"))
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				s.within(r.Hdoc, depth)
				if text := s.word(r.Hdoc.Parts, true); !other {
					stdin = &text
				}
			}
		case syntax.WordHdoc:
			if !other {
				stdin = &target
			}
		case syntax.RdrIn:
			if !other {
				stdin = nil
			}
			s.files = append(s.files, file{paths: s.paths(s.dirs, target)})
		case syntax.DplOut, syntax.DplIn:
			if digits := strings.Trim(target, "0123456789-"); digits == "" {
				continue // another descriptor
			}
			s.files = append(s.files, file{paths: s.paths(s.dirs, target), write: true})
		default:
			s.files = append(s.files, file{paths: s.paths(s.dirs, target), write: true})
			s.strictly = true
			if strict := s.word(r.Word.Parts, false); strict != target {
				s.files = append(s.files, file{paths: s.paths(s.dirs, strict), write: true})
			}
			s.strictly = false
		}
	}
	return stdin
}

// call reads a simple command.
func (s *shell) call(n *syntax.CallExpr, stdin *string, depth int) {
	c := command{dirs: s.dirs, stdin: stdin}
	for _, a := range n.Assigns {
		s.within(a, depth)
		c.sets = append(c.sets, s.assignment(a))
	}
	for _, w := range n.Args {
		s.within(w, depth)
	}
	if len(n.Args) == 0 {
		if len(c.sets) > 0 {
			s.sets = append(s.sets, c)
		}
		return
	}
	c.words = s.words(n.Args)
	s.add(c, depth)
	s.strictly = true
	strict := s.words(n.Args)
	s.strictly = false
	if after := s.dirs; !slices.Equal(strict, c.words) {
		c.words = strict
		s.add(c, depth)
		s.dirs = union(after, s.dirs)
	}
}

// add records a command and the commands that it runs.
func (s *shell) add(c command, depth int) {
	if depth > maxDepth || len(s.commands) > maxCommands {
		s.give("this shell command hides others too deep")
		return
	}
	name := c.name()
	if len(c.words) == 0 || name == "" || strings.ContainsAny(name, unknown+"*?") ||
		name[0] != '[' && strings.Contains(name, "[") {
		s.give("the name of a program is computed when the command runs")
		return
	}
	if args := gitArgs(c); len(args) > 0 && strings.Contains(args[0], unknown) {
		s.give("git's command is computed when it runs")
		return
	}
	inner, found := inside(c)
	c.through = found && slices.Contains(transparent, name)
	s.commands = append(s.commands, c)
	if real := s.realName(c); real != "" {
		alias := c
		alias.words, alias.real = append([]string{real}, c.args()...), true
		s.commands = append(s.commands, alias)
	}
	if git, sub, _ := strings.Cut(name, "-"); git == "git" && sub != "" { // a program in git's own folder
		alias := c
		alias.words, alias.real = append([]string{git, sub}, c.args()...), true
		s.commands = append(s.commands, alias)
		s.files = append(s.files, s.filesOf(alias)...)
	}
	switch args := c.args(); name {
	case "read", "mapfile", "readarray", "getopts":
		s.computes(plain(args)...)
	case "printf":
		s.computes(optionValues(args[:min(2, len(args))], "v", "")...)
	}
	s.files = append(s.files, s.filesOf(c)...)
	if c.name() == "cd" || name == "pushd" || name == "popd" {
		s.dirs = s.chdir(c)
	}
	for _, i := range inner {
		if i.text != nil {
			s.run(c, *i.text, depth)
			continue
		}
		next := command{words: i.words, sets: i.sets, dirs: c.dirs, outer: &c, stdin: c.stdin}
		if i.dir != "" {
			next.dirs = s.folders(c.dirs, i.dir)
		}
		s.add(next, depth+1)
	}
	if readsScript(c) {
		switch {
		case c.stdin != nil:
			s.run(c, *c.stdin, depth)
		default:
			s.give("what " + name + " would run cannot be seen before it runs")
		}
	}
}

// run parses a script that a command passes to a shell.
func (s *shell) run(c command, text string, depth int) {
	first := len(s.commands)
	if c.name() == "eval" {
		s.parse(text, depth+1)
	} else {
		s.aside(func() { s.parse(text, depth+1) })
	}
	for i := first; i < len(s.commands); i++ {
		if s.commands[i].outer == nil {
			s.commands[i].outer = &c
		}
	}
}

// realName returns the name of the file that a program links to; "" if it adds nothing.
func (s *shell) realName(c command) string {
	if !strings.Contains(c.words[0], "/") || strings.Contains(c.words[0], unknown) {
		return ""
	}
	real := path.Base(s.policy.absolute(c.dirs[0], c.words[0]))
	if real == c.name() || slices.Contains([]string{"busybox", "toybox", "coreutils"}, real) {
		return "" // one file with many names
	}
	return real
}

// parts returns the parts of a shell command that are judged separately; a comment has no
// effect.
func (s *shell) parts() (list []part) {
	if s.unread != "" {
		list = append(list, part{unread: s.unread})
	}
	for i := range s.commands {
		c := &s.commands[i]
		list = append(list, part{command: c, dirs: s.gitDirs(*c)})
		for _, set := range c.sets {
			if !c.real {
				list = append(list, part{set: set, by: c})
			}
		}
	}
	for _, c := range s.sets {
		for _, set := range c.sets {
			list = append(list, part{set: set})
		}
	}
	for i := range s.files {
		list = append(list, part{file: &s.files[i]})
	}
	return list
}

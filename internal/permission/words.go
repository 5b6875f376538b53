package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// unknown stands for text that is computed at run time.
const unknown = "\x00"

// fickle returns the variables that may change their value after they are set.
func fickle(file *syntax.File) map[string]bool {
	set, own := map[string]int{}, map[string]int{} // assignments in all, and by a statement of their own
	for _, stmt := range file.Stmts {
		for _, a := range assigned(stmt) {
			own[a.Name.Value]++
		}
	}
	all := false
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				set[n.Name.Value]++
			}
		case *syntax.WordIter:
			set[n.Name.Value] += 2
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				return true
			}
			switch n.Args[0].Lit() {
			case "read", "mapfile", "readarray", "getopts", "printf", "unset":
				for _, w := range n.Args[1:] {
					set[w.Lit()] += 2
				}
			case "eval", "source", ".":
				all = true
			}
		}
		return true
	})
	list := map[string]bool{"": all}
	for name, times := range set {
		list[name] = all || times > 1 || own[name] == 0 || name == "HOME"
	}
	return list
}

// assigned returns the variables that a statement sets if it does nothing else.
func assigned(stmt *syntax.Stmt) (list []*syntax.Assign) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 && !stmt.Background {
			return cmd.Assigns
		}
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			if a.Name != nil && !a.Naked {
				list = append(list, a)
			}
		}
	}
	return list
}

// remember records the values that a statement sets. If the statement may not be reached, it keeps
// values that are already known.
func (s *shell) remember(stmt *syntax.Stmt, sure bool) {
	for _, a := range assigned(stmt) {
		if _, known := s.vars[a.Name.Value]; known && !sure {
			continue
		}
		value := unknown
		if !a.Append && a.Array == nil && a.Index == nil {
			_, value, _ = strings.Cut(s.assignment(a), "=")
		}
		if strings.Contains(value, unknown) {
			delete(s.vars, a.Name.Value)
		} else {
			s.vars[a.Name.Value] = value
		}
	}
}

// computes records that variables are set to unknown values.
func (s *shell) computes(names ...string) {
	for _, name := range names {
		s.sets = append(s.sets, command{sets: []string{name + "=" + unknown}, dirs: s.dirs})
	}
}

// literal returns the name of a variable in arithmetic.
func literal(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return w.Lit()
	}
	return unknown
}

func (s *shell) assignment(a *syntax.Assign) string {
	value := unknown
	if a.Value != nil {
		value = s.word(a.Value.Parts, true)
	} else if a.Array == nil {
		value = ""
	}
	return a.Name.Value + "=" + value
}

// words returns the known words that a program gets, with braces expanded.
func (s *shell) words(list []*syntax.Word) (words []string) {
	for _, w := range list {
		copied := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if !syntax.SplitBraces(copied) {
			words = append(words, s.word(w.Parts, false))
			continue
		}
		n := 0
		for one, err := range expand.BracesSeq(nil, copied) {
			if n++; err != nil || n > maxBraces {
				s.give("a word in braces becomes too many")
				break
			}
			words = append(words, s.word(one.Parts, false))
		}
	}
	return words
}

// word returns the text of the parts of a word.
func (s *shell) word(list []syntax.WordPart, quoted bool) string {
	var b strings.Builder
	for _, part := range list {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				b.WriteString(unknown)
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			b.WriteString(s.word(p.Parts, true))
		case *syntax.ParamExp:
			b.WriteString(s.parameter(p, quoted))
		case *syntax.ExtGlob:
			b.WriteString("*")
		default:
			b.WriteString(unknown)
		}
	}
	return b.String()
}

// simple reports whether a parameter is $x, or ${x} with a word that is used if x is not set or cut off its end.
func simple(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && !p.Width && !p.IsSet &&
		p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0
}

// parameter returns the value of $x.
func (s *shell) parameter(p *syntax.ParamExp, quoted bool) string {
	if !simple(p) {
		return unknown
	}
	value, ok := s.vars[p.Param.Value]
	if p.Exp != nil {
		instead := p.Exp.Op >= syntax.DefaultUnset && p.Exp.Op <= syntax.AssignUnsetOrNull // the value if there is none
		slash := p.Exp.Op == syntax.RemSmallSuffix && p.Exp.Word.Lit() == "/"
		if value == "" || !instead && !slash {
			return unknown
		}
		if slash {
			value = strings.TrimSuffix(value, "/")
		}
	}
	if s.strictly && (s.fickle[p.Param.Value] || s.fickle[""] && p.Param.Value != "HOME") {
		return unknown
	}
	if !ok && p.Param.Value == "PWD" && len(s.dirs) == 1 {
		value, ok = s.dirs[0], true
	}
	// Values that the shell would split or glob are not followed.
	if !ok || !quoted && (value == "" || strings.ContainsAny(value, " \t\n*?[")) {
		return unknown
	}
	return value
}

// unescape removes the backslashes of a literal: r\m is rm. Within quotes most of them stay.
func unescape(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// chdir returns the folders after a cd.
func (s *shell) chdir(c command) []string {
	var to []string
	for _, w := range c.args() {
		if w == "-" || !strings.HasPrefix(w, "-") {
			to = append(to, w)
		}
	}
	switch {
	case c.name() == "popd", len(to) > 0 && (to[0] == "-" || strings.HasPrefix(to[0], "+")):
		return []string{unknown}
	case len(to) == 0 && c.name() == "cd":
		return []string{s.policy.absolute("/", "~")}
	case len(to) == 0:
		return []string{unknown}
	}
	there := s.folders(c.dirs, to[0])
	if exists := s.policy.Exists; exists != nil && !slices.ContainsFunc(there, exists) {
		there = union(there, c.dirs) // the cd may fail, and the next command runs anyway
	}
	return there
}

// folders returns where a folder may be, relative to several.
func (s *shell) folders(dirs []string, to string) (list []string) {
	for _, dir := range dirs {
		list = append(list, s.path(dir, to))
	}
	return union(nil, list)
}

// paths returns all files that a word may name.
func (s *shell) paths(dirs []string, word string) (list []string) {
	plain := s.policy
	plain.Resolve = nil
	for _, dir := range dirs {
		list = append(list, s.path(dir, word), (&shell{policy: plain}).path(dir, word))
	}
	slices.Sort(list[1:])
	return slices.Compact(list)
}

// path resolves a word in a folder. From a computed part on, it may be anything below the folder
// before that part.
func (s *shell) path(dir, word string) string {
	if known, _, computed := strings.Cut(word, unknown); computed {
		i := strings.LastIndex(known, "/")
		if i < 0 {
			if known == "" || dir == unknown {
				return unknown
			}
			return s.policy.absolute(dir, ".") + "/**"
		}
		if word = known[:i+1]; word[0] != '/' && word[0] != '~' && dir == unknown {
			return unknown
		}
		return strings.TrimSuffix(s.policy.absolute(dir, word), "/") + "/**"
	}
	if dir == unknown && !strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "~") {
		return unknown
	}
	return s.policy.absolute(dir, word)
}

package trial

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// A goReading finds the expectations of a Go test file.
type goReading struct {
	set   *token.FileSet
	src   string
	found []expectation
	taken map[ast.Node]bool // literals that belong to an expectation
}

// fails matches the methods and functions with which a Go test fails; goAsserts the ones that
// compare.
var (
	fails     = lazy.Regexp(`^(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow|panic|Exit|Panic|Panicf)$`)
	goAsserts = lazy.Regexp(`^(?:Assert|Check|Require|Expect|Eventually|(?:assert|require|check|expect|verify|must)\w*)$`,
		`^(?:Not)?(?:Equal|Equals|EqualValues|Same|Exactly|Len|Contains|ElementsMatch|JSONEq|True|False|Nil|NoError|Error|`+
			`ErrorContains|EqualError|Empty|InDelta|Greater|Less|Regexp|Subset|DeepEqual|Eq|Is|HasPrefix)f?$`)
	goWithin = lazy.Regexp(`^(?:assert|require|qt|is|c|Expect|test|td|check|t|s|suite|r|a|cmp|gc|be)$`)
)

// readGo returns the expectations of a Go test file; none if it cannot be parsed.
func readGo(src string) []expectation {
	r := &goReading{set: token.NewFileSet(), src: src, taken: map[ast.Node]bool{}}
	file, err := parser.ParseFile(r.set, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.IfStmt:
			r.condition(n)
		case *ast.CallExpr:
			r.call(n)
		case *ast.CompositeLit:
			r.table(n)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && wanted().MatchString(name.Name) && len(n.Lhs) == len(n.Rhs) {
					r.keep(expectation{options: r.literals(n.Rhs[i], true, true)}, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if wanted().MatchString(name.Name) && i < len(n.Values) {
					r.keep(expectation{options: r.literals(n.Values[i], true, true)}, n.Values[i])
				}
			}
		}
		return true
	})
	r.examples(file)
	return r.found
}

// offset returns where a position is in the text.
func (r *goReading) offset(p token.Pos) int { return r.set.Position(p).Offset }

// keep adds an expectation that can be changed, unless a part of it belongs to another one.
func (r *goReading) keep(e expectation, nodes ...ast.Node) {
	if len(e.options) == 0 || slices.ContainsFunc(nodes, func(n ast.Node) bool { return r.taken[n] }) {
		return
	}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			if n != nil {
				r.taken[n] = true
			}
			return true
		})
	}
	r.found = append(r.found, e)
}

// condition reads a condition under which a test fails.
func (r *goReading) condition(n *ast.IfStmt) {
	if !failing(n.Body) {
		return
	}
	e, about := r.compared(n.Cond)
	if len(e.options) == 0 && !about {
		e.options = append(e.options, option{
			wrap: true, at: r.offset(n.Cond.Pos()), end: r.offset(n.Cond.End()), open: "!(", shut: ")",
		})
	}
	nodes := []ast.Node{n.Cond}
	if about && len(e.options) == 0 {
		return
	}
	if r.several(n.Cond) {
		e.options = append(e.options, option{
			wrap: true, last: true, at: r.offset(n.Cond.Pos()), end: r.offset(n.Cond.End()), open: "!(", shut: ")",
		})
	}
	e.options = append(e.options, r.inputs(n.Cond, e.options)...)
	if n.Init != nil {
		e.options = append(e.options, r.inputs(n.Init, e.options)...)
		nodes = append(nodes, n.Init)
	}
	r.keep(e, nodes...)
}

// compared returns the expected literals in a condition. It also reports whether the condition compares other values,
// or nothing: negating it would use a value that does not exist.
func (r *goReading) compared(cond ast.Expr) (e expectation, about bool) {
	ast.Inspect(cond, func(m ast.Node) bool {
		switch m := m.(type) {
		case *ast.BinaryExpr:
			equal := m.Op == token.NEQ || m.Op == token.EQL
			if !equal && m.Op != token.LSS && m.Op != token.GTR && m.Op != token.LEQ && m.Op != token.GEQ {
				return true
			}
			for _, side := range []ast.Expr{m.Y, m.X} {
				if r.pure(side) {
					e.options = append(e.options, r.literals(side, true, equal)...)
				}
			}
			about = about || len(e.options) == 0
		case *ast.CallExpr:
			about = about || len(m.Args) > 1 && len(r.inputs(m, nil)) == 0
			for _, a := range m.Args {
				_, method := m.Fun.(*ast.SelectorExpr)
				if r.pure(a) && (method || len(m.Args) > 1) && goAsserts().MatchString(calledName(m.Fun)) {
					e.options = append(e.options, r.literals(a, true, true)...)
				}
			}
		}
		return true
	})
	return e, about
}

// several reports whether a condition for a failing test permits more values than it names: it orders or excludes
// them, or one of its required parts names none.
func (r *goReading) several(cond ast.Expr) bool {
	switch x := cond.(type) {
	case *ast.ParenExpr:
		return r.several(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LSS, token.GTR, token.LEQ, token.GEQ:
			return true
		case token.EQL:
			return r.pure(x.X) || r.pure(x.Y)
		case token.LOR:
			return r.several(x.X) || r.several(x.Y)
		case token.LAND:
			return r.several(x.X) || r.several(x.Y) || !r.names(x.X) || !r.names(x.Y)
		}
	}
	return false
}

// names reports whether a condition is about a value that it names.
func (r *goReading) names(cond ast.Expr) bool {
	e, _ := r.compared(cond)
	return len(e.options) > 0
}

// failing reports whether a test fails in a block, or a helper returns the difference.
func failing(b *ast.BlockStmt) bool {
	return slices.ContainsFunc(b.List, func(s ast.Stmt) bool {
		switch x := s.(type) {
		case *ast.ExprStmt:
			call, ok := x.X.(*ast.CallExpr)
			return ok && fails().MatchString(calledName(call.Fun))
		case *ast.ReturnStmt:
			return calls(x.Results)
		}
		return false
	})
}

// calledName returns the last part of the name of a function.
func calledName(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.IndexExpr:
		return calledName(f.X)
	}
	return ""
}

// calls reports whether one of the expressions is a call.
func calls(list []ast.Expr) bool {
	return slices.ContainsFunc(list, func(e ast.Expr) bool { _, ok := e.(*ast.CallExpr); return ok })
}

// call reads an assertion by a call.
func (r *goReading) call(n *ast.CallExpr) {
	name := calledName(n.Fun)
	helper := len(n.Args) > 1 && isT(n.Args[0]) // it may have any name
	if !helper && !(goAsserts().MatchString(name) && within(n.Fun)) {
		return
	}
	if slices.ContainsFunc(n.Args, func(e ast.Expr) bool { _, ok := e.(*ast.FuncLit); return ok }) {
		return // its body is read by itself
	}
	var e expectation
	args := n.Args
	if helper && !ast.IsExported(name) {
		r.helper(n)
		return
	}
	if len(args) > 3 && r.pure(args[len(args)-1]) && (r.pure(args[1]) || r.pure(args[2])) {
		args = args[:3]
	}
	differs := strings.HasPrefix(name, "Not")
	for _, a := range args {
		if r.pure(a) {
			e.options = append(e.options, r.literals(a, true, !differs)...)
		}
	}
	if opposite := opposites[name]; opposite != "" {
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && !(name == "Error" || name == "NoError") {
			swap := option{swap: true, at: r.offset(s.Sel.Pos()), end: r.offset(s.Sel.End()), open: opposite}
			swap.last = ordered().MatchString(name)
			if differs || name == "True" || name == "False" {
				e.options = append([]option{swap}, e.options...)
			} else {
				e.options = append(e.options, swap)
			}
		}
	}
	for _, a := range args {
		e.options = append(e.options, r.inputs(a, e.options)...)
	}
	r.keep(e, n)
}

// helper reads a call of a helper with any name: the expected value is in a comparison, or last.
func (r *goReading) helper(n *ast.CallExpr) {
	var e expectation
	for _, a := range n.Args[1:] {
		of, _ := r.compared(a)
		e.options = append(e.options, of.options...)
	}
	for _, a := range slices.Backward(n.Args[1:]) {
		if len(e.options) == 0 && r.pure(a) {
			e.options = r.literals(a, true, true)
		}
	}
	if a := n.Args[1]; len(e.options) == 0 && len(n.Args) == 2 && negated().MatchString(calledName(n.Fun)) {
		e.options = []option{{wrap: true, at: r.offset(a.Pos()), end: r.offset(a.End()), open: "!(", shut: ")"}}
	}
	for _, a := range n.Args[1:] {
		e.options = append(e.options, r.inputs(a, e.options)...)
	}
	r.keep(e, n)
}

// within reports whether a method with the name of an assertion may be one, by its receiver.
func within(fun ast.Expr) bool {
	s, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	id, plain := s.X.(*ast.Ident)
	if !plain {
		return ast.IsExported(s.Sel.Name)
	}
	return goWithin().MatchString(id.Name) && !(len(id.Name) == 1 && strings.HasPrefix(s.Sel.Name, "Error"))
}

// isT reports whether an expression is the value that a test is given.
func isT(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && (id.Name == "t" || id.Name == "tb" || id.Name == "b" || id.Name == "c")
}

// pure reports whether an expression consists of literals.
func (r *goReading) pure(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return x.Name == "true" || x.Name == "false"
	case *ast.UnaryExpr:
		return (x.Op == token.SUB || x.Op == token.AND) && r.pure(x.X)
	case *ast.ParenExpr:
		return r.pure(x.X)
	case *ast.CompositeLit:
		return len(x.Elts) > 0
	case *ast.CallExpr: // a conversion
		id, ok := x.Fun.(*ast.Ident)
		_, slice := x.Fun.(*ast.ArrayType)
		return (ok && constants().MatchString(id.Name) || slice) && len(x.Args) == 1 && r.pure(x.Args[0])
	}
	return false
}

// literals returns the literals in an expression, without keys and arguments of calls.
func (r *goReading) literals(n ast.Node, expected, equal bool) (list []option) {
	add := func(n ast.Node, k kind) {
		at, end := r.offset(n.Pos()), r.offset(n.End())
		t := literalOf(k, at, end)
		list = append(list, option{at: at, end: end, token: t, expected: expected, equal: equal})
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit, *ast.ArrayType, *ast.StructType, *ast.IndexExpr, *ast.SliceExpr, *ast.Field:
			return false
		case *ast.KeyValueExpr:
			list = append(list, r.literals(x.Value, expected, equal)...)
			return false
		case *ast.BasicLit:
			switch x.Kind {
			case token.INT, token.FLOAT:
				add(x, number)
			case token.STRING:
				add(x, text)
			case token.CHAR:
				add(x, char)
			}
		case *ast.Ident:
			if x.Name == "true" || x.Name == "false" {
				add(x, word)
			}
		}
		return true
	})
	return list
}

// literalOf returns the token of a literal.
func literalOf(k kind, at, end int) lexeme {
	t := lexeme{kind: k, at: at, end: end, from: at, to: end}
	if k == text || k == char {
		t.from, t.to = at+1, end-1
	}
	return t
}

// inputs returns the literals in an expression that are not among others.
func (r *goReading) inputs(n ast.Node, but []option) (list []option) {
	for _, o := range r.literals(n, false, false) {
		if !slices.ContainsFunc(but, func(b option) bool { return b.at == o.at }) {
			list = append(list, o)
		}
	}
	return list
}

// table reads the rows of a table. From each it takes the value with a name such as want, else the
// last one.
func (r *goReading) table(n *ast.CompositeLit) {
	var element ast.Expr
	switch t := n.Type.(type) {
	case *ast.ArrayType:
		element = t.Elt
	case *ast.MapType:
		for _, e := range n.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if ok && r.pure(kv.Value) && !r.composite(kv.Value) && !r.taken[n] {
				r.keep(expectation{options: r.literals(kv.Value, true, true)}, kv.Value)
			}
		}
		element = t.Value
	default:
		return
	}
	if p, ok := element.(*ast.StarExpr); ok {
		element = p.X
	}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		if row, ok := e.(*ast.CompositeLit); ok && len(row.Elts) > 1 && !r.taken[n] {
			r.row(row, fields(element))
		}
	}
}

func (r *goReading) composite(e ast.Expr) bool { _, ok := e.(*ast.CompositeLit); return ok }

// fields returns the names of a struct's fields, if its type is there.
func fields(t ast.Expr) (names []string) {
	if s, ok := t.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// row reads a row of a table.
func (r *goReading) row(row *ast.CompositeLit, names []string) {
	var want, last, others ast.Expr
	for i, v := range row.Elts {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		if kv, ok := v.(*ast.KeyValueExpr); ok {
			id, ok := kv.Key.(*ast.Ident)
			if v = kv.Value; ok {
				name = id.Name
			}
		}
		switch list := r.literals(v, true, true); {
		case len(list) == 0 || labels().MatchString(name) || !r.pure(v):
		case wanted().MatchString(name):
			want = v
		default:
			last, others = v, last
		}
	}
	var e expectation
	for _, v := range []ast.Expr{want, last, others} {
		if v != nil {
			expected := len(e.options) == 0
			e.options = append(e.options, r.literals(v, expected, expected)...)
		}
	}
	r.keep(e, row)
}

// examples reads the expected output of examples.
func (r *goReading) examples(file *ast.File) {
	for _, group := range file.Comments {
		last := group.List[len(group.List)-1]
		lower := strings.ToLower(group.Text())
		if strings.HasPrefix(lower, "output:") || strings.HasPrefix(lower, "unordered output:") {
			end := r.offset(last.End())
			if !strings.HasSuffix(last.Text, "*/") {
				r.keep(expectation{options: []option{{wrap: true, at: end, end: end, open: "q", expected: true, equal: true}}})
			}
		}
	}
}

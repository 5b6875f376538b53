package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one small change of a file: the bytes from begin to end are replaced.
type mutant struct {
	file     string // relative to the root of the module
	at       place
	function string // the function around it; "" outside of functions
	kind     string
	was, is  string // shown to people, on one line
	begin    int
	end      int
	with     string
	body     [2]int   // body of the function, without braces; zeros outside of functions, and if it cannot be copied
	reach    [2]place // reach of the function
	results  bool     // the function has results
}

// A place in a file is a line and a column.
type place [2]int

// key identifies a mutant independently of its line. Equal changes in one function have the same
// key.
func (m mutant) key() string {
	return fmt.Sprintf("%s: %s: %s => %s", cmp.Or(m.function, m.file), m.kind, m.was, m.is)
}

// apply returns the file with the change.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.begin], []byte(m.with), source[m.end:])
}

// swapped are the replacements of an operator. A comparison is negated, and one of sizes also moved
// by its boundary.
var swapped = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.GEQ, token.LEQ}, token.LEQ: {token.GTR, token.LSS},
	token.GTR: {token.LEQ, token.GEQ}, token.GEQ: {token.LSS, token.GTR},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.INC: {token.DEC}, token.DEC: {token.INC},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.BREAK: {token.CONTINUE}, token.CONTINUE: {token.BREAK},
}

// finder collects the mutants of one file.
type finder struct {
	file     string
	source   []byte // with spaces in place of comments
	set      *token.FileSet
	function string
	body     [2]int
	reach    [2]place
	results  bool
	truth    bool              // the function returns one bool
	skip     map[ast.Node]bool // covered by another mutant
	found    []mutant
}

// mutants returns the changes of a file, in order. wanted selects functions; "" stands for code
// outside of functions.
func mutants(file string, source []byte, wanted func(function string) bool) ([]mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, source: slices.Clone(source), set: set, skip: map[ast.Node]bool{}}
	for _, c := range parsed.Comments {
		from, to := set.Position(c.Pos()).Offset, set.Position(c.End()).Offset
		copy(f.source[from:to], bytes.Repeat([]byte{' '}, to-from))
	}
	for _, d := range parsed.Decls {
		f.function, f.truth, f.results, f.body, f.reach = "", false, false, [2]int{}, [2]place{}
		if fn, ok := d.(*ast.FuncDecl); ok {
			f.begin(fn)
		}
		if wanted(f.function) {
			ast.Inspect(d, f.node)
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int { return a.begin - b.begin })
	return f.found, nil
}

// begin sets the function of the following mutants.
func (f *finder) begin(fn *ast.FuncDecl) {
	f.function, f.truth, f.results = fn.Name.Name, returnsTruth(fn.Type), fn.Type.Results != nil
	if fn.Recv != nil {
		of := fn.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if name, ok := of.(*ast.Ident); ok {
			f.function = name.Name + "." + f.function
		}
	}
	f.reach = [2]place{f.place(fn.Body.Lbrace), f.place(fn.Body.Rbrace)}
	labels := false
	ast.Inspect(fn, func(n ast.Node) bool {
		_, ok := n.(*ast.LabeledStmt)
		labels = labels || ok
		return true
	})
	if !labels { // labels must be unique in a function
		f.body = [2]int{f.set.Position(fn.Body.Lbrace).Offset + 1, f.set.Position(fn.Body.Rbrace).Offset}
	}
}

func (f *finder) place(p token.Pos) place {
	at := f.set.Position(p)
	return place{at.Line, at.Column}
}

func returnsTruth(t *ast.FuncType) bool {
	if t.Results == nil || t.Results.NumFields() != 1 {
		return false
	}
	name, ok := t.Results.List[0].Type.(*ast.Ident)
	return ok && name.Name == "bool"
}

// node adds the mutants of a node, not of its children.
func (f *finder) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.CONST || n.Tok == token.VAR
	case *ast.FuncLit:
		outer := f.truth
		f.truth = returnsTruth(n.Type)
		ast.Inspect(n.Body, f.node)
		f.truth = outer
		return false
	case *ast.ArrayType:
		f.skip[n.Len] = true
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace("not", n, n.Pos(), n.X.Pos(), "")
		}
		if one, ok := n.X.(*ast.BasicLit); ok && n.Op == token.SUB && one.Value == "1" {
			f.skip[one] = true // -1 stands for none or for all, as any negative number does
		}
	case *ast.IfStmt:
		if n.Else == nil && !slices.ContainsFunc(n.Body.List, acts) {
			if n.Init != nil {
				ast.Inspect(n.Init, f.node)
			}
			return false
		}
		f.condition(n.Cond)
	case *ast.ForStmt:
		f.condition(n.Cond)
	case *ast.ReturnStmt:
		if f.truth && len(n.Results) == 1 {
			f.condition(n.Results[0])
		}
	case *ast.BasicLit:
		f.number(n)
	case *ast.BlockStmt:
		f.drop(n.List)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					f.condition(e)
				}
			}
		}
	case *ast.CaseClause:
		f.clause(n)
	case *ast.CommClause:
		f.drop(n.Body)
	case *ast.BranchStmt:
		for _, to := range swapped[n.Tok] {
			f.operator("branch", n, n.Pos(), n.Tok, to)
		}
	case *ast.IncDecStmt:
		f.operator("operator", n, n.TokPos, n.Tok, swapped[n.Tok][0])
	case *ast.AssignStmt:
		for _, to := range swapped[n.Tok] {
			f.operator("operator", n, n.TokPos, n.Tok, to)
		}
	}
	return true
}

// binary changes the operator, and negates the operands of && and ||.
func (f *finder) binary(n *ast.BinaryExpr) {
	if text(n.X) || text(n.Y) {
		return
	}
	for _, to := range swapped[n.Op] {
		f.operator("operator", n, n.OpPos, n.Op, to)
	}
	if len(swapped[n.Op]) > 1 { // the same as moving the boundary
		f.skip[n.X], f.skip[n.Y] = true, true
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		f.condition(n.X)
		f.condition(n.Y)
	}
}

// text reports whether an operand of + is certainly a string, for which other operators do not
// compile.
func text(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (text(e.X) || text(e.Y))
	}
	return false
}

// condition negates a condition that has no operator to swap.
func (f *finder) condition(e ast.Expr) {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			f.replace("constant", e, e.Pos(), e.End(), strconv.FormatBool(e.Name == "false"))
			return
		}
		f.replace("negate", e, e.Pos(), e.Pos(), "!")
	case *ast.CallExpr, *ast.SelectorExpr, *ast.IndexExpr:
		f.replace("negate", e, e.Pos(), e.Pos(), "!")
	case *ast.ParenExpr:
		f.condition(e.X)
	}
}

// number increments a whole number.
func (f *finder) number(n *ast.BasicLit) {
	if n.Kind != token.INT || f.skip[n] {
		return
	}
	if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		f.replace("number", n, n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	}
}

// clause removes a case, or its body.
func (f *finder) clause(n *ast.CaseClause) {
	f.drop(n.Body)
	if n.List != nil {
		f.replace("remove case", n, n.Pos(), n.End(), "")
	}
	if len(n.List) < 2 {
		return
	}
	for i, e := range n.List {
		begin, end := e.Pos(), e.End()
		if i > 0 {
			begin = n.List[i-1].End()
		} else {
			end = n.List[1].Pos()
		}
		f.replace("remove case", e, begin, end, "")
	}
}

// drop removes statements one by one, except declarations: their uses would not compile. Of an
// assignment, it also removes only the left side: the right side still acts, and its result is forgotten.
func (f *finder) drop(list []ast.Stmt) {
	for _, s := range list {
		c, ok := s.(*ast.IfStmt)
		if ok && (!acts(c) || c.Init == nil && c.Else == nil && len(c.Body.List) == 1 && droppable(c.Body.List[0])) {
			continue // equal to dropping its only statement
		}
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
			last := a.Lhs[len(a.Lhs)-1].End()
			if blank := strings.Repeat(", _", len(a.Lhs))[2:]; blank != f.text(s.Pos(), last) {
				f.replace("forget", s, s.Pos(), last, blank)
			}
			if !slices.ContainsFunc(a.Rhs, calls) {
				continue
			}
		}
		if droppable(s) {
			f.replace("drop", s, s.Pos(), s.End(), "")
		}
	}
}

// calls reports whether an expression calls something when it is evaluated.
func calls(e ast.Expr) (is bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			is = true
		}
		return true
	})
	return is
}

func (f *finder) text(from, to token.Pos) string {
	return string(f.source[f.set.Position(from).Offset:f.set.Position(to).Offset])
}

func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.ExprStmt:
		return acts(s)
	case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt,
		*ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
		return true
	}
	return false
}

// acts reports whether a statement does more than write to a log, possibly under a condition:
// logging is not a rule.
func acts(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.IfStmt:
		return s.Init != nil || s.Else != nil || slices.ContainsFunc(s.Body.List, acts)
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				log, ok := method.X.(*ast.SelectorExpr)
				return !ok || log.Sel.Name != "Log"
			}
		}
	}
	return true
}

// operator replaces one token of a node.
func (f *finder) operator(kind string, n ast.Node, at token.Pos, from, to token.Token) {
	f.replace(kind, n, at, at+token.Pos(len(from.String())), to.String())
}

// replace adds a mutant: in node n, the text between two positions is replaced.
func (f *finder) replace(kind string, n ast.Node, begin, end token.Pos, with string) {
	from, to := f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset
	b, e := f.set.Position(begin).Offset, f.set.Position(end).Offset
	m := mutant{
		file: f.file, at: f.place(begin), function: f.function, kind: kind, begin: b, end: e, with: with,
		body: f.body, reach: f.reach, results: f.results,
	}
	if m.is = "nothing"; kind == "drop" || kind == "remove case" {
		m.was = head(oneLine(f.source[from:to]))
	} else {
		before, after := tail(oneLine(f.source[from:b])), head(oneLine(f.source[e:to]))
		m.was, m.is = before+string(f.source[b:e])+after, before+with+after
	}
	f.found = append(f.found, m)
}

// around is the number of characters shown on either side of a change.
const around = 60

// oneLine puts source on one line, with each run of spaces reduced to one.
func oneLine(source []byte) string { return spaces.ReplaceAllString(string(source), " ") }

var spaces = regexp.MustCompile(`\s+`)

func head(s string) string {
	if r := []rune(s); len(r) > around {
		return string(r[:around]) + "…"
	}
	return s
}

func tail(s string) string {
	if r := []rune(s); len(r) > around {
		return "…" + string(r[len(r)-around:])
	}
	return s
}

package prompt

import (
	"fmt"
	"reflect"
	"text/template"
	"text/template/parse"
)

// checkNames finds unknown fields and templates, even where a trial execution does not get
// to, such as below a condition on the attempt. Its errors read like the template's own.
func checkNames(t *template.Template) error {
	for _, part := range t.Templates() {
		if part.Tree == nil {
			continue
		}
		if node, what := misnamed(t, part.Root); node != nil {
			place, context := part.ErrorContext(node)
			return fmt.Errorf("template: %s: executing %q at <%s>: %s", place, part.Name(), context, what)
		}
	}
	return nil
}

// misnamed returns the first node below n with an unknown name; nil if there is none.
func misnamed(t *template.Template, n parse.Node) (parse.Node, string) {
	switch n := n.(type) {
	case *parse.FieldNode:
		if !isField(n.Ident[0]) {
			return n, noField(n.Ident[0])
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 && !isField(n.Ident[1]) {
			return n, noField(n.Ident[1])
		}
	case *parse.TemplateNode:
		if t.Lookup(n.Name) == nil {
			return n, fmt.Sprintf("template %q not defined", n.Name)
		}
	}
	for _, below := range nodes(n) {
		if node, what := misnamed(t, below); node != nil {
			return node, what
		}
	}
	return nil, ""
}

// nodes returns the child nodes of n.
func nodes(n parse.Node) (list []parse.Node) {
	pipe := func(p *parse.PipeNode) {
		if p == nil {
			return
		}
		for _, c := range p.Cmds {
			list = append(list, c.Args...)
		}
	}
	branch := func(b *parse.BranchNode) {
		pipe(b.Pipe)
		list = append(list, b.List)
		if b.ElseList != nil {
			list = append(list, b.ElseList)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		list = append(list, n.Nodes...)
	case *parse.ActionNode:
		pipe(n.Pipe)
	case *parse.PipeNode:
		pipe(n)
	case *parse.TemplateNode:
		pipe(n.Pipe)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	}
	return list
}

func noField(name string) string {
	return fmt.Sprintf("can't evaluate field %s in type prompt.Value", name)
}

func isField(name string) bool {
	_, ok := reflect.TypeFor[Value]().FieldByName(name)
	return ok
}

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"ralph/internal/lazy"
)

// A setting is a value with its source.
type setting struct {
	value  any
	source string
}

// A reader collects the settings and problems of one file.
type reader struct {
	name     string // name of the file for people
	lines    []string
	anchors  map[string]ast.Node
	settings map[string]setting
	problems []error
}

// group reads the keys of a mapping; path is empty for the file's top level.
func (r *reader) group(path string, node ast.Node, line, column int) {
	node, ok := r.resolved(path, node)
	if !ok || node == nil || node.Type() == ast.NullType {
		return // null: all of its keys are commented out
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		if short := groups[path]; short != "" {
			f, _ := named(fields, short)
			r.leaf(f, node, line, column)
			return
		}
		r.problem(path, start(node), `must hold keys, each in a line of its own such as "key: value"`)
		return
	}
	for pairs := m.MapRange(); pairs.Next(); {
		r.pair(path, pairs.Key(), pairs.Value())
	}
}

// pair reads one key of a mapping with its value.
func (r *reader) pair(path string, key ast.MapKeyNode, value ast.Node) {
	at := start(key)
	name, ok := key.(*ast.StringNode)
	switch {
	case key.IsMergeKey():
		r.problem(path, at, "merge keys (<<) are not supported; write the keys out")
		return
	case !ok:
		r.problem(path, at, "a key must be plain text")
		return
	}
	full := name.Value
	if path != "" {
		full = path + "." + full
	}
	f, isField := named(fields, full)
	_, isGroup := groups[full]
	parent, child, dotted := strings.Cut(name.Value, ".")
	switch {
	case dotted && isField:
		r.problem(full, at, fmt.Sprintf("must be written in two lines: %s: and, indented below it, %s:", parent, child))
	case isField:
		r.leaf(f, value, at.Position.Line, at.Position.Column)
	case isGroup:
		r.group(full, value, at.Position.Line, at.Position.Column)
	default:
		r.problem(printable(full, maxQuoted), at, noKey(full))
	}
}

// leaf reads the value of a setting whose key is at line and column.
func (r *reader) leaf(f field, node ast.Node, line, column int) {
	node, ok := r.resolved(f.name, node)
	if !ok {
		return
	}
	if node == nil || node.Type() == ast.NullType {
		// A missing value has no position of its own.
		missing := &Error{Key: f.name, Problem: "has no value; give it one or remove the key"}
		r.problems = append(r.problems, r.locate(missing, line, column))
		return
	}
	v, bad := r.value(f, node)
	if bad.err != nil {
		r.problem(f.name, start(bad.at), bad.err.Error())
		return
	}
	r.settings[f.name] = setting{v, fmt.Sprintf("%s:%d", r.name, line)}
}

// value reads and checks a setting's value.
func (r *reader) value(f field, node ast.Node) (any, misfit) {
	v, items, bad := r.decode(f, node)
	if bad.err != nil {
		return nil, bad
	}
	i, err := f.check(v)
	if i >= 0 {
		node = items[i]
	}
	return v, misfit{node, err}
}

// decode converts a node to a Go value of the setting's type. For a list, items are the nodes of
// its items.
func (r *reader) decode(f field, node ast.Node) (v any, items []ast.Node, bad misfit) {
	switch f.typ {
	case typeList:
		items = []ast.Node{node}
		if list, ok := node.(*ast.SequenceNode); ok {
			items = list.Values
		}
		texts := make([]string, len(items))
		for i, item := range items {
			text, ok := plainText(r.resolve(item))
			if !ok {
				return nil, nil, misfit{item, errors.New(
					"must be a list of texts; put values with another meaning in YAML in quotes")}
			}
			texts[i] = text
		}
		return texts, items, misfit{}
	case typeMap:
		m, bad := r.variables(node)
		return m, nil, bad
	case typePercents:
		m, bad := r.variables(node)
		if bad.err != nil {
			return nil, nil, bad
		}
		p, err := parsePercents(m)
		return p, nil, misfit{node, err}
	case typePrices:
		p, bad := r.prices(node)
		return p, nil, bad
	case typeWhen:
		w, bad := r.when(node)
		return w, nil, bad
	}
	switch f.kind() {
	case kindRecords:
		list, bad := r.records(f, node)
		return list, nil, bad
	case kindNamed:
		m, bad := r.named(f, node)
		return m, nil, bad
	}
	text, ok := plainText(node)
	var err error
	switch {
	case f.typ == typeDuration && ok:
		v, err = parseDuration(text)
	case f.typ == typeDuration:
		err = errors.New(`must be a duration such as "90s", "45m" or "1h30m"`)
	case f.kind() == "text" && ok:
		v = text
	case f.kind() == "text":
		err = errors.New("must be text; put it in quotes if it is meant so")
	case f.kind() == "true or false":
		b, is := node.(*ast.BoolNode)
		if !is {
			err = errors.New("must be true or false")
			break
		}
		v = b.Value
	case f.kind() == "whole number":
		v, err = wholeNumber(node)
	default:
		v, err = number(node)
	}
	return v, nil, misfit{node, err}
}

// variables reads a map of texts; numbers and other scalars are taken as written.
func (r *reader) variables(node ast.Node) (map[string]string, misfit) {
	m, ok := node.(ast.MapNode)
	if !ok {
		return nil, misfit{node, errors.New("must hold names with values")}
	}
	vars := map[string]string{}
	for pairs := m.MapRange(); pairs.Next(); {
		name, ok := pairs.Key().(*ast.StringNode)
		if !ok {
			return nil, misfit{pairs.Key(), errors.New("the name of a variable must be plain text")}
		}
		value := r.resolve(pairs.Value())
		text, ok := plainText(value)
		if scalar, is := value.(ast.ScalarNode); !ok && is && value.Type() != ast.NullType {
			text, ok = scalar.GetToken().Value, true
		}
		if !ok {
			return nil, misfit{name, fmt.Errorf("%s must have a text as its value", quoted(name.Value))}
		}
		vars[name.Value] = text
	}
	return vars, misfit{}
}

// resolved returns the node that a setting's value stands for. If an alias stands for nothing, it
// reports a problem and returns false.
func (r *reader) resolved(key string, node ast.Node) (ast.Node, bool) {
	target := r.resolve(node)
	if target == nil && node != nil {
		r.problem(key, start(node), "refers to an anchor (&name) that is not defined before it")
		return nil, false
	}
	return target, true
}

// resolve returns the node that an anchor or an alias stands for; nil for an undefined alias and
// for one inside its own anchor.
func (r *reader) resolve(node ast.Node) ast.Node {
	var anchors []string
	for {
		switch n := node.(type) {
		case *ast.AnchorNode:
			name := n.Name.GetToken().Value
			r.anchors[name] = n.Value
			node = n.Value
		case *ast.AliasNode:
			name := n.Value.GetToken().Value
			if slices.Contains(anchors, name) {
				return nil
			}
			anchors = append(anchors, name)
			node = r.anchors[name]
		default:
			return node
		}
	}
}

// plainText returns the value of a node that YAML reads as text.
func plainText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

func wholeNumber(node ast.Node) (int, error) {
	if n, ok := node.(*ast.IntegerNode); ok {
		switch v := n.Value.(type) {
		case int64:
			return int(max(v, -maxNumber-1)), nil
		case uint64:
			return int(min(v, maxNumber+1)), nil
		}
	}
	return 0, errors.New("must be a whole number")
}

func number(node ast.Node) (float64, error) {
	if n, ok := node.(*ast.FloatNode); ok {
		return n.Value, nil
	}
	n, err := wholeNumber(node)
	if err != nil {
		return 0, errors.New("must be a number")
	}
	return float64(n), nil
}

// start returns the first token of a node. For a mapping, it is the first key's.
func start(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return start(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return start(n.Key)
	}
	return node.GetToken()
}

func (r *reader) problem(key string, at *token.Token, text string) {
	r.problems = append(r.problems, r.locate(&Error{Key: key, Problem: text}, at.Position.Line, at.Position.Column))
}

// secretLine matches a line that may hold the start of a secret: the agent's variables, or a
// receiver's URL.
var secretLine = lazy.Regexp(`(^|[\s{,"'])(env|url|database)["']?\s*:`)

// locate sets the position of an error, clamped to the file, and the line itself unless it may hold
// a secret.
func (r *reader) locate(e *Error, line, column int) *Error {
	e.Source = r.name
	e.Line = max(1, min(line, len(r.lines)))
	text := r.lines[e.Line-1]
	e.Column = max(1, min(column, utf8.RuneCountInString(text)+1))
	first := e.Line - 1
	if e.Key == "" { // the line may belong to any setting
		first = 0
	}
	if !slices.Contains(secretKeys, e.Key) && !slices.ContainsFunc(r.lines[first:e.Line], secretLine().MatchString) {
		e.Text = text
	}
	return e
}

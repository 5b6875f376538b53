package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"ralph/internal/lazy"
)

// records reads a list of maps into a slice of the setting's type.
func (r *reader) records(f field, node ast.Node) (any, misfit) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return nil, misfit{node, fmt.Errorf("must be a list of maps with the keys %s", strings.Join(names(f.items), ", "))}
	}
	records := reflect.MakeSlice(f.typ, len(list.Values), len(list.Values))
	for i, item := range list.Values {
		if bad := r.record(f, item, records.Index(i)); bad.err != nil {
			return nil, bad
		}
	}
	return records.Interface(), misfit{}
}

// nameForm matches the names in a map of maps.
var nameForm = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// named reads a map of maps into one of the setting's type. A null map is empty.
func (r *reader) named(f field, node ast.Node) (any, misfit) {
	m, ok := node.(ast.MapNode)
	if !ok {
		keys := strings.Join(names(f.items), ", ")
		return nil, misfit{node, fmt.Errorf("must hold names, each a map with the keys %s", keys)}
	}
	records := reflect.MakeMap(f.typ)
	for pairs := m.MapRange(); pairs.Next(); {
		name, ok := pairs.Key().(*ast.StringNode)
		if !ok || !nameForm().MatchString(name.Value) {
			return nil, misfit{pairs.Key(), errors.New("must be a name of letters, digits, dots, underscores and dashes")}
		}
		into := reflect.New(f.typ.Elem()).Elem()
		if value := r.resolve(pairs.Value()); value != nil && value.Type() != ast.NullType {
			if bad := r.record(f, value, into); bad.err != nil {
				return nil, misfit{bad.at, fmt.Errorf("%s: %w", name.Value, bad.err)}
			}
		}
		records.SetMapIndex(reflect.ValueOf(name.Value), into)
	}
	return records.Interface(), misfit{}
}

// prices reads a map of prices.
func (r *reader) prices(node ast.Node) (Prices, misfit) {
	m, ok := node.(ast.MapNode)
	if !ok {
		return nil, misfit{node, errors.New("must hold models with their prices")}
	}
	all := Prices{}
	for pairs := m.MapRange(); pairs.Next(); {
		name, isText := pairs.Key().(*ast.StringNode)
		list, isList := r.resolve(pairs.Value()).(*ast.SequenceNode)
		if !isText || !isList || len(list.Values) != 3 {
			return nil, misfit{pairs.Key(), errors.New("must be a model's name with its three prices in USD " +
				"per million tokens, as [1.25, 0.125, 10]: input, cached input, output")}
		}
		var usd [3]float64
		for i, value := range list.Values {
			n, err := number(r.resolve(value))
			if err == nil && (n < 0 || n > maxNumber) {
				err = fmt.Errorf("must be from 0 to %d", maxNumber)
			}
			if err != nil {
				return nil, misfit{value, err}
			}
			usd[i] = n
		}
		all[name.Value] = Price{usd[0], usd[1], usd[2]}
	}
	return all, misfit{}
}

// when reads which changes are reviewed.
func (r *reader) when(node ast.Node) (w When, bad misfit) {
	if text, ok := plainText(node); ok && text == "always" {
		return w, misfit{}
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		return w, misfit{node, errors.New("must be always, or a map with lines, files or both")}
	}
	for pairs := m.MapRange(); pairs.Next(); {
		value := r.resolve(pairs.Value())
		var v any
		switch name, _ := pairs.Key().(*ast.StringNode); {
		case name != nil && name.Value == "lines" && value != nil:
			v, bad = r.value(field{name: "lines", typ: reflect.TypeFor[int](), min: 1}, value)
			w.Lines, _ = v.(int)
		case name != nil && name.Value == "files" && value != nil:
			v, bad = r.value(field{name: "files", typ: typeList, min: 1}, value)
			w.Files, _ = v.([]string)
		default:
			bad = misfit{pairs.Key(), errors.New("must be lines or files, with a value")}
		}
		if bad.err != nil {
			return w, bad
		}
	}
	return w, misfit{}
}

// record reads one map of a list.
func (r *reader) record(f field, item ast.Node, into reflect.Value) misfit {
	m, ok := r.resolve(item).(ast.MapNode)
	if !ok {
		return misfit{item, fmt.Errorf("each item must be a map with the keys %s", strings.Join(names(f.items), ", "))}
	}
	for _, sub := range f.items {
		if sub.kind() == "text" {
			into.FieldByIndex(sub.index).SetString(sub.fallback)
		}
	}
	var given []string
	for pairs := m.MapRange(); pairs.Next(); {
		name, bad := r.recordPair(f, pairs.Key(), pairs.Value(), into)
		if bad.err != nil {
			return bad
		}
		given = append(given, name)
	}
	if len(f.one) == 0 {
		return misfit{}
	}
	given = slices.DeleteFunc(given, func(name string) bool { return !slices.Contains(f.one, name) })
	switch len(given) {
	case 0:
		return misfit{item, fmt.Errorf("each item needs one of %s", strings.Join(f.one, ", "))}
	case 1:
		return misfit{}
	}
	return misfit{item, fmt.Errorf("has both %s, and may have one of %s only",
		strings.Join(given, " and "), strings.Join(f.one, ", "))}
}

// recordPair reads one key of a map.
func (r *reader) recordPair(f field, key ast.MapKeyNode, value ast.Node, into reflect.Value) (name string, bad misfit) {
	text, ok := key.(*ast.StringNode)
	if !ok {
		return "", misfit{key, errors.New("a key must be plain text; merge keys (<<) are not supported")}
	}
	sub, ok := named(f.items, text.Value)
	if !ok {
		known := strings.Join(names(f.items), ", ")
		return "", misfit{key, fmt.Errorf("%s is not one of the keys %s", quoted(text.Value), known)}
	}
	value = r.resolve(value)
	if value == nil || value.Type() == ast.NullType {
		return "", misfit{key, fmt.Errorf("%s has no value; give it one or remove the key", sub.name)}
	}
	v, bad := r.value(sub, value)
	if bad.err != nil {
		return "", misfit{bad.at, fmt.Errorf("%s: %w", sub.name, bad.err)}
	}
	into.FieldByIndex(sub.index).Set(reflect.ValueOf(v))
	return sub.name, misfit{}
}

package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
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

// record reads one map of a list into its place.
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

// recordPair reads one key of a map with its value into the map's place.
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

package exchange

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"ralph"
)

// A record is a map of YAML from which values are taken. What nobody takes is told as it is.
type record struct {
	line   int
	values yaml.MapSlice
}

// recordOf reads a map.
func recordOf(node ast.Node) (r *record, err error) {
	r = &record{line: node.GetToken().Position.Line}
	if _, ok := node.(ast.MapNode); !ok {
		return r, wrong(r.line, "a map with an id and a title is expected here")
	}
	if err := yaml.NodeToValue(node, &r.values); err != nil {
		return r, yamlError(err)
	}
	return r, nil
}

// from takes the values of a map.
func (r *record) from(v any) error {
	switch v := v.(type) {
	case yaml.MapSlice:
		r.values = v
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.values = append(r.values, yaml.MapItem{Key: key, Value: v[key]})
		}
	default:
		return wrong(r.line, "a map with an id and a title is expected here")
	}
	return nil
}

// take removes a value and returns it; nil if there is none.
func (r *record) take(key string) any {
	for i, item := range r.values {
		if fmt.Sprint(item.Key) == key {
			r.values = append(r.values[:i:i], r.values[i+1:]...)
			return item.Value
		}
	}
	return nil
}

// text takes a value as one text.
func (r *record) text(key string) string { return strings.Join(r.list(key), ", ") }

// list takes a value as a list of texts.
func (r *record) list(key string) []string { return texts(r.take(key)) }

func texts(v any) (list []string) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, item := range v {
			list = append(list, texts(item)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = append(list, fmt.Sprintf("%s: %s", key, strings.Join(texts(v[key]), ", ")))
		}
	case yaml.MapSlice:
		for _, item := range v {
			list = append(list, fmt.Sprintf("%v: %s", item.Key, strings.Join(texts(item.Value), ", ")))
		}
	default:
		if s := strings.TrimSpace(fmt.Sprint(v)); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// rest tells the values that were not taken, a line each.
func (r *record) rest() string {
	var b strings.Builder
	for _, item := range r.values {
		if value := strings.Join(texts(item.Value), ", "); value != "" {
			fmt.Fprintf(&b, "- %v: %s\n", item.Key, value)
		}
	}
	return b.String()
}

// asPriority reads a word for a priority.
func (r *record) asPriority() (int, error) {
	said := r.text("priority")
	p, ok := masterPriority[strings.ToLower(said)]
	if !ok {
		return 0, wrong(r.line, `"priority" holds %.60q, where critical, high, medium or low is expected`, said)
	}
	return p, nil
}

// asStatus reads a status: one of those that are known.
func (r *record) asStatus(known map[string]ralph.Status, expected string) (ralph.Status, error) {
	said := r.text("status")
	s, ok := known[strings.ToLower(said)]
	if !ok {
		return "", wrong(r.line, `"status" holds %.60q, where %s is expected`, said, expected)
	}
	return s, nil
}

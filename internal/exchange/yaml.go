package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"ralph"
)

// Limits of a YAML file: the parser takes very long for deep nesting, which no list of tasks needs.
const (
	maxYAML   = 1 << 20
	maxIndent = 16 // spaces
)

// flat refuses files that cannot be a list of tasks before they reach the parser.
func flat(data []byte) error {
	if len(data) > maxYAML {
		return wrong(0, "is larger than %d KiB", maxYAML>>10)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) > maxIndent {
			return wrong(n, "has too many brackets for a list of tasks")
		}
	}
	return nil
}

// yamlTasks returns the list in "tasks".
func yamlTasks(node ast.Node) ([]ast.Node, error) {
	m, ok := node.(ast.MapNode)
	if !ok {
		return nil, wrong(1, `"tasks:" with a list below it is expected`)
	}
	for pairs := m.MapRange(); pairs.Next(); {
		if pairs.Key().String() != "tasks" {
			continue
		}
		list, ok := pairs.Value().(*ast.SequenceNode)
		if !ok {
			return nil, wrong(pairs.Key().GetToken().Position.Line, `"tasks" must be a list`)
		}
		return list.Values, nil
	}
	return nil, wrong(1, `there is no "tasks"`)
}

// yamlError returns the parser's error with its line, without the source that it quotes.
func yamlError(err error) error {
	var kind *yaml.TypeError
	if errors.As(err, &kind) && kind.StructFieldName != nil {
		_, name, _ := strings.Cut(*kind.StructFieldName, ".")
		return wrong(kind.Token.Position.Line, "%q holds %.60q, where %s is expected",
			strings.ToLower(name), kind.Token.Value, expected(kind.DstType.String()))
	}
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		return wrong(y.GetToken().Position.Line, "%s", y.GetMessage())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return wrong(0, "is not valid YAML: %s", first)
}

// A record is a YAML map. Readers take the known keys out of it; the rest is reported unchanged.
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

// from reads the values of a map.
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

// rest describes the remaining values, one per line.
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

// asStatus reads one of the known statuses.
func (r *record) asStatus(known map[string]ralph.Status, expected string) (ralph.Status, error) {
	said := r.text("status")
	s, ok := known[strings.ToLower(said)]
	if !ok {
		return "", wrong(r.line, `"status" holds %.60q, where %s is expected`, said, expected)
	}
	return s, nil
}

package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"ralph"
)

// Limits of a YAML file: the parser takes very long for deep nesting, which no list of tasks needs.
const (
	maxYAML   = 1 << 20
	maxIndent = 16 // spaces
)

// readRalphy reads the tasks of ralphy, in YAML or JSON. They have no ids: the key is the title,
// with a number if it occurs twice. Lower groups come first.
func readRalphy(data []byte) (in ralph.Import, err error) {
	read := readRalphyYAML
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		read = readRalphyJSON
	}
	list, err := read(&in, data)
	if err != nil {
		return in, err
	}
	ids := map[string]bool{}
	for i := range list {
		v := &list[i]
		if strings.TrimSpace(v.Title) == "" {
			return in, wrong(v.line, `a task has no "title"`)
		}
		v.key = once(ids, ralph.ExternalKey("ralphy", titleKey(v.Title)))
	}
	slices.SortStableFunc(list, func(a, b ralphyTask) int { return cmp.Compare(a.Group, b.Group) })
	for _, v := range list {
		in.Tasks = append(in.Tasks, v.task())
	}
	return in, nil
}

func readRalphyYAML(in *ralph.Import, data []byte) (tasks []ralphyTask, err error) {
	if err := flat(data); err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, yamlError(err)
	}
	for _, doc := range file.Docs {
		list, err := yamlTasks(doc.Body)
		if err != nil {
			return nil, err
		}
		for _, node := range list {
			v := ralphyTask{line: node.GetToken().Position.Line}
			if err := yaml.NodeToValue(node, &v); err != nil {
				return nil, yamlError(err)
			}
			r, err := recordOf(node)
			if err != nil {
				return nil, err
			}
			for _, item := range r.values {
				if key := fmt.Sprint(item.Key); !fieldsOf(reflect.TypeOf(v))[strings.ToLower(key)] {
					in.Lose(key)
				}
			}
			tasks = append(tasks, v)
		}
	}
	return tasks, nil
}

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

func readRalphyJSON(in *ralph.Import, data []byte) (tasks []ralphyTask, err error) {
	list, err := within(data, &struct{}{}, "tasks")
	if err != nil {
		return nil, err
	}
	err = each(in, list, `"tasks"`, func(line int, v ralphyTask) error {
		v.line = line
		tasks = append(tasks, v)
		return nil
	})
	return tasks, err
}

type ralphyTask struct {
	Title       string `json:"title" yaml:"title"`
	Description string `json:"description" yaml:"description"`
	Completed   bool   `json:"completed" yaml:"completed"`
	Group       int    `json:"parallel_group" yaml:"parallel_group"`

	line int
	key  string
}

func (v ralphyTask) task() ralph.ImportedTask {
	t := ralph.ImportedTask{Line: v.line, Key: v.key, Task: ralph.Task{
		Title: v.Title, Description: strings.TrimSpace(v.Description),
		Status: ralph.Pending, Priority: ralph.DefaultPriority,
	}}
	if v.Completed {
		t.Status = ralph.Completed
	}
	return t
}

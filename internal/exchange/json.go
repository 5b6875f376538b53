package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"ralph"
)

// A located value is JSON with the line where it begins.
type located struct {
	raw  json.RawMessage
	line int
}

// decode decodes the value into v. Unknown fields are ignored: they may come from a newer version
// of the other tool.
func (l located) decode(v any) error {
	err := json.Unmarshal(l.raw, v)
	if err == nil {
		return nil
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrong(l.line+lineAt(l.raw, int(kind.Offset))-1, "%s holds a %s, where %s is expected",
			fieldOf(kind), kind.Value, expected(kind.Type.String()))
	}
	return wrong(l.line, "%v", err)
}

func fieldOf(e *json.UnmarshalTypeError) string {
	if e.Field == "" {
		return "this"
	}
	// The decoder reports the Go name of the field, which is capitalized.
	return fmt.Sprintf("%q", strings.ToLower(e.Field[:1])+e.Field[1:])
}

// expected names a Go type in terms of JSON.
func expected(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	case strings.Contains(kind, "int") || strings.Contains(kind, "float"):
		return "a number"
	case strings.HasSuffix(kind, "bool"):
		return "true or false"
	case strings.HasSuffix(kind, "string"):
		return "a text"
	}
	return "an object"
}

// syntax converts a decoder's error to one with a line.
func syntax(data []byte, d *json.Decoder, err error) error {
	at := int(d.InputOffset())
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = int(bad.Offset) - 1
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrong(lineAt(data, len(data)), "the JSON ends in the middle")
	}
	return wrong(lineAt(data, at), "is not valid JSON: %v", err)
}

// whole checks that a text is a single JSON value.
func whole(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return syntax(data, d, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return wrong(lineAt(data, int(d.InputOffset())), "something stands after the end of the JSON")
	}
	return nil
}

// child returns the value of a name; the zero value if there is none.
func (l located) child(v gjson.Result) located {
	if !v.Exists() {
		return located{}
	}
	return located{json.RawMessage(v.Raw), l.line + lineAt(l.raw, v.Index) - 1}
}

// each decodes the elements of a list and calls f for each. Errors name the list by the word what.
func each[T any](in *ralph.Import, l located, what string, f func(line int, v T) error) error {
	list := gjson.ParseBytes(l.raw)
	if !list.IsArray() {
		return wrong(l.line, "%s must be a list: […]", what)
	}
	for _, e := range list.Array() {
		var v T
		child := l.child(e)
		if err := child.decode(&v); err != nil {
			return err
		}
		lose(in, e, v)
		if err := f(child.line, v); err != nil {
			return err
		}
	}
	return nil
}

// lose counts the keys of an object without a field in its decoded form, so that the import names each lost one.
func lose(in *ralph.Import, object gjson.Result, v any) {
	known := fieldsOf(reflect.TypeOf(v))
	object.ForEach(func(key, value gjson.Result) bool {
		if !known[strings.ToLower(key.Str)] && value.String() != "" && value.Raw != "[]" && value.Raw != "{}" {
			in.Lose(key.Str)
		}
		return true
	})
}

// fieldsOf returns the keys that a struct is decoded from, in lower case.
func fieldsOf(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			maps.Copy(names, fieldsOf(f.Type))
			continue
		}
		names[strings.ToLower(cmp.Or(name, f.Name))] = true
	}
	return names
}

// within reads a document's first keys and returns the value of a name.
func within(data []byte, head any, name string) (located, error) {
	doc := located{data, 1}
	if err := whole(data); err != nil {
		return doc, err
	}
	return doc.child(gjson.GetBytes(data, name)), doc.decode(head)
}

// eachLine decodes the value on each line and calls f for it. It skips blank lines.
func eachLine[T any](in *ralph.Import, data []byte, f func(line int, v T) error) error {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		begins := func(mark string) bool { return bytes.HasPrefix(line, []byte(mark)) }
		if slices.ContainsFunc([]string{"<<<<<<<", ">>>>>>>", "======="}, begins) {
			return wrong(n, "is a conflict of git; resolve it first")
		}
		var v T
		err := whole(line)
		if e, ok := errors.AsType[*Error](err); ok {
			e.Line = n
		}
		if err == nil {
			err = located{line, n}.decode(&v)
		}
		if err == nil {
			lose(in, gjson.ParseBytes(line), v)
			err = f(n, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// looks are the features that identify a format.
type looks struct {
	object, array, lines, yaml, backlog bool

	passes bool // it is a list of things that pass or not, or has one

	keys map[string]bool // keys of the object, the first element, or the first line
}

func (l looks) has(keys ...string) bool {
	for _, k := range keys {
		if !l.keys[k] {
			return false
		}
	}
	return true
}

// look examines a text. The text may be invalid.
func look(data []byte) looks {
	l := looks{keys: map[string]bool{}}
	trimmed := bytes.TrimSpace(data)
	switch trimmed[0] {
	case '[':
		// A checklist may also begin with a bracket; a JSON list continues with an object.
		rest := bytes.TrimSpace(trimmed[1:])
		l.array = len(rest) > 0 && rest[0] == '{'
		if l.array {
			l.keys = keys(gjson.GetBytes(trimmed, "0"))
			l.passes = l.has("passes")
		}
	case '{':
		first, _, more := bytes.Cut(trimmed, []byte("\n"))
		if whole(first) == nil && (more || !json.Valid(trimmed) || !topLevel(first)) {
			l.lines = true
			trimmed = first
		} else {
			l.object, l.passes = true, passing(gjson.ParseBytes(trimmed)) != ""
		}
		l.keys = keys(gjson.ParseBytes(trimmed))
	default:
		l.backlog = isBacklog(trimmed)
		// A checklist may also contain "tasks:".
		tasks := bytes.HasPrefix(trimmed, []byte("tasks:")) || bytes.Contains(trimmed, []byte("\ntasks:\n"))
		l.yaml = tasks && !l.backlog && !anyBox().Match(trimmed)
	}
	return l
}

// topLevel reports whether a single object is a document rather than a line of tasks.
func topLevel(object []byte) bool {
	l := looks{keys: keys(gjson.ParseBytes(object))}
	return l.keys["userStories"] || l.keys["stories"] || l.keys["tasks"] ||
		!l.keys["title"] && !l.keys["_type"] && !l.keys["ralph"]
}

// keys returns the keys of the parseable part of an object.
func keys(object gjson.Result) map[string]bool {
	names := map[string]bool{}
	if object.IsObject() {
		object.ForEach(func(key, _ gjson.Result) bool { names[key.Str] = true; return true })
	}
	return names
}

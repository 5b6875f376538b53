package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A located value is JSON with the place where it begins.
type located struct {
	raw  json.RawMessage
	line int
}

// decode reads the value into v. Fields that v does not have are left alone: a
// newer version of the other tool is no mistake.
func (l located) decode(v any) error {
	err := json.Unmarshal(l.raw, v)
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return wrong(l.line+lineAt(l.raw, int(kind.Offset))-1, "%s holds a %s, where %s is expected", fieldOf(kind), kind.Value, expected(kind.Type.String()))
	}
	return wrong(l.line, "%v", err)
}

func fieldOf(e *json.UnmarshalTypeError) string {
	if e.Field == "" {
		return "this"
	}
	// The decoder gives the name that the field has here, which begins with a capital.
	return fmt.Sprintf("%q", strings.ToLower(e.Field[:1])+e.Field[1:])
}

// expected names a Go type as people know JSON.
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

// syntax turns an error of a decoder into one with the line.
func syntax(data []byte, d *json.Decoder, err error) error {
	var bad *json.SyntaxError
	at := int(d.InputOffset())
	if errors.As(err, &bad) {
		at = int(bad.Offset) - 1
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrong(lineAt(data, len(data)), "the JSON ends in the middle")
	}
	return wrong(lineAt(data, at), "is not valid JSON: %v", err)
}

// whole checks that a text is one JSON value.
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

// members are the values of an object by their names, in their order.
func members(l located) (names []string, values map[string]located, err error) {
	d := json.NewDecoder(bytes.NewReader(l.raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, wrong(l.line, "an object is expected: {…}")
	}
	values = map[string]located{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, nil, syntax(l.raw, d, err)
		}
		v, err := next(l, d)
		if err != nil {
			return nil, nil, err
		}
		names, values[name] = append(names, name), v
	}
	return names, values, nil
}

// elements are the values of a list, which what names.
func elements(l located, what string) (list []located, err error) {
	d := json.NewDecoder(bytes.NewReader(l.raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, wrong(l.line, "%s must be a list: […]", what)
	}
	for d.More() {
		v, err := next(l, d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// next reads the next value of a decoder and finds out where it begins.
func next(l located, d *json.Decoder) (located, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return located{}, syntax(l.raw, d, err)
	}
	begin := int(d.InputOffset()) - len(raw)
	return located{raw, l.line + lineAt(l.raw, begin) - 1}, nil
}

// document is a whole text as one value.
func document(data []byte) (located, error) {
	return located{data, 1}, whole(data)
}

// jsonLines are the values of a text with one in each line. Blank lines are passed over.
func jsonLines(data []byte) (list []located, err error) {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if bytes.HasPrefix(line, []byte("<<<<<<<")) || bytes.HasPrefix(line, []byte(">>>>>>>")) || bytes.HasPrefix(line, []byte("=======")) {
			return nil, wrong(n, "is a conflict of git; settle it first")
		}
		if err := whole(line); err != nil {
			var e *Error
			if errors.As(err, &e) {
				e.Line = n
			}
			return nil, err
		}
		list = append(list, located{line, n})
	}
	return list, nil
}

// looks are what a text is recognised by.
type looks struct {
	object, array, lines, yaml, memories bool
	keys                                 map[string]bool // of the object, of the first element, or of the first line
	items                                map[string]bool // of the first element of the first list of objects in it
	id                                   string          // of the first line
}

func (l looks) has(keys ...string) bool {
	for _, k := range keys {
		if !l.keys[k] {
			return false
		}
	}
	return true
}

func (l looks) item(key string) bool { return l.items[key] }

// look finds out what a text looks like. It need not be right in itself.
func look(data []byte) looks {
	l := looks{keys: map[string]bool{}, items: map[string]bool{}}
	trimmed := bytes.TrimSpace(data)
	switch trimmed[0] {
	case '[':
		// A list of boxes begins with a bracket too, and JSON's with an object.
		rest := bytes.TrimSpace(trimmed[1:])
		l.array = len(rest) > 0 && rest[0] == '{'
		if l.array {
			l.keys = firstKeys(rest)
		}
	case '{':
		first, _, more := bytes.Cut(trimmed, []byte("\n"))
		if whole(first) == nil && (more || !json.Valid(trimmed) || !topLevel(first)) {
			l.lines = true
			trimmed = first
		} else {
			l.object = true
		}
		l.keys = firstKeys(trimmed)
		l.id = idOf(trimmed)
		if l.object {
			l.items = firstItem(trimmed)
		}
	default:
		// A checklist may call its boxes tasks too.
		l.yaml = (bytes.HasPrefix(trimmed, []byte("tasks:")) || bytes.Contains(trimmed, []byte("\ntasks:\n"))) && !anyBox.Match(trimmed)
		l.memories = bytes.Contains(data, []byte("\n### mem-"))
	}
	return l
}

// topLevel tells whether a single object is a document rather than a line of tasks.
func topLevel(object []byte) bool {
	keys := firstKeys(object)
	return keys["userStories"] || keys["stories"] || keys["tasks"] || !keys["title"] && !keys["_type"] && !keys["ralph"]
}

// firstKeys are the keys of the object with which a text begins, as far as it can be read.
func firstKeys(data []byte) map[string]bool {
	keys := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return keys
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return keys
		}
		keys[name] = true
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return keys
		}
	}
	return keys
}

func idOf(object []byte) string {
	var v struct{ ID json.RawMessage }
	var id string
	if json.Unmarshal(object, &v) != nil || json.Unmarshal(v.ID, &id) != nil {
		return ""
	}
	return id
}

// firstItem are the keys of the first element of "tasks".
func firstItem(object []byte) map[string]bool {
	var v struct{ Tasks []json.RawMessage }
	if json.Unmarshal(object, &v) != nil || len(v.Tasks) == 0 {
		return map[string]bool{}
	}
	return firstKeys(v.Tasks[0])
}

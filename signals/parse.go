package signals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"ralph"
)

// Parse decodes the payload of a verb strictly. For a field that is unknown, missing, of
// the wrong type or with an invalid value, it returns a [ralph.FieldError] that names the
// field. A blank optional text counts as not given.
func Parse(verb ralph.Verb, raw []byte) (Payload, error) {
	if !utf8.Valid(raw) {
		return nil, &ralph.FieldError{Field: "arguments", Problem: "are not valid UTF-8"}
	}
	i := slices.IndexFunc(Verbs, func(k Known) bool { return k.Payload.Verb() == verb })
	if i < 0 {
		return nil, &ralph.FieldError{Field: fmt.Sprintf("verb %q", verb), Problem: "is not one of the verbs"}
	}
	into := reflect.New(reflect.TypeOf(Verbs[i].Payload))
	if err := checkKeys(raw, Verbs[i].Payload); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into.Interface()); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			problem := fmt.Sprintf("must be a %s, not a %s", jsonType(wrong.Type.String()), wrong.Value)
			return nil, &ralph.FieldError{Field: wrong.Field, Problem: problem}
		}
		return nil, &ralph.FieldError{Field: "arguments", Problem: "are not a JSON object: " + err.Error()}
	}
	tidy(into.Elem())
	payload := into.Elem().Interface().(Payload)
	if err := payload.Check(); err != nil {
		return nil, err
	}
	return payload, nil
}

// jsonType returns JSON's name for a Go type.
func jsonType(goType string) string {
	switch goType {
	case "[]string":
		return "list of strings"
	case "bool":
		return "boolean"
	}
	return goType
}

// checkKeys refuses anything but an object, keys that are not exactly a
// field's name (encoding/json ignores case), duplicate keys and null values.
func checkKeys(raw []byte, p Payload) error {
	names := fields(p)
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return &ralph.FieldError{Field: "arguments", Problem: "are not a JSON object"}
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		key, isText := t.(string)
		if err != nil || !isText {
			return &ralph.FieldError{Field: "arguments", Problem: "are not a JSON object"}
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return &ralph.FieldError{Field: key, Problem: "is not valid JSON"}
		}
		switch {
		case !slices.Contains(names, key):
			return &ralph.FieldError{Field: key, Problem: "is not a field of " + string(p.Verb()), Accepted: names}
		case seen[key]:
			return &ralph.FieldError{Field: key, Problem: "is given twice"}
		case string(value) == "null":
			return &ralph.FieldError{Field: key, Problem: "must not be null; leave it out"}
		}
		seen[key] = true
	}
	if _, err := d.Token(); err != nil {
		return &ralph.FieldError{Field: "arguments", Problem: "are not a JSON object"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &ralph.FieldError{Field: "arguments", Problem: "have something after the object"}
	}
	return nil
}

// tag returns the JSON name of a payload's field, and whether it is optional.
func tag(f reflect.StructField) (name string, optional bool) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, rest == "omitempty"
}

// fields returns the names of a payload's fields, required ones first.
func fields(p Payload) (names []string) {
	var optional []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(p)) {
		if name, may := tag(f); may {
			optional = append(optional, name)
		} else {
			names = append(names, name)
		}
	}
	return append(names, optional...)
}

// tidy clears blank optional texts.
func tidy(payload reflect.Value) {
	for _, f := range reflect.VisibleFields(payload.Type()) {
		v := payload.FieldByIndex(f.Index)
		if _, optional := tag(f); optional && v.Kind() == reflect.String && strings.TrimSpace(v.String()) == "" {
			v.SetString("")
		}
	}
}

// A Text is one text field of a payload.
type Text struct{ Name, Text string }

// Texts returns the texts of a payload in the order of its fields.
func Texts(p Payload) (list []Text) {
	v := reflect.ValueOf(p)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if v := v.FieldByIndex(f.Index); v.Kind() == reflect.String {
			list = append(list, Text{f.Name, v.String()})
		}
	}
	return list
}

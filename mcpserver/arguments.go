package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"ralph"
)

// arguments decodes a call's arguments into dest. It checks them against the tool's schema: errors name the field and
// the accepted values, so that a model can correct the call. Optional fields may be null, and missing arguments count
// as an empty object.
func arguments(schema *jsonschema.Schema, raw json.RawMessage, dest any) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if !utf8.Valid(raw) {
		return &ralph.FieldError{Field: "arguments", Problem: "are not valid UTF-8"}
	}
	var in any
	if err := json.Unmarshal(raw, &in); err != nil {
		return &ralph.FieldError{Field: "arguments", Problem: "are not JSON: " + err.Error()}
	}
	if err := checkValue(schema, "", in, true); err != nil {
		return err
	}
	return json.Unmarshal(raw, dest)
}

// checkValue checks a value; path is the name of its field, "" for the arguments as a whole.
func checkValue(schema *jsonschema.Schema, path string, v any, required bool) error {
	kinds := schema.Types
	if schema.Type != "" {
		kinds = []string{schema.Type}
	}
	field := path
	if field == "" {
		field = "arguments"
	}
	kind := kindOf(v)
	whole := kind == "integer" && slices.Contains(kinds, "number")
	if len(kinds) > 0 && !slices.Contains(kinds, kind) && !whole {
		return &ralph.FieldError{Field: field, Problem: fmt.Sprintf("must be %s, not %s", strings.Join(kinds, " or "), kind)}
	}
	if len(schema.Enum) > 0 && !slices.Contains(schema.Enum, v) {
		return &ralph.FieldError{Field: field, Problem: "is not one of the accepted values", Accepted: accepted(schema)}
	}
	switch v := v.(type) {
	case string:
		return ralph.CheckText(field, v, required)
	case []any:
		for i, item := range v {
			if schema.Items == nil {
				break
			}
			if err := checkValue(schema.Items, fmt.Sprintf("%s[%d]", field, i), item, false); err != nil {
				return err
			}
		}
	case map[string]any:
		return checkObject(schema, path, v)
	}
	return nil
}

func checkObject(schema *jsonschema.Schema, path string, object map[string]any) error {
	prefix := ""
	if path != "" {
		prefix = path + "."
	}
	known := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range schema.Required {
		if object[name] == nil {
			return &ralph.FieldError{Field: prefix + name, Problem: "is required", Accepted: accepted(schema.Properties[name])}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		property, ok := schema.Properties[name]
		switch {
		case !ok && schema.AdditionalProperties != nil:
			return &ralph.FieldError{Field: prefix + name, Problem: "is not a field", Accepted: known}
		case !ok || object[name] == nil:
			continue
		}
		if err := checkValue(property, prefix+name, object[name], slices.Contains(schema.Required, name)); err != nil {
			return err
		}
	}
	return nil
}

// accepted returns a field's accepted values, if they are enumerated.
func accepted(field *jsonschema.Schema) (list []string) {
	for _, v := range field.Enum {
		list = append(list, fmt.Sprint(v))
	}
	return list
}

// kindOf returns JSON schema's name for the type of a value.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

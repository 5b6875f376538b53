package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema (draft 2020-12) of ralph.yaml, for editors and other programs. It
// accepts all files that [Load] accepts.
func Schema() ([]byte, error) {
	root := object("Configuration of ralph (ralph.yaml).")
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = FileName
	for _, f := range fields {
		leaf, err := f.schema()
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", f.name, err)
		}
		at := root
		path := strings.Split(f.name, ".")
		for _, parent := range path[:len(path)-1] {
			if at.Properties[parent] == nil {
				// A group whose keys are all commented out is null.
				group := object("")
				group.Type, group.Types = "", []string{"object", "null"}
				add(at, parent, group)
			}
			at = at.Properties[parent]
		}
		add(at, path[len(path)-1], leaf)
	}
	for name, short := range groups {
		if short == "" {
			continue
		}
		f, _ := named(fields, short)
		list := f.valueSchema()
		if list.AnyOf == nil {
			list.AnyOf = []*jsonschema.Schema{{Type: list.Type, Enum: list.Enum}}
		}
		root.Properties[name] = &jsonschema.Schema{
			Description: fmt.Sprintf("Any other value here is short for %s.", short),
			AnyOf:       append([]*jsonschema.Schema{root.Properties[name]}, list.AnyOf...),
		}
	}
	b, err := json.MarshalIndent(root, "", "  ")
	return append(b, '\n'), err
}

// object returns the schema of a mapping that has only the added keys.
func object(description string) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Description: description,
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

func add(to *jsonschema.Schema, name string, s *jsonschema.Schema) {
	to.Properties[name] = s
	to.PropertyOrder = append(to.PropertyOrder, name)
}

// schema returns a setting's schema with its description and default.
func (f field) schema() (*jsonschema.Schema, error) {
	s := f.valueSchema()
	s.Description = f.doc
	v, err := f.parseText(f.fallback)
	if err != nil {
		return nil, err
	}
	switch f.typ {
	case typeDuration:
		v = f.fallback
	case typePercents:
		shown := map[string]string{}
		for name, n := range v.(Percentages) {
			shown[name] = fmt.Sprintf("%d%%", n)
		}
		v = shown
	}
	s.Default, err = json.Marshal(v)
	return s, err
}

// valueSchema returns the schema of a setting's value in YAML.
func (f field) valueSchema() *jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	for _, v := range f.enum {
		text.Enum = append(text.Enum, v)
	}
	highest := float64(maxNumber)
	switch f.kind() {
	case kindRecords:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "array", Items: f.recordSchema()}}}
	case "text":
		if f.min > 0 {
			text.MinLength = &f.min
		}
	case "duration":
		text.Pattern = durationPattern
	case "whole number":
		least := float64(f.min)
		return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &highest}
	case "USD":
		return &jsonschema.Schema{Type: "number", ExclusiveMinimum: new(float64), Maximum: &highest}
	case "list":
		list := &jsonschema.Schema{Type: "array", Items: text.CloneSchemas()}
		if f.min > 0 {
			list.MinItems = &f.min
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{list, text}}
	case "true or false":
		return &jsonschema.Schema{Type: "boolean"}
	case "percentages":
		return mapOf(&jsonschema.Schema{Type: "string", Pattern: percentForm})
	case "map":
		return mapOf(&jsonschema.Schema{Types: []string{"string", "number", "boolean"}})
	case "prices":
		three := 3
		return mapOf(&jsonschema.Schema{
			Type: "array", MinItems: &three, MaxItems: &three,
			Items: &jsonschema.Schema{Type: "number", Minimum: new(float64), Maximum: &highest},
		})
	case kinds[typeWhen]:
		least, highest := 1.0, float64(maxNumber)
		parts := object("")
		add(parts, "lines", &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &highest})
		add(parts, "files", field{typ: typeList, min: 1}.valueSchema())
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Enum: []any{"always"}}, parts}}
	case kindNamed:
		record := f.recordSchema()
		record.Type, record.Types = "", []string{"object", "null"}
		named := mapOf(record)
		named.PropertyNames = &jsonschema.Schema{Pattern: nameForm().String()}
		return named
	}
	return text
}

// mapOf returns the schema of a mapping from any name to values of the type.
func mapOf(value *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: value}
}

// recordSchema returns the schema of each map in a list of maps.
func (f field) recordSchema() *jsonschema.Schema {
	record := object("")
	for _, sub := range f.items {
		s := sub.valueSchema()
		s.Description = sub.doc
		add(record, sub.name, s)
	}
	for _, name := range f.one {
		record.OneOf = append(record.OneOf, &jsonschema.Schema{Required: []string{name}})
	}
	return record
}

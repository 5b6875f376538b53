package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema (draft 2020-12) of ralph.yaml, for editors and other
// programs. What [Load] accepts in a file, the schema accepts.
func Schema() ([]byte, error) {
	root := object("Configuration of ralph (ralph.yaml).")
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = FileName
	for _, f := range fields {
		leaf, err := f.schema()
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", f.name, err)
		}
		parent, name, nested := strings.Cut(f.name, ".")
		if !nested {
			add(root, f.name, leaf)
			continue
		}
		if root.Properties[parent] == nil {
			// A group whose keys are all commented out is null.
			group := object("")
			group.Type, group.Types = "", []string{"object", "null"}
			add(root, parent, group)
		}
		add(root.Properties[parent], name, leaf)
	}
	for name, short := range groups {
		if short == "" {
			continue
		}
		f, _ := named(fields, short)
		list := f.valueSchema()
		root.Properties[name] = &jsonschema.Schema{
			Description: fmt.Sprintf("A list here is short for %s.", short),
			AnyOf:       append([]*jsonschema.Schema{root.Properties[name]}, list.AnyOf...),
		}
	}
	b, err := json.MarshalIndent(root, "", "  ")
	return append(b, '\n'), err
}

// object is the schema of a mapping without other keys than those added.
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

// schema is that of a setting with its description and default.
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

// valueSchema is what a setting can be in YAML.
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
	}
	return text
}

// mapOf is the schema of a mapping of any names to such values.
func mapOf(value *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: value}
}

// recordSchema is what each map of a list of maps can be.
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

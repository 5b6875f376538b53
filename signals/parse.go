package signals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"ralph"
)

// Parse reads the payload of a verb, strictly: what is not known, of the wrong
// type, missing or not accepted is a [ralph.FieldError] that names the field. An
// optional text that is blank counts as not given.
func Parse(verb ralph.Verb, raw []byte) (Payload, error) {
	if !utf8.Valid(raw) {
		return nil, &ralph.FieldError{Field: "arguments", Problem: "are not valid UTF-8"}
	}
	switch verb {
	case ralph.VerbDone:
		return decode[Done](raw)
	case ralph.VerbPartial:
		return decode[Partial](raw)
	case ralph.VerbStuck:
		return decode[Stuck](raw)
	case ralph.VerbAsk:
		return decode[Ask](raw)
	case ralph.VerbFlag:
		return decode[Flag](raw)
	case ralph.VerbLearned:
		return decode[Learned](raw)
	case ralph.VerbSuggest:
		return decode[Suggest](raw)
	case ralph.VerbBlocked:
		return decode[Blocked](raw)
	}
	return nil, &ralph.FieldError{Field: fmt.Sprintf("verb %q", verb), Problem: "is not one of the eight"}
}

func decode[P Payload](raw []byte) (Payload, error) {
	var p P
	if err := checkKeys(raw, p); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			problem := fmt.Sprintf("must be a %s, not a %s", jsonType(wrong.Type.String()), wrong.Value)
			return nil, &ralph.FieldError{Field: wrong.Field, Problem: problem}
		}
		return nil, &ralph.FieldError{Field: "arguments", Problem: "are not a JSON object: " + err.Error()}
	}
	payload := tidy(p)
	if err := payload.Check(); err != nil {
		return nil, err
	}
	return payload, nil
}

// jsonType is what JSON calls a Go type.
func jsonType(goType string) string {
	switch goType {
	case "[]string":
		return "list of strings"
	case "bool":
		return "boolean"
	}
	return goType
}

// checkKeys refuses what is no object, a key that is not exactly a field's name
// (Go's own reading ignores case), and one that comes twice or is null.
func checkKeys(raw []byte, p Payload) error {
	known, err := fields(p)
	if err != nil {
		return err
	}
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
		case !known[key]:
			verb := p.Verb()
			return &ralph.FieldError{Field: key, Problem: "is not a field of " + string(verb), Accepted: fieldNames[verb]}
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

// fieldNames are the fields of each verb, the required ones first.
var fieldNames = map[ralph.Verb][]string{
	ralph.VerbDone:    {"summary"},
	ralph.VerbPartial: {"summary", "remaining"},
	ralph.VerbStuck:   {"reason"},
	ralph.VerbAsk:     {"question", "blocking", "options", "preferred"},
	ralph.VerbFlag:    {"what", "severity", "category"},
	ralph.VerbLearned: {"text", "kind", "rationale", "scope"},
	ralph.VerbSuggest: {"what", "kind", "why", "feature"},
	ralph.VerbBlocked: {"on", "kind", "detail"},
}

func fields(p Payload) (map[string]bool, error) {
	names, ok := fieldNames[p.Verb()]
	if !ok {
		return nil, fmt.Errorf("no fields for %s", p.Verb())
	}
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set, nil
}

// tidy makes blank optional texts absent.
func tidy(p Payload) Payload {
	blank := func(s string) string {
		if strings.TrimSpace(s) == "" {
			return ""
		}
		return s
	}
	switch v := p.(type) {
	case Ask:
		v.Preferred = blank(v.Preferred)
		return v
	case Learned:
		v.Rationale, v.Scope = blank(v.Rationale), blank(v.Scope)
		return v
	case Suggest:
		v.Feature = blank(v.Feature)
		return v
	case Blocked:
		v.Detail = blank(v.Detail)
		return v
	}
	return p
}

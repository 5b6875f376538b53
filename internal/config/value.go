package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"ralph/internal/lazy"
	"ralph/internal/text"
)

// Bounds of every setting. They exceed any real use, and keep sums from overflowing and a zero wait
// from becoming a busy loop.
const (
	maxNumber   = 1_000_000_000
	minDuration = time.Millisecond
	maxDuration = 366 * 24 * time.Hour
)

// durationPattern is the form of durations in the schema and here.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

var (
	durationForm = lazy.Regexp(durationPattern)
	// Matches text that YAML reads as text without quotes, in any position.
	plainForm = lazy.Regexp(`^[A-Za-z/][\w./*=-]*( [\w./*=-]+)*$|^\./[\w./*=-]+$`)
	reserved  = lazy.Regexp(`(?i)^(null|true|false|yes|no|on|off|y|n)$`)
)

// A misfit is an invalid value and the part that is wrong.
type misfit struct {
	at  ast.Node
	err error
}

// parseText parses a value in the form of an environment variable. Lists and maps are in YAML's
// flow style; text that does not begin with a bracket is a list of one item.
func (f field) parseText(text string) (any, error) {
	switch f.typ {
	case typeDuration:
		return parseDuration(text)
	case typeList:
		if !strings.HasPrefix(strings.TrimSpace(text), "[") {
			return []string{text}, nil
		}
	case typeMap, typePercents, typePrices:
	default:
		if f.items == nil {
			return f.parseScalar(text)
		}
	}
	node, problem := parseYAML([]byte(text))
	if problem != nil {
		return nil, errors.New(problem.Problem)
	}
	r := reader{anchors: map[string]ast.Node{}}
	v, bad := r.value(f, node)
	return v, bad.err
}

func (f field) parseScalar(text string) (any, error) {
	switch f.kind() {
	case "whole number":
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("must be a whole number, not %s", quoted(text))
		}
		return n, nil
	case "USD":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a number, not %s", quoted(text))
		}
		return n, nil
	case "true or false":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("must be true or false, not %s", quoted(text))
		}
		return text == "true", nil
	}
	return text, nil
}

// percentForm is the form of percentages in the schema.
const percentForm = `^(100|[1-9]?[0-9])%$`

var percents = lazy.Regexp(percentForm)

// parsePercents parses a map of percentages.
func parsePercents(texts map[string]string) (Percentages, error) {
	p := Percentages{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !percents().MatchString(texts[name]) {
			return nil, fmt.Errorf(`%s: must be a percentage from "0%%" to "100%%", not %s`, quoted(name), quoted(texts[name]))
		}
		n, err := strconv.Atoi(strings.TrimSuffix(texts[name], "%"))
		if err != nil {
			return nil, err
		}
		p[name] = n
	}
	return p, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || !durationForm().MatchString(text) {
		return 0, fmt.Errorf(`must be a duration such as "90s", "45m" or "1h30m", not %s`, quoted(text))
	}
	return d, nil
}

// quoted quotes a value for an error, clipped.
func quoted(value string) string { return strconv.Quote(text.Clip(value, maxQuoted)) }

// check checks a value of a setting. For a list, index is the wrong item; otherwise it is -1.
func (f field) check(v any) (index int, err error) {
	switch v := v.(type) {
	case int:
		return -1, f.checkWhole(v)
	case float64:
		return -1, checkNumber(v, v <= 0, "greater than 0")
	case time.Duration:
		if v < minDuration || v > maxDuration {
			return -1, fmt.Errorf("must be from %s to %s", FormatDuration(minDuration), FormatDuration(maxDuration))
		}
	case string:
		if len(v) < f.min {
			return -1, errors.New("must not be empty")
		}
		return -1, f.checkText(v)
	case []string:
		if len(v) < f.min {
			return -1, errors.New("must not be empty")
		}
		for i, item := range v {
			if strings.TrimSpace(item) == "" && !f.blank {
				return i, errors.New("must not have an empty item")
			}
			if err := f.checkText(item); err != nil {
				return i, err
			}
		}
	case Percentages:
		for name := range v {
			if err := f.checkText(name); err != nil {
				return -1, fmt.Errorf("%s: %w", quoted(name), err)
			}
		}
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inWords := f.name == hiddenKey
			if name == "" || !inWords && strings.ContainsAny(name, "= \t\n") || f.checkText(name) != nil {
				return -1, fmt.Errorf("%s cannot be the name of a variable", quoted(name))
			}
			if err := f.checkText(v[name]); err != nil {
				return -1, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return -1, nil
}

// checkWhole checks a whole number.
func (f field) checkWhole(n int) error {
	if f.max > 0 && n > f.max {
		return fmt.Errorf("must be at most %d", f.max)
	}
	return checkNumber(float64(n), n < f.min, fmt.Sprintf("at least %d", f.min))
}

func checkNumber(n float64, small bool, least string) error {
	switch {
	case small || math.IsNaN(n):
		return fmt.Errorf("must be %s", least)
	case n > maxNumber:
		return fmt.Errorf("must be at most %d", maxNumber)
	}
	return nil
}

func (f field) checkText(s string) error {
	if f.enum != nil && !slices.Contains(f.enum, s) {
		return fmt.Errorf("must be one of %s, not %s", strings.Join(f.enum, ", "), quoted(s))
	}
	if f.local && (!filepath.IsLocal(s) || filepath.Clean(s) == ".") {
		return fmt.Errorf("must be a folder within the project, such as services/api, not %s", quoted(s))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return errors.New("has a control character")
	}
	return nil
}

// format formats a value so that parseText can read it. Values of maps and secrets are hidden: they
// may be passwords.
func (f field) format(v any) string {
	if f.secret && v != "" {
		return "***"
	}
	switch f.kind() {
	case kindRecords:
		return f.formatRecords(reflect.ValueOf(v))
	case kindNamed:
		return f.formatNamed(reflect.ValueOf(v))
	}
	switch v := v.(type) {
	case time.Duration:
		return FormatDuration(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []string:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = flow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case Percentages:
		items := slices.Sorted(maps.Keys(v))
		for i, name := range items {
			items[i] = fmt.Sprintf("%s: %d%%", flow(name), v[name])
		}
		return "{" + strings.Join(items, ", ") + "}"
	case Prices:
		items := slices.Sorted(maps.Keys(v))
		for i, name := range items {
			items[i] = fmt.Sprintf("%s: [%v, %v, %v]", flow(name), v[name].Input, v[name].Cached, v[name].Output)
		}
		return "{" + strings.Join(items, ", ") + "}"
	case When:
		var parts []string
		if v.Lines > 0 {
			parts = append(parts, fmt.Sprintf("lines: %d", v.Lines))
		}
		if len(v.Files) > 0 {
			parts = append(parts, "files: "+field{typ: typeList}.format(v.Files))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case map[string]string:
		items := slices.Sorted(maps.Keys(v))
		for i, name := range items {
			items[i] = flow(name) + ": ***"
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// formatRecords formats a list of maps.
func (f field) formatRecords(list reflect.Value) string {
	records := make([]string, list.Len())
	for i := range records {
		records[i] = f.formatRecord(list.Index(i))
	}
	return "[" + strings.Join(records, ", ") + "]"
}

// formatNamed formats a map of maps.
func (f field) formatNamed(m reflect.Value) string {
	var pairs []string
	for _, name := range m.MapKeys() {
		pairs = append(pairs, flow(name.String())+": "+f.formatRecord(m.MapIndex(name)))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}

func (f field) formatRecord(record reflect.Value) string {
	var pairs []string
	for _, sub := range f.items {
		v := record.FieldByIndex(sub.index)
		if v.IsZero() {
			continue
		}
		text := sub.format(v.Interface())
		if sub.kind() == "text" && !sub.secret {
			text = flow(text)
		}
		pairs = append(pairs, sub.name+": "+text)
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// FormatDuration formats a duration as in a configuration: "45m", not Go's "45m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// flow formats a text as an item of a YAML list, quoted only if necessary.
func flow(s string) string {
	if plainForm().MatchString(s) && !reserved().MatchString(s) {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // impossible: every string has a JSON form
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

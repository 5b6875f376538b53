package config

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
)

// A Key describes one setting.
type Key struct {
	Name        string   // its path: "limits.max_sessions"
	Type        string   // "text", "whole number", "USD", "true or false", "duration", "list", "map" or "percentages"
	Default     string   // in the form of Value.Value
	Description string   // one sentence or two
	Env         string   // the variable that sets it: "RALPH_LIMITS_MAX_SESSIONS"
	Accepted    []string // the accepted values, of a list of its items; nil if any
}

// Keys lists every setting in the order of the documentation.
func Keys() []Key {
	list := make([]Key, len(fields))
	for i, f := range fields {
		list[i] = Key{f.name, kinds[f.typ], f.fallback, f.doc, f.env(), slices.Clone(f.enum)}
	}
	return list
}

// Types that a setting can have, with their names for people.
var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeList     = reflect.TypeFor[[]string]()
	typeMap      = reflect.TypeFor[map[string]string]()
	typePercents = reflect.TypeFor[Percentages]()

	kinds = map[reflect.Type]string{
		reflect.TypeFor[string]():  "text",
		reflect.TypeFor[int]():     "whole number",
		reflect.TypeFor[float64](): "USD",
		reflect.TypeFor[bool]():    "true or false",
		typeDuration:               "duration",
		typeList:                   "list",
		typeMap:                    "map",
		typePercents:               "percentages",
	}
)

// A field is a leaf of Config with what its tags say.
type field struct {
	name     string
	index    []int // for reflect.Value.FieldByIndex
	typ      reflect.Type
	fallback string
	doc      string
	enum     []string
	min      int
	blank    bool
}

// fields are the leaves of Config in order.
var fields = leaves(reflect.TypeFor[Config](), "", nil)

// groups are the keys that hold others, with the one that each is shorthand
// for: "verify" with "verify.commands", "limits" with "".
var groups = branches(reflect.TypeFor[Config]())

func leaves(t reflect.Type, prefix string, index []int) (list []field) {
	for f := range t.Fields() {
		at := append(slices.Clone(index), f.Index...)
		name := prefix + f.Tag.Get("json")
		if f.Type.Kind() == reflect.Struct {
			list = append(list, leaves(f.Type, name+".", at)...)
			continue
		}
		leaf := field{name: name, index: at, typ: f.Type, fallback: f.Tag.Get("default"), doc: f.Tag.Get("doc"), blank: f.Tag.Get("blank") == "ok"}
		if enum := f.Tag.Get("enum"); enum != "" {
			leaf.enum = strings.Split(enum, "|")
		}
		// A tag that is no number is found by the test of the tags.
		leaf.min, _ = strconv.Atoi(f.Tag.Get("min"))
		list = append(list, leaf)
	}
	return list
}

func branches(t reflect.Type) map[string]string {
	m := map[string]string{}
	for f := range t.Fields() {
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		name := f.Tag.Get("json")
		m[name] = ""
		if short := f.Tag.Get("shorthand"); short != "" {
			m[name] = name + "." + short
		}
	}
	return m
}

func fieldNamed(name string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// env is the environment variable of a setting.
func (f field) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.name, ".", "_"))
}

// unknown is the error for a key that does not exist.
func unknown(name string) error {
	return &ralph.FieldError{Field: name, Problem: "is not a key of the configuration" + didYouMean(near(name))}
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// near lists the keys and groups that a wrong one may have been meant for: at
// most three whose path, or whose last part, is nearly the same.
func near(name string) []string {
	last := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, key := range append(slices.Sorted(maps.Keys(groups)), names()...) {
		far := min(distance(name, key), distance(last(name), last(key)))
		if far <= min(2, len(last(name))/2) && key != name {
			found = append(found, candidate{key, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var keys []string
	for _, c := range found[:min(3, len(found))] {
		// Only the nearest: what is spelt exactly so leaves no doubt.
		if c.far > found[0].far {
			break
		}
		keys = append(keys, c.name)
	}
	return keys
}

// names lists the paths of all settings.
func names() []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}

// distance is Levenshtein's, cut off for texts that no key resembles.
func distance(a, b string) int {
	if len(a) > 2*len(b)+4 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

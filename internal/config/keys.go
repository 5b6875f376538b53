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
	Type        string   // one of kinds, such as "whole number", or "list of maps"
	Default     string   // in the form of Value.Value
	Description string   // one sentence or two
	Env         string   // the variable that sets it: "RALPH_LIMITS_MAX_SESSIONS"
	Accepted    []string // the accepted values, of a list of its items; nil if any
	Items       []Key    // of a list of maps, the keys of each; they have no variable
}

// Keys lists every setting in the order of the documentation.
func Keys() []Key {
	list := make([]Key, len(fields))
	for i, f := range fields {
		list[i] = f.key()
		list[i].Env = f.env()
	}
	return list
}

func (f field) key() Key {
	k := Key{Name: f.name, Type: f.kind(), Default: f.fallback, Description: f.doc, Accepted: slices.Clone(f.enum)}
	for _, sub := range f.items {
		k.Items = append(k.Items, sub.key())
	}
	return k
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
	secret   bool
	items    []field  // of a list of maps, the keys of each
	one      []string // of a list of maps, the keys of which each has exactly one
}

// kindRecords is the name of a list of maps for people.
const kindRecords = "list of maps"

// kind is the name of a setting's type for people.
func (f field) kind() string {
	if f.items != nil {
		return kindRecords
	}
	return kinds[f.typ]
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
		leaf := field{
			name: name, index: at, typ: f.Type, fallback: f.Tag.Get("default"), doc: docs[name],
			blank: f.Tag.Get("blank") == "ok", secret: f.Tag.Get("secret") == "yes",
		}
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			leaf.items, leaf.one = leaves(f.Type.Elem(), "", nil), strings.Split(f.Tag.Get("one"), "|")
			for i := range leaf.items {
				leaf.items[i].doc = docs[name+"."+leaf.items[i].name]
			}
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			leaf.enum = strings.Split(enum, "|")
			if named, ok := enums[enum]; ok {
				leaf.enum = named
			}
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

func named(list []field, name string) (field, bool) {
	i := slices.IndexFunc(list, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return list[i], true
}

// names lists the paths of settings.
func names(list []field) []string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.name
	}
	return names
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
	for _, key := range append(slices.Sorted(maps.Keys(groups)), names(fields)...) {
		whole, part := distance(name, key), distance(last(name), last(key))
		far := 2 * min(whole, part)
		if whole > part {
			far++ // the same word in another group is the less likely one
		}
		if far/2 <= min(2, len(last(name))/2) && key != name {
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

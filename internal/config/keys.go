package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
)

// A Key describes one setting.
type Key struct {
	Name        string   // path: "limits.max_sessions"
	Type        string   // one of kinds, such as "whole number", or "list of maps"
	Default     string   // in the form of [Value].Value
	Description string   // one or two sentences
	Env         string   // the variable that sets it: "RALPH_LIMITS_MAX_SESSIONS"
	Accepted    []string // accepted values, of a list's items; nil if any
	Items       []Key    // keys of each map in a list or map of maps; they have no variable
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
	typePrices   = reflect.TypeFor[Prices]()
	typeWhen     = reflect.TypeFor[When]()

	kinds = map[reflect.Type]string{
		reflect.TypeFor[string]():  "text",
		reflect.TypeFor[int]():     "whole number",
		reflect.TypeFor[float64](): "USD",
		reflect.TypeFor[bool]():    "true or false",
		typeDuration:               "duration",
		typeList:                   "list",
		typeMap:                    "map",
		typePercents:               "percentages",
		typePrices:                 "prices",
		typeWhen:                   "always, or a map",
	}
)

// A field is a leaf of Config with the content of its tags.
type field struct {
	name     string
	index    []int // for reflect.Value.FieldByIndex
	typ      reflect.Type
	fallback string
	doc      string
	enum     []string
	min      int
	max      int // 0 for none
	blank    bool
	local    bool // a folder within the project
	secret   bool
	items    []field  // keys of each map in a list or map of maps
	one      []string // each map of a list must have exactly one of these keys
}

// Names for people of types that hold maps.
const (
	kindRecords = "list of maps"
	kindNamed   = "map of maps"
)

// kind returns the name of a setting's type for people.
func (f field) kind() string {
	switch {
	case f.items != nil && f.typ.Kind() == reflect.Map:
		return kindNamed
	case f.items != nil:
		return kindRecords
	}
	return kinds[f.typ]
}

// fields are the leaves of Config in order.
var fields = leaves(reflect.TypeFor[Config](), "", nil)

// groups are the keys that contain others, each with the key that it is shorthand for: "verify" for
// "verify.commands", "limits" for "".
var groups = branches(reflect.TypeFor[Config](), "")

func leaves(t reflect.Type, prefix string, index []int) (list []field) {
	for f := range t.Fields() {
		at := append(slices.Clone(index), f.Index...)
		name := prefix + f.Tag.Get("json")
		if f.Type.Kind() == reflect.Struct && f.Type != typeWhen {
			list = append(list, leaves(f.Type, name+".", at)...)
			continue
		}
		leaf := field{
			name: name, index: at, typ: f.Type, fallback: f.Tag.Get("default"), doc: docs[name],
			blank: f.Tag.Get("blank") == "ok", local: f.Tag.Get("local") == "yes", secret: f.Tag.Get("secret") == "yes",
		}
		kind := f.Type.Kind()
		if many := kind == reflect.Slice || kind == reflect.Map; many && f.Type != typePrices &&
			f.Type.Elem().Kind() == reflect.Struct {
			leaf.items, leaf.one = leaves(f.Type.Elem(), "", nil), strings.Fields(strings.ReplaceAll(f.Tag.Get("one"), "|", " "))
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
		// The test of the tags finds one that is not a number.
		leaf.min, _ = strconv.Atoi(f.Tag.Get("min"))
		leaf.max, _ = strconv.Atoi(f.Tag.Get("max"))
		list = append(list, leaf)
	}
	return list
}

func branches(t reflect.Type, prefix string) map[string]string {
	m := map[string]string{}
	for f := range t.Fields() {
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		name := prefix + f.Tag.Get("json")
		m[name] = ""
		maps.Copy(m, branches(f.Type, name+"."))
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

// names returns the paths of settings.
func names(list []field) []string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.name
	}
	return names
}

// env returns a setting's environment variable.
func (f field) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.name, ".", "_"))
}

// unknown is the error for a key that does not exist.
func unknown(name string) error {
	var within []string
	for _, f := range fields {
		if strings.HasPrefix(f.name, name+".") {
			within = append(within, f.name)
		}
	}
	if len(within) > 0 {
		return &ralph.FieldError{Field: name, Problem: "is a section; its keys are " + strings.Join(within, ", ")}
	}
	return &ralph.FieldError{Field: cmp.Or(name, `""`), Problem: noKey(name)}
}

// noKey is the problem of a key that does not exist. It names similar keys, or the keys of its section.
func noKey(name string) string {
	const problem = "is not a key of the configuration"
	if meant := didYouMean(near(name)); meant != "" {
		return problem + meant
	}
	section, _, _ := strings.Cut(name, ".")
	var sections, keys []string
	for _, f := range fields {
		of, key, within := strings.Cut(f.name, ".")
		if sections = append(sections, of); of == section && within {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return problem + "; it has " + strings.Join(slices.Compact(slices.Sorted(slices.Values(sections))), ", ")
	}
	return problem + "; " + section + " has " + strings.Join(keys, ", ")
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// near lists at most three keys and groups that a misspelt one may mean: their path, or its last
// part, is similar.
func near(name string) []string {
	last := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, key := range append(slices.Sorted(maps.Keys(groups)), names(fields)...) {
		whole, part := text.Distance(name, key), text.Distance(last(name), last(key))
		far := 2 * min(whole, part)
		if whole > part {
			far++ // the same word in another group is less likely
		}
		begins := len(name) > 3 && strings.HasPrefix(key, name)
		if (begins || far/2 <= min(2, len(last(name))/2)) && key != name {
			found = append(found, candidate{key, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var keys []string
	for _, c := range found[:min(3, len(found))] {
		// Only the nearest ones: an exact match leaves no doubt.
		if c.far > found[0].far {
			break
		}
		keys = append(keys, c.name)
	}
	return keys
}

package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// FileName is the configuration in a project's root.
const FileName = "ralph.yaml"

const (
	envPrefix     = "RALPH_"
	sourceDefault = "default"
	maxProblems   = 10 // told at once
)

// secretKeys are those whose values are never repeated.
var secretKeys = []string{"agent.env", "notify.receivers"}

// protocol are the variables by which ralph's own processes talk to one
// another, and those of its tests. They configure nothing; a name that ends in
// "*" stands for all that begin so.
var protocol = []string{
	"RALPH_TASK_ID", "RALPH_SESSION_ID", "RALPH_DB_PATH", "RALPH_DISCIPLINE", "RALPH_AGENT_TASK_ID",
	"RALPH_SUPERVISOR", "RALPH_MCP_STDERR", "RALPH_PERMISSIONS", "RALPH_REQUIRE_CLAUDE", "RALPH_TEST_*",
}

// Sources say what a configuration is read from.
type Sources struct {
	ProjectDir string   // holds ralph.yaml; it need not
	UserFile   string   // such as ~/.config/ralph/config.yaml; it need not exist, empty for none
	Environ    []string // "NAME=value" as in os.Environ; of equal names the last counts

	// Instead are files that are read in the place of others, by the path of those;
	// "" is none.
	Instead map[string]string
}

// Loaded is a valid configuration and where each value came from.
type Loaded struct {
	Config

	// Warnings name variables that look like settings and are none. Values are
	// not repeated.
	Warnings []string

	sources map[string]string // by key
}

// A Value is one setting as people see it.
type Value struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // as in YAML, lists as [a, b]; values of agent.env and url of a receiver are hidden
	Source string `json:"source"` // "default", "ralph.yaml:12", "RALPH_AGENT_MODEL", "flag --model"
}

// Load reads the configuration: built-in defaults, under the user's file, under
// the project's, under the environment. What is set above replaces what is set
// below as a whole, lists and maps too. A variable that is empty counts as unset.
//
// The error joins an [Error] for each thing that is wrong.
func Load(s Sources) (Loaded, error) {
	l := Loaded{sources: map[string]string{}}
	var problems []error
	for _, f := range fields {
		if err := l.setText(f, sourceDefault, f.fallback); err != nil {
			return Loaded{}, err
		}
	}
	files := []struct{ path, name string }{
		{s.UserFile, homely(s.UserFile, s.Environ)},
		{filepath.Join(s.ProjectDir, FileName), FileName},
	}
	for _, file := range files {
		if copied, ok := s.Instead[file.path]; ok {
			file.path = copied
		}
		if file.path == "" {
			continue
		}
		settings, bad := readFile(file.path, file.name)
		problems = append(problems, bad...)
		for _, f := range fields {
			if v, ok := settings[f.name]; ok {
				l.put(f, v.source, v.value)
			}
		}
	}
	problems = append(problems, l.environment(s.Environ)...)
	if l.MCP.ServerScript != builtIn {
		l.Warnings = append(l.Warnings,
			"mcp.server_script is ignored: the server is part of ralph (`ralph mcp --profile human`)")
	}
	if len(problems) > 0 {
		return Loaded{}, join(problems)
	}
	return l, nil
}

// environment takes the settings of the environment.
func (l *Loaded) environment(environ []string) (problems []error) {
	vars := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, envPrefix) {
			vars[name] = value
		}
	}
	for _, f := range fields {
		value := vars[f.env()]
		delete(vars, f.env())
		if value == "" {
			continue
		}
		if err := l.setText(f, f.env(), value); err != nil {
			problems = append(problems, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !isProtocol(name) && !l.names(name) {
			warning := printable(name, maxQuoted) + " sets no key of the configuration"
			l.Warnings = append(l.Warnings, warning+didYouMean(nearVariables(name)))
		}
	}
	return problems
}

// builtIn is what mcp.server_script is where it says nothing.
const builtIn = "built-in"

// names reports whether a setting says that a variable holds something.
func (l *Loaded) names(variable string) bool {
	return slices.ContainsFunc(l.Notify.Receivers, func(r Receiver) bool {
		return variable == r.URLEnv || variable == r.SecretEnv
	})
}

func isProtocol(name string) bool {
	return slices.ContainsFunc(protocol, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return name == p || open && strings.HasPrefix(name, prefix)
	})
}

// nearVariables lists the variables that a wrong one may have been meant for.
func nearVariables(name string) (names []string) {
	for _, f := range fields {
		if distance(name, f.env()) <= 2 || strings.HasSuffix(f.env(), strings.TrimPrefix(name, "RALPH")) {
			names = append(names, f.env())
		}
	}
	return names[:min(3, len(names))]
}

// Set gives a setting what a flag says, source being "flag --max-sessions". A
// list takes all values, one to an item; anything else takes one. The error is
// an [Error], or a ralph.FieldError for a key that does not exist.
func (l *Loaded) Set(key, source string, values ...string) error {
	f, ok := named(fields, key)
	switch {
	case !ok:
		return unknown(key)
	case f.typ == typeList:
		return l.setValue(f, source, slices.Clone(values), nil)
	case len(values) != 1:
		return &Error{Source: source, Key: key, Problem: fmt.Sprintf("takes one value, not %d", len(values))}
	}
	return l.setText(f, source, values[0])
}

func (l *Loaded) setText(f field, source, text string) error {
	v, err := f.parseText(text)
	return l.setValue(f, source, v, err)
}

func (l *Loaded) setValue(f field, source string, v any, err error) error {
	if err == nil {
		_, err = f.check(v)
	}
	if err != nil {
		return &Error{Source: source, Key: f.name, Problem: err.Error()}
	}
	l.put(f, source, v)
	return nil
}

// put stores a checked value. The sources are copied: a copy of l keeps its own.
func (l *Loaded) put(f field, source string, v any) {
	if f.name == "escalation_model" && v == "none" {
		v = ""
	}
	reflect.ValueOf(&l.Config).Elem().FieldByIndex(f.index).Set(reflect.ValueOf(v))
	l.sources = maps.Clone(l.sources)
	l.sources[f.name] = source
}

// Values lists every setting in the order of [Keys].
func (l Loaded) Values() []Value {
	list := make([]Value, len(fields))
	for i, f := range fields {
		v := reflect.ValueOf(l.Config).FieldByIndex(f.index).Interface()
		list[i] = Value{f.name, f.format(v), l.sources[f.name]}
	}
	return list
}

// Get is one setting. The error of a key that does not exist is a
// ralph.FieldError that names near ones.
func (l Loaded) Get(key string) (Value, error) {
	for _, v := range l.Values() {
		if v.Key == key {
			return v, nil
		}
	}
	return Value{}, unknown(key)
}

// homely is a path with the home directory written "~".
func homely(path string, environ []string) string {
	for _, entry := range environ {
		home, ok := strings.CutPrefix(entry, "HOME=")
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok && below && home != "" {
			return "~/" + rest
		}
	}
	return path
}

// join makes the problems one error, bounded in size.
func join(problems []error) error {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more", more))
	}
	return errors.Join(problems...)
}

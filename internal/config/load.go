package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ralph/internal/lazy"
	"ralph/internal/text"
)

// FileName is the name of the configuration file in a project's root.
const FileName = "ralph.yaml"

const (
	envPrefix     = "RALPH_"
	sourceDefault = "default"
	maxProblems   = 10 // reported at once
)

// hiddenKey is the key of checks that no agent may read.
const hiddenKey = "verify.hidden"

// databaseKey is the key of the URL of the queue's database, which may have a password.
const databaseKey = "database"

// secretKeys are the keys whose values are never quoted.
var secretKeys = []string{"agent.env", "agents", "notify.receivers", hiddenKey, databaseKey}

// protocol lists the variables of ralph's own processes and tests, which are not settings. A
// name that ends in "*" is a prefix.
var protocol = []string{
	"RALPH_TASK_ID", "RALPH_SESSION_ID", "RALPH_CHANNEL", "RALPH_TICKET", "RALPH_SUPERVISOR", "RALPH_STATE_DIR",
	"RALPH_WORKSPACE", "RALPH_PORT", "RALPH_PORTS", "RALPH_ROOT", "RALPH_REQUIRE_CLAUDE",
	"RALPH_REQUIRE_POSTGRES", "RALPH_MACHINE", "RALPH_FORGE_TOKEN", "RALPH_FORGE_HOOK_SECRET", "RALPH_TEST_*",
}

// Sources are the places that a configuration is read from.
type Sources struct {
	ProjectDir string   // contains ralph.yaml, if there is one
	UserFile   string   // such as ~/.config/ralph/config.yaml, if it exists; empty for none
	Environ    []string // "NAME=value" as in os.Environ; the last of equal names counts
}

// Loaded is a valid configuration with the source of each value.
type Loaded struct {
	Config

	// Warnings name variables that look like settings but are not. They do not quote values.
	Warnings []string

	sources map[string]string // by key
}

// A Value is one setting as shown to people.
type Value struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // as in YAML, lists as [a, b]; values of agent.env and url of a receiver are hidden
	Source string `json:"source"` // "default", "ralph.yaml:12", "RALPH_AGENT_MODEL", "flag --model"
}

// Load reads the configuration: built-in defaults, overridden by the user's file, the project's
// file, and the environment, in this order. A later value replaces the earlier one completely,
// including lists and maps. An empty variable counts as unset.
//
// The error joins an [Error] for each problem.
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
		if file.path == "" {
			continue
		}
		settings, bad := readFile(file.path, file.name)
		problems = append(problems, bad...)
		v := settings[hiddenKey]
		if list, ok := v.value.(map[string]string); ok && len(list) > 0 && file.name == FileName {
			problems = append(problems, &Error{Key: hiddenKey, Source: v.source, Problem: "stands where agents read it: " +
				"set it in ~/.config/ralph/config.yaml, or by RALPH_VERIFY_HIDDEN"})
		}
		if v := settings[databaseKey]; v.value != nil && v.value != "" && file.name == FileName {
			problems = append(problems, &Error{Key: databaseKey, Source: v.source, Problem: "stands where agents read it: " +
				"set it in ~/.config/ralph/config.yaml, or by RALPH_DATABASE"})
		}
		for _, f := range fields {
			if v, ok := settings[f.name]; ok {
				l.put(f, v.source, v.value)
			}
		}
	}
	problems = append(problems, l.environment(s.Environ)...)
	if len(problems) > 0 {
		return Loaded{}, join(problems)
	}
	l.Agent.Env = expand(l.Agent.Env, s.Environ)
	for name, a := range l.Agents {
		a.Env = expand(a.Env, s.Environ)
		l.Agents[name] = a
	}
	return l, nil
}

// Ineffective returns the keys that are set and have no effect with the value of merge.mode.
func (l *Loaded) Ineffective() (keys []string) {
	for _, k := range []struct {
		key, mode string
		set       bool
	}{
		{"merge.after", "branch", len(l.Merge.After) > 0},
		{"merge.auto", "pr", l.Merge.Auto},
		{"verify.guard", "pr", l.Verify.Guard == "pr"},
	} {
		if k.set && l.Merge.Mode != k.mode {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// variableForm matches a value that stands for a variable of ralph's own environment.
var variableForm = lazy.Regexp(`^\$[A-Za-z_][A-Za-z0-9_]*$`)

// Variable returns the name of the environment variable that a value stands for; "" if it is itself the value.
func Variable(value string) string {
	if variableForm().MatchString(value) {
		return value[1:]
	}
	return ""
}

// expand replaces references to ralph's environment in variables. It omits variables whose
// reference is not set.
func expand(vars map[string]string, environ []string) map[string]string {
	all := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			all[name] = value
		}
	}
	own := maps.Clone(vars)
	for name, value := range vars {
		if from := Variable(value); from == "" {
			continue
		} else if is, ok := all[from]; ok {
			own[name] = is
		} else {
			delete(own, name)
		}
	}
	return own
}

// environment reads the settings in the environment.
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

// names reports whether a setting uses a variable.
func (l *Loaded) names(variable string) bool {
	return slices.ContainsFunc(l.Notify.Receivers, func(r Receiver) bool {
		return variable == Variable(r.URL) || variable == r.SecretEnv
	})
}

func isProtocol(name string) bool {
	return slices.ContainsFunc(protocol, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return name == p || open && strings.HasPrefix(name, prefix)
	})
}

// nearVariables lists the variables that a misspelt one may mean.
func nearVariables(name string) (names []string) {
	for _, f := range fields {
		if text.Distance(name, f.env()) <= 2 || strings.HasSuffix(f.env(), strings.TrimPrefix(name, "RALPH")) {
			names = append(names, f.env())
		}
	}
	return names[:min(3, len(names))]
}

// Set sets a key to the values of a flag; source is for example "flag --max-sessions". A list takes
// any number of values, one per item; any other key takes one. The error is an [Error], or a
// ralph.FieldError for a key that does not exist.
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

// put stores a checked value. It copies the map of sources, so that a copy of l keeps its own.
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

// Get returns one setting. The error for a key that does not exist is a ralph.FieldError that
// suggests similar ones.
func (l Loaded) Get(key string) (Value, error) {
	for _, v := range l.Values() {
		if v.Key == key {
			return v, nil
		}
	}
	return Value{}, unknown(key)
}

// homely returns a path with the home directory written as "~".
func homely(path string, environ []string) string {
	for _, entry := range environ {
		home, ok := strings.CutPrefix(entry, "HOME=")
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok && below && home != "" {
			return "~/" + rest
		}
	}
	return path
}

// join joins problems into one error of bounded size.
func join(problems []error) error {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more", more))
	}
	return errors.Join(problems...)
}

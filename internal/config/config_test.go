package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"ralph/internal/config"
)

var update = flag.Bool("update", false, "write the golden files and the generated documents anew")

// load reads a project's ralph.yaml with that text, in an environment.
func load(t *testing.T, text string, environ ...string) (config.Loaded, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, config.FileName), text)
	return config.Load(config.Sources{ProjectDir: dir, Environ: environ})
}

func mustLoad(t *testing.T, text string, environ ...string) config.Loaded {
	t.Helper()
	l, err := load(t, text, environ...)
	if err != nil {
		t.Fatalf("Load(%q): %v", text, err)
	}
	return l
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		write(t, path, string(got))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run `go test ./internal/config -update` and read the difference\ngot:\n%s", path, got)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	seen := map[string]string{}
	empty := []string{
		"agent.model", "merge.into", "merge.message", "merge.push", "verify.hidden_files", "database", "dashboard.url", "forge.url", "forge.label",
		"forge.token_file",
	}
	for _, k := range config.Keys() {
		if !regexp.MustCompile(`^[a-z_]+(\.[a-z_]+){0,2}$`).MatchString(k.Name) {
			t.Errorf("key %q is not in lower case with underscores", k.Name)
		}
		if !regexp.MustCompile(`^[A-Z].*\.$`).MatchString(k.Description) {
			t.Errorf("%s: description %q is not a sentence", k.Name, k.Description)
		}
		if k.Default == "" && !slices.Contains(empty, k.Name) {
			t.Errorf("%s has no default", k.Name)
		}
		if k.Type == "" {
			t.Errorf("%s has no type", k.Name)
		}
		if other := seen[k.Env]; other != "" {
			t.Errorf("%s and %s have the same variable %s", k.Name, other, k.Env)
		}
		seen[k.Env] = k.Name
		for _, item := range k.Items {
			if item.Type == "" || !regexp.MustCompile(`^[A-Z].*\.$`).MatchString(item.Description) {
				t.Errorf("%s of %s has type %q and description %q", item.Name, k.Name, item.Type, item.Description)
			}
		}
	}
}

func TestDefaultsAreAsDocumented(t *testing.T) {
	l := mustLoad(t, "")
	for i, v := range l.Values() {
		if k := config.Keys()[i]; v != (config.Value{Key: k.Name, Value: k.Default, Source: "default"}) {
			t.Errorf("got %+v, documented is %q", v, k.Default)
		}
	}
}

func TestDocumentationIsFresh(t *testing.T) {
	golden(t, "../../docs/configuration.md", documentation(t))
	schema, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/ralph.schema.json", schema)
}

// meaningOf returns the description of a key with the values that it accepts, unless that names them all, in brackets.
func meaningOf(description string, accepted []string) string {
	unnamed := func(value string) bool { return !strings.Contains(description, "("+value+")") }
	if slices.ContainsFunc(accepted, unnamed) {
		description += " One of `" + strings.Join(accepted, "`, `") + "`."
	}
	return description
}

func defaultOf(k config.Key) string {
	if k.Default == "" {
		return "empty"
	}
	return "`" + k.Default + "`"
}

// documentation returns docs/configuration.md: first the main keys, then every other key.
func documentation(t *testing.T) []byte {
	t.Helper()
	var common, others, maps bytes.Buffer
	if len(config.Common) > 15 {
		t.Errorf("%d keys are too many for the list that everybody reads", len(config.Common))
	}
	line := func(b *bytes.Buffer, k config.Key) {
		fmt.Fprintf(b, "- `%s` (%s, %s): %s\n", k.Name, k.Type, defaultOf(k), meaningOf(k.Description, k.Accepted))
	}
	for _, name := range config.Common {
		i := slices.IndexFunc(config.Keys(), func(k config.Key) bool { return k.Name == name })
		if i < 0 {
			t.Fatalf("there is no key %s", name)
		}
		line(&common, config.Keys()[i])
	}
	count := 0
	for _, k := range config.Keys() {
		isCommon := slices.Contains(config.Common, k.Name)
		if k.Items == nil {
			count++
			if !isCommon {
				line(&others, k)
			}
			continue
		}
		fmt.Fprintf(&maps, "\n## %s\n\n", k.Name)
		if !isCommon {
			fmt.Fprintf(&maps, "A %s. %s\n\n", k.Type, k.Description)
		}
		for _, item := range k.Items {
			kind := string(item.Type)
			if item.Default != "" {
				kind += ", `" + item.Default + "`"
			}
			fmt.Fprintf(&maps, "- `%s` (%s): %s\n", item.Name, kind, meaningOf(item.Description, item.Accepted))
		}
	}
	if count > 81 { // those of lists' maps apart
		t.Errorf("%d keys are too many: what has one sensible value is a constant (fixed.go)", count)
	}
	return fmt.Appendf(nil, configurationPage, common.Bytes(), others.Bytes(), maps.Bytes())
}

const configurationPage = `# Configuration

<!-- Generated from internal/config by "go test ./internal/config -update". Do not edit. -->

` + "`ralph init`" + ` writes ` + "`ralph.yaml`" + ` into the project's root. Each value comes from the first of these that sets it:

1. a flag of the command,
2. the environment variable: ` + "`RALPH_`" + ` and the key, such as ` + "`RALPH_LIMITS_MAX_SESSIONS`" + ` for ` + "`limits.max_sessions`" + `,
3. ` + "`ralph.yaml`" + `,
4. ` + "`~/.config/ralph/config.yaml`" + ` (the system's directory for configuration),
5. the built-in default.

A value replaces the one below as a whole, lists and maps too. ` + "`ralph config`" + ` shows the main keys, every changed one, and their sources; ` + "`--all`" + ` shows all.

## The main keys

` + "```yaml" + `
verify: [make test]              # must pass before a task counts as done
limits: {max_cost_usd: 20}       # a run ends there
notify: [{url: $SLACK_URL, preset: slack}]
` + "```" + `

Each key has its type and default in parentheses.

%s
## How values are written

- A duration is a number with a unit, or several: ` + "`90s`, `45m`, `1h30m`" + `; from 1ms to 8784h.
- A list of one may be a single text. In a variable a list is ` + "`[a, b]`" + ` or a single text.
- A map in a variable is ` + "`{NAME: value}`" + `, a list of maps ` + "`[{key: value}, {key: value}]`" + `.
- An empty variable counts as unset. ` + "`[]`" + ` is an empty list.
- Numbers are at most 1000000000. Amounts and limits are greater than 0: nothing is unlimited.
- ` + "`verify:`" + ` with a list is short for ` + "`verify.commands`" + `, ` + "`notify:`" + ` with a list for ` + "`notify.receivers`" + `.
- The file is at most 64 KiB of UTF-8. Anchors and aliases work; merge keys and tags do not.

ralph refuses unknown keys, wrong types and values out of bounds, with line and column. It warns of unknown ` + "`RALPH_`" + ` variables.
[ralph.schema.json](ralph.schema.json) is the file's JSON Schema.

## Every other key

The defaults suit most projects.

%s%s`

// validator checks YAML against the schema.
func validator(t testing.TB) func(text string) error {
	t.Helper()
	b, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			return err
		}
		if doc == nil {
			doc = map[string]any{} // nothing is set
		}
		return resolved.Validate(doc)
	}
}

func TestSchemaAgreesWithLoad(t *testing.T) {
	validate := validator(t)
	tests := []struct {
		name, text string
		valid      bool
	}{
		{"an empty file", "", true},
		{"the starter", string(config.Starter("claude", []string{"go test ./..."})), true},
		{"every default", allDefaults(), true},
		{"a list as shorthand", "verify: [make test]", true},
		{"one text as shorthand", "verify: make test", true},
		{"a group without keys", "limits:\n", true},
		{"numbers as variables", "agent: {env: {A: 1, B: true, C: x, D: 1.5}}", true},
		{"an unknown key", "limit: {}", false},
		{"an unknown key in a group", "limits: {max: 1}", false},
		{"zero sessions", "limits: {max_sessions: 0}", false},
		{"no cost", "limits: {max_cost_usd: 0}", false},
		{"too many", "limits: {max_sessions: 1000000001}", false},
		{"a duration without a unit", "limits: {session_timeout: 45}", false},
		{"a duration in words", "limits: {session_timeout: an hour}", false},
		{"an empty command", "agent: {command: []}", false},
		{"an unknown mode", "agent: {permission_mode: yolo}", false},
		{"a port that is none", "workspace: {ports: 0}", false},
		{"text for a group", "prompt: x", false},
		{"a list of maps as shorthand", "notify: [{url: http://localhost/, events: [task.failed]}, {command: [cat]}]", true},
		{"a list of maps", "notify: {receivers: [{url: $HOOK, preset: slack}]}", true},
		{"an unknown key in a map", "notify: [{url: x, urls: y}]", false},
		{"neither of what a map needs", "notify: [{preset: slack}]", false},
		{"two of what a map needs", "notify: [{url: x, command: [y]}]", false},
		{"an empty text in a map", "notify: [{url: ''}]", false},
		{"an unknown item in a map", "notify: [{url: x, events: [task.started]}]", false},
		{"a map of maps", "agents: {a: {kind: acp, command: [a, b], prices: {m: [1, 0.1, 2]}, unguarded: true}, b: {}, c: }", true},
		{"a map of a name that is none", "agents: {a b: {}}", false},
		{"a map of an empty kind", "agents: {a: {kind: ''}}", false},
		{"a map with an unknown key", "agents: {a: {kid: acp}}", false},
		{"a list instead of a map of maps", "agents: [a]", false},
		{"two prices", "agents: {a: {prices: {m: [1, 2]}}}", false},
		{"a price that is none", "agents: {a: {prices: {m: [1, 2, x]}}}", false},
		{"a price below nothing", "agents: {a: {prices: {m: [1, 2, -1]}}}", false},
		{"a map instead of a list of maps", "notify: {receivers: {url: x}}", false},
		{"a text instead of a map", "notify: [x]", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := validate(tt.text); (err == nil) != tt.valid {
				t.Errorf("schema says %v", err)
			}
			if _, err := load(t, tt.text); (err == nil) != tt.valid {
				t.Errorf("Load says %v", err)
			}
		})
	}
}

// allDefaults returns a ralph.yaml that sets every key to its default.
func allDefaults() string {
	var b strings.Builder
	var last []string
	for _, k := range config.Keys() {
		path := strings.Split(k.Name, ".")
		for depth, group := range path[:len(path)-1] {
			if depth >= len(last)-1 || !slices.Equal(last[:depth+1], path[:depth+1]) {
				fmt.Fprintf(&b, "%*s%s:\n", 2*depth, "", group)
				last = path[: depth+1 : depth+1]
			}
		}
		last = path
		value := k.Default
		if k.Items == nil {
			value = orEmpty(value)
		}
		fmt.Fprintf(&b, "%*s%s: %s\n", 2*(len(path)-1), "", path[len(path)-1], value)
	}
	return b.String()
}

func orEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

func TestStarter(t *testing.T) {
	awkward := []string{"go test ./...", "make -j4 lint && make test", "a: b # c", "- x", "yes", "true", "12", `echo "ü\n"`, "line\nbreak", "*x", "{a}"}
	t.Run("is short and friendly", func(t *testing.T) {
		golden(t, "testdata/starter.yaml", config.Starter("claude", []string{"go build ./...", "go test ./... && go vet ./..."}))
		golden(t, "testdata/starter_empty.yaml", config.Starter("claude", nil))
	})
	t.Run("has the commands exactly", func(t *testing.T) {
		l := mustLoad(t, string(config.Starter("claude", awkward)))
		if got := l.Verify.Commands; fmt.Sprintf("%q", got) != fmt.Sprintf("%q", awkward) {
			t.Errorf("got %q, want %q", got, awkward)
		}
	})
	t.Run("changes nothing else", func(t *testing.T) {
		for _, v := range mustLoad(t, string(config.Starter("claude", awkward))).Values() {
			if v.Source != "default" && v.Key != "verify.commands" {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("is valid and changes nothing when its settings are uncommented", func(t *testing.T) {
		text := regexp.MustCompile(`(?m)^# ( *[a-z_]+:.*|  - .*)$`).ReplaceAllString(string(config.Starter("claude", nil)), "$1")
		l, defaults := mustLoad(t, text), mustLoad(t, "")
		set := 0
		for i, v := range l.Values() {
			if v.Source == "default" {
				continue
			}
			set++
			if d := defaults.Values()[i]; v.Value != d.Value && v.Key != "verify.commands" {
				t.Errorf("%s is %s, the default is %s", v.Key, v.Value, d.Value)
			}
		}
		if set != 10 {
			t.Errorf("%d settings, want 10", set)
		}
	})
}

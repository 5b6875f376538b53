package config_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	gocmp "github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/config"
)

func TestEachSourceOverridesTheOnesBelow(t *testing.T) {
	home := t.TempDir()
	user := filepath.Join(home, ".config", "ralph", "config.yaml")
	dir := t.TempDir()
	write(t, user, "agent:\n  model: user\n  command: [u]\nparallel: 4\nlimits: {attempts: 6}\n")
	write(t, filepath.Join(dir, config.FileName), "\nagent:\n  model: project\nparallel: 5\n")
	l, err := config.Load(config.Sources{
		ProjectDir: dir, UserFile: user,
		Environ: []string{"HOME=" + home, "RALPH_PARALLEL=9", "RALPH_PARALLEL=6", "RALPH_LIMITS_MAX_COST_USD=2.5", "RALPH_AGENT_MODEL="},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := l
	if err := l.Set("limits.max_cost_usd", "flag --max-cost", "7"); err != nil {
		t.Fatal(err)
	}
	want := []config.Value{
		{Key: "limits.max_tasks", Value: "100", Source: "default"},
		{Key: "agent.command", Value: "[u]", Source: "~/.config/ralph/config.yaml:3"},
		{Key: "limits.attempts", Value: "6", Source: "~/.config/ralph/config.yaml:5"},
		{Key: "agent.model", Value: "project", Source: "ralph.yaml:3"}, // the empty variable is unset
		{Key: "parallel", Value: "6", Source: "RALPH_PARALLEL"},
		{Key: "limits.max_cost_usd", Value: "7", Source: "flag --max-cost"},
	}
	for _, w := range want {
		if got, err := l.Get(w.Key); err != nil || got != w {
			t.Errorf("got %+v, %v; want %+v", got, err, w)
		}
	}
	if l.Limits.MaxCostUSD != 7 || l.Parallel != 6 || l.Agent.Model != "project" || l.Agent.Command[0] != "u" {
		t.Errorf("the struct differs from its values: %+v", l.Config)
	}
	if got, _ := before.Get("limits.max_cost_usd"); got.Value != "2.5" || got.Source != "RALPH_LIMITS_MAX_COST_USD" {
		t.Errorf("a flag changed a copy: %+v", got)
	}
}

func TestWithoutAnySourceAllIsDefault(t *testing.T) {
	l, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	// The rest is in the golden documentation.
	want := config.Limits{
		MaxSessions: 100, MaxTasks: 100, MaxDuration: 12 * time.Hour, MaxCostUSD: 50, MaxCostPerDayUSD: 100, MaxCostPerMonthUSD: 1000, SessionTimeout: 45 * time.Minute, IdleTimeout: 10 * time.Minute,
		SessionTurns: 200, SessionCostUSD: 10, Attempts: 10, StagnantSessions: 5, ReviewRounds: 3, Usage: config.Percentages{"five_hour": 80, "seven_day": 90},
	}
	if diff := gocmp.Diff(want, l.Limits); diff != "" {
		t.Error(diff)
	}
}

// TestEveryVariable sets each key by its variable, and reads it back.
func TestEveryVariable(t *testing.T) {
	samples := map[string]string{
		"text": "1.0", "parallel": "20", "whole number": "2001", "USD": "0.25", "duration": "1h30m", "true or false": "false", "percentages": "{five_hour: 5%}", "database": "***", "list": "[make test, \"a: b\"]", "map": "{A: ***}",
		"list of maps": "[{url: ***, preset: generic}]", "review": "[{agent: a, model: m, when: {lines: 20, files: [auth/**]}, prompt: p.md}]", "map of maps": "{a: {kind: acp, prices: {m-1: [1, 0.5, 2]}, env: {A: ***}}, b: {}}",
	}
	for _, k := range config.Keys() {
		sample := cmp.Or(samples[k.Name], samples[k.Type])
		if k.Accepted != nil {
			sample = k.Accepted[0]
			if k.Type == "list" {
				sample = "[" + sample + "]"
			}
		}
		t.Run(k.Env, func(t *testing.T) {
			l := mustLoad(t, "", k.Env+"="+strings.Replace(sample, "***", "secret", 1))
			if got, err := l.Get(k.Name); err != nil || got != (config.Value{Key: k.Name, Value: sample, Source: k.Env}) {
				t.Errorf("got %+v, %v; want %s", got, err, sample)
			}
			if len(l.Warnings) > 0 {
				t.Errorf("warned: %q", l.Warnings)
			}
		})
	}
}

func TestListsInVariables(t *testing.T) {
	for value, want := range map[string][]string{
		"[a, 'b c']":       {"a", "b c"},
		"make test: all":   {"make test: all"},
		"test -f x && [ 1": {"test -f x && [ 1"},
		" [a]":             {"a"},
		"[]":               {},
	} {
		l := mustLoad(t, "verify: [x]", "RALPH_VERIFY_COMMANDS="+value)
		if !slices.Equal(l.Verify.Commands, want) {
			t.Errorf("%q: got %q, want %q", value, l.Verify.Commands, want)
		}
	}
}

func TestVariablesThatSetNothingAreWarnedOf(t *testing.T) {
	l := mustLoad(t, "", "RALPH_LIMITS_MAX_SESSION=3secret", "RALPH_MODEL=x", "RALPH_NONSENSE=1", "RALPHX=1", "PATH=/bin",
		"RALPH_TASK_ID=1", "RALPH_SESSION_ID=1", "RALPH_CHANNEL=1", "RALPH_TEST_POSTGRES=1",
		"RALPH_REQUIRE_CLAUDE=1", "RALPH_SUPERVISOR=1")
	want := []string{
		"RALPH_LIMITS_MAX_SESSION sets no key of the configuration; did you mean RALPH_LIMITS_MAX_SESSIONS?",
		"RALPH_MODEL sets no key of the configuration; did you mean RALPH_AGENT_MODEL or RALPH_ESCALATION_MODEL?",
		"RALPH_NONSENSE sets no key of the configuration",
	}
	if diff := gocmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestKeysOfAnotherMode(t *testing.T) {
	for _, x := range []struct{ set, want string }{
		{"{}", ""},
		{"{after: [make]}", "merge.after"},
		{"{after: [make], mode: branch}", ""},
		{"{after: [make], auto: true, mode: pr}", "merge.after"},
		{"{auto: true}", "merge.auto"},
		{"{auto: true, mode: pr}", ""},
	} {
		l := mustLoad(t, "merge: "+x.set+"\n")
		if got := strings.Join(l.Ineffective(), " "); got != x.want {
			t.Errorf("merge: %s: %q has no effect, not %q", x.set, got, x.want)
		}
	}
}

func TestFormsOfAFile(t *testing.T) {
	tests := []struct{ name, text string }{
		{"lines that end in CR LF", "# x\r\nverify:\r\n  - make test\r\n  - go vet\r\n"},
		{"lines that end in CR", "# x\rverify:\r  - make test\r  - go vet\r"},
		{"a byte order mark", "\uFEFFverify: [make test, go vet]\n"},
		{"a document start and end", "%YAML 1.2\n---\nverify: [make test, go vet]\n...\n"},
		{"the long form", "verify:\n  commands: [make test, go vet]\n  timeout: 10m"},
		{"quotes and a block", "verify:\n  - 'make test'\n  - |-\n    go vet\n"},
		{"anchors", "agent: {extra_args: &a [make test, go vet]}\nverify: {commands: *a}\n"},
		{"an anchor for an item", "agent: {extra_args: [&a make test]}\nverify: [*a, go vet]\n"},
		{"quoted keys", "\"verify\":\n  'commands': [make test, go vet]\n"},
		{"no end of line", "verify: [make test, go vet]"},
		{"JSON", `{"verify": {"commands": ["make test", "go vet"]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustLoad(t, tt.text).Verify.Commands; !slices.Equal(got, []string{"make test", "go vet"}) {
				t.Errorf("got %q", got)
			}
		})
	}
	for _, text := range []string{"", "\n\n", "# nothing\n", "---\n", "\uFEFF", "limits:\n  # max_sessions: 1\n", "~", "{}", "agent: {env: {}}"} {
		t.Run(fmt.Sprintf("nothing is set by %q", text), func(t *testing.T) { mustLoad(t, text) })
	}
}

func TestVariablesOfTheAgent(t *testing.T) {
	l := mustLoad(t, "agent:\n  env: {TOKEN: s3cret, PORT: 8080, DEBUG: true, V: 1.10, EMPTY: ''}\n")
	want := map[string]string{"TOKEN": "s3cret", "PORT": "8080", "DEBUG": "true", "V": "1.10", "EMPTY": ""}
	if diff := gocmp.Diff(want, l.Agent.Env); diff != "" {
		t.Error(diff)
	}
	own := mustLoad(t, "agent: {env: {A: $HERE, B: $ABSENT, C: $5, D: a$HERE}}\nagents: {b: {env: {E: $HERE}}}", "HERE=s3cret")
	if diff := gocmp.Diff(map[string]string{"A": "s3cret", "C": "$5", "D": "a$HERE"}, own.Agent.Env); diff != "" {
		t.Error(diff)
	}
	if got := own.Agents["b"].Env["E"]; got != "s3cret" {
		t.Errorf("an agent's own variable is %q", got)
	}
	if v, _ := l.Get("agent.env"); v.Value != "{DEBUG: ***, EMPTY: ***, PORT: ***, TOKEN: ***, V: ***}" {
		t.Errorf("shown as %s", v.Value)
	}
	for _, text := range []string{"agent:\n  env:\n    A: 1\n    A: s3cret", "agent: {env: {A: s3cret}, modle: x}", "agent:\n  env:\n    A: s3cret: x", "agent:\n  env: {A: [s3cret]}", "agent:\n  env: {A: \"s3cret\\0\"}", "agent:\n  env: s3cret"} {
		if _, err := load(t, text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestReceivers(t *testing.T) {
	l := mustLoad(t, `
notify:
  - url: &hook https://example.com/s3cret
    events: task.failed
  - {url: *hook, preset: ntfy, secret_env: TOKEN}
  - command: [say, "a b"]
`)
	want := []config.Receiver{
		{URL: "https://example.com/s3cret", Preset: "generic", Events: []string{"task.failed"}},
		{URL: "https://example.com/s3cret", Preset: "ntfy", SecretEnv: "TOKEN"},
		{Command: []string{"say", "a b"}, Preset: "generic"},
	}
	if diff := gocmp.Diff(want, l.Notify.Receivers); diff != "" {
		t.Error(diff)
	}
	if v, _ := l.Get("notify.receivers"); v.Value != `[{url: ***, preset: generic, events: [task.failed]}, {url: ***, preset: ntfy, secret_env: TOKEN}, {command: [say, a b], preset: generic}]` {
		t.Errorf("shown as %s", v.Value)
	}
	if l := mustLoad(t, "notify: [{url: $RALPH_HOOK, secret_env: RALPH_KEY}]", "RALPH_HOOK=x", "RALPH_KEY=y", "RALPH_OTHER=z"); len(l.Warnings) != 1 {
		t.Errorf("warned: %q", l.Warnings)
	}
	for _, text := range []string{
		"notify: [{url: s3cret, preset: x}]", "notify:\n  - url: s3cret\n    preset: x\n", "notify:\n  - preset: slack\n    url: [s3cret]\n",
		"notify: [{url: s3cret}\n", "notify:\n  - url: s3cret\n    url: s3cret\n", "notify:\n  - url:\n      s3cret: 1\n", "{agent: {modle: x}, notify: [{url: s3cret}]}",
	} {
		if _, err := load(t, text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestFlags(t *testing.T) {
	l := mustLoad(t, "")
	for _, err := range []error{
		l.Set("verify.commands", "flag --verify", "[ -f a ]", "make"),
		l.Set("limits.session_timeout", "flag --session-timeout", "90s"),
		l.Set("agent.env", "flag --env", "{A: b}"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(l.Verify.Commands, []string{"[ -f a ]", "make"}) || l.Limits.SessionTimeout != 90*time.Second || l.Agent.Env["A"] != "b" {
		t.Errorf("got %+v", l.Config)
	}
	tests := []struct {
		key    string
		values []string
		want   string
	}{
		{"limits.max_sessions", []string{"0"}, "flag --x: limits.max_sessions: must be at least 1"},
		{"limits.max_sessions", []string{"1", "2"}, "flag --x: limits.max_sessions: takes one value, not 2"},
		{"limits.session_timeout", []string{"45"}, `flag --x: limits.session_timeout: must be a duration such as "90s", "45m" or "1h30m", not "45"`},
		{"workspace.sparse", []string{"../lib"}, `flag --x: workspace.sparse: must be a folder within the project, such as services/api, not "../lib"`},
		{"workspace.sparse", []string{"."}, `flag --x: workspace.sparse: must be a folder within the project, such as services/api, not "."`},
		{"verify.commands", []string{"make", " "}, "flag --x: verify.commands: must not have an empty item"},
		{"limits.max_cost", []string{"1"}, "limits.max_cost is not a key of the configuration; did you mean limits.max_cost_usd?"},
	}
	for _, tt := range tests {
		before := l.Config
		if err := l.Set(tt.key, "flag --x", tt.values...); err == nil || err.Error() != tt.want {
			t.Errorf("%s %q: got %v, want %s", tt.key, tt.values, err, tt.want)
		}
		if diff := gocmp.Diff(before, l.Config); diff != "" {
			t.Errorf("a refused flag changed something: %s", diff)
		}
	}
}

func TestAnUnknownKeyNamesNearOnes(t *testing.T) {
	l := mustLoad(t, "")
	const sections = "; it has agent, agents, dashboard, database, escalation_model, forge, limits, merge, notify, parallel, " +
		"permissions, prompt, review, sandbox, sessions, suggestions, verify, workspace"
	for key, want := range map[string]string{
		"limits.max_sesions": "; did you mean limits.max_sessions?",
		"max_sessions":       "; did you mean limits.max_sessions?",
		"verify.timout":      "; did you mean verify.timeout?",
		"modell":             "; did you mean agent.model?",
		"limit":              "; did you mean limits?",
		"zzz":                sections,
		"merge.zzzzzzz":      "; merge has into, mode, strategy, sign, push, after, message, guard, auto, max_open",
		"model":              "; did you mean agent.model?",
		"":                   sections,
	} {
		_, err := l.Get(key)
		var field *ralph.FieldError
		if !errors.As(err, &field) || field.Problem != "is not a key of the configuration"+want {
			t.Errorf("%q: got %v, want %q", key, err, want)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	tests := []struct {
		name string
		make func(path string) error
		want string
		is   error
	}{
		{"a directory", func(p string) error { return os.Mkdir(p, 0o755) }, "ralph.yaml: is not a regular file; remove it or put a file there", nil},
		{
			"a file of 10 MB", func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("[\n"), 5<<20), 0o644) },
			"ralph.yaml: is larger than 64 KiB, which no configuration needs", nil,
		},
		{"a link to itself", func(p string) error { return os.Symlink(filepath.Base(p), p) }, "ralph.yaml: cannot be read: too many levels of symbolic links", nil},
		{"UTF-16", func(p string) error { return os.WriteFile(p, utf16le("verify: x"), 0o644) }, "ralph.yaml:1:1: is not UTF-8 text; save the file as UTF-8", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(filepath.Join(dir, config.FileName)); err != nil {
				t.Fatal(err)
			}
			_, err := config.Load(config.Sources{ProjectDir: dir})
			var bad *config.Error
			if !errors.As(err, &bad) {
				t.Fatalf("got %v", err)
			}
			if first, _, _ := strings.Cut(err.Error(), "\n"); first != tt.want {
				t.Errorf("got %q, want %q", first, tt.want)
			}
		})
	}
	t.Run("without permission", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("permissions do not bind this user")
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, config.FileName), "")
		if err := os.Chmod(filepath.Join(dir, config.FileName), 0); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Sources{ProjectDir: dir})
		if !errors.Is(err, fs.ErrPermission) || err.Error() != "ralph.yaml: cannot be read: permission denied" {
			t.Errorf("got %v", err)
		}
	})
}

func utf16le(s string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

// TestErrors compares every refusal with its place in testdata/errors.txt.
func TestErrors(t *testing.T) {
	texts := []string{
		// keys
		"limits:\n  max_sesions: 3\n", "max_sessions: 3\n", "limits.max_sessions: 3\n", "limit:\n  attempts: 1\n", "agnt:\n  x: 1\n", "xyz: 1\n",
		"limits:\n  1: 2\n", "parallel: 1\nparallel: 2\n", "parallel: 1\n\"parallel\": 2\n", "<<: {parallel: 2}\n", "? [a]\n: b\n",
		"verify: [a]\n'verify': {commands: b}\n",
		// types
		"just text\n", "- a\n- b\n", "limits: 5\n", "limits: [1]\n", "agent:\n  model: 4\n", "agent:\n  model: [a]\n", "agent:\n  model:\n", "agent:\n  model: ~\n",
		"limits:\n  max_sessions: many\n", "limits:\n  max_sessions: 1.5\n", "limits:\n  max_sessions: '3'\n", "limits:\n  max_cost_usd: 10 USD\n",
		"limits:\n  session_timeout: 45\n", "limits:\n  session_timeout: 45 minutes\n", "limits:\n  session_timeout: +1h\n",
		"verify: 5\n", "verify:\n  - make\n  - 5\n", "verify:\n  - make\n  -\n", "verify:\n  - make: x\n", "verify: {commands: {a: b}}\n", "verify: true\n",
		"agent:\n  env: [A=b]\n", "agent:\n  env: {A: [x]}\n", "agent:\n  env: {A: }\n", "agent:\n  env: {1: x}\n", "agent: !!map {}\n", "agent: {model: !!str 5}\n",
		// bounds
		"limits:\n  max_sessions: 0\n", "limits:\n  max_sessions: -1\n", "limits:\n  max_sessions: 99999999999999999999\n", "limits:\n  max_sessions: 1000000001\n",
		"limits:\n  max_cost_usd: 0\n", "limits:\n  max_cost_usd: -0.5\n", "limits:\n  max_cost_usd: .inf\n", "limits:\n  max_cost_usd: .nan\n", "limits:\n  max_cost_usd: 1e300\n",
		"limits:\n  max_duration: 0s\n", "limits:\n  max_duration: 9000h\n", "limits:\n  max_duration: 99999999h\n", "verify: {timeout: 1ns}\n",
		"workspace: {ports: 0}\n", "limits: {session_tokens: -1}\n", "parallel: 0\n",
		"agent: {command: []}\n", "agent: {command: ['']}\n", "agent:\n  permission_mode: yolo\n", "verify:\n  lost: maybe\n", "suggestions: approve\n",
		"verify: ['']\n", "agent: {model: \"a\\e[31m\"}\n", "agent: {env: {\"A=B\": x}}\n", "agent: {env: {A: \"\\0\"}}\n",
		// lists of maps
		"notify: x\n", "notify: [x]\n", "notify:\n  - url:\n", "notify:\n  - uri: x\n", "notify:\n  - preset: slack\n", "notify:\n  - url: A\n    command: [b]\n",
		"notify:\n  - url: A\n    preset: slak\n", "notify:\n  - url: A\n    events:\n      - task.failed\n      - failed\n", "notify:\n  - url: 5\n", "notify:\n  - 1: 5\n",
		"notify:\n  - <<: {url: x}\n", "notify:\n  - url: A\n    command: []\n", "notify:\n  - *x\n", "notify:\n  - url: ''\n", "notify:\n  - url: A\n    url: B\n",
		// YAML
		"limits:\n\tattempts: 1\n", "verify: [a, b\n", "verify: 'a\n", "verify: a: b\n", "a: 1\n---\nb: 2\n", "verify: *x\n", "verify: &x [*x]\n", "verify: &x *x\n",
		"x: " + strings.Repeat("[", 40), "agent: {model: \xff}\n", "verify: @a\n", "agent:\n  - x\n model: y\n",
		// several, long and strange
		"parallel: 0\nlimits: {attempts: 0}\nx: 1\n", strings.Repeat("x", 3000) + ": 1\n", "agent: {nonsense\x1b[31m: 1}\n", "parallel: 0 # " + strings.Repeat("ü", 200) + "\n",
		"# ü\nagent: {model: ü, permission_mode: ü}\n", "parallel: 1\r\nlimits:\r\n  attempts: 0\r\n", manyUnknown(12),
	}
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "=== %.60q\n%s\n\n", text, refusal(t, text))
	}
	for _, variable := range []string{
		"RALPH_LIMITS_MAX_SESSIONS=0", "RALPH_LIMITS_MAX_SESSIONS=ten", "RALPH_LIMITS_MAX_COST_USD=inf", "RALPH_LIMITS_MAX_COST_USD=nan", "RALPH_LIMITS_MAX_COST_USD=x", "RALPH_LIMITS_SESSION_TIMEOUT=5",
		"RALPH_AGENT_PERMISSION_MODE=x", "RALPH_NOTIFY_RECEIVERS=https://example.com", "RALPH_NOTIFY_RECEIVERS=[{url: x, preset: y}]", "RALPH_VERIFY_COMMANDS=[a", "RALPH_VERIFY_COMMANDS=[1]", "RALPH_AGENT_ENV=x", "RALPH_AGENT_ENV={A: [s]}", "RALPH_VERIFY_COMMANDS= ",
	} {
		fmt.Fprintf(&b, "=== %s\n%s\n\n", variable, refusal(t, "", variable))
	}
	golden(t, "testdata/errors.txt", []byte(b.String()))
}

func refusal(t *testing.T, text string, environ ...string) string {
	t.Helper()
	_, err := load(t, text, environ...)
	if err == nil {
		t.Errorf("%q %q is accepted", text, environ)
		return ""
	}
	var bad *config.Error
	if !errors.As(err, &bad) {
		t.Errorf("%q: %v is no config.Error", text, err)
	}
	return err.Error()
}

func manyUnknown(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

// TestTheDatabaseIsNotNamedInTheProject: agents read ralph.yaml, and the URL may have a password.
func TestTheDatabaseIsNotNamedInTheProject(t *testing.T) {
	const url = "postgres://ralph:hunter2@db/app"
	_, err := load(t, "parallel: 2\ndatabase: "+url)
	if err == nil || !strings.Contains(err.Error(), "ralph.yaml:2") || !strings.Contains(err.Error(), "RALPH_DATABASE") ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	user := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(user, []byte("database: "+url), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Sources{UserFile: user})
	if err != nil || l.Database != url {
		t.Errorf("got %q, %v", l.Database, err)
	}
}

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/config"
)

// lineEnds makes lines end as the YAML library, used bare, can count them.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// FuzzLoad checks that any file is either refused with a place in it, or makes a
// configuration that the schema accepts and that its own values make again.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"", string(config.Starter("claude", []string{"go test ./..."})), allDefaults(), "verify: &x [*x]", "<<: *a", "? a\n: b", "limits:\n  attempts: 0", "agent: {env: {A: |\n  x\n}}",
		"verify:\r\n- 'a'\r\n", "\uFEFFa: !!binary x", "a: {b: [c, {d: e}]}", "&a limits: &b\n  attempts: &c 3\n", "verify: >-\n  a\n  b\n", "parallel: 0x7\n",
	} {
		f.Add([]byte(s))
	}
	validate := validator(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, config.FileName), data, 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Sources{ProjectDir: dir})
		var bad *config.Error
		switch {
		case errors.As(err, &bad):
			if lines := strings.Count(lineEnds.Replace(string(data)), "\n") + 1; bad.Line > lines {
				t.Errorf("line %d of %d: %v", bad.Line, lines, err)
			}
			return
		case err != nil:
			t.Fatalf("no config.Error: %v", err)
		}
		var environ []string
		for i, v := range l.Values() {
			if v.Source != "default" && v.Value != "" && v.Key != "agent.env" {
				environ = append(environ, config.Keys()[i].Env+"="+v.Value)
			}
		}
		again, err := config.Load(config.Sources{Environ: environ})
		if err != nil {
			t.Fatalf("%q is refused: %v", environ, err)
		}
		for i, v := range l.Values() {
			if again := again.Values()[i]; v.Value != again.Value && v.Value != "" && v.Key != "agent.env" {
				t.Errorf("%s: %q became %q", v.Key, v.Value, again.Value)
			}
		}
		if diff := cmp.Diff(l.Limits, again.Limits); diff != "" {
			t.Error(diff)
		}
		if err := validate(lineEnds.Replace(strings.TrimPrefix(string(data), "\uFEFF"))); err != nil {
			t.Errorf("the schema refuses what Load accepts: %v", err)
		}
	})
}

package check

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNamed: the options added to a command so that it reports its tests by name.
func TestNamed(t *testing.T) {
	const node, vitest = `{"scripts": {"test": " node --test "}}`, `{"scripts": {"test": "vitest run"}}`
	for _, tt := range []struct {
		name, command, file, manifest string
		want                          string // how the command begins and ends, around "…"; "" for as it is
		report                        string
	}{
		{"node", "npm test", "package.json", node, "cd . && mkdir -p .ralph && npm run test -- --test-reporter=spec … --test-reporter=junit --test-reporter-destination=.ralph/tests.xml", ".ralph/tests.xml"},
		{"vitest", "npm test", "package.json", vitest, "cd . && mkdir -p .ralph && npm run test -- --reporter=default …--outputFile.junit=.ralph/tests.xml", ".ralph/tests.xml"},
		{"another manager", "pnpm test", "package.json", vitest, "cd . && mkdir -p .ralph && pnpm run test --reporter=default …", ".ralph/tests.xml"},
		{"a folder", "cd web && npm test", "web/package.json", node, "cd web && mkdir -p .ralph && npm run test -- …", "web/.ralph/tests.xml"},
		{"jest", "npm test", "package.json", `{"scripts": {"test": "jest --coverage"}}`, "cd . && mkdir -p .ralph && npm run test -- --json …--outputFile=.ralph/jest.json", ".ralph/jest.json"},
		{"mocha", "yarn test", "package.json", `{"scripts": {"test": "NODE_ENV=test mocha 'test/**/*.js' --recursive"}}`, "cd . && mkdir -p .ralph && printf %s '…' > .ralph/mocha.cjs && yarn run test --reporter ./.ralph/mocha.cjs", ".ralph/tests.xml"},
		{"mocha with a reporter of its own", "npm test", "package.json", `{"scripts": {"test": "mocha -R dot"}}`, "", ""},
		{"jest with a report of its own", "npm test", "package.json", `{"scripts": {"test": "jest --json"}}`, "", ""},
		{"jest and more", "npm test", "package.json", `{"scripts": {"test": "jest && tsc"}}`, "", ""},
		{"another script", "npm test", "package.json", `{"scripts": {"test": "ava"}}`, "", ""},
		{"options of its own", "npm test", "package.json", `{"scripts": {"test": "node --test --test-only"}}`, "cd . && mkdir -p .ralph && npm run test -- …", ".ralph/tests.xml"},
		{"reporters of its own", "npm test", "package.json", `{"scripts": {"test": "vitest run --reporter=junit"}}`, "", ""},
		{"more than tests", "npm test", "package.json", `{"scripts": {"test": "node --test || true"}}`, "", ""},
		{"files of its own", "npm test", "package.json", `{"scripts": {"test": "node --test test/"}}`, "", ""},
		{"another command", "npm test --silent", "package.json", node, "", ""},
		{"another folder", "cd web && npm test", "package.json", node, "", ""},
		{"no JSON", "npm test", "package.json", "{", "", ""},
		{"no manifest", "npm test", "readme", "", "", ""},
		{"more than a manifest", "npm test", "package.json", node + strings.Repeat(" ", maxManifest), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tt.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tt.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			run, report := named(tt.command, dir)
			begin, end, _ := strings.Cut(tt.want, "…")
			if tt.want == "" {
				begin, end = tt.command, tt.command
			}
			if !strings.HasPrefix(run, begin) || !strings.HasSuffix(run, end) || report != tt.report {
				t.Errorf("runs %q and reports in %q", run, report)
			}
		})
	}
	t.Run("a pipe in its place", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, "package.json"), 0o600); err != nil {
			t.Fatal(err)
		}
		if run, report := named("npm test", dir); run != "npm test" || report != "" {
			t.Errorf("runs %q and reports in %q", run, report)
		}
	})
}

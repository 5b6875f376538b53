package ralph_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports says which of ralph's packages each package may import. It is policy:
// read it, and ARCHITECTURE.md, before you change it to make a build pass.
var imports = map[string][]string{
	"ralph":            {},
	"ralph/signals":    {"ralph", "ralph/internal/bm25", "ralph/internal/patch"},
	"ralph/prompt":     {"ralph", "ralph/signals"},
	"ralph/migrations": {},
	"ralph/store":      {"ralph", "ralph/signals", "ralph/migrations", "ralph/internal/bm25", "ralph/internal/machine"},
	"ralph/mcpserver": {
		"ralph/internal/term",
		"ralph", "ralph/signals", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/claude",
		"ralph/internal/config", "ralph/internal/files", "ralph/internal/web/localhttp", "ralph/internal/permission",
		"ralph/internal/pipe", "ralph/internal/proc", "ralph/internal/show", "ralph/loop/session",
		"ralph/internal/advice", "ralph/internal/inbox", "ralph/internal/words",
	},
	// The forge: beside the loop, and without it.
	"ralph/forge":                {"ralph", "ralph/signals", "ralph/store", "ralph/internal/exchange", "ralph/internal/inbox"},
	"ralph/internal/machine":     {},
	"ralph/internal/pgtest":      {"ralph/store"}, // for tests
	"ralph/internal/lazy":        {},
	"ralph/internal/text":        {},
	"ralph/internal/term":        {},
	"ralph/internal/proc":        {},
	"ralph/internal/pipe":        {},
	"ralph/internal/sandbox":     {"ralph/internal/proc", "ralph/internal/files"},
	"ralph/internal/patch":       {},
	"ralph/internal/picturetest": {}, // for tests
	"ralph/internal/worktree":    {"ralph", "ralph/internal/environment", "ralph/internal/files", "ralph/internal/patch"},
	"ralph/internal/schedule":    {},
	"ralph/internal/systemd":     {"ralph/internal/proc"},
	"ralph/internal/config":      {"ralph"},
	"ralph/internal/permission":  {"ralph"},
	"ralph/internal/environment": {},
	"ralph/internal/secret":      {},
	"ralph/internal/testresult":  {},
	"ralph/internal/bm25":        {},
	"ralph/internal/exchange":    {"ralph", "ralph/signals"},
	"ralph/internal/files":       {},
	"ralph/internal/advice":      {"ralph", "ralph/store"},
	"ralph/internal/state": {
		"ralph", "ralph/store", "ralph/internal/files", "ralph/internal/pipe", "ralph/internal/proc", "ralph/internal/worktree",
	},
	"ralph/internal/inbox": {"ralph/internal/term", "ralph", "ralph/store", "ralph/internal/advice", "ralph/internal/exchange"},
	"ralph/internal/demo":  {"ralph", "ralph/internal/state"},
	// Text for terminals and chats.
	"ralph/internal/show": {
		"ralph/internal/term",
		"ralph", "ralph/store", "ralph/loop/agent/kinds", "ralph/internal/advice", "ralph/internal/config",
		"ralph/internal/inbox", "ralph/internal/report", "ralph/internal/testresult",
		"ralph/internal/transcript",
		"ralph/internal/words",
	},
	// Turns a project's configuration into working parts.
	"ralph/internal/project": {
		"ralph/forge", "ralph/internal/files",
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/claude", "ralph/loop/agent/kinds", "ralph/loop/agent/process",
		"ralph/internal/config", "ralph/internal/environment", "ralph/internal/exchange", "ralph/internal/permission", "ralph/internal/proc",
		"ralph/internal/retention", "ralph/internal/sandbox", "ralph/internal/secret", "ralph/internal/state", "ralph/internal/systemd", "ralph/internal/term",
		"ralph/internal/worktree", "ralph/loop/check", "ralph/loop/merging", "ralph/loop/order", "ralph/loop/workspace",
		"ralph/mcpserver",
	},
	"ralph/internal/doctor": {
		"ralph", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/claude", "ralph/internal/config",
		"ralph/internal/project", "ralph/internal/sandbox", "ralph/internal/show", "ralph/internal/state",
		"ralph/internal/words", "ralph/internal/worktree", "ralph/internal/secret",
	},
	// Prints events as they happen.
	"ralph/internal/follow": {
		"ralph/internal/term",
		"ralph", "ralph/store", "ralph/loop", "ralph/internal/config", "ralph/internal/project", "ralph/internal/report",
		"ralph/internal/retention", "ralph/internal/show", "ralph/internal/systemd", "ralph/internal/words",
	},
	// Packages that the work of a run does not depend on.
	"ralph/internal/bystander": {
		"ralph/forge",
		"ralph", "ralph/store", "ralph/loop/agent", "ralph/loop/agent/kinds", "ralph/loop/workspace", "ralph/internal/config", "ralph/internal/web",
		"ralph/internal/web/localhttp", "ralph/internal/notify", "ralph/internal/project",
		"ralph/internal/retention",
	},
	"ralph/internal/jsonl":      {},
	"ralph/internal/jsonrpc":    {"ralph/internal/jsonl"},
	"ralph/internal/transcript": {"ralph/loop/agent", "ralph/internal/jsonl"},
	"ralph/internal/watch": {
		"ralph", "ralph/store", "ralph/loop/order", "ralph/loop/agent", "ralph/loop/agent/kinds", "ralph/internal/retention", "ralph/internal/machine", "ralph/internal/advice", "ralph/internal/inbox",
		"ralph/internal/report", "ralph/internal/transcript",
	},
	"ralph/internal/retention":     {},
	"ralph/internal/report":        {"ralph/internal/term", "ralph", "ralph/signals", "ralph/store", "ralph/internal/files", "ralph/internal/advice", "ralph/internal/inbox"},
	"ralph/internal/web/localhttp": {},
	"ralph/internal/web": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/web/localhttp", "ralph/internal/transcript",
		"ralph/internal/report", "ralph/loop/agent", "ralph/loop/order", "ralph/internal/advice", "ralph/internal/inbox",
		"ralph/internal/exchange", "ralph/internal/patch",
	},
	"ralph/internal/words":       {"ralph"},
	"ralph/internal/web/webtest": {"ralph", "ralph/internal/machine", "ralph/signals", "ralph/store"}, // a fixture of tests
	"ralph/internal/notify":      {"ralph", "ralph/store", "ralph/internal/proc", "ralph/internal/report", "ralph/internal/words"},
	"ralph/loop": {
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/internal/machine", "ralph/internal/proc", "ralph/internal/worktree",
		"ralph/internal/schedule", "ralph/loop/agent", "ralph/loop/check", "ralph/loop/merging", "ralph/loop/order", "ralph/loop/session",
		"ralph/loop/workspace",
	},
	"ralph/loop/session": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/proc", "ralph/internal/worktree", "ralph/internal/patch", "ralph/prompt",
		"ralph/loop/agent", "ralph/loop/check", "ralph/loop/merging", "ralph/loop/order", "ralph/loop/trial", "ralph/loop/workspace",
	},
	"ralph/loop/order": {
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/internal/bm25", "ralph/loop/agent", "ralph/loop/check",
	},
	"ralph/loop/gate":          {"ralph", "ralph/signals", "ralph/internal/testresult"},
	"ralph/loop/gate/gatetest": {},
	"ralph/loop/trial":         {"ralph/internal/testresult", "ralph/loop/gate"},
	"ralph/loop/check": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/files", "ralph/internal/proc", "ralph/internal/testresult",
		"ralph/internal/worktree",
		"ralph/loop/workspace",
	},
	"ralph/loop/merging": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/proc", "ralph/internal/worktree", "ralph/loop/check",
		"ralph/loop/gate", "ralph/loop/trial",
		"ralph/loop/workspace",
	},
	"ralph/loop/workspace": {"ralph", "ralph/store", "ralph/internal/files", "ralph/internal/proc", "ralph/internal/worktree"},
	"ralph/loop/agent":     {"ralph", "ralph/internal/environment", "ralph/internal/permission", "ralph/internal/proc"},
	// The common parts of all agents that are programs.
	"ralph/loop/agent/process": {
		"ralph/loop/agent", "ralph/internal/environment", "ralph/internal/pipe", "ralph/internal/proc",
	},
	// The same for agents that speak JSON-RPC.
	"ralph/loop/agent/conversation": {
		"ralph", "ralph/loop/agent", "ralph/loop/agent/process", "ralph/internal/jsonrpc", "ralph/internal/proc",
	},
	"ralph/loop/agent/scripted": {"ralph"},
	"ralph/loop/agent/acp": {
		"ralph", "ralph/loop/agent", "ralph/loop/agent/conversation", "ralph/loop/agent/process", "ralph/internal/environment", "ralph/internal/jsonrpc",
		"ralph/internal/permission", "ralph/internal/pipe",
	},
	"ralph/loop/agent/command": {"ralph", "ralph/loop/agent", "ralph/loop/agent/process"},
	"ralph/loop/agent/codex": {
		"ralph", "ralph/loop/agent", "ralph/loop/agent/conversation", "ralph/loop/agent/process", "ralph/internal/environment", "ralph/internal/jsonrpc",
		"ralph/internal/permission", "ralph/internal/pipe",
	},
	"ralph/loop/agent/claude": {
		"ralph", "ralph/loop/agent", "ralph/loop/agent/process", "ralph/internal/environment", "ralph/internal/pipe",
		"ralph/internal/files", "ralph/internal/proc", "ralph/internal/jsonl", "ralph/internal/permission",
	},
	// Every agent, for callers that know none by name.
	"ralph/loop/agent/kinds": {
		"ralph", "ralph/internal/config", "ralph/loop/agent", "ralph/loop/agent/acp", "ralph/loop/agent/claude",
		"ralph/loop/agent/codex", "ralph/loop/agent/command", "ralph/loop/agent/process",
	},
	"ralph/cmd/ralph": {
		"ralph/internal/term",
		"ralph/internal/advice",
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/mcpserver", "ralph/loop",
		"ralph/loop/agent", "ralph/loop/agent/claude", "ralph/loop/agent/kinds", "ralph/loop/agent/scripted", "ralph/loop/order", "ralph/loop/workspace", "ralph/loop/session",
		"ralph/internal/bystander", "ralph/internal/config", "ralph/internal/demo", "ralph/internal/doctor",
		"ralph/internal/exchange", "ralph/internal/files", "ralph/internal/follow", "ralph/internal/inbox", "ralph/internal/notify", "ralph/internal/permission",
		"ralph/internal/machine", "ralph/internal/pipe", "ralph/internal/proc", "ralph/internal/project",
		"ralph/internal/report",
		"ralph/internal/retention", "ralph/internal/sandbox", "ralph/internal/schedule", "ralph/internal/show", "ralph/internal/state",
		"ralph/internal/systemd", "ralph/internal/watch", "ralph/internal/words", "ralph/internal/worktree",
	},
}

// pure packages must not reach the outside world.
var pure = []string{"ralph", "ralph/signals", "ralph/prompt", "ralph/internal/words", "ralph/internal/text"}

// everywhere lists the packages that every package may import.
var everywhere = []string{"ralph/internal/lazy", "ralph/internal/text"}

// outside lists the packages that reach the outside world.
var outside = []string{"os", "net", "net/http", "database/sql", "log", "log/slog", "context", "sync", "os/exec"}

func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		allowed, known := imports[name]
		if !known {
			t.Errorf("%s is not in the table of imports", name)
			continue
		}
		for _, i := range strings.Fields(list) {
			if (i == "ralph" || strings.HasPrefix(i, "ralph/")) && !slices.Contains(everywhere, i) && !slices.Contains(allowed, i) {
				t.Errorf("%s may not import %s", name, i)
			}
			if strings.HasPrefix(i, "ralph/") && strings.HasSuffix(i, "test") && !strings.HasSuffix(name, "test") {
				t.Errorf("%s may not import %s, a fixture, which only tests import", name, i)
			}
			if slices.Contains(pure, name) && slices.Contains(outside, i) {
				t.Errorf("%s is pure and may not import %s", name, i)
			}
		}
	}
}

// claudes are the names of Claude's tools, flags, files and variables,
// which only Claude's package may contain.
var claudes = []string{
	"mcp__", "--permission-prompt-tool", `"Bash"`, `"Edit"`, `"Write"`, `"MultiEdit"`, `"NotebookEdit"`,
	"stream-json", "PreToolUse", ".claude/", "CLAUDE_",
}

// knowing lists the files that contain such names all the same, and why.
var knowing = map[string]string{
	"loop/agent/scripted/":        "stands in for Claude, down to its flags",
	"loop/agent/profile.go":       "the assumed profile of an unknown agent",
	"loop/agent/acp/":             "names tools as permission rules do",
	"loop/agent/codex/":           "has hooks of the same form",
	"internal/web/webtest/":       "writes transcripts as Claude does, for tests",
	"internal/tools/messagesapi/": "scripts name tools as Claude does",
}

// TestClaudesNamesStandInItsPackage checks that no other package contains
// them: it has to ask that package.
func TestClaudesNamesStandInItsPackage(t *testing.T) {
	needed := maps.Clone(knowing)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "loop/agent/claude/") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(source)) {
			code, _, _ := strings.Cut(line, "//")
			i := slices.IndexFunc(claudes, func(name string) bool { return strings.Contains(code, name) })
			if i < 0 {
				continue
			}
			known := false
			for place := range knowing {
				if strings.HasPrefix(path, place) {
					known = true
					delete(needed, place)
				}
			}
			if !known {
				t.Errorf("%s has a name of Claude's, %s: ask package loop/agent/claude", path, claudes[i])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range needed {
		t.Errorf("%s has no name of Claude's any more: take it out of the list", place)
	}
}

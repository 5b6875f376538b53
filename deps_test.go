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

// imports says which of ralph's packages each package may import. It is a
// statement of policy: read it, and docs/architecture.md, before you change it to
// make a build pass.
var imports = map[string][]string{
	"ralph":            {},
	"ralph/signals":    {"ralph", "ralph/internal/bm25"},
	"ralph/prompt":     {"ralph", "ralph/signals"},
	"ralph/migrations": {},
	"ralph/store":      {"ralph", "ralph/signals", "ralph/migrations", "ralph/internal/bm25"},
	"ralph/mcpserver": {
		"ralph", "ralph/signals", "ralph/store", "ralph/loop", "ralph/loop/agent/claude",
		"ralph/internal/config", "ralph/internal/files", "ralph/internal/web/localhttp", "ralph/internal/permission",
		"ralph/internal/proc", "ralph/internal/show", "ralph/loop/session",
	},
	"ralph/internal/text":        {},
	"ralph/internal/proc":        {},
	"ralph/internal/sandbox":     {"ralph/internal/proc"},
	"ralph/internal/worktree":    {"ralph"},
	"ralph/internal/schedule":    {},
	"ralph/internal/systemd":     {"ralph/internal/proc"},
	"ralph/internal/config":      {"ralph"},
	"ralph/internal/messagesapi": {},
	"ralph/internal/permission":  {"ralph"},
	"ralph/internal/testresult":  {},
	"ralph/internal/bm25":        {},
	"ralph/internal/exchange":    {"ralph", "ralph/signals"},
	"ralph/internal/files":       {},
	"ralph/internal/advice":      {"ralph/store"},
	"ralph/internal/state":       {"ralph", "ralph/store", "ralph/internal/proc", "ralph/internal/worktree"},
	"ralph/internal/inbox":       {"ralph", "ralph/store"},
	"ralph/internal/replay":      {"ralph", "ralph/signals", "ralph/store"},
	"ralph/internal/demo":        {"ralph", "ralph/internal/state"},
	// What ralph knows as text for terminals and chats.
	"ralph/internal/show": {
		"ralph", "ralph/store", "ralph/loop/agent/kinds", "ralph/internal/advice", "ralph/internal/config",
		"ralph/internal/testresult",
		"ralph/internal/transcript",
		"ralph/internal/words",
	},
	// A project's configuration, made into what works.
	"ralph/internal/project": {
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/claude", "ralph/loop/agent/kinds",
		"ralph/internal/config", "ralph/internal/exchange", "ralph/internal/permission", "ralph/internal/proc",
		"ralph/internal/retention", "ralph/internal/sandbox", "ralph/internal/state", "ralph/internal/systemd",
		"ralph/internal/worktree", "ralph/loop/check", "ralph/loop/place", "ralph/loop/session",
	},
	"ralph/internal/doctor": {
		"ralph", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/claude", "ralph/internal/config",
		"ralph/internal/project", "ralph/internal/show", "ralph/internal/state", "ralph/internal/worktree",
		"ralph/internal/words",
	},
	// Those on whom the work of a run does not depend.
	"ralph/internal/beside": {
		"ralph", "ralph/store", "ralph/loop/agent", "ralph/loop/agent/kinds", "ralph/internal/config", "ralph/internal/web",
		"ralph/internal/web/localhttp", "ralph/internal/notify", "ralph/internal/project",
		"ralph/internal/retention",
	},
	"ralph/internal/jsonl":      {},
	"ralph/internal/transcript": {"ralph/loop/agent", "ralph/internal/jsonl"},
	"ralph/internal/watch": {
		"ralph", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/kinds", "ralph/internal/retention", "ralph/internal/advice",
		"ralph/internal/transcript",
	},
	"ralph/internal/retention":     {},
	"ralph/internal/report":        {"ralph", "ralph/signals", "ralph/store", "ralph/internal/files", "ralph/internal/advice"},
	"ralph/internal/web/localhttp": {},
	"ralph/internal/web": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/web/localhttp", "ralph/internal/transcript",
		"ralph/internal/report", "ralph/loop/agent", "ralph/internal/advice",
	},
	"ralph/internal/words":  {"ralph"},
	"ralph/internal/notify": {"ralph", "ralph/store", "ralph/internal/proc", "ralph/internal/words"},
	"ralph/loop": {
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/internal/proc", "ralph/internal/worktree",
		"ralph/internal/bm25", "ralph/internal/schedule", "ralph/loop/agent", "ralph/loop/check",
		"ralph/loop/place",
		"ralph/loop/session",
	},
	"ralph/loop/session": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/proc", "ralph/internal/worktree",
		"ralph/loop/agent", "ralph/loop/check",
		"ralph/loop/place",
	},
	"ralph/loop/check": {
		"ralph", "ralph/signals", "ralph/store", "ralph/internal/proc", "ralph/internal/testresult",
		"ralph/internal/worktree",
		"ralph/loop/place",
	},
	"ralph/loop/place":          {"ralph/store", "ralph/internal/proc", "ralph/internal/worktree"},
	"ralph/loop/agent":          {"ralph", "ralph/internal/proc"},
	"ralph/loop/agent/scripted": {"ralph"},
	"ralph/loop/agent/claude": {
		"ralph", "ralph/loop/agent", "ralph/internal/proc", "ralph/internal/jsonl", "ralph/internal/permission",
	},
	// Every agent, for who knows none by name.
	"ralph/loop/agent/kinds": {"ralph/internal/config", "ralph/loop/agent", "ralph/loop/agent/claude"},
	// Measures all of them, as users and from the inside, and is in no binary of ralph's.
	"ralph/internal/bench": {
		"ralph", "ralph/signals", "ralph/store", "ralph/loop", "ralph/loop/agent", "ralph/loop/agent/claude",
		"ralph/loop/place", "ralph/internal/worktree",
	},
	"ralph/internal/bench/floor": {},
	// Changes rules on purpose, to see whether tests notice; in no binary either.
	"ralph/internal/mutation": {},
	"ralph/cmd/ralph": {
		"ralph/internal/advice",
		"ralph", "ralph/signals", "ralph/prompt", "ralph/store", "ralph/mcpserver", "ralph/loop",
		"ralph/loop/agent/claude", "ralph/loop/agent/scripted", "ralph/loop/session",
		"ralph/internal/beside", "ralph/internal/config", "ralph/internal/demo", "ralph/internal/doctor",
		"ralph/internal/exchange", "ralph/internal/files", "ralph/internal/inbox", "ralph/internal/notify", "ralph/internal/permission",
		"ralph/internal/proc", "ralph/internal/project", "ralph/internal/replay", "ralph/internal/report",
		"ralph/internal/retention", "ralph/internal/schedule", "ralph/internal/show", "ralph/internal/state",
		"ralph/internal/systemd", "ralph/internal/watch", "ralph/internal/words", "ralph/internal/worktree",
	},
}

// pure packages think; they may not reach out.
var pure = []string{"ralph", "ralph/signals", "ralph/prompt", "ralph/internal/words", everywhere}

// everywhere is what every package may import: how text is shown.
const everywhere = "ralph/internal/text"

// outside is what reaching out takes.
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
			if (i == "ralph" || strings.HasPrefix(i, "ralph/")) && i != everywhere && !slices.Contains(allowed, i) {
				t.Errorf("%s may not import %s", name, i)
			}
			if slices.Contains(pure, name) && slices.Contains(outside, i) {
				t.Errorf("%s is pure and may not import %s", name, i)
			}
		}
	}
}

// claudes are names that only Claude's package knows: of its tools, flags, files and
// variables.
var claudes = []string{
	"mcp__", "--permission-prompt-tool", `"Bash"`, `"Edit"`, `"Write"`, `"MultiEdit"`, `"NotebookEdit"`,
	"stream-json", "PreToolUse", ".claude/", "CLAUDE_",
}

// knowing are the files that have such names all the same, and why.
var knowing = map[string]string{
	"loop/agent/scripted/":          "stands in for Claude, down to its flags",
	"internal/permission/guards.go": "says in words what a built-in rule denies",
	"loop/session/words.go":         "tells an agent which tool to call",
}

// TestClaudesNamesStandInItsPackage: whatever else is to know them asks that package.
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

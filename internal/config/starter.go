package config

import (
	"fmt"
	"strings"

	"ralph"
)

// Starter returns the ralph.yaml that `ralph init` writes: the agent to use, the commands that verify the project,
// and the most used keys with their defaults, as comments. Without commands, verify is a comment
// too. junit are the files with their test results, if any.
func Starter(use string, verify []string, junit ...string) []byte {
	var b strings.Builder
	b.WriteString(`# Settings of ralph for this project. A line that is commented out shows the
# default; "ralph config" lists every key, its value and where it came from.

# Commands that must all pass before a task counts as done.
`)
	if len(verify) == 0 {
		b.WriteString("# verify:\n#   - make test\n")
	} else {
		b.WriteString(StarterVerify(verify, junit...))
	}
	b.WriteString("\n# A run ends cleanly when it reaches one of its limits; none can be switched off.\n")
	commented(&b, "limits", "max_sessions", "max_duration", "max_cost_usd", "session_timeout", "session_cost_usd")
	b.WriteString("\n# What an agent may do without you, beside the built-in rules.\n")
	commented(&b, "permissions", "allow", "ask", "deny")
	if use == ralph.DefaultAgent {
		b.WriteString("\n# The agent.\n")
		commented(&b, "agent", "command")
	} else {
		fmt.Fprintf(&b, "\n# The agent; docs/agents.md has others.\nagent:\n  use: %[1]s\nagents:\n  %[1]s: {}\n", use)
	}
	return []byte(b.String())
}

// StarterVerify returns the section on verification.
func StarterVerify(verify []string, junit ...string) string {
	var b strings.Builder
	b.WriteString("verify:\n")
	indent := "  "
	if len(junit) > 0 {
		quoted := make([]string, len(junit))
		for i, j := range junit {
			quoted[i] = flow(j)
		}
		fmt.Fprintf(&b, "  junit: [%s]\n  commands:\n", strings.Join(quoted, ", "))
		indent = "    "
	}
	for _, command := range verify {
		fmt.Fprintf(&b, "%s- %s\n", indent, flow(command))
	}
	return b.String()
}

// A StarterWorkspace is the section on workspaces in the ralph.yaml that `ralph init` writes.
type StarterWorkspace struct {
	Setup  []string
	Sparse []string // folders
}

// Starter returns the section as text; none if there is nothing to set.
func (p StarterWorkspace) Starter() []byte {
	if len(p.Setup)+len(p.Sparse) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\n# Each session works in a clone of its own, which this makes ready.\nworkspace:\n")
	for _, list := range []struct {
		key   string
		items []string
	}{{"setup", p.Setup}, {"sparse", p.Sparse}} {
		if len(list.items) > 0 {
			fmt.Fprintf(&b, "  %s:\n", list.key)
		}
		for _, item := range list.items {
			fmt.Fprintf(&b, "    - %s\n", flow(item))
		}
	}
	return []byte(b.String())
}

// commented writes keys of a group with their defaults as comments.
func commented(b *strings.Builder, group string, names ...string) {
	fmt.Fprintf(b, "# %s:\n", group)
	for _, name := range names {
		f, _ := named(fields, group+"."+name)
		fmt.Fprintf(b, "#   %-30s # %s\n", name+": "+f.fallback, strings.TrimSuffix(f.doc, "."))
	}
}

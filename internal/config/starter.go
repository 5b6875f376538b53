package config

import (
	"fmt"
	"strings"
)

// Starter is the ralph.yaml that `ralph init` writes: the commands that verify
// the project, and as comments what people change most, with its defaults.
// Without commands, their place is a comment too. junit is where they write which
// tests failed, if they do.
func Starter(verify []string, junit ...string) []byte {
	var b strings.Builder
	b.WriteString(`# Settings of ralph for this project. A line that is commented out shows the
# default; "ralph config" lists every key, its value and where it came from.

# Commands that must all pass before a task counts as done.
`)
	if len(verify) == 0 {
		b.WriteString("# verify:\n#   - make test\n")
	} else {
		b.WriteString("verify:\n")
	}
	indent := "  "
	if len(verify) > 0 && len(junit) > 0 {
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
	b.WriteString("\n# A run ends cleanly when it reaches one of its limits; none can be switched off.\n")
	commented(&b, "limits", "max_sessions", "max_duration", "max_cost_usd", "session_timeout", "session_cost_usd")
	b.WriteString("\n# What an agent may do without you, beside the built-in rules.\n")
	commented(&b, "permissions", "allow", "ask", "deny")
	b.WriteString("\n# The agent.\n")
	commented(&b, "agent", "command")
	return []byte(b.String())
}

// commented writes keys of a group with their defaults, as comments.
func commented(b *strings.Builder, group string, names ...string) {
	fmt.Fprintf(b, "# %s:\n", group)
	for _, name := range names {
		f, _ := named(fields, group+"."+name)
		fmt.Fprintf(b, "#   %-30s # %s\n", name+": "+f.fallback, strings.TrimSuffix(f.doc, "."))
	}
}

package kinds

import (
	"slices"

	"ralph/loop/agent/claude"
)

// Steering are globs of a project's files that steer agents. They affect the next
// session, or a person's session with another agent, so only people may change them
// (trust, 5). They include texts in any folder that an agent works in.
var Steering = slices.Concat(claude.Steering, claude.Tools.Settings, []string{
	"AGENTS.md", "AGENTS.override.md", ".agents/**", ".codex/**", "GEMINI.md", ".gemini/**",
	".cursor/**", ".cursorrules", ".opencode/**", "opencode.json*", "QWEN.md", ".qwen/**",
	"**/AGENTS.md", "**/AGENTS.override.md", "**/GEMINI.md", "**/QWEN.md",
	".github/copilot-instructions.md", ".github/instructions/**", ".windsurfrules", ".windsurf/**",
})

// Own are globs, among these, of files that agents write for themselves.
var Own = claude.Own

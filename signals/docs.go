package signals

import "ralph"

// Docs has the descriptions of the fields that agents read.
var Docs = map[ralph.Verb]map[string]string{
	ralph.VerbDone: {
		"summary": "What was accomplished. Include key decisions and outcomes.",
		"tests_changed": "Why the task asks for tests that were there to be removed, or to expect something else: " +
			"the task's own words. ralph runs the tests as they were, and a person reads this.",
		"flags_answered": "If you raised blocking flags: how each was mended, or why it does not hold.",
	},
	ralph.VerbPartial: {
		"summary":   "What was accomplished so far.",
		"remaining": "What still needs to be done and why you stopped. Be specific.",
	},
	ralph.VerbStuck: {
		"reason": "Why you're stuck. Be specific about what's blocking your ability to work.",
	},
	ralph.VerbAsk: {
		"question":  "The specific question you need answered.",
		"options":   "If you've identified possible answers, list them.",
		"preferred": "If you have a recommendation, state it.",
		"blocking": "True if you cannot proceed without the answer. " +
			"False if nice-to-know but you can continue with your best judgment.",
	},
	ralph.VerbFlag: {
		"what": "Clear description of the problem.",
		"severity": "info (FYI, no action needed now), warning (should be addressed, " +
			"doesn't block this task), blocking (this task can't be fully completed because of this).",
		"category": "What sort of problem it is.",
	},
	ralph.VerbLearned: {
		"text": "The knowledge to record. Should be specific enough " +
			"that a different developer on a different task would benefit from it.",
		"kind": "discovery (factual finding about the codebase), " +
			"decision (judgment call with rationale), convention (project pattern to follow).",
		"rationale": "For decisions: why you chose this approach and what alternatives you rejected.",
		"scope": "project (always relevant), feature (relevant to same feature's tasks), " +
			"task (only relevant if this task is re-attempted). " +
			"Default: feature. Tasks without a feature count as one.",
	},
	ralph.VerbSuggest: {
		"what":    "What should be done. The first line becomes the title of a new task.",
		"kind":    "new_task (ralph proposes it to a person as a task), split, refactor, alternative or deprecate.",
		"why":     "Why this is needed.",
		"feature": "Which feature this relates to (for new_task suggestions).",
	},
	ralph.VerbBlocked: {
		"on": "What is blocking you. For an upstream task: its number (#12) or its exact title.",
		"kind": "upstream_task (dependency on another task that's incomplete) " +
			"or external (credentials, services, human decisions, infrastructure).",
		"detail": "Additional context about the blocker.",
	},
}

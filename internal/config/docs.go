package config

// Common are the keys that people usually set, at most 15. The defaults of the others rarely
// change.
var Common = []string{
	"verify.commands", "verify.on_red",
	"limits.max_cost_usd", "limits.max_duration", "limits.session_cost_usd", "limits.session_timeout",
	"agent.use", "agent.model",
	"permissions.allow", "permissions.ask", "permissions.deny",
	"parallel", "merge.into", "notify.receivers",
}

// docs explains each key in a sentence or two; for a list of maps, also each of the maps' keys.
var docs = map[string]string{
	"agent.command":    "The agent's program, with its first arguments.",
	"agent.extra_args": "Arguments after ralph's own.",
	"agent.model": "The model, unless the task or its discipline names one; empty is the agent's own. An effort " +
		"may follow: " +
		"`opus@high`, or `@high` alone.",
	"agent.mcp":             "MCP servers beside ralph's: `approved` are those of `.mcp.json` on the target branch.",
	"agent.permission_mode": "The agent's own permission mode. In default it asks ralph, which answers by permissions.",
	"agent.use": "The agent, unless `--agent`, the task or its discipline names one: claude, or a name " +
		"below agents.",
	"agent.fallback": "Agents that work instead, in this order, while it is limited, overloaded, or its " +
		"account does not work.",
	"agents": "The other coding agents that ralph may start, by name (docs/agents.md). Keys of " +
		"agent apply to claude.",
	"agents.kind": "The name of an agent in docs/agents.md, or its protocol: claude, codex, acp, " +
		"command. Default: its own name.",
	"agents.command": "Its program, with first arguments; default: that of its kind.",
	"agents.model":   "Its model, unless the task or its discipline names one.",
	"agents.prices": "Prices in USD per million tokens, as {MODEL: [input, cached input, output]}, if it " +
		"reports tokens and no cost.",
	"agents.unguarded": "It may work without a sandbox although it asks no permissions.",
	"agents.env":       "Variables for this agent alone.",
	"agent.env": "Variables for the agent and checks, beside the usual ones (docs/sandbox.md); $NAME is a variable " +
		"of ralph's " +
		"environment. ralph does not show the values.",

	"limits.max_sessions": "Sessions of a run; in a daemon without a schedule, of a day.",
	"limits.max_tasks":    "Tasks of a run; in a daemon without a schedule, of a day.",
	"limits.max_duration": "Wall time of a run; in a daemon without a schedule, of a day.",
	"limits.max_cost_usd": "Cost of a run; in a daemon without a schedule, of a day.",
	"limits.max_cost_per_day_usd": "Cost of a day, from midnight to midnight, over all runs. A daemon then waits for " +
		"midnight.",
	"limits.max_cost_per_month_usd": "Cost of a calendar month over all runs. A daemon then waits for the next month.",
	"limits.session_tokens": "Tokens of a session, of all kinds. 0: as many as `session_cost_usd` pays for, for an " +
		"unknown " +
		"model at the dearest known price.",
	"limits.session_timeout": "Wall time of a session.",
	"limits.idle_timeout": "A session stops after this time without an event, a signal, CPU use or a change " +
		"in its work tree.",
	"limits.session_turns":     "Turns of a session.",
	"limits.session_cost_usd":  "Cost of a session.",
	"limits.attempts":          "Sessions of a task, after which it fails.",
	"limits.stagnant_sessions": "A run ends after the sessions of this many tasks in a row changed nothing.",
	"limits.review_rounds": "Sessions that reviews and failing checks of a pull request may cause before you " +
		"decide.",
	"limits.usage": "Use of a subscription, as the agent reported it last, at which no session starts until the " +
		"reset. Unreported values have no effect.",

	"verify.commands": "Shell commands that must all pass before a task counts as done.",
	"verify.timeout":  "Time limit of each command.",
	"verify.baseline": "Named tests that failed before the task are excused (new-failures) or refused (strict).",
	"verify.on_red": "If commands fail before the first session, without named tests to excuse: the run ends and a " +
		"daemon " +
		"waits (stop); one task works until they pass (first); or the run goes on (go).",
	"verify.junit": "Files with JUnit XML from the commands, relative to the project; globs, ** for any folders. " +
		"go test -json needs none.",
	"verify.protect":      "Files, relative to the project, that a session must not change; globs, ** for any folders.",
	"verify.protect_mode": "A done with changed protected files is refused, or waits for your approval (review).",
	"verify.network":      "Checks use the machine's network; else a localhost of their own.",
	"verify.tests": "Files that are tests, fixtures or snapshots: globs, with ! to take files out; auto stands for " +
		"the " +
		"conventions of known languages (docs/gate.md).",
	"verify.lost": "Lost or loosened tests: you are asked, the done is refused, or it is noted.",
	"verify.changed": "Tests that expect another behaviour: an agent is asked whether the task wants that, and you " +
		"unless it " +
		"says yes (review); you are asked; or it is noted.",
	"verify.hidden": "Checks that no session sees, as {description: command} (docs/gate.md). Set it in " +
		"~/.config/ralph/config.yaml or by RALPH_VERIFY_HIDDEN: agents read ralph.yaml.",
	"verify.hidden_files": "A folder outside of the project. Hidden checks see its files in the work.",
	"verify.trial": "The target's tests run with changed expected values, and must fail (docs/gate.md): if a check " +
		"takes less " +
		"than a minute, or the change touches gate files (auto); for every change (always); or never (off).",
	"verify.retry": "Refusing commands and tests run once more on the same commit, so that flaky tests do not " +
		"count; 0 is never.",
	"verify.guard": "Changes that need an approval: they wait in the inbox (ask), or with merge.mode pr their pull " +
		"request names them (pr).",
	"verify.scope": "Changes outside of the task's `--files`: you are asked (ask), or they are noted (note).",
	"verify.proof": "A change's tests run on the old code after the merge: if a check takes less than a minute " +
		"(auto), " +
		"always, never (off), or before the merge, which needs it (require).",

	"review":       "Agents that review a change before it is merged, in this order (docs/review.md).",
	"review.agent": "The agent, by its name below agents.",
	"review.model": "Its model, if not the agent's own.",
	"review.when": "The changes that it reviews: always, or a map with lines (at least this many), files (globs), " +
		"or both, " +
		"which must both hold.",
	"review.prompt": "A file, relative to the project, with further instructions.",

	"escalation_model": "The model for a task that was stuck twice; none switches it off.",
	"suggestions":      "Tasks that agents suggest wait for you (review) or enter the queue at once (auto_approve).",

	"parallel": "How many sessions work at once (docs/branch.md).",

	"prompt.template": "A prompt template: a file relative to the project, or the text itself if it contains {{ " +
		"(docs/prompt.md); none is ralph's own.",

	"sessions.enforce": "An agent may change files only after it has reported a state; a hook of Claude Code's.",

	"permissions.allow":    "Allowed requests, also exceptions from built-in rules, such as Bash(sudo apt-get *).",
	"permissions.ask":      "Requests that need your approval.",
	"permissions.deny":     "Requests that are denied.",
	"permissions.default":  "The answer where no rule matches.",
	"permissions.guards":   "Built-in rules deny requests that a project's work does not need.",
	"permissions.writable": "Folders outside of the project that an agent may write to.",

	"merge.into": "The target branch; empty is the branch that is checked out when the run begins.",
	"merge.mode": "A change goes into the target branch (merge), or stays on its own branch, ralph/TASK-12-title " +
		"(branch). Or it becomes a pull request, which ralph follows (pr).",
	"merge.auto": "With mode pr: the forge merges a pull request once its checks are green and a person " +
		"approves it.",
	"merge.max_open": "With mode pr: no new task begins while this many pull requests are open.",
	"merge.strategy": "A merge of the session's commits, or a single commit (squash).",
	"merge.sign":     "Commits on the branch are signed as your git signs (gpg.format, user.signingkey).",
	"merge.push":     "The remote to which ralph pushes the branch, by name or address. Its branch then decides.",
	"merge.after": "With mode branch: shell commands for each branch, with RALPH_BRANCH, RALPH_TASK and " +
		"RALPH_RECEIPT. They run " +
		"in your environment, outside of the sandbox.",
	"merge.message": "The commit message, with {task}, {title}, {summary} and {session}; trailers follow. Empty is " +
		"{task}: {title}.",
	"merge.guard": "Globs of more files that wait for you before a merge, beside those of docs/gate.md; ! takes " +
		"files out.",

	"workspace.setup": "Commands that prepare a new workspace. They run again if a lock file or package manifest " +
		"changes.",
	"workspace.ports": "The first port of the first workspace, in RALPH_PORT; each workspace has ten, in RALPH_PORTS.",
	"workspace.sparse": "Folders that workspaces and checks contain, with the files beside and above them; empty " +
		"is all. An agent " +
		"adds others with git sparse-checkout add.",
	"workspace.max_size": "A session or a check ends if its workspace and temporary files exceed this many MiB; " +
		"0 is a tenth of the disk, at least 5 GiB.",
	"workspace.min_free": "Below this many free MiB of disk, ralph removes unused workspaces.",

	"forge.kind":   "The forge: github, gitlab, gitea (also Forgejo), or by the remote's address (auto).",
	"forge.url":    "The address of your forge, such as https://git.example.org; empty: the remote's.",
	"forge.label":  "Issues with this label become tasks; empty is none.",
	"forge.people": "Accounts that may decide by labels, comments and reviews. Empty is everyone with write access.",
	"forge.token_file": "A file outside of the project with the token, instead of RALPH_FORGE_TOKEN, the forge's " +
		"variable, gh or glab.",

	"sandbox.mode": "Agents and checks run in the best sandbox that works here (auto); a run needs bubblewrap or a " +
		"full " +
		"Landlock (require); or none (off).",
	"sandbox.hide": "Files and folders to hide beside the usual places of credentials (docs/sandbox.md); ~ is " +
		"your home.",
	"sandbox.show":    "Hidden files and folders to make readable.",
	"sandbox.network": "The sandbox has a network. Agents usually need it to reach their model.",

	"notify.receivers": "Receivers of events, each with either url or command.",
	"notify.receivers.url": "Where to POST events; $NAME is the value of the variable NAME. ralph does not " +
		"show it.",
	"notify.receivers.command": "A program with arguments; it gets the event as JSON on standard input and its " +
		"type in RALPH_EVENT.",
	"notify.receivers.preset":     "The format; generic is Standard Webhooks.",
	"notify.receivers.events":     "The events to send; default: all.",
	"notify.receivers.secret_env": "The variable with the signing secret (whsec_…), for ntfy the access token.",

	"dashboard.addr": "Address of the dashboard; without a host on the loopback interface. Others need `ralph " +
		"serve` with TLS " +
		"or --insecure.",
	"dashboard.hosts": "Further host names of the dashboard. Reading under them needs a sign-in.",
	"dashboard.sign_in": "Browsers on this machine sign in for everything (always), or only to change something " +
		"(changes): then every user of the machine can read.",
	"dashboard.url": "The address in links of notifications, such as https://box.example.ts.net; empty: " +
		"notifications name " +
		"commands.",

	"database": "The queue's postgres:// URL, in which {project} is the folder's name; empty is a file in the " +
		"state folder " +
		"(docs/state.md). ralph does not show it, and refuses it in ralph.yaml.",
}

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
	"agent.command":    "The agent's program, with first arguments if it needs any.",
	"agent.extra_args": "Arguments appended to those that ralph gives.",
	"agent.model": "The model of sessions for which neither task nor discipline names one; " +
		"empty leaves it to the agent. An effort may stand behind it: `opus@high`, or `@high` alone.",
	"agent.mcp": "Which servers of tools agents have beside ralph's: `approved` is those of the project's `.mcp.json`, " +
		"as it is on the branch into which the work is merged.",
	"agent.permission_mode": "The agent's own permission mode. In default " +
		"it asks ralph, which answers by the rules of permissions.",
	"agent.use": "The agent that works where `--agent`, the task and its discipline name none: " +
		"claude, or a name below agents.",
	"agent.fallback": "Names of agents that work in its place, in this order, while it is limited, overloaded, or " +
		"its account cannot be used; never on a failed check.",
	"agents": "The coding agents that may be started, by name (docs/agents.md); claude is always there, and what is " +
		"set in agent is what it is launched with. No other is ever started.",
	"agents.kind": "What it is: the name of an agent in docs/agents.md, such as gemini, or of how it " +
		"is spoken to: claude, codex, acp, " +
		"command. Without it as its own name says.",
	"agents.command": "Its program, with first arguments; without it that of its kind.",
	"agents.model":   "The model of its sessions for which neither task nor discipline names one.",
	"agents.prices": "Prices of models in USD per million tokens, as {NAME: [input, cached input, output]}, " +
		"for an agent that tells tokens and no cost.",
	"agents.unguarded": "Whether it may work without a sandbox although it asks nobody what it may do.",
	"agents.env":       "The same for its environment alone.",
	"agent.env": "Variables added to the environment of the agent and of checks, beside the usual ones " +
		"(docs/sandbox.md); $NAME as a value is that of the variable NAME of ralph's own environment. " +
		"Values are not shown.",

	"limits.max_sessions": "Sessions per run; in a daemon without a schedule per day.",
	"limits.max_tasks":    "Tasks per run; in a daemon without a schedule per day.",
	"limits.max_duration": "Wall time of a run; in a daemon without a schedule of a day.",
	"limits.max_cost_usd": "Cost of a run in USD; in a daemon without a schedule of a day.",
	"limits.max_cost_per_day_usd": "Cost of a day, from midnight to " +
		"midnight, over all runs, in USD. A daemon then waits for midnight.",
	"limits.max_cost_per_month_usd": "Cost of a month, from its first day on, over all runs, in USD. A daemon then " +
		"waits for the next month.",
	"limits.session_tokens": "Tokens of a session, of every kind. 0: as many as `session_cost_usd` pays for, at the " +
		"dearest price that ralph knows where the model's own is unknown.",
	"limits.session_timeout": "Wall time of a session.",
	"limits.idle_timeout": "A session is stopped after this time without an " +
		"event, a signal, CPU use of what it started or a change in the work tree.",
	"limits.session_turns":     "Turns of a session.",
	"limits.session_cost_usd":  "Cost of a session in USD.",
	"limits.attempts":          "Sessions per task, after which it fails.",
	"limits.stagnant_sessions": "A run ends after the sessions of so many tasks in a row changed nothing.",
	"limits.review_rounds": "How many sessions reviews and failing checks of a pull request may cause before a person " +
		"decides.",
	"limits.usage": "How far a subscription's usage windows may be used before no further session " +
		"starts until they are reset. Windows that the agent does not tell of have no effect.",

	"verify.commands": "Shell commands that must all pass before a task counts as done.",
	"verify.timeout":  "What each command is given.",
	"verify.baseline": "Whether named tests of the project's and the feature's commands that " +
		"failed before a task was begun are excused (new-failures) or refused too (strict).",
	"verify.on_red": "What a run makes of commands that fail before its first session, with " +
		"no named test to excuse: it ends, a daemon waits (stop); one task works until they " +
		"pass and the others wait, for projects that begin empty (first); or it goes on (go).",
	"verify.junit": "Files, relative to the project, into which commands write their tests as " +
		"JUnit XML; globs, ** for any folders. The output of go test -json is understood without.",
	"verify.protect": "Files, relative to the project, that a session must not change; globs, ** for any folders.",
	"verify.protect_mode": "What a done with changed protected files comes " +
		"to: it is refused, or it waits for a person's approval (review).",
	"verify.network": "The commands that check work have the machine's network; else a loopback interface of their own.",
	"verify.tests": "Files that are tests, their fixtures or their snapshots, relative to the project: globs, with ! " +
		"before one that takes files out; auto stands for the conventions of the languages that ralph knows (docs/gate.md).",
	"verify.lost": "What a done comes to by which tests of the target run no more, or no longer tell old code from new: " +
		"a person is asked, it is refused, or it is noted.",
	"verify.changed": "What a done comes to by which tests of the target expect another behaviour: an agent is asked " +
		"whether the task asks for that, and a person unless it says yes (review); a person is asked; or it is noted.",
	"verify.hidden": "Checks that no session sees (docs/gate.md): what each checks in words, and its command. Set it in " +
		"~/.config/ralph/config.yaml or by RALPH_VERIFY_HIDDEN: agents read ralph.yaml.",
	"verify.hidden_files": "A folder outside of the project with what hidden checks need. It is copied over the work, " +
		"for them alone.",
	"verify.trial": "Whether the target's tests are run on a change with other expected values before it is merged, " +
		"which they must notice (docs/gate.md): where a check takes less than a minute, and where the change alters tests, " +
		"settings or what is loaded before tests (auto); for every change (always); or never (off).",
	"verify.retry": "Whether commands and tests that refuse a done run once more on the same commit, so that a flaky " +
		"test does not count (docs/gate.md); 0 for no second run.",
	"verify.scope": "What a done comes to that changes files outside of those of its task (`--files`): a person " +
		"is asked (ask), or it is only noted (note).",
	"verify.proof": "Whether the tests of a change are run on the old code, too, once it has been merged: where a check " +
		"takes less than a minute (auto), always, never (off), or before it is merged, which it then needs (require).",

	"review":       "The agents that review a change before it is merged, in this order (docs/review.md).",
	"review.agent": "The agent, by its name below agents.",
	"review.model": "Its model, if not the agent's own.",
	"review.when": "Which changes it reviews: always, or a map with lines (that add and remove at least so many), files " +
		"(that touch such; globs), or both, which must hold together.",
	"review.prompt": "A file, relative to the project, with what it is to look at beside what ralph asks of it.",

	"escalation_model": "The model for a task that was stuck twice; none switches it off.",
	"suggestions": "Whether tasks that an agent suggests wait for a " +
		"person (review) or enter the queue at once (auto_approve).",

	"parallel": "How many sessions work at once, each in a workspace of its own (docs/branch.md).",

	"prompt.template": "A template in place of ralph's own: a file relative to the project, " +
		"or the text itself if it has {{ in it (docs/prompt.md); none is ralph's own.",

	"sessions.enforce": "Whether an agent may change files only after it has reported a phase; by a hook of Claude's.",

	"permissions.allow":    "What an agent may do although a built-in rule denies it, such as Bash(sudo apt-get *).",
	"permissions.ask":      "What waits for a person's word.",
	"permissions.deny":     "What is denied.",
	"permissions.default":  "The answer where no rule matches.",
	"permissions.guards":   "Whether the built-in rules deny what a project's work does not need.",
	"permissions.writable": "Folders beside the project and the temporary directory that an agent may write to.",

	"merge.into": "The branch into which it goes; empty is the one that is checked out when the run begins.",
	"merge.mode": "Whether a change goes into that branch (merge), or is left on a branch of its own, " +
		"ralph/TASK-12-title (branch), or is pushed on such a branch and becomes a pull request, which ralph follows until " +
		"it is merged (pr).",
	"merge.auto": "With mode pr: whether the forge merges a pull request once its checks are green and a person " +
		"approves it.",
	"merge.max_open": "With mode pr: no new task begins while so many pull requests wait for review.",
	"merge.strategy": "What the branch's history gets: a merge of the session's commits, or one commit (squash).",
	"merge.sign": "Whether what ralph puts on the branch is signed as your git signs (gpg.format, user.signingkey); " +
		"with merge.strategy: squash that is every new commit.",
	"merge.push": "The remote to which the branch is pushed, by its name or address; what was " +
		"merged is what it has then.",
	"merge.after": "Shell commands for each branch of its own, such as gh pr create --fill " +
		"--body-file \"$RALPH_RECEIPT\"; they run with your environment, outside of the sandbox, and are given " +
		"RALPH_BRANCH and RALPH_TASK too.",
	"merge.message": "The message of the commit; {task}, {title}, {summary} and {session} stand for what they say, " +
		"trailers follow it, and empty is {task}: {title}.",
	"merge.guard": "Globs of further files that wait for a person before they are merged, beside those " +
		"of docs/gate.md; with " +
		"! before one that is merged unasked.",

	"workspace.setup": "Commands that make a new workspace ready for work. They run again when a lock " +
		"file or a manifest " +
		"of packages has changed.",
	"workspace.ports": "The first port of the first workspace, in RALPH_PORT; each workspace has " +
		"ten, in RALPH_PORTS as from-to.",
	"workspace.sparse": "Folders, from the project, that workspaces and checks have, with the files beside and above " +
		"them, where a whole checkout is too large; empty is all. An agent adds others with git sparse-checkout add.",
	"workspace.max_size": "A session ends whose workspace and temporary files grow beyond so many MiB; 0 is " +
		"a tenth of the disk, at least 5 GiB.",
	"workspace.min_free": "Workspaces that nobody uses are removed where less than so many MiB of disk are free.",

	"forge.kind":  "The forge: github, gitlab, gitea (also Forgejo), or as the remote's address says (auto).",
	"forge.url":   "The address of a forge of one's own, such as https://git.example.org; empty is that of the remote.",
	"forge.label": "Issues that a person gives this label become tasks; empty is none.",
	"forge.people": "The accounts that may decide: whose labels, comments and reviews count. " +
		"Empty is everyone with write access.",
	"forge.token_file": "A file outside of the project with the token. Else RALPH_FORGE_TOKEN or the forge's usual " +
		"variable has it, or gh or glab.",

	"sandbox.mode": "Whether the agent and the commands that check its work run in a sandbox: the best that works " +
		"here, bubblewrap or else Landlock (auto); or a run does not start without one that keeps all of it (require); " +
		"or none (off).",
	"sandbox.hide": "Files and folders that the sandbox hides beside ralph's state and the usual places of credentials " +
		"(docs/sandbox.md); ~ is the home directory.",
	"sandbox.show":    "Files and folders that it does not hide, and that can be read in it.",
	"sandbox.network": "Whether the sandbox has a network. An agent that reaches its model by one cannot work without.",

	"notify.receivers": "Who is told of events: a list of maps with " +
		"the keys below, each with either url or command.",
	"notify.receivers.url": "Where to send events by POST; $NAME is the value of the variable NAME. It " +
		"is not shown by ralph.",
	"notify.receivers.command": "A program with its arguments; it gets " +
		"the event as JSON on standard input and its type in RALPH_EVENT.",
	"notify.receivers.preset": "The form of what is sent; generic is Standard Webhooks.",
	"notify.receivers.events": "The events to tell of; all if it is absent.",
	"notify.receivers.secret_env": "The environment variable that " +
		"holds the signing secret (whsec_…), for ntfy the access token.",

	"dashboard.addr": "Address of the dashboard; one without a host is on " +
		"the loopback interface. Any other is for `ralph serve`, with TLS or --insecure.",
	"dashboard.hosts": "Names under which browsers reach the dashboard, " +
		"beside those of this machine. Under them reading takes a sign-in too.",
	"dashboard.sign_in": "What a browser on this machine has to sign in " +
		"for: reading too (always), or what changes something alone (changes): then every user of the machine reads all.",

	"dashboard.url": "The address under which your browsers and phone reach the dashboard, for links in " +
		"notifications, such as https://box.example.ts.net; empty: notifications name commands.",

	"database": "The postgres:// URL of the queue's database, in which {project} is the name of the project's " +
		"folder; empty is a file in the state folder (docs/state.md). It is not shown by " +
		"ralph, and ralph.yaml must not have it.",
}

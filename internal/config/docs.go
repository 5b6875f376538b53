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
		"empty leaves it to the agent.",
	"agent.permission_mode": "The agent's own permission mode. In default " +
		"it asks ralph, which answers by the rules of permissions.",
	"agent.allowed_tools": "Tools that the agent may use without asking, " +
		"beside ralph's own; the rules of permissions do not see them.",
	"agent.disallowed_tools": "Tools refused, beside those that make no sense without a person.",
	"agent.setting_sources": "Which of the agent's settings files are " +
		"read; without user, a person's own hooks and plugins stay out.",
	"agent.use": "The agent that works where `--agent`, the task and its discipline name none: " +
		"claude, or a name below agents.",
	"agent.fallback": "Names of agents that work in its place, in this order, while it is limited, overloaded, or " +
		"its account cannot be used; never on a failed check.",
	"agents": "The coding agents that may be started, by name (docs/agents.md); claude is always there, and what is " +
		"set in agent is what it is launched with. No other is ever started.",
	"agents.kind": "How it is spoken to. Without it as its profile or its name says.",
	"agents.profile": "What ralph knows of it, by its name in docs/agents.md, such as gemini. " +
		"Without it its own name, if that is one of these, or else what goes for all.",
	"agents.command": "Its program, with first arguments; without it that of its profile.",
	"agents.model":   "The model of its sessions for which neither task nor discipline names one.",
	"agents.prices": "Prices of models in USD per million tokens, as {NAME: [input, cached input, output]}, " +
		"for an agent that tells tokens and no cost.",
	"agents.unguarded": "Whether it may work without a sandbox although it asks nobody what it may do.",
	"agents.env":       "Variables added to its environment alone. Their values are not shown by ralph.",
	"agent.env": "Variables added to the environment of the agent and of checks. " +
		"Their values are not shown by ralph.",
	"agent.env_pass": "Variables passed on to the agent and to checks beside the usual ones (docs/environment.md); " +
		"a trailing * stands for any ending.",
	"agent.exit_grace": "How long the agent's process may live on after its result.",
	"agent.kill_grace": "How long a process may live on between SIGINT and SIGKILL.",

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
	"limits.session_turns":    "Turns of a session.",
	"limits.session_cost_usd": "Cost of a session in USD.",
	"limits.session_min_usd": "What a session is given at least, in USD: where those in progress may spend so much " +
		"that less is left, no further one begins beside them.",
	"limits.waiting":           "No new task is begun while so many wait for people; 0 is no limit.",
	"limits.attempts":          "Sessions per task, after which it fails.",
	"limits.stagnant_sessions": "A run ends after the sessions of so many tasks in a row changed nothing.",
	"limits.usage": "How far a subscription's usage windows may be used before no further session " +
		"starts until they are reset. Windows that the agent does not tell of have no effect.",

	"between": "The hours in which sessions start, such as 22:00-06:00; or always.",

	"verify.commands":           "Shell commands that must all pass before a task counts as done.",
	"verify.timeout":            "What each command is given.",
	"verify.in_session_retries": "How often a failure is told to the agent in the same session before it ends.",
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
	"verify.changed": "What a done comes to by which tests of the target expect another behaviour: a person is asked, " +
		"or it is noted.",
	"verify.hidden": "Checks that no session sees (docs/gate.md): what each checks in words, and its command. Set it in " +
		"~/.config/ralph/config.yaml or by RALPH_VERIFY_HIDDEN: agents read ralph.yaml.",
	"verify.hidden_files": "A folder outside of the project with what hidden checks need. It is copied over the work, " +
		"for them alone.",
	"verify.proof": "Whether the tests of a change are run on the old code, too, once it has been merged: where a check " +
		"takes less than a minute (auto), always, never (off), or before it is merged, which it then needs (require).",

	"max_verify_failures": "A task fails after so many claims of being done that verification refused.",
	"stuck_limit":         "A task fails after so many stuck sessions in a row.",
	"closing_reminders":   "How often a session that ends without a closing verb is reminded of it.",
	"escalation_model":    "The model for a task that was stuck twice; none switches it off.",
	"suggestions": "Whether tasks that an agent suggests wait for a " +
		"person (review) or enter the queue at once (auto_approve).",
	"auto_approve_max": "With suggestions: auto_approve, so many suggested " +
		"tasks enter the queue within 24 hours; further ones wait for a person.",
	"shutdown_grace": "What the session in progress is given to end when ralph is told to stop.",

	"stagnation.files": "Files, relative to the project, that count even where git ignores them.",

	"parallel": "How many sessions work at once, each in a workspace of its own (docs/parallel.md).",

	"prompt.max_tokens": "Size of a prompt, in estimated tokens.",
	"prompt.template": "A template in place of ralph's own: a file relative to the project, " +
		"or the text itself if it has {{ in it (docs/prompt.md); none is ralph's own.",

	"session.checkpoint_at": "Percent of the model's context at which a " +
		"checkpoint is made, for a session that has to go on from there.",
	"session.checkpoint_on_token_limit": "Whether that checkpoint is made by itself.",
	"session.watch_interval":            "How often ralph chat watch looks for what is new.",

	"sessions.enforce": "Whether an agent may change files only after it has reported a phase; by a hook of Claude's.",

	"mcp.enabled":    "Whether ralph mcp --profile chat serves, and ralph chat start starts it.",
	"mcp.auto_start": "Whether ralph chat claim makes the tools reachable without --with-mcp.",
	"mcp.addr": "The loopback address of the server that ralph chat " +
		"start starts; if it is taken, a free port of that address is used.",
	"mcp.session_file":  "Where the mirror of people's sessions is written, relative to ralph's folder.",
	"mcp.server_script": "Ignored: the server is part of ralph. The key is there for configurations that have it.",

	"backoff.initial": "The first wait; each further one is twice as long.",
	"backoff.max":     "The longest wait.",
	"backoff.tries":   "The run ends after so many waits in a row.",

	"permissions.allow":       "What an agent may do although a built-in rule denies it, such as Bash(sudo apt-get *).",
	"permissions.ask":         "What waits for a person's word.",
	"permissions.deny":        "What is denied.",
	"permissions.default":     "The answer where no rule matches.",
	"permissions.guards":      "Whether the built-in rules deny what a project's work does not need.",
	"permissions.writable":    "Folders beside the project and the temporary directory that an agent may write to.",
	"permissions.ask_timeout": "How long a person is waited for before a question for permission is denied.",

	"merge.into": "The branch into which it goes; empty is the one that is checked out when the run begins.",
	"merge.mode": "Whether a change goes into that branch (merge), or is left on a branch of its own, " +
		"ralph/TASK-12-title, for a pull request (branch).",
	"merge.checkout": "Whether your own branch, and the work tree in which it is checked out, are moved on to what has " +
		"merged where that touches no file that you have changed (follow).",
	"merge.strategy": "What the branch's history gets: a merge of the session's commits, or one commit (squash).",
	"merge.queue": "Whether changes that wait are verified and merged one after the other (serial), or together, and if " +
		"that is refused in halves (batch). With auto they are a batch as soon as more than one waits; squashed ones are " +
		"merged one after the other.",
	"merge.wait": "How long a session that is done waits after its check for what you commit, or others have merged, " +
		"meanwhile; then its change waits for the queue. The queue waits at most so long for changes that pass soon.",
	"merge.max_sent_back": "How often a change may be sent back, for a conflict or because it is refused once merged, " +
		"before its task is merged alone.",
	"merge.push": "The remote to which the branch is pushed, by its name or address; what was merged is what it has then.",
	"merge.after": "Shell commands for each branch of its own, such as gh pr create --fill " +
		"--body-file \"$RALPH_RECEIPT\"; they run with your environment, outside of the sandbox, and are given " +
		"RALPH_BRANCH and RALPH_TASK too.",
	"merge.message": "The message of the commit; {task}, {title}, {summary} and {session} stand for what they say, " +
		"trailers follow it, and empty is {task}: {title}.",
	"merge.guard": "Globs of further files that wait for a person before they are merged, beside those of docs/gate.md; " +
		"with ! before one that is merged unasked.",
	"merge.sign": "Whether it is signed as your own configuration of git says.",

	"workspace.copy": "Files that git ignores and that each workspace gets a copy of, relative to the project; globs. " +
		"The patterns in a file .worktreeinclude count too.",
	"workspace.link":       "The same as symbolic links to yours, such as folders that are large and only read.",
	"workspace.setup":      "Commands that make a new workspace ready for work.",
	"workspace.setup_when": "Files whose change has them run again.",
	"workspace.teardown":   "Commands that run in a workspace before it is removed.",
	"workspace.ports.from": "The first port of the first workspace, in RALPH_PORT.",
	"workspace.ports.each": "How many ports each workspace has, in RALPH_PORTS as from-to; 0 is none.",
	"workspace.keep_days":  "A workspace that nobody used for so many days is removed.",
	"workspace.min_free":   "Workspaces that nobody uses are removed where less than so many MiB of disk are free.",

	"retention.size_mib": "Disk that transcripts and logs may take, in MiB. They are compressed " +
		"after a day, and beyond this the oldest are dropped; what is known of a session stays.",
	"retention.age": "How long they are kept.",

	"sandbox.mode": "Whether the agent and the commands that check its work run in a sandbox: the best that works " +
		"here, bubblewrap or else Landlock (auto); or a run does not start without one that keeps all of it (require, " +
		"formerly bwrap); or none (off).",
	"sandbox.hide": "Files and folders that the sandbox hides beside ralph's state and the usual places of credentials " +
		"(docs/sandbox.md); ~ is the home directory.",
	"sandbox.show":    "Files and folders that it does not hide, and that can be read in it.",
	"sandbox.network": "Whether the sandbox has a network. An agent that reaches its model by one cannot work without.",

	"resources.memory_mib": "Memory and swap in MiB; 0 is no limit. It takes a cgroup that ralph may use.",
	"resources.processes": "Processes and threads; 0 is no limit. " +
		"Without a cgroup they are counted with all others of the user.",
	"resources.nice": "How far the priority is lowered, as by nice; 19 is the lowest priority.",

	"notify.receivers": "Who is told of events: a list of maps with " +
		"the keys below, each with one of url, url_env and command.",
	"notify.receivers.url":     "Where to send events by POST. It is not shown by ralph.",
	"notify.receivers.url_env": "The environment variable that holds the URL, where that is a secret.",
	"notify.receivers.command": "A program with its arguments; it gets " +
		"the event as JSON on standard input and its type in RALPH_EVENT.",
	"notify.receivers.preset": "The form of what is sent; generic is Standard Webhooks.",
	"notify.receivers.events": "The events to tell of; all if it is absent.",
	"notify.receivers.secret_env": "The environment variable that " +
		"holds the signing secret (whsec_…), for ntfy the access token.",
	"notify.tries":   "How often a delivery is tried, with growing waits between; then it is dropped.",
	"notify.timeout": "What each try is given, of a command too.",
	"notify.drain":   "What deliveries are given at the end of a run; the next run delivers what is left.",

	"metrics.addr": "Address of /metrics and /healthz during a run, such as 127.0.0.1:9469; " +
		"an address without a host is on the loopback interface, empty switches it off.",

	"dashboard.addr": "Address of the dashboard; one without a host is on " +
		"the loopback interface. Any other needs TLS, or dashboard.insecure.",
	"dashboard.hosts": "Names under which browsers reach the dashboard, " +
		"beside those of this machine. Under them reading takes a sign-in too.",
	"dashboard.sign_in": "What a browser on this machine has to sign in " +
		"for: what changes something (changes), or reading too (always).",
	"dashboard.tls_cert": "A file with the certificate for HTTPS, in PEM; none is plain HTTP.",
	"dashboard.tls_key":  "The file with its key.",
	"dashboard.insecure": "Whether other machines may be served without " +
		"TLS: whoever is on the way reads along, the token included.",
}

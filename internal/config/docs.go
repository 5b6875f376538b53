package config

// docs says of each key what it means, in a sentence or two; of a list of maps
// also what each of their keys does.
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
	"agent.env":        "Variables added to the agent's environment. Their values are not shown by ralph.",
	"agent.env_pass":   "Variables passed on to the agent beside the usual ones; a trailing * stands for any ending.",
	"agent.exit_grace": "How long the agent's process may live on after its result.",
	"agent.kill_grace": "How long a process may live on between SIGINT and SIGKILL.",

	"limits.max_sessions": "Sessions per run; in a daemon without a schedule per day.",
	"limits.max_tasks":    "Tasks per run; in a daemon without a schedule per day.",
	"limits.max_duration": "Wall time of a run; in a daemon without a schedule of a day.",
	"limits.max_cost_usd": "Cost of a run in USD; in a daemon without a schedule of a day.",
	"limits.max_cost_per_day_usd": "Cost of a day, from midnight to " +
		"midnight, over all runs, in USD. A daemon then waits for midnight.",
	"limits.session_timeout": "Wall time of a session.",
	"limits.idle_timeout": "A session is stopped after this time without an " +
		"event, a signal, CPU use of its processes or a change in the work tree.",
	"limits.session_turns":     "Turns of a session.",
	"limits.session_cost_usd":  "Cost of a session in USD.",
	"limits.attempts":          "Sessions per task, after which it fails.",
	"limits.stagnant_sessions": "A run ends after so many sessions in a row that changed nothing.",
	"limits.usage": "How far a subscription's usage windows may be used before no further session " +
		"starts until they are reset. Windows that the agent does not tell of have no effect.",

	"between": "The hours in which sessions start, such as 22:00-06:00; or always.",

	"verify.commands":           "Shell commands that must all pass before a task counts as done.",
	"verify.timeout":            "What each command is given.",
	"verify.in_session_retries": "How often a failure is told to the agent in the same session before it ends.",
	"verify.freeze_max": "How long an agent stands still while its done is checked. A check " +
		"that takes longer goes on without it, and what it refuses is told to the next session.",
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

	"configuration": "What a run does while ralph.yaml, or what it names, is as a session left it: it waits for " +
		"ralph approve config (ask, exit status 4), or uses the version that people approved last (approved).",
	"after_failure": "What becomes of the changes of a session that failed (stuck, refused, lost, out of time): " +
		"they stay in the work tree (keep), or are taken back (restore). Either way ralph snapshot has them.",

	"prompt.max_tokens": "Size of a prompt, in estimated tokens.",
	"prompt.template": "A template in place of ralph's own: a file relative to the project, " +
		"or the text itself if it has {{ in it (docs/prompt.md); none is ralph's own.",

	"session.checkpoint_at": "Percent of the model's context at which a " +
		"checkpoint is made, for a session that has to go on from there.",
	"session.checkpoint_on_token_limit": "Whether that checkpoint is made by itself.",
	"session.watch_interval":            "How often ralph session watch looks for what is new.",

	"sessions.enforce": "Whether an agent may change files only after it has reported a phase; by a hook of Claude's.",

	"mcp.enabled":    "Whether ralph mcp --profile human serves, and ralph session start starts it.",
	"mcp.auto_start": "Whether ralph task claim makes the tools reachable without --with-mcp.",
	"mcp.addr": "The loopback address of the server that ralph session " +
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

	"git.commit":   "Whether what a completed task left uncommitted is committed (task).",
	"git.snapshot": "Whether a person's uncommitted files are saved before each session, for ralph snapshot restore.",

	"retention.size_mib": "Disk that transcripts and logs may take, in MiB. They are compressed " +
		"after a day, and beyond this the oldest are dropped; what is known of a session stays.",
	"retention.age": "How long they are kept.",

	"sandbox": "Whether the agent and the commands that check its work run in a sandbox of bubblewrap, which can write " +
		"to the project, git's directory, temporary folders, ~/.claude and permissions.writable alone (docs/sandbox.md).",
	"sandbox_network": "Whether the sandbox has a network. An agent that reaches its model by one cannot work without.",

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

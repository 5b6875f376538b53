// Package config reads the configuration of a project: ralph.yaml and what goes
// under and over it, into one plain struct (unattended, "Crash safety").
//
// It never writes, never starts anything, and never asks the environment of the
// process: what may be read is named by [Sources]. It knows no meaning of a key
// beyond its type and its bounds.
//
// It guarantees that a [Loaded] without an error is complete and valid, that no
// limit in it is absent, zero or negative, and that whatever is wrong is refused
// with file, line and column. One struct tag documents a key: from it come
// [Keys], [Schema] and docs/configuration.md.
package config

import "time"

// None is the value of a key that names a file or a model where none is wanted.
const None = "none"

// Config is the whole configuration. The tags of a field say how the key is
// called (json), what it means (doc), its built-in default in the form that an
// environment variable has (default), the accepted values (enum), the smallest
// number, or length of a list or text (min), whether a list may have empty items
// (blank), of which keys each map of a list has exactly one (one), and whether the
// value is hidden because it may be a password (secret).
type Config struct {
	Agent             Agent         `json:"agent"`
	Limits            Limits        `json:"limits"`
	Between           string        `json:"between" default:"always" doc:"The hours in which sessions start, such as 22:00-06:00; or always."`
	Verify            Verify        `json:"verify" shorthand:"commands"`
	MaxVerifyFailures int           `json:"max_verify_failures" default:"3" min:"1" doc:"A task fails after so many claims of being done that verification refused."`
	StuckLimit        int           `json:"stuck_limit" default:"3" min:"1" doc:"A task fails after so many stuck sessions in a row."`
	ClosingReminders  int           `json:"closing_reminders" default:"1" min:"0" doc:"How often a session that ends without a closing verb is reminded of it."`
	EscalationModel   string        `json:"escalation_model" default:"opus" doc:"The model for a task that was stuck twice; none switches it off."`
	Suggestions       string        `json:"suggestions" default:"review" enum:"review|auto_approve" doc:"Whether tasks that an agent suggests wait for a person (review) or enter the queue at once (auto_approve)."`
	AutoApproveMax    int           `json:"auto_approve_max" default:"20" min:"1" doc:"With suggestions: auto_approve, so many suggested tasks enter the queue within 24 hours; further ones wait for a person."`
	ShutdownGrace     time.Duration `json:"shutdown_grace" default:"30s" doc:"What the session in progress is given to end when ralph is told to stop."`
	Stagnation        Stagnation    `json:"stagnation"`
	Configuration     string        `json:"configuration" default:"ask" enum:"ask|approved" doc:"What a run does while ralph.yaml, or what it names, is as a session left it: it waits for ralph approve config (ask, exit status 4), or uses the version that people approved last (approved)."`
	AfterFailure      string        `json:"after_failure" default:"keep" enum:"keep|restore" doc:"What becomes of the changes of a session that failed (stuck, refused, lost, out of time): they stay in the work tree (keep), or are taken back (restore). Either way ralph snapshot has them."`
	Prompt            Prompt        `json:"prompt"`
	Session           Session       `json:"session"`
	Sessions          Sessions      `json:"sessions"`
	MCP               MCP           `json:"mcp"`
	Backoff           Backoff       `json:"backoff"`
	Permissions       Permissions   `json:"permissions"`
	Git               Git           `json:"git"`
	Retention         Retention     `json:"retention"`
	Sandbox           string        `json:"sandbox" default:"off" enum:"off|bwrap" doc:"Whether the agent and the commands that check its work run in a sandbox of bubblewrap, which can write to the project, git's directory, temporary folders, ~/.claude and permissions.writable alone (docs/sandbox.md)."`
	SandboxNetwork    bool          `json:"sandbox_network" default:"true" doc:"Whether the sandbox has a network. An agent that reaches its model by one cannot work without."`
	Resources         Resources     `json:"resources"`
	Notify            Notify        `json:"notify" shorthand:"receivers"`
	Metrics           Metrics       `json:"metrics"`
	Dashboard         Dashboard     `json:"dashboard"`
}

// Resources bound what the processes of a session may use together, and those of
// a command that checks it (docs/sandbox.md). 0 is no bound.
type Resources struct {
	MemoryMiB int `json:"memory_mib" default:"0" min:"0" doc:"Memory and swap in MiB; 0 is no limit. It takes a cgroup that ralph may use."`
	Processes int `json:"processes" default:"0" min:"0" doc:"Processes and threads; 0 is no limit. Without a cgroup they are counted with all others of the user."`
	Nice      int `json:"nice" default:"0" min:"0" doc:"How far the priority is lowered, as by nice; 19 is the lowest priority."`
}

// Percentages are whole numbers from 0 to 100 by name.
type Percentages map[string]int

// Agent says how the coding agent is launched (unattended, "Launching the agent").
type Agent struct {
	Command         []string          `json:"command" default:"[claude]" min:"1" doc:"The agent's program, with first arguments if it needs any."`
	ExtraArgs       []string          `json:"extra_args" default:"[]" blank:"ok" doc:"Arguments appended to those that ralph gives."`
	Model           string            `json:"model" doc:"The model of sessions for which neither task nor discipline names one; empty leaves it to the agent."`
	PermissionMode  string            `json:"permission_mode" default:"default" enum:"default|acceptEdits|bypassPermissions|dontAsk|plan|auto" doc:"The agent's own permission mode. In default it asks ralph, which answers by the rules of permissions."`
	AllowedTools    []string          `json:"allowed_tools" default:"[]" doc:"Tools that the agent may use without asking, beside ralph's own; the rules of permissions do not see them."`
	DisallowedTools []string          `json:"disallowed_tools" default:"[]" doc:"Tools refused, beside those that make no sense without a person."`
	SettingSources  []string          `json:"setting_sources" default:"[project, local]" enum:"user|project|local" doc:"Which of the agent's settings files are read; without user, a person's own hooks and plugins stay out."`
	Env             map[string]string `json:"env" default:"{}" doc:"Variables added to the agent's environment. Their values are not shown by ralph."`
	EnvPass         []string          `json:"env_pass" default:"[]" doc:"Variables passed on to the agent beside the usual ones; a trailing * stands for any ending."`
	ExitGrace       time.Duration     `json:"exit_grace" default:"15s" doc:"How long the agent's process may live on after its result."`
	KillGrace       time.Duration     `json:"kill_grace" default:"5s" doc:"How long a process may live on between SIGINT and SIGKILL."`
}

// Limits bound a run and its sessions (unattended, "Limits"). None can be
// switched off.
type Limits struct {
	MaxSessions      int           `json:"max_sessions" default:"100" min:"1" doc:"Sessions per run; in a daemon without a schedule per day."`
	MaxTasks         int           `json:"max_tasks" default:"100" min:"1" doc:"Tasks per run; in a daemon without a schedule per day."`
	MaxDuration      time.Duration `json:"max_duration" default:"12h" doc:"Wall time of a run; in a daemon without a schedule of a day."`
	MaxCostUSD       float64       `json:"max_cost_usd" default:"50" doc:"Cost of a run in USD; in a daemon without a schedule of a day."`
	MaxCostPerDayUSD float64       `json:"max_cost_per_day_usd" default:"100" doc:"Cost of a day, from midnight to midnight, over all runs, in USD. A daemon then waits for midnight."`
	SessionTimeout   time.Duration `json:"session_timeout" default:"45m" doc:"Wall time of a session."`
	IdleTimeout      time.Duration `json:"idle_timeout" default:"10m" doc:"A session is stopped after this time without an event, a signal, CPU use of its processes or a change in the work tree."`
	SessionTurns     int           `json:"session_turns" default:"200" min:"1" doc:"Turns of a session."`
	SessionCostUSD   float64       `json:"session_cost_usd" default:"10" doc:"Cost of a session in USD."`
	Attempts         int           `json:"attempts" default:"10" min:"1" doc:"Sessions per task, after which it fails."`
	StagnantSessions int           `json:"stagnant_sessions" default:"5" min:"1" doc:"A run ends after so many sessions in a row that changed nothing."`
	Usage            Percentages   `json:"usage" default:"{five_hour: 80%, seven_day: 90%}" doc:"How far a subscription's usage windows may be used before no further session starts until they are reset. Windows that the agent does not tell of have no effect."`
}

// Verify says how the claim that a task is done is checked (pipeline, "Verification").
type Verify struct {
	Commands         []string      `json:"commands" default:"[]" doc:"Shell commands that must all pass before a task counts as done."`
	Timeout          time.Duration `json:"timeout" default:"10m" doc:"What each command is given."`
	InSessionRetries int           `json:"in_session_retries" default:"2" min:"0" doc:"How often a failure is told to the agent in the same session before it ends."`
	FreezeMax        time.Duration `json:"freeze_max" default:"10m" doc:"How long an agent stands still while its done is checked. A check that takes longer goes on without it, and what it refuses is told to the next session."`
	Baseline         string        `json:"baseline" default:"new-failures" enum:"new-failures|strict" doc:"Whether named tests of the project's and the feature's commands that failed before a task was begun are excused (new-failures) or refused too (strict)."`
	OnRed            string        `json:"on_red" default:"stop" enum:"stop|first|go" doc:"What a run makes of commands that fail before its first session, with no named test to excuse: it ends, a daemon waits (stop); one task works until they pass and the others wait, for projects that begin empty (first); or it goes on (go)."`
	JUnit            []string      `json:"junit" default:"[]" doc:"Files, relative to the project, into which commands write their tests as JUnit XML; globs, ** for any folders. The output of go test -json is understood without."`
	Protect          []string      `json:"protect" default:"[ralph.yaml]" doc:"Files, relative to the project, that a session must not change; globs, ** for any folders."`
	ProtectMode      string        `json:"protect_mode" default:"refuse" enum:"refuse|review" doc:"What a done with changed protected files comes to: it is refused, or it waits for a person's approval (review)."`
}

// Permissions are the rules by which an agent's questions for permission are
// answered (docs/permissions.md).
type Permissions struct {
	Allow      []string      `json:"allow" default:"[]" doc:"What an agent may do although a built-in rule denies it, such as Bash(sudo apt-get *)."`
	Ask        []string      `json:"ask" default:"[]" doc:"What waits for a person's word."`
	Deny       []string      `json:"deny" default:"[]" doc:"What is denied."`
	Default    string        `json:"default" default:"allow" enum:"allow|ask|deny" doc:"The answer where no rule matches."`
	Guards     bool          `json:"guards" default:"true" doc:"Whether the built-in rules deny what a project's work does not need."`
	Writable   []string      `json:"writable" default:"[]" doc:"Folders beside the project and the temporary directory that an agent may write to."`
	AskTimeout time.Duration `json:"ask_timeout" default:"30m" doc:"How long a person is waited for before a question for permission is denied."`
}

// Git says what ralph does with the repository (docs/git.md).
type Git struct {
	Commit   string `json:"commit" default:"off" enum:"off|task" doc:"Whether what a completed task left uncommitted is committed (task)."`
	Snapshot bool   `json:"snapshot" default:"true" doc:"Whether a person's uncommitted files are saved before each session, for ralph snapshot restore."`
}

// Retention bounds what is kept of sessions beside the database.
type Retention struct {
	SizeMiB int           `json:"size_mib" default:"1024" min:"1" doc:"Disk that transcripts and logs may take, in MiB. They are compressed after a day, and beyond this the oldest are dropped; what is known of a session stays."`
	Age     time.Duration `json:"age" default:"2160h" doc:"How long they are kept."`
}

// Stagnation says what counts as a change beside the work tree (pipeline, "Stagnation").
type Stagnation struct {
	Files []string `json:"files" default:"[progress.txt, learnings.txt]" doc:"Files, relative to the project, that count even where git ignores them."`
}

// Prompt bounds what a session is told at its start.
type Prompt struct {
	MaxTokens int    `json:"max_tokens" default:"24000" min:"2000" doc:"Size of a prompt, in estimated tokens."`
	Template  string `json:"template" default:"none" min:"1" doc:"A template in place of ralph's own: a file relative to the project, or the text itself if it has {{ in it (docs/prompt.md); none is ralph's own."`
}

// Session says what is kept of a running session (docs/sessions.md).
type Session struct {
	CheckpointAt           int           `json:"checkpoint_at" default:"80" min:"1" doc:"Percent of the model's context at which a checkpoint is made, for a session that has to go on from there."`
	CheckpointOnTokenLimit bool          `json:"checkpoint_on_token_limit" default:"true" doc:"Whether that checkpoint is made by itself."`
	WatchInterval          time.Duration `json:"watch_interval" default:"2s" doc:"How often ralph session watch looks for what is new."`
}

// MCP says how a person's chat reaches ralph (docs/human.md).
type MCP struct {
	Enabled      bool   `json:"enabled" default:"true" doc:"Whether ralph mcp --profile human serves, and ralph session start starts it."`
	AutoStart    bool   `json:"auto_start" default:"false" doc:"Whether ralph task claim makes the tools reachable without --with-mcp."`
	Addr         string `json:"addr" default:"127.0.0.1:7475" min:"1" doc:"The loopback address of the server that ralph session start starts; if it is taken, a free port of that address is used."`
	SessionFile  string `json:"session_file" default:"session.json" min:"1" doc:"Where the mirror of people's sessions is written, relative to ralph's folder."`
	ServerScript string `json:"server_script" default:"built-in" min:"1" doc:"Ignored: the server is part of ralph. The key is there for configurations that have it."`
}

// Sessions says what is asked of a session's agent (docs/sessions.md).
type Sessions struct {
	Enforce bool `json:"enforce" default:"false" doc:"Whether an agent may change files only after it has reported a phase; by a hook of Claude's."`
}

// Backoff says how an agent that cannot work now is waited for (pipeline, "Agent errors").
type Backoff struct {
	Initial time.Duration `json:"initial" default:"30s" doc:"The first wait; each further one is twice as long."`
	Max     time.Duration `json:"max" default:"15m" doc:"The longest wait."`
	Tries   int           `json:"tries" default:"8" min:"1" doc:"The run ends after so many waits in a row."`
}

// Notify says who is told what happens while nobody watches (unattended,
// "Notifications and observation").
type Notify struct {
	Receivers []Receiver    `json:"receivers" default:"[]" one:"url|url_env|command" doc:"Who is told of events: a list of maps with the keys below, each with one of url, url_env and command."`
	Tries     int           `json:"tries" default:"6" min:"1" doc:"How often a delivery is tried, with growing waits between; then it is dropped."`
	Timeout   time.Duration `json:"timeout" default:"10s" doc:"What each try is given, of a command too."`
	Drain     time.Duration `json:"drain" default:"5s" doc:"What deliveries are given at the end of a run; the next run delivers what is left."`
}

// A Receiver is told of events, by a request to a URL or by a command.
type Receiver struct {
	URL       string   `json:"url" min:"1" secret:"yes" doc:"Where to send events by POST. It is not shown by ralph."`
	URLEnv    string   `json:"url_env" min:"1" doc:"The environment variable that holds the URL, where that is a secret."`
	Command   []string `json:"command" min:"1" doc:"A program with its arguments; it gets the event as JSON on standard input and its type in RALPH_EVENT."`
	Preset    string   `json:"preset" default:"generic" enum:"generic|slack|discord|telegram|ntfy" doc:"The form of what is sent; generic is Standard Webhooks."`
	Events    []string `json:"events" min:"1" enum:"question.asked|task.failed|task.blocked|task.completed|flag.blocking|run.ended|limit.reached|agent.unavailable" doc:"The events to tell of; all if it is absent."`
	SecretEnv string   `json:"secret_env" min:"1" doc:"The environment variable that holds the signing secret (whsec_…), for ntfy the access token."`
}

// Metrics says where a run can be observed.
type Metrics struct {
	Addr string `json:"addr" doc:"Address of /metrics and /healthz during a run, such as 127.0.0.1:9469; an address without a host is on the loopback interface, empty switches it off."`
}

// Dashboard says where ralph is in a browser (docs/dashboard.md).
type Dashboard struct {
	Addr     string   `json:"addr" default:"127.0.0.1:7474" min:"1" doc:"Address of the dashboard; one without a host is on the loopback interface. Any other needs TLS, or dashboard.insecure."`
	Hosts    []string `json:"hosts" default:"[]" doc:"Names under which browsers reach the dashboard, beside those of this machine. Under them reading takes a sign-in too."`
	SignIn   string   `json:"sign_in" default:"changes" enum:"changes|always" doc:"What a browser on this machine has to sign in for: what changes something (changes), or reading too (always)."`
	TLSCert  string   `json:"tls_cert" default:"none" min:"1" doc:"A file with the certificate for HTTPS, in PEM; none is plain HTTP."`
	TLSKey   string   `json:"tls_key" default:"none" min:"1" doc:"The file with its key."`
	Insecure bool     `json:"insecure" default:"false" doc:"Whether other machines may be served without TLS: whoever is on the way reads along, the token included."`
}

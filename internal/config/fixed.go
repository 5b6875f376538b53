package config

import "time"

// Constants are values that a run needs and that have one sensible value for everybody.
type Constants struct {
	// A conversation is told a failure twice. An agent that has not fixed it by then repeats itself, and a fresh
	// conversation costs less.
	Retries int `yaml:"retries"`
	// A task fails after this number of refused dones, or stuck sessions in a row: a fourth has
	// hardly ever helped.
	Refused int `yaml:"refused"`
	Stuck   int `yaml:"stuck"`
	// An agent that ends without a verdict is reminded once; more is talk at the person's expense.
	Reminders int `yaml:"reminders"`
	// The number of times that a change may come back before its task is merged alone.
	MaxSentBack int `yaml:"sent_back"`
	// With suggestions: auto_approve, the maximum number of tasks that enter the queue in a day: it ends
	// loops of agents that feed each other.
	Suggested int `yaml:"suggested"`
	// The least that a session is given: with less it cannot do anything, and would only cost.
	SessionMinUSD float64 `yaml:"session_min_usd"`
	// The size of a prompt in estimated tokens that agents still read completely.
	PromptTokens int `yaml:"prompt_tokens"`
	// Percentage of a model's context at which a checkpoint is made. Later, agents lose track of
	// their work.
	CheckpointAt int `yaml:"checkpoint_at"`

	ShutdownGrace time.Duration `yaml:"shutdown_grace"` // for the session in progress, when ralph is told to stop
	ExitGrace     time.Duration `yaml:"exit_grace"`     // for an agent's process after its result
	KillGrace     time.Duration `yaml:"kill_grace"`     // between SIGINT and SIGKILL
	AskTimeout    time.Duration `yaml:"ask_timeout"`    // for a person's answer to a request for permission
	// How long a done session waits for other merges, and a batch for further changes.
	MergeWait time.Duration `yaml:"merge_wait"`
	// Waits for an agent that cannot work now: each is twice as long as the one before; the run ends after the last.
	BackoffInitial time.Duration `yaml:"backoff_initial"`
	BackoffMax     time.Duration `yaml:"backoff_max"`
	BackoffTries   int           `yaml:"backoff_tries"`
	// Deliveries of notifications: each try's time, their number, and the time for them at the end of a run.
	NotifyTimeout time.Duration `yaml:"notify_timeout"`
	NotifyTries   int           `yaml:"notify_tries"`
	NotifyDrain   time.Duration `yaml:"notify_drain"`
	// The size of transcripts and logs in bytes, how long they and the refs of changes are kept, and how long an unused
	// workspace is kept.
	Transcripts   int64         `yaml:"transcripts"`
	Retention     time.Duration `yaml:"retention"`
	WorkspaceDays int           `yaml:"workspace_days"`
	// ports of each workspace: for a server and its debugger
	WorkspacePorts int `yaml:"workspace_ports"`

	ChatAddr string `yaml:"chat_addr"` // of `ralph chat start`, one beside the dashboard's; any free port if it is taken
}

// Fixed holds the constants. Only tests change it, before anything else happens, to shorten waits.
var Fixed = Constants{
	Retries: 2, Refused: 3, Stuck: 3, Reminders: 1, MaxSentBack: 2, Suggested: 20,
	SessionMinUSD: 0.5, PromptTokens: 24_000, CheckpointAt: 80,
	ShutdownGrace: 30 * time.Second, ExitGrace: 15 * time.Second, KillGrace: 5 * time.Second,
	AskTimeout: 30 * time.Minute, MergeWait: 2 * time.Minute,
	BackoffInitial: 30 * time.Second, BackoffMax: 15 * time.Minute, BackoffTries: 8,
	NotifyTimeout: 10 * time.Second, NotifyTries: 6, NotifyDrain: 5 * time.Second,
	Transcripts: 1 << 30, Retention: 90 * 24 * time.Hour, WorkspaceDays: 14, WorkspacePorts: 10,
	ChatAddr: "127.0.0.1:7475",
}

// Notes are files, relative to the project, in which agents keep notes. Edits to them count as changes even if git
// ignores the files.
var Notes = []string{"progress.txt", "learnings.txt"}

package prompt

import "ralph"

// Data has everything that a prompt may show. It is already ranked and complete. Slices are in display order, unless
// the section sorts them itself.
type Data struct {
	Chat bool // for a person's chat with the tools agentic_…, not for a session of the loop

	StateTool   string // the model's name for the tool that reports phases; "" if there is none
	CommentTool string // the model's name for the tool that comments on a task; "" if there is none
	AmendTool   string // the same for the tool that proposes amendments; "" if there is none
	ToolPrefix  string // prefix of ralph's tools in the model's names: "mcp__ralph__ralph_signal_"
	Project     string // name of the project's directory
	Commit      string // the project's rule about commits, one sentence; "" for the default

	Discipline       ralph.Discipline // zero if the task has none
	ProjectLearnings []ralph.Learning // scope project, best first; pinned ones are moved to the front, then people's
	LearningsBeyond  int              // number of agents' learnings, of any scope, that fit too little
	FeatureName      string
	FeatureText      string // the feature's description
	FeatureHuman     string // the feature's human-written learnings

	// FeatureLearnings have scope feature or task, in the same order. For a
	// task without a feature, they are those of all such tasks.
	FeatureLearnings []ralph.Learning

	Task         ralph.Task
	Unseen       bool               // there are hidden checks
	Verify       []string           // every command that checks a `done`: the project's, the feature's, the task's
	Protect      []string           // globs of files that must not be changed
	FailedBefore []FailedBefore     // commands that failed before the task began
	Workspace    *Workspace         // nil for a person in their own folder
	DependsOn    []Dependency       // ascending ids
	Answers      []Answer           // latest first; new ones are moved to the front
	Merged       string             // the commit of the task's latest merge or undo; "" if there is none
	Undone       bool               // that commit is an undo
	LastSession  *Continuation      // nil for a fresh task
	Stuck        []StuckSession     // earlier stuck sessions, oldest first
	Amended      []ralph.Amendment  // amendments approved since the task's last session, oldest first
	Flags        []ralph.Comment    // latest first; blocking ones are moved to the front
	Comments     []ralph.Comment    // people's and agents' plain comments with their replies, oldest first
	NewComments  map[int64]bool     // ids of comments that people made or decided on since the last session
	Files        []ralph.FileChange // newest first
	Checkpoint   *Checkpoint        // the state of the last session if it was interrupted; else nil
	Template     *Template          // replaces ralph's own order of sections; nil for that order
	MaxTokens    int                // the budget in tokens of EstimateTokens; zero has no special meaning
}

// FailedBefore is a verification command that failed before the task's first session.
type FailedBefore struct {
	Command string
	Tests   []string // names, if the command reports them
	Excused bool     // those tests may keep failing; otherwise the whole command must pass
}

// A Dependency is a task that this one depends on, with its result.
type Dependency struct {
	ID      int64
	Title   string
	Status  ralph.Status
	Summary string     // the summary of its accepted `done`; "" if there is none
	Author  string     // author of the summary: a discipline's name, or "agent"
	At      ralph.Time // when it was written
}

// An Answer is a person's answer to an ask.
type Answer struct {
	Question string
	Answer   string
	Author   string // the person that answered
	At       ralph.Time
	New      bool  // answered since the task's last session
	Own      bool  // asked by this task; otherwise by another task of the same feature
	TaskID   int64 // the task that asked
}

// A Continuation is the state left by the last session.
type Continuation struct {
	Attempt   int
	Author    string     // a discipline's name, or "agent"
	At        ralph.Time // when it ended
	Ending    ralph.Ending
	Verb      ralph.Verb // "" if it did not close
	Summary   string
	Remaining string
	Reason    string        // one sentence: how it ended
	Failed    []ralph.Check // the checks that refused its done
}

// A Checkpoint describes the state of an interrupted session.
type Checkpoint struct {
	ralph.Checkpoint
	Attempt int
	Author  string // a discipline's name, or "agent"
	Ending  ralph.Ending
	Files   []ralph.FileChange // files that it changed
	Tests   string             // its report on tests, in a few words; "" for none
	Open    bool               // its session, a person's, is still open: another chat continues it
}

// A StuckSession is an earlier session that made no progress.
type StuckSession struct {
	Attempt int
	Author  string // a discipline's name, or "agent"
	At      ralph.Time
	Reason  string
}

// A Workspace describes a folder in which only the session works.
type Workspace struct {
	Target    string   // the branch that its work is merged into
	Kept      bool     // it contains an earlier session's work
	Conflicts []string // files in which that work and the branch conflict
	SentBack  string   // why that work could not be merged; "" if it was not tried
}

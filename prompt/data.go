package prompt

import "ralph"

// Data is all that a prompt may show. It arrives ranked and complete: no
// section asks for more. Slices are in the order in which they are shown,
// unless the section sorts them itself.
type Data struct {
	Chat bool // for a person's chat, which has the tools named agentic_…, and not for a session of the loop

	StateTool   string // the tool by which phases are reported, as the model sees it; "" if there is none
	CommentTool string // the tool by which a task is commented on, as the model sees it; "" if there is none
	AmendTool   string // the one by which changes of it are proposed; "" if there is none
	ToolPrefix  string // how the model sees ralph's tools: "mcp__ralph__ralph_signal_"
	Project     string // name of the project's directory
	Commit      string // the project's wishes on commits, one sentence; "" for the default

	Discipline       ralph.Discipline // zero if the task has none
	ProjectLearnings []ralph.Learning // scope project, best first; pinned ones are moved to the front, then people's
	LearningsBeyond  int              // agents' learnings of both that are known and not listed here, since they fit least
	FeatureName      string
	FeatureText      string // the feature's description
	FeatureHuman     string // the feature's human-written learnings

	// FeatureLearnings have the scopes feature and task, in the same order. Without a
	// feature they are those of all tasks without one.
	FeatureLearnings []ralph.Learning

	Task         ralph.Task
	Verify       []string           // every command that will be run on a `done`: the project's, the feature's, the task's
	Protect      []string           // globs of the files that must not be changed
	FailedBefore []FailedBefore     // commands that failed before the task was begun
	Strange      []string           // uncommitted files that are not this task's to commit
	DependsOn    []Dependency       // ascending ids
	Answers      []Answer           // latest first; new ones are moved to the front
	LastSession  *Continuation      // nil for a fresh task
	Stuck        []StuckSession     // earlier stuck sessions, oldest first
	Amended      []ralph.Amendment  // changes of the task that were approved since its last session, oldest first
	Flags        []ralph.Comment    // latest first; blocking ones are moved to the front
	Comments     []ralph.Comment    // people's and agents' plain comments with their replies, oldest first
	NewComments  map[int64]bool     // ids of those that people made, or decided on, since the last session
	Files        []ralph.FileChange // newest first
	Checkpoint   *Checkpoint        // where the last session stood, if it was interrupted; nil if not
	Template     *Template          // in place of ralph's own order of the sections; nil for that
	MaxTokens    int                // the budget as EstimateTokens counts; it is taken literally, also if zero
}

// FailedBefore is a command of the verification that failed before the task's
// first session.
type FailedBefore struct {
	Command string
	Tests   []string // by name, where it reports them
	Excused bool     // those tests may go on failing; else the command must pass all the same
	Left    []string // tests, or the command, that an earlier session broke whose work was not accepted
}

// A Dependency is a task that this one depends on, and how it ended.
type Dependency struct {
	ID      int64
	Title   string
	Status  ralph.Status
	Summary string     // of its accepted `done`; "" if there is none
	Author  string     // who wrote the summary: a discipline's name, or "agent"
	At      ralph.Time // when it was written
}

// An Answer is what a person answered to an ask.
type Answer struct {
	Question string
	Answer   string
	Author   string // who answered
	At       ralph.Time
	New      bool  // answered since the task's last session
	Own      bool  // asked by this task; else by another of the same feature
	TaskID   int64 // who asked
}

// A Continuation is what the last session left.
type Continuation struct {
	Attempt   int
	Author    string     // a discipline's name, or "agent"
	At        ralph.Time // when it ended
	Ending    ralph.Ending
	Verb      ralph.Verb // "" if it did not close
	Summary   string
	Remaining string
	Reason    string        // how it ended, in one sentence
	Failed    []ralph.Check // verification that refused its done
	TakenBack bool          // what it changed was taken back
}

// A Checkpoint is where an interrupted session stood.
type Checkpoint struct {
	ralph.Checkpoint
	Attempt int
	Author  string // a discipline's name, or "agent"
	Ending  ralph.Ending
	Files   []ralph.FileChange // that it changed
	Tests   string             // what it reported of tests, in a few words; "" for nothing
	Open    bool               // its session, a person's, has not ended: another chat goes on with it
}

// A StuckSession is an earlier session that made no progress.
type StuckSession struct {
	Attempt int
	Author  string // a discipline's name, or "agent"
	At      ralph.Time
	Reason  string
}

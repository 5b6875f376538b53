package ralph

// A Remedy is a step that a person can take after an error. Each surface has its own words for it: package
// internal/advice has the commands.
type Remedy string

// The remedies. The comment names the thing that the id of a [RemedyError] identifies.
const (
	ListTasks       Remedy = "list tasks"
	ListSessions    Remedy = "list sessions"
	ListLearnings   Remedy = "list learnings"
	ListComments    Remedy = "list comments"
	ListAmendments  Remedy = "list amendments"
	ListPermissions Remedy = "list permissions"
	ListMachines    Remedy = "list machines"
	ReportRun       Remedy = "report a run"
	DrainMachine    Remedy = "drain a machine"
	AllowMachine    Remedy = "undo the drain of a machine"
	AddFeature      Remedy = "add a feature"
	AddDiscipline   Remedy = "add a discipline"
	NameSession     Remedy = "name a session"   // several could be meant
	ClaimTask       Remedy = "claim a task"     // the task
	ReleaseTask     Remedy = "release a task"   // the task
	RetryTask       Remedy = "retry a task"     // the task
	DropChange      Remedy = "drop a change"    // the task
	CancelTask      Remedy = "cancel a task"    // the task
	UndoOrRepeat    Remedy = "undo or repeat"   // the task
	UndoTask        Remedy = "undo a task"      // the task
	TellTask        Remedy = "tell a task more" // the task
	ShowInbox       Remedy = "show the inbox"
	AnswerQuestion  Remedy = "answer"            // the question
	ReplyToTask     Remedy = "reply"             // the task
	ResolveComment  Remedy = "resolve"           // the comment
	DecideProposal  Remedy = "decide"            // the proposed task
	MakeTask        Remedy = "make a task"       // the suggestion
	ChangeLearning  Remedy = "change a learning" // the learning
	RecallLearning  Remedy = "recall a learning" // the learning
)

// A RemedyError is an error with a remedy. Its text describes only the failure.
type RemedyError struct {
	Err error
	Do  Remedy
	ID  int64 // id of the thing to deal with; 0 for none
}

// Error describes the failure.
func (e *RemedyError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *RemedyError) Unwrap() error { return e.Err }

package advice

import (
	"errors"
	"strconv"
	"strings"

	"ralph"
)

// remedies has the command line's words for each remedy.
var remedies = map[ralph.Remedy]string{
	ralph.ListTasks:       "`ralph task list` lists them",
	ralph.ListSessions:    "`ralph session list` lists them",
	ralph.ListLearnings:   "`ralph learning list` lists them",
	ralph.ListComments:    "`ralph inbox` and `ralph timeline` list them",
	ralph.ListAmendments:  "`ralph amendment list` lists them",
	ralph.ListPermissions: "`ralph permission` lists them",
	ralph.ListMachines:    "`ralph machine list` lists them",
	ralph.ReportRun:       "`ralph report` shows the last one",
	ralph.DrainMachine:    "`ralph machine drain NAME` lets it end",
	ralph.AllowMachine:    "`ralph machine drain NAME --undo` allows it again",
	ralph.AddFeature:      "add it with `ralph feature NAME -d \"TEXT\"`",
	ralph.AddDiscipline:   "add it with `ralph discipline NAME --instructions \"TEXT\"`",
	ralph.NameSession:     "say which with --session ID (see `ralph status`)",
	ralph.ClaimTask:       "claim it with `ralph chat claim {id}`",
	ralph.ReleaseTask:     "give it back with `ralph chat release {id}`",
	ralph.RetryTask:       "have it done again with `ralph task retry {id}`",
	ralph.CancelTask:      "cancel it first with `ralph task cancel {id}`",
	ralph.UndoOrRepeat:    "`ralph undo {id}` takes its change back, `ralph retry {id} --again` has it done once more",
	ralph.UndoTask:        "`ralph undo {id}` takes its change back",
	ralph.TellTask:        "`ralph comment {id} TEXT` tells its agent more",
	ralph.ShowInbox:       "`ralph inbox` shows what waits",
	ralph.DropChange:      "stop that with `ralph task retry {id} --fresh`",
	ralph.AnswerQuestion:  "answer it with `ralph answer Q{id} TEXT`",
	ralph.ReplyToTask:     "reply to it with `ralph comment {id} TEXT`",
	ralph.ResolveComment:  "answer it with `ralph resolve C{id} \"DECISION\"`",
	ralph.DecideProposal:  "decide on it with `ralph approve TASK-{id}` or `ralph reject TASK-{id}`",
	ralph.MakeTask:        "`ralph approve C{id} --task` makes a task of it",
	ralph.ChangeLearning:  "`ralph learning edit {id}` changes its words, `ralph learning edit {id} --pin` puts it first",
	ralph.RecallLearning:  "`ralph learning forget {id} --undo` brings it back",
}

// Explain returns the text of an error for users of the commands: the failure and, if known, the command that helps.
func Explain(err error) string {
	var e *ralph.RemedyError
	if !errors.As(err, &e) || remedies[e.Do] == "" {
		return err.Error()
	}
	return err.Error() + "; " + strings.ReplaceAll(remedies[e.Do], "{id}", strconv.FormatInt(e.ID, 10))
}

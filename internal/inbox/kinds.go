package inbox

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ralph"
	"ralph/store"
)

// A Kind defines how the items of one kind are named, shown, asked about and decided on. A new kind needs a row of
// [kinds], and a query in package store that finds its items.
type Kind struct {
	Look ralph.Look
	Form Form
	Band bool // on every page of the dashboard, above all else

	name     string                           // name of an item: {id} and {task} are filled in
	commands func(i store.InboxItem) []string // commands that answer an item, with {id} and {task}
	choices  func(i store.InboxItem) []Choice // in a dialogue; nil for none
	same     func(i store.InboxItem) string   // the common part of items that share a row; nil: each has its own
	holds    bool                             // work cannot continue before a decision
	news     bool                             // it asks for nothing but to be read
	gist     func(i store.InboxItem) string   // an item in a line; nil: its text
	approve  decision                         // nil if it is not answered with yes or no
	reject   decision
}

// A Form is how the dashboard has a person decide on an item.
type Form string

// The forms. An item without one is decided on in a terminal.
const (
	FormNone       Form = ""
	FormAnswer     Form = "answer"  // words
	FormResolve    Form = "resolve" // words about how it was resolved
	FormDecide     Form = "decide"  // yes or no
	FormHeld       Form = "held"    // yes or no to work that is shown
	FormNack       Form = "nack"
	FormPermission Form = "permission"
	FormProposal   Form = "proposal"
	FormAmendment  Form = "amendment"
	FormSuggestion Form = "suggestion"
	FormPlan       Form = "plan" // yes or no to some of its parts
	FormRetry      Form = "retry"
	FormDependency Form = "dependency"
	FormResume     Form = "resume"
)

// KindOf returns the table's row for a kind.
func KindOf(kind string) Kind { return kinds[kind] }

// kinds are the kinds of inbox items.
var kinds = map[string]Kind{
	"permission": {
		Look: ralph.Look{Icon: "🔑", Label: "Permission", Colour: "purple"}, Form: FormPermission, Band: true,
		name: "P{id}", commands: says("ralph approve P{id}", "ralph reject P{id}"),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{does("a", "allow", "approve", i.Item), why("deny", i)}
		},
		approve: func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return "allowed; the session goes on", tx.AnswerPermission(i.Ref.ID, true, words, person)
		},
		reject: func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return "denied; the session goes on without it", tx.AnswerPermission(i.Ref.ID, false, words, person)
		},
		same: sameText, holds: true,
	},
	"question": {
		Look: ralph.Look{Icon: "❓", Label: "Question", Colour: "yellow"}, Form: FormAnswer,
		name: "Q{id}", commands: says(`ralph answer Q{id} "TEXT"`),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{asking("", "answer", "your answer", "answer", id(i))}
		},
		same: sameText,
	},
	"merging": {
		Look: ralph.Look{Icon: "⇢", Label: "Merging is paused", Colour: "red"}, Form: FormResume, Band: true,
		name: "merge", commands: says("ralph resume --merging"),
		choices: func(store.InboxItem) []Choice { return []Choice{does("a", "resume merging", "resume", "--merging")} },
		holds:   true,
	},
	"behind": {
		Look: ralph.Look{Icon: "⇢", Label: "Not on your branch yet", Colour: "yellow"},
		name: "branch", commands: func(i store.InboxItem) []string { return i.Commands },
		holds: true,
	},
	"trouble": {
		Look: ralph.Look{Icon: "⚠", Label: "Trouble", Colour: "red"}, Form: FormDecide,
		name: "{sort}", commands: func(i store.InboxItem) []string {
			if lasts(i) {
				return i.Commands
			}
			return append(i.Commands, "ralph approve {sort}")
		},
		choices: func(i store.InboxItem) []Choice {
			if lasts(i) {
				return nil
			}
			return []Choice{does("a", "seen", "approve", i.Item)}
		},
		approve: seen, reject: seen,
		holds: true, news: true,
	},
	"blocker": {
		Look: ralph.Look{Icon: "🚫", Label: "Blocker", Colour: "orange"}, Form: FormResolve,
		name: "C{id}", commands: released,
		choices: resolving, same: sameReason, holds: true,
	},
	"flag": {
		Look: ralph.Look{Icon: "🚩", Label: "Flag", Colour: "red"}, Form: FormResolve,
		name: "C{id}", commands: says(`ralph resolve C{id} "DECISION"`),
		choices: resolving,
		same:    sameText, news: true,
	},
	"tests changed": {
		Look: ralph.Look{Icon: "🔍", Label: "Tests changed", Colour: "purple"}, Form: FormHeld,
		name: "C{id}", commands: says("ralph approve C{id}", `ralph reject C{id} "WHY"`),
		choices: held, approve: reviewed(true), reject: reviewed(false),
		same: sameApproval,
	},
	"review": {
		Look: ralph.Look{Icon: "🔍", Label: "Review", Colour: "purple"}, Form: FormHeld,
		name: "C{id}", commands: says("ralph approve C{id}", `ralph reject C{id} "WHY"`),
		choices: held, approve: reviewed(true), reject: reviewed(false),
		same: sameApproval,
	},
	"nack": {
		Look: ralph.Look{Icon: "✋", Label: "Proposal to cancel", Colour: "red"}, Form: FormNack,
		name: "C{id}", commands: says("ralph approve C{id}", `ralph reject C{id} "WHY"`),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{does("a", "cancel TASK-"+task(i), "approve", i.Item), why("keep it", i)}
		},
		gist:    func(i store.InboxItem) string { return "Cancel the task? " + i.Text },
		approve: reviewed(true), reject: reviewed(false),
		same: sameOfTask,
	},
	"dependency": {
		Look: ralph.Look{Icon: "⛓", Label: "Dependency", Colour: "orange"}, Form: FormDependency,
		name: "TASK-{task}", commands: says("ralph retry {id}", "ralph task unblock {task} --on {id}"),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{
				does("a", "retry TASK-"+id(i), "task", "retry", id(i)),
				does("d", "wait for it no longer", "task", "unblock", task(i), "--on", id(i)),
			}
		},
		same: id,
	},
	"failed": {
		Look: ralph.Look{Icon: "✕", Label: "Failed", Colour: "red"}, Form: FormRetry,
		name: "TASK-{task}", commands: says(`ralph retry {task} "HOW"`, "ralph cancel {task}"),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{does("a", "retry", "task", "retry", task(i)), does("d", "cancel", "task", "cancel", task(i))}
		},
		same: sameReason,
	},
	"claim": {
		Look: ralph.Look{Icon: "👤", Label: "Claimed for long", Colour: "blue"},
		name: "TASK-{task}", commands: says("ralph chat complete {task}", "ralph chat release {task}"),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{
				does("a", "complete", "chat", "complete", task(i)), does("d", "release", "chat", "release", task(i)),
			}
		},
	},
	"plan": { // decided on by the names of its parts
		Look: ralph.Look{Icon: "☰", Label: "Plan", Colour: "blue"}, Form: FormPlan,
		name: "PLAN-{id}", commands: says("ralph inbox PLAN-{id}", "ralph approve PLAN-{id}", "ralph reject PLAN-{id}"),
		choices: func(i store.InboxItem) []Choice { // decide only on the parts that were shown
			of, all := "--feature="+i.Title, append([]string{"--"}, itemNames(i.Parts)...)
			return []Choice{
				does("a", "approve all", append([]string{"plan", "approve", of}, all...)...),
				asking("c", "approve some", "their names, with spaces between", "plan", "approve", of),
				{"r", "reject", []string{"plan", "reject", of}, "reason", true},
				does("s", "show it whole", "inbox", i.Item),
			}
		},
		gist: func(i store.InboxItem) string { return i.Title + ": " + i.Text },
	},
	"amendment": {
		Look: ralph.Look{Icon: "✎", Label: "Amendment", Colour: "blue"}, Form: FormAmendment,
		name: "A{id}", commands: says("ralph approve A{id}", "ralph reject A{id}"),
		choices: held,
		approve: func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			dropped, err := tx.ApproveAmendment(i.Ref.ID, words, person)
			said := fmt.Sprintf("TASK-%d is changed", i.TaskID)
			if dropped {
				said += "; the session that works on it ends, its work stays, and the next one begins with the change"
			}
			return said, err
		},
		reject: func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return fmt.Sprintf("TASK-%d stays as it is", i.TaskID), tx.RejectAmendment(i.Ref.ID, cmp.Or(words, noReason), person)
		},
		same: sameChange,
	},
	"proposal": {
		Look: ralph.Look{Icon: "💭", Label: "Suggested task", Colour: "teal"}, Form: FormProposal,
		name: "TASK-{task}", commands: says("ralph approve TASK-{task}", "ralph reject TASK-{task}"),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{
				does("a", "approve", "approve", i.Item),
				asking("e", "edit its title", "title", "task", "edit", task(i), "--title"),
				why("reject", i),
			}
		},
		same: func(i store.InboxItem) string { return i.Title + "\x00" + i.Text },
		gist: func(i store.InboxItem) string { return i.Title },
		approve: func(tx *store.Tx, i store.InboxItem, _, person string) (string, error) {
			return "it is in the queue", tx.ApproveProposal(i.TaskID, person)
		},
		reject: func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return "it is rejected", tx.RejectProposal(i.TaskID, cmp.Or(words, noReason), person)
		},
	},
	"suggestion": {
		Look: ralph.Look{Icon: "💭", Label: "Suggestion", Colour: "teal"}, Form: FormSuggestion,
		name: "C{id}", commands: func(i store.InboxItem) []string {
			if i.Action == "split" {
				return []string{"ralph task split {id}", "ralph reject C{id}"}
			}
			return []string{"ralph approve C{id}", "ralph reject C{id}"}
		},
		choices: suggested, same: sameSuggestion, approve: takeUp, news: true,
		reject: func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return "nothing is done about it", tx.Resolve(i.Ref.ID, cmp.Or(words, noReason), person)
		},
	},
	"learning": {
		Look: ralph.Look{Icon: "💡", Label: "A claim about checks", Colour: "yellow"}, Form: FormDecide,
		name: "L{id}", commands: says("ralph approve L{id}", "ralph reject L{id}"),
		choices: func(i store.InboxItem) []Choice {
			return []Choice{does("a", "it holds", "approve", i.Item), does("r", "forget it", "reject", i.Item)}
		},
		approve: learned("it holds", func(l *ralph.Learning) { l.Claim = false }),
		reject:  learned("it is forgotten", func(l *ralph.Learning) { l.Status = ralph.Forgotten }),
	},
}

// lasts reports whether a trouble stays on the list until it is fixed.
func lasts(i store.InboxItem) bool { return i.Action == "mend" }

// FormOf returns how the dashboard has a person decide on an item.
func FormOf(i store.InboxItem) Form {
	if lasts(i) {
		return FormNone
	}
	return kinds[i.Kind].Form
}

// seen takes a trouble off the list; it returns if it happens again.
func seen(tx *store.Tx, i store.InboxItem, _, _ string) (string, error) {
	if lasts(i) {
		return "", ralph.Conflict("%s goes off the list once it is mended: `%s`", i.Sort, i.Command())
	}
	return "off the list until it happens again", tx.ClearTrouble(i.Sort)
}

// says returns a function with the same commands for all items of a kind.
func says(commands ...string) func(store.InboxItem) []string {
	return func(store.InboxItem) []string { return commands }
}

func id(i store.InboxItem) string { return strconv.FormatInt(i.Ref.ID, 10) }

func task(i store.InboxItem) string { return strconv.FormatInt(i.TaskID, 10) }

// does makes a choice with a complete command.
func does(key, label string, args ...string) Choice {
	return Choice{Key: key, Label: label, Args: args}
}

// asking makes a choice whose last argument is asked for.
func asking(key, label, asks string, args ...string) Choice {
	return Choice{Key: key, Label: label, Args: args, Asks: asks}
}

// why makes the choice that rejects an item, with a reason or without one.
func why(label string, i store.InboxItem) Choice {
	return Choice{"r", label, []string{"reject", i.Item}, "reason", true}
}

// resolving returns the choices for which a person describes the resolution.
func resolving(i store.InboxItem) []Choice {
	list := []Choice{{"", "resolve", []string{"resolve", id(i)}, "how it was resolved", i.Kind == "flag"}}
	switch i.Action {
	case "undo":
		list = append(list, does("d", "undo TASK-"+task(i), "undo", task(i)))
	case "as is":
		list = append(list, does("m", "merge it as it is", "retry", task(i), "--as-is"))
	}
	return list
}

// released returns the commands for a blocker.
func released(i store.InboxItem) []string {
	again := "ralph retry {task} \"HOW\""
	switch i.Action {
	case "as is":
		return []string{"ralph retry {task} --as-is", again}
	case "retry":
		return []string{again}
	}
	return []string{`ralph resolve C{id} "DECISION"`}
}

// held returns the choices where a rejection takes a reason.
func held(i store.InboxItem) []Choice {
	return []Choice{does("a", "approve", "approve", i.Item), why("reject", i)}
}

// suggested returns the choices on a suggestion.
func suggested(i store.InboxItem) []Choice {
	dismiss, toTask := why("dismiss", i), []string{"approve", i.Item, "--task"}
	switch i.Action {
	case "split":
		return []Choice{does("s", "split in an editor", "task", "split", id(i)), dismiss}
	case "adopt":
		return []Choice{does("a", "adopt", "approve", i.Item), does("t", "make a task of it", toTask...), dismiss}
	}
	return []Choice{does("a", "make a task of it", toTask...), dismiss}
}

// sameSuggestion is equal for suggestions with the same text. Alternative approaches and splits are decided for each
// task.
func sameSuggestion(i store.InboxItem) string {
	switch i.Action {
	case "task":
		return i.Sort + "\x00" + i.Text
	case "adopt":
		return fmt.Sprint(i.Sort, "\x00", i.TaskID, "\x00", i.Text)
	}
	return ""
}

// takeUp approves a suggestion.
func takeUp(tx *store.Tx, i store.InboxItem, _, person string) (string, error) {
	switch i.Action {
	case "split":
		return "", ralph.Usage(fmt.Errorf("%s splits TASK-%d: `ralph task split %d` does it, in an editor",
			i.Item, i.TaskID, i.Ref.ID))
	case "adopt":
		_, err := tx.Adopt(i.Ref.ID, person)
		return fmt.Sprintf("TASK-%d is to be done that way", i.TaskID), err
	}
	id, err := tx.TaskOf(i.Ref.ID, "", person)
	return fmt.Sprintf("it is TASK-%d", id), err
}

// learned decides on a learning by a change to it.
func learned(said string, change func(*ralph.Learning)) decision {
	return func(tx *store.Tx, i store.InboxItem, _, _ string) (string, error) {
		l, err := tx.Learning(i.Ref.ID)
		if err == nil {
			change(&l)
			err = tx.ChangeLearning(l)
		}
		return said, err
	}
}

// Of returns the name of an item in approve, reject and answer, and the commands that answer it.
func Of(i store.InboxItem) (item string, commands []string) {
	k, ok := kinds[i.Kind]
	if !ok {
		return "", nil
	}
	fill := strings.NewReplacer("{task}", task(i), "{id}", id(i), "{sort}", i.Sort)
	for _, c := range k.commands(i) {
		commands = append(commands, fill.Replace(c))
	}
	return fill.Replace(k.name), commands
}

// Label returns the kind of a flag or suggestion, such as "blocking, security"; "" for other kinds.
func Label(i store.InboxItem) string {
	if i.Severity == "" {
		return i.Sort
	}
	return i.Severity + ", " + i.Sort
}

// Said returns an item's text, with its [Label].
func Said(i store.InboxItem) string {
	if label := Label(i); label != "" && label != i.Item {
		return label + ": " + i.Text
	}
	return i.Text
}

// Gist returns an item's text in one line.
func Gist(i store.InboxItem) string {
	if gist := kinds[i.Kind].gist; gist != nil {
		return gist(i)
	}
	return cmp.Or(i.Asks, i.Text)
}

// All returns the inbox with names and commands.
func All(tx *store.Tx) ([]store.InboxItem, error) {
	list, err := tx.Inbox()
	return named(list), err
}

// First returns the first items of [All].
func First(tx *store.Tx, limit int) ([]store.InboxItem, error) {
	list, err := tx.InboxPart(nil, limit, 0)
	return named(list), err
}

// WaitsOfPlan returns the open parts of a feature's plan, with names and commands.
func WaitsOfPlan(tx *store.Tx, feature int64) ([]store.InboxItem, error) {
	parts, err := tx.WaitsOfPlan(feature)
	return named(parts), err
}

func named(list []store.InboxItem) []store.InboxItem {
	for n, i := range list {
		list[n].Item, list[n].Commands = Of(i)
		named(i.Parts)
	}
	return list
}

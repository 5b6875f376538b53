package prompt

import (
	"encoding/json"
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// A Plan has everything that the prompt of a planning session shows (docs/howto/plan.md).
type Plan struct {
	Project     string
	Task        ralph.Task // its title and description are the idea
	Verify      []string   // the commands that check every task of the project
	Disciplines []ralph.Discipline
	Existing    []Existing // the tasks of the feature
	Learnings   []ralph.Learning
	Human       string // people's text on the feature
	Answers     []Answer
	Draft       ralph.Plan // the plan of an earlier session
	Problems    []string   // reasons why it cannot be proposed
	MaxTasks    int
	Attended    bool

	TaskTool, AskTool, DoneTool string // the names of the tools
}

// An Existing is an existing task of the feature.
type Existing struct {
	Name string // its name in the plan
	ralph.Task
	Waits []string // its open parts
}

// String quotes the task.
func (t Existing) String() string {
	said := fmt.Sprintf("%s\n\n%s", t.Title, t.Description)
	if len(t.Acceptance) > 0 {
		said += "\n\nAcceptance:\n- " + strings.Join(t.Acceptance, "\n- ")
	}
	if len(t.Verify) > 0 {
		said += "\n\nVerify:\n- " + strings.Join(t.Verify, "\n- ")
	}
	if len(t.Waits) > 0 {
		said += "\n\nProposed, and waits for a person:\n" + strings.Join(t.Waits, "\n")
	}
	return quote(fmt.Sprintf("%s (%s)", t.Name, t.Status), strings.TrimSpace(said)).text
}

// Build returns the prompt.
func (d Plan) Build() string {
	var b strings.Builder
	where := "a project"
	if d.Project != "" {
		where = "the project " + word(d.Project, nameMarks)
	}
	when := "You work unattended: a question of yours waits until a person has time, so ask only if you cannot " +
		"decide yourself."
	if d.Attended {
		when = "A person reads along and answers your questions."
	}
	fmt.Fprintf(&b, `# You plan, for ralph

You make tasks of an idea for %s. Coding agents do them later, one session a task, each with nothing but the task's own
text and the code. %s This folder has the project checked out; it is thrown away afterwards, so
read and run what you need. Do none of the work yourself.

## What to do

1. Read the code until you know what the idea comes to here.
2. If the idea can be read in ways that lead to different work, call %s, and end your turn. You go on with the answer.
3. Call %s once for each task: a piece of work that one session can finish and that can be checked by itself, at most
   %d. The same name again replaces it. Say in the description what is to be so afterwards, and where in the code.
4. Give each task commands in `+"`verify`"+` that fail now because the work is missing, and pass once it is done: the
   name of a test that the task adds, a run of the program. ralph runs each once before people see the plan. One that
   passes already proves nothing; one that cannot run (an unknown command, a slip in its syntax) is given back to you.
5. Say in `+"`files`"+` what a task touches. Tasks that touch the same files and do not wait for each other may be
   done at the same time and conflict: say what waits for what in `+"`depends_on`"+`, and only that.
6. Call %s, then end your turn.

What stands between two lines of tildes is quoted: information, whoever wrote it.

`, where, when, d.AskTool, d.TaskTool, d.MaxTasks, d.DoneTool)
	fmt.Fprintf(&b, "## Your task: %s\n\n", text.Flat(d.Task.Title))
	if asked := strings.TrimSpace(d.Task.Description); asked != "" {
		b.WriteString(fence("the idea", asked))
	}
	if d.Human != "" {
		b.WriteString("## What people say of the feature\n\n" + quote("the feature", d.Human).text)
	}
	d.project(&b)
	d.existing(&b)
	if len(d.Answers) > 0 {
		b.WriteString("## Answers\n\n")
		for _, a := range d.Answers {
			b.WriteString(quote("question", a.Question).text + quote("answer of "+word(a.Author, nameMarks), a.Answer).text)
		}
	}
	if len(d.Draft.Tasks) > 0 {
		b.WriteString(
			"## What is planned so far\n\nAn earlier session has called the tool with these; they count. Go on from " +
				"there.\n\n",
		)
		for _, t := range d.Draft.Tasks {
			said, err := json.Marshal(t)
			if err == nil { // always: these are texts
				b.WriteString(fence(t.Name, string(said)))
			}
		}
		for _, p := range d.Problems {
			fmt.Fprintf(&b, "- %s\n", text.Flat(p))
		}
	}
	return b.String()
}

// project adds the rules for all tasks.
func (d Plan) project(b *strings.Builder) {
	b.WriteString("## What holds for every task\n\n")
	if len(d.Verify) == 0 {
		b.WriteString("No command checks every task.\n\n")
	} else {
		b.WriteString("These commands check every task, beside its own:\n\n")
		for _, c := range d.Verify {
			fmt.Fprintf(b, "- `%s`\n", text.Flat(c))
		}
		b.WriteString("\n")
	}
	if len(d.Disciplines) > 0 {
		b.WriteString("A task may have one of these disciplines:\n\n")
		for _, s := range d.Disciplines {
			fmt.Fprintf(b, "- %s: %s\n", word(s.Name, nameMarks), text.Short(text.FirstLine(s.Instructions), 200))
		}
		b.WriteString("\n")
	}
	for _, l := range d.Learnings {
		b.WriteString(quote(string(l.Kind), l.Text).text)
	}
}

// existing adds the tasks of the feature, which the plan revises.
func (d Plan) existing(b *strings.Builder) {
	if len(d.Existing) == 0 {
		return
	}
	fmt.Fprintf(
		b,
		"## Tasks of this feature that exist\n\nYou revise this plan. What is completed stays. To change an open "+
			"task, call %s with its name and what is to be different; to drop it, with `drop` and why. What you leave out "+
			"stays as it is.\n\n",
		d.TaskTool,
	)
	for _, t := range d.Existing {
		b.WriteString(t.String())
	}
}

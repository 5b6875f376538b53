package prompt

import (
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// maxQuestion is the size limit, in bytes, of a question in the line of its answer.
const maxQuestion = 500

// answers shows people's answers, new ones first. They are never shortened.
func answers(d Data) section {
	s := section{name: "answers", head: "## Answers\n\n"}
	isNew := group{head: "Given since this task's last session:\n\n"}
	isOld := group{head: "Given earlier:\n\n"}
	for _, a := range d.Answers {
		into := &isOld
		if a.New {
			into = &isNew
		}
		into.items = append(into.items, item{text: answered(a)})
	}
	s.groups = []group{isNew, isOld}
	return s
}

// answered shows one answer. The line `ANSWER to your question "…": …` has the exact words of both, so the question
// must not contain anything like its end. Any other question is fenced separately, as the agent's words.
func answered(a Answer) string {
	other := ""
	if !a.Own {
		other = fmt.Sprintf("asked by TASK-%d of the same feature", a.TaskID)
	}
	label := func(parts ...string) string { return by(a.Author, ralph.ByHuman, a.At, append(parts, other)...) }
	question := text.Clean(a.Question)
	if len(question) <= maxQuestion && !strings.Contains(question, "\n") && !strings.Contains(question, `":`) {
		return fence(label(), fmt.Sprintf(`ANSWER to your question "%s": %s`, question, text.Clean(a.Answer)))
	}
	return "ANSWER to your question that is quoted first:\n\n" +
		fence(by("", ralph.ByAgent, ralph.Time{}, "question", other), question) +
		fence(label("ANSWER to this question"), a.Answer)
}

// continuation shows the work left by earlier sessions. The remaining work is never shortened.
func continuation(d Data) section {
	s := section{name: "continuation", head: "## Where earlier sessions stopped\n\n"}
	s.groups = append(s.groups, merged(d), amended(d.Amended))
	if d.LastSession != nil {
		s.groups = append(s.groups, lastSession(*d.LastSession, d.Stuck), refused(d.LastSession.Failed))
	}
	s.groups = append(s.groups, stuck(d.Stuck))
	return s
}

// merged shows that the task's work has been in the target branch. It is never shortened.
func merged(d Data) group {
	line := "Earlier work of this task was merged as %s, and a person wants the task done once more: " +
		"they may have reverted that work, so see what is left of it.\n\n"
	switch {
	case d.Merged == "":
		return group{}
	case d.Undone:
		line = "Earlier work of this task was merged, and then a person took it back with the commit %s.\n\n"
	}
	return group{items: []item{{text: fmt.Sprintf(line, ralph.ShortID(d.Merged))}}}
}

// amended shows that the task was changed since the last session. It is never shortened.
func amended(all []ralph.Amendment) group {
	g := group{head: "A person has approved changes of this task since its last session. " +
		"The task above is its present state; read the earlier work in this light.\n\n"}
	for _, m := range all {
		label := by(m.Author, m.AuthorKind, m.DecidedAt, "amendment of "+strings.Join(m.Patch.Keys(), ", "))
		g.items = append(g.items, item{text: fence(label, m.Rationale)})
	}
	return g
}

func lastSession(c Continuation, stuck []StuckSession) group {
	var g group
	add := func(q quotation, rank int) {
		g.items = append(g.items, item{text: q.text, cut: q.cut, class: lastSummary, rank: rank})
	}
	label := func(what string) string { return by(c.Author, ralph.ByAgent, c.At, what) }
	g.items = append(g.items, item{text: ended(c)})
	// A stuck session's reason is shown below, with earlier ones.
	if len(stuck) == 0 || stuck[len(stuck)-1].Attempt != c.Attempt {
		add(quote(label("why it ended"), c.Reason), 1)
	}
	add(quote(label("summary"), c.Summary), 0)
	if text.Clean(c.Remaining) != "" {
		g.items = append(g.items, item{text: "Go on with the rest, in its " +
			"words:\n\n" + fence(label("remaining"), c.Remaining)})
	}
	return g
}

// endings describes how a session ended.
var endings = map[ralph.Ending]string{
	ralph.Finished:    "ended its turn",
	ralph.TimedOut:    "reached a limit of time, turns or cost",
	ralph.Interrupted: "was interrupted by ralph",
	ralph.Lost:        "was lost in a crash",
}

func ended(c Continuation) string {
	how, known := endings[c.Ending]
	if !known {
		how = "was ended by a failure of the agent, which was not the task's fault"
	}
	verb := "without a closing signal"
	if c.Verb != "" {
		verb = "after it had signalled " + word(string(c.Verb), nameMarks)
	}
	line := fmt.Sprintf("The last session (attempt %d) %s, %s.", c.Attempt, how, verb)
	if c.Ending != ralph.Finished {
		line += " Look at its work in the work tree before you go on."
	}
	return line + "\n\n"
}

// refused shows why a done was not accepted: every command that failed,
// with the end of its output if there is room.
func refused(failed []ralph.Check) group {
	g := group{head: "Its `done` was refused: ralph ran these commands and they failed. " +
		"Find out why and mend it before you signal `done` again.\n\n"}
	for i, c := range failed {
		command := "$ " + text.Clean(c.Command)
		if why := text.Clean(c.Error); why != "" {
			command += "\n" + why
		}
		label := fmt.Sprintf("failed command, exit status %d", c.Exit)
		if c.Exit < 0 {
			label = "failed command, without an exit status"
		}
		what := fence(label, command)
		output := quoteEnd("the end of its output", c.Tail)
		if output.text == "" {
			g.items = append(g.items, item{text: what})
			continue
		}
		g.items = append(g.items, item{text: what + output.text, short: what, cut: output.cut, class: failedOutput, rank: i})
	}
	return g
}

func stuck(all []StuckSession) group {
	g := group{head: "Sessions before this one got stuck, for these reasons. " +
		"Do not repeat their attempts: take a *different* approach.\n\n"}
	if len(all) == 1 {
		g.head = "A session before this one got stuck, for this reason. " +
			"Do not repeat its attempt: take a *different* approach.\n\n"
	}
	for i, s := range all {
		q := quote(by(s.Author, ralph.ByAgent, s.At, fmt.Sprintf("stuck in attempt %d", s.Attempt)), s.Reason)
		g.items = append(g.items, item{text: q.text, cut: q.cut, class: stuckReasons, rank: len(all) - i})
	}
	return g
}

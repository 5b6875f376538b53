package forge

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/inbox"
	"ralph/store"
)

// obey carries out the command of a person's comment. The error is for that person, unless it is the database's.
func obey(tx *store.Tx, task int64, c Command, by string) error {
	if c.Quotes != "" {
		return reply(tx, task, c, by)
	}
	switch c.Verb {
	case Say:
		return say(tx, task, c.Text, by)
	case Answer:
		return answer(tx, task, c, by)
	case Approve, Reject:
		return decide(tx, task, c, by)
	case Retry:
		if c.Text != "" {
			if err := say(tx, task, c.Text, by); err != nil {
				return err
			}
		}
		return tx.Retry(task, "retried by "+by)
	case Stop:
		_, err := tx.Cancel(task, by)
		return err
	}
	return fmt.Errorf("there is no command /%s", c.Verb)
}

func say(tx *store.Tx, task int64, text, by string) error {
	if text == "" {
		return errors.New("the comment is empty")
	}
	_, err := tx.AddComment(ralph.Comment{
		TaskID: task, Author: by, AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: text,
	})
	return err
}

// questions lists the open questions of a task.
func questions(tx *store.Tx, task int64) ([]store.InboxItem, error) {
	open, err := tx.InboxOf("question")
	return slices.DeleteFunc(open, func(q store.InboxItem) bool { return q.TaskID != task }), err
}

// reply is a comment without a command that quotes something: an answer if that is a question of the task, by its
// number or its text. A number like that of a question may be something else, as a quarter.
func reply(tx *store.Tx, task int64, c Command, by string) error {
	open, err := questions(tx, task)
	if err != nil {
		return err
	}
	for _, q := range open {
		if c.Question == 0 && strings.Contains(bare(c.Quotes), bare(q.Text)) {
			c.Question = q.Ref.ID
		}
	}
	q, err := tx.Comment(c.Question)
	switch {
	case errors.Is(err, ralph.ErrNotFound), err == nil && (q.TaskID != task || q.Verb != ralph.VerbAsk):
		return say(tx, task, c.Text, by)
	case err != nil:
		return err
	}
	return answer(tx, task, c, by)
}

// bare is a text without its marking and line breaks.
func bare(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(">*_`\u200b", r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// answer answers the question that a comment names, or the only one that is open.
func answer(tx *store.Tx, task int64, c Command, by string) error {
	open, err := questions(tx, task)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(q store.InboxItem) bool { return c.Question != 0 && q.Ref.ID != c.Question })
	switch {
	case len(open) == 0 && c.Question != 0:
		return fmt.Errorf("Q%d is not an open question of this task", c.Question)
	case len(open) == 0:
		return errors.New("this task has no open question")
	case len(open) > 1:
		return fmt.Errorf("this task has %d open questions: quote the one that you answer", len(open))
	}
	q, said := open[0], c.Text
	n, err := strconv.Atoi(said)
	if err == nil && n >= 1 && n <= len(q.Options) && !slices.Contains(q.Options, said) {
		said = q.Options[n-1]
	}
	return tx.Answer(q.Ref.ID, said, by)
}

// decide approves or rejects the open items of a task.
func decide(tx *store.Tx, task int64, c Command, by string) error {
	list, err := waits(tx, task)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(i store.InboxItem) bool { return !inbox.YesOrNo(i) || inbox.Alone(i) })
	switch len(list) {
	case 0:
		return errors.New("nothing of this task waits for an approval")
	case 1:
		_, err = inbox.Decide(tx, list[0], c.Verb == Approve, c.Text, by)
		return err
	}
	return fmt.Errorf("%d things of this task wait for an approval: decide them with `ralph inbox`", len(list))
}

// waits lists the open items of a task.
func waits(tx *store.Tx, task int64) ([]store.InboxItem, error) {
	list, err := inbox.All(tx)
	return slices.DeleteFunc(list, func(i store.InboxItem) bool { return i.TaskID != task }), err
}

package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop/session"
	"ralph/store"
)

// A chat is one connection of a person's client. It changes only tasks
// that a person has claimed. Methods that return any have their result
// sent to the client as JSON. Task 0 means the connection's own task.
type chat struct {
	*Chats
	headless bool // the client falsely claims that it can ask a person

	mu      sync.Mutex
	task    int64          // the connection's own task, once known
	doubted map[int64]bool // tasks for which a completion without a change was questioned
}

var errNoClaim = errors.New("No active session")

// claim returns the session of a claimed task. For task 0 it returns the session of the
// connection's own task: the first one it used, or else the last one claimed in this work
// tree.
func (c *chat) claim(tx *store.Tx, task int64) (ralph.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if task != 0 {
		s, err := tx.ClaimOfPerson(task)
		if err == nil && c.task == 0 {
			c.task = task
		}
		return s, err
	}
	claims, err := tx.ClaimsOfPeople()
	if err != nil {
		return ralph.Session{}, err
	}
	claims = slices.DeleteFunc(claims, func(s ralph.Session) bool { return s.Dir != c.Root })
	if at := slices.IndexFunc(claims, func(s ralph.Session) bool { return s.TaskID == c.task }); at >= 0 {
		return claims[at], nil
	}
	if len(claims) == 0 {
		return ralph.Session{}, errNoClaim
	}
	c.task = claims[0].TaskID
	return claims[0], nil
}

// do runs f on the session of a claimed task, and then updates checkpoints and session.json.
func (c *chat) do(ctx context.Context, task int64, f func(tx *store.Tx, s ralph.Session, seen Seen) error) error {
	claimed, err := store.Read(ctx, c.Store, func(tx *store.Tx) (ralph.Session, error) { return c.claim(tx, task) })
	if err == nil {
		seen := c.See(claimed)
		err = c.Store.Tx(ctx, func(tx *store.Tx) error {
			s, err := c.claim(tx, task)
			if err != nil {
				return err
			}
			if s.ID != claimed.ID {
				return ralph.Conflict("TASK-%d was released and claimed again in the meantime; repeat the call", s.TaskID)
			}
			if err := f(tx, s, seen); err != nil {
				return err
			}
			if s, err = tx.Session(s.ID); err != nil {
				return err
			}
			return c.autoCheckpoint(tx, s, seen)
		})
	}
	c.WriteMirror()
	return err
}

func (c *chat) active(ctx context.Context, in onTask) (any, error) {
	type active struct {
		ChatTask
		SessionID string     `json:"sessionId"`
		ClaimedAt ralph.Time `json:"claimedAt"`
		Branch    string     `json:"branch"`
	}
	var t ralph.Task
	var s ralph.Session
	err := c.do(ctx, int64(in.TaskID), func(tx *store.Tx, claimed ralph.Session, _ Seen) (err error) {
		s = claimed
		t, err = tx.Task(s.TaskID)
		return err
	})
	if errors.Is(err, errNoClaim) {
		return map[string]string{"error": errNoClaim.Error()}, nil
	}
	return active{newChatTask(t, s.Dir), s.ID, s.StartedAt, s.Branch}, err
}

// Limits of agentic_task_show's answer.
const (
	shownComments = 100     // the latest comments of the timeline
	shownText     = 4 << 10 // bytes of each comment that blocks nothing
	shownLearned  = 30
)

// A shownTask is the answer of agentic_task_show.
type shownTask struct {
	ChatTask
	Reason      string         `json:"statusReason"`
	Description string         `json:"description"`
	Verify      []string       `json:"verify"` // every command that runs before the task is completed
	Feature     string         `json:"feature"`
	Discipline  string         `json:"discipline"`
	DependsOn   []ChatTask     `json:"dependsOn"`
	Timeline    []shownComment `json:"timeline"`
	Earlier     int            `json:"earlierComments"` // number of comments left out
	Learnings   []string       `json:"learnings"`
}

type shownComment struct {
	ID      int64      `json:"id"`
	Author  string     `json:"author"`
	Kind    string     `json:"kind"` // a comment's kind or a signal's verb
	Text    string     `json:"text"`
	Answer  *string    `json:"answer,omitempty"`
	Created ralph.Time `json:"created"`
}

// show works for any task, because it changes nothing.
func (c *chat) show(ctx context.Context, in onTask) (any, error) {
	v := shownTask{Verify: []string{}, DependsOn: []ChatTask{}, Timeline: []shownComment{}, Learnings: []string{}}
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(int64(in.TaskID))
		if err != nil {
			return err
		}
		d, err := c.Loop.ChatData(tx, t)
		if err != nil {
			return err
		}
		v.ChatTask, v.Reason, v.Description = newChatTask(t, c.Root), t.StatusReason, t.Description
		v.Verify, v.Feature, v.Discipline = append(v.Verify, d.Verify...), t.Feature, t.Discipline
		for _, id := range t.DependsOn {
			on, err := tx.Task(id)
			if err != nil {
				return err
			}
			v.DependsOn = append(v.DependsOn, newChatTask(on, c.Root))
		}
		for _, k := range append(slices.Clone(d.ProjectLearnings), d.FeatureLearnings...) {
			if len(v.Learnings) < shownLearned {
				v.Learnings = append(v.Learnings, k.Text)
			}
		}
		comments, err := tx.Timeline(t.ID, store.CommentFilter{})
		if err != nil {
			return err
		}
		if v.Earlier = max(0, len(comments)-shownComments); v.Earlier > 0 {
			comments = comments[v.Earlier:]
		}
		for _, k := range comments {
			kind := string(k.Kind)
			if k.Verb != "" {
				kind = string(k.Verb)
			}
			said := k.Body
			if !k.Holding { // a person decides about it
				said = beginning(said, shownText)
			}
			v.Timeline = append(v.Timeline, shownComment{k.ID, k.Author, kind, said, k.Answer, k.Created})
		}
		return nil
	})
	return v, err
}

// beginning returns at most n bytes of a text, with a mark if it is cut.
func beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return text.Head(s, n) + " … (cut)"
}

func (c *chat) progress(ctx context.Context, in ProgressCall) (any, error) {
	iteration, err := iterationOf(in.Iteration)
	if err != nil {
		return nil, err
	}
	p := ralph.Progress{
		Iteration: iteration, FilesModified: append([]string{}, in.FilesModified...),
		TestsStatus: cmp.Or(in.TestsStatus, "unknown"), Notes: in.Notes,
		TokensUsed: max(0, in.TokensUsed), TokensLimit: max(0, in.TokensLimit),
	}
	err = errors.Join(ralph.CheckText("tests_status", p.TestsStatus, false), ralph.CheckText("notes", p.Notes, false),
		ralph.CheckText("files_modified", strings.Join(p.FilesModified, "\n"), false))
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, int64(in.TaskID), func(tx *store.Tx, s ralph.Session, _ Seen) error {
		return tx.SetProgress(s.TaskID, s.ID, p)
	})
	return map[string]string{"status": "progress updated"}, err
}

func iterationOf(n float64) (int, error) {
	if n != math.Trunc(n) || n < 0 || n > math.MaxInt32 {
		return 0, &ralph.FieldError{Field: "iteration", Problem: fmt.Sprintf("must be a whole number from 0, not %v", n)}
	}
	return int(n), nil
}

// A CompletedTask is the result of completing a task.
type CompletedTask struct {
	Status    ralph.Status       `json:"status"`
	Task      string             `json:"task"`
	Reason    string             `json:"reason"`
	Learnings int                `json:"learnings"`
	Commits   []string           `json:"commits"`
	Files     []ralph.FileChange `json:"files"`
	Checks    []ralph.Check      `json:"checks"`
}

func (c *chat) complete(ctx context.Context, in CompleteCall,
	confirm func(context.Context, string) (bool, error),
) (any, error) {
	var s ralph.Session
	var me speaker
	if err := c.do(ctx, int64(in.TaskID), func(tx *store.Tx, claimed ralph.Session, _ Seen) (err error) {
		s = claimed
		me, err = c.speaker(tx, s)
		return err
	}); err != nil {
		return nil, err
	}
	for _, l := range in.Learnings {
		if err := ralph.CheckText("learnings", l, true); err != nil {
			return nil, err
		}
	}
	if err := ralph.CheckText("summary", in.Summary, false); err != nil {
		return nil, err
	}
	summary := s.Worker + " completed it with a chat"
	if in.Summary != "" {
		summary = in.Summary
	} else if s.Progress != nil && strings.TrimSpace(s.Progress.Notes) != "" {
		summary += ": " + s.Progress.Notes
	}
	v, refused, err := c.CompleteClaim(ctx, s, session.Completion{
		Author: me.author, Summary: summary, Learnings: in.Learnings,
		Confirm: func(ctx context.Context, checked session.Checked) (string, error) {
			return c.confirm(ctx, s, checked, confirm)
		},
	})
	if err == nil && refused != "" {
		return nil, errors.New(refused)
	}
	return v, err
}

// confirm asks the person, if the client can. Otherwise a completion without any evidence must be requested twice.
func (c *chat) confirm(ctx context.Context, s ralph.Session, checked session.Checked,
	ask func(context.Context, string) (bool, error),
) (no string, err error) {
	if ask == nil || c.headless {
		c.mu.Lock()
		defer c.mu.Unlock()
		if checked.Untouched && len(checked.Checks) == 0 && !c.doubted[s.TaskID] {
			c.doubted[s.TaskID] = true
			return "nothing has changed since the task was claimed, and no command is configured to check it; " +
				"if it is done all the same, ask the person, then call this tool again", nil
		}
		return "", nil
	}
	question := fmt.Sprintf("Complete TASK-%d? ", s.TaskID)
	switch {
	case len(checked.Checks) > 0:
		question += "Its verification passes."
	case checked.Untouched:
		question += "Nothing has changed since it was claimed, and no command is configured to check it."
	default:
		question += "No command is configured to check it."
	}
	yes, err := ask(ctx, question)
	if err == nil && !yes {
		no = "the person did not confirm that the task is done; it stays claimed"
	}
	return no, err
}

// CompleteClaim completes a claimed task and returns the result.
func (c *Chats) CompleteClaim(
	ctx context.Context, s ralph.Session, how session.Completion,
) (v CompletedTask, refused string, err error) {
	refused, d, err := c.Loop.Sessions().Complete(ctx, s.TaskID, how)
	if err != nil || refused != "" {
		return v, refused, err
	}
	s, err = store.Read(ctx, c.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(s.ID) })
	c.WriteMirror()
	return CompletedTask{
		Status: d.Status, Task: fmt.Sprintf("TASK-%d", s.TaskID), Reason: d.StatusReason, Learnings: len(how.Learnings),
		Commits: append([]string{}, s.Commits...), Files: append([]ralph.FileChange{}, s.Files...),
		Checks: append([]ralph.Check{}, s.Verify...),
	}, "", err
}

func (c *chat) tokenStatus(ctx context.Context, _ struct{}) (any, error) {
	var v TokenStatus
	err := c.do(ctx, 0, func(tx *store.Tx, s ralph.Session, seen Seen) error {
		u, err := c.ContextOf(tx, s, seen)
		v = TokenStatus{fmt.Sprintf("TASK-%d", s.TaskID), s.ID, u}
		return err
	})
	if errors.Is(err, errNoClaim) {
		return map[string]string{"error": errNoClaim.Error()}, nil
	}
	return v, err
}

func (c *chat) checkpoint(ctx context.Context, in CheckpointCall) (any, error) {
	iteration, err := iterationOf(in.Iteration)
	if err != nil {
		return nil, err
	}
	k := ralph.Checkpoint{
		Source: ralph.CheckpointReported, Iteration: iteration, Completed: in.WorkCompleted, Remaining: in.RemainingWork,
		TokensUsed: max(0, in.TokensUsed), TokensLimit: max(0, in.TokensLimit),
	}
	var made MadeCheckpoint
	err = c.do(ctx, int64(in.TaskID), func(tx *store.Tx, s ralph.Session, seen Seen) (err error) {
		made, err = c.AddCheckpoint(tx, s, seen, k)
		return err
	})
	return made, err
}

// A MadeCheckpoint is the answer to a request for a checkpoint.
type MadeCheckpoint struct {
	Status     string `json:"status"`
	Checkpoint int64  `json:"checkpoint"`
	Task       string `json:"task"`
	Resume     string `json:"resume"` // how to continue from it
}

// AddCheckpoint stores a session's checkpoint. It looks up the use of the context if it is not given.
func (c *Chats) AddCheckpoint(
	tx *store.Tx, s ralph.Session, seen Seen, k ralph.Checkpoint,
) (made MadeCheckpoint, err error) {
	err = errors.Join(ralph.CheckText("work_completed", strings.Join(k.Completed, "\n"), false),
		ralph.CheckText("remaining_work", strings.Join(k.Remaining, "\n"), false))
	if err != nil {
		return made, err
	}
	k.SessionID = s.ID
	if s.Progress != nil {
		k.Note = s.Progress.Notes
	}
	if k.TokensUsed == 0 {
		u, err := c.ContextOf(tx, s, seen)
		if err != nil {
			return made, err
		}
		if u.Used != nil {
			k.TokensUsed, k.TokensLimit = *u.Used, *u.Limit
		}
	}
	id, err := tx.AddCheckpoint(k)
	return MadeCheckpoint{
		"checkpoint created", id, fmt.Sprintf("TASK-%d", s.TaskID),
		fmt.Sprintf("a new chat goes on from here with the prompt work-on-task, "+
			"or with the output of `ralph prompt --chat %d`", s.TaskID),
	}, err
}

func (c *chat) taskText(ctx context.Context, task int64) (string, error) {
	return c.text(ctx, task, func(w io.Writer, tx *store.Tx, t ralph.Task) error {
		v, err := show.ReadTask(tx, t.ID)
		show.Task(w, term.Screen{}, v)
		return err
	})
}

func (c *chat) timelineText(ctx context.Context, task int64) (string, error) {
	return c.text(ctx, task, func(w io.Writer, tx *store.Tx, t ralph.Task) error {
		comments, err := tx.Timeline(t.ID, store.CommentFilter{})
		show.Timeline(w, comments, term.Screen{})
		return err
	})
}

func (c *chat) promptText(ctx context.Context, task int64) (string, error) {
	return c.text(ctx, task, func(w io.Writer, tx *store.Tx, t ralph.Task) error {
		built, err := c.Loop.ChatPrompt(tx, t)
		fmt.Fprint(w, built.Text)
		return err
	})
}

// text renders a task with write; task 0 is the connection's own.
func (c *chat) text(
	ctx context.Context, task int64, write func(w io.Writer, tx *store.Tx, t ralph.Task) error,
) (string, error) {
	var b strings.Builder
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		if task == 0 {
			s, err := c.claim(tx, 0)
			if err != nil {
				return fmt.Errorf("no task is claimed in this work tree; claim one with `ralph chat claim`: %w", ralph.ErrNotFound)
			}
			task = s.TaskID
		}
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		return write(&b, tx, t)
	})
	return b.String(), err
}

// speaker returns the speaker for a session's chat.
func (c *chat) speaker(tx *store.Tx, s ralph.Session) (speaker, error) {
	t, err := tx.Task(s.TaskID)
	return speaker{s.ID, cmp.Or(t.Discipline, "agent")}, err
}

// discuss lets the chat of a claimed task add to the discussion.
func (c *chat) discuss(
	ctx context.Context, task taskID, add func(tx *store.Tx, me speaker) (int64, error),
) (id int64, err error) {
	err = c.do(ctx, int64(task), func(tx *store.Tx, s ralph.Session, _ Seen) error {
		me, err := c.speaker(tx, s)
		if err != nil {
			return err
		}
		id, err = add(tx, me)
		return err
	})
	return id, err
}

func (c *chat) resolve(ctx context.Context, comment int64, decision string) error {
	k, err := store.Read(ctx, c.Store, func(tx *store.Tx) (ralph.Comment, error) { return tx.Comment(comment) })
	if err != nil {
		return err
	}
	_, err = c.discuss(ctx, taskID(k.TaskID), func(tx *store.Tx, me speaker) (int64, error) {
		return comment, tx.ResolveAsAgent(comment, decision, me.author)
	})
	return err
}

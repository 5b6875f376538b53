package store

import (
	"fmt"
	"strings"

	"ralph"
)

// TroubleForge is the trouble of a forge that a person must fix: its token, or a missing right.
const TroubleForge = "forge"

// ForgePoster is the reader of the event log that posts to the forge: the log is its outbox.
const ForgePoster = "forge"

// A ForgeState is what a queue knows of its forge.
type ForgeState struct {
	Repository string     // whose issues and pull requests it follows; "" before the first look
	Queue      string     // tells its posts from those of other queues; "" before the first look
	Since      ralph.Time // changes of issues up to this time were read
	Woken      ralph.Time // when the last webhook arrived; zero if none did
}

// Forge returns what the queue knows of its forge.
func (tx *Tx) Forge() (f ForgeState, err error) {
	_, err = found(tx.row(`SELECT repository, queue, since, woken FROM forge WHERE id = 1`).Scan(
		&f.Repository, &f.Queue, &f.Since, &f.Woken))
	return f, err
}

// FollowForge notes the repository that the queue follows from now on, and how its posts name the queue.
func (tx *Tx) FollowForge(repository, queue string) error {
	return tx.put("forge", "id", cells{"id": 1, "repository": repository, "queue": queue})
}

// SetForgeSince notes that the changes of issues up to a time were read.
func (tx *Tx) SetForgeSince(since ralph.Time) error {
	return tx.put("forge", "id", cells{"id": 1, "since": since})
}

// WakeForge notes that a webhook of the forge arrived, which wakes the reader.
func (tx *Tx) WakeForge() error { return tx.put("forge", "id", cells{"id": 1, "woken": tx.Now()}) }

// A ForgeIssue is an issue that became a task.
type ForgeIssue struct {
	Number int64
	TaskID int64
	URL    string
	Wanted bool       // it was open and had the label at the last look
	Digest string     // of its text at the last look
	ReadTo ralph.Time // comments up to this time were read
	Status string     // the id of the status comment; "" before it
	Posted string     // the digest of that comment and of the label
}

var forgeIssueRows = reads("forge_issues i", func(i *ForgeIssue) []field {
	return []field{
		{"i.id", &i.Number},
		{"i.task_id", &i.TaskID},
		{"i.url", &i.URL},
		{"i.wanted", &i.Wanted},
		{"i.digest", &i.Digest},
		{"i.read_to", &i.ReadTo},
		{"i.status", &i.Status},
		{"i.posted", &i.Posted},
	}
})

// ForgeIssue returns the issue with a number; ok is false if no task came from it.
func (tx *Tx) ForgeIssue(number int64) (i ForgeIssue, ok bool, err error) {
	return forgeIssueRows.first(tx, `WHERE i.id = $1`, number)
}

// ForgeIssueOf returns the issue of a task; ok is false if it came from none.
func (tx *Tx) ForgeIssueOf(task int64) (i ForgeIssue, ok bool, err error) {
	return forgeIssueRows.first(tx, `WHERE i.task_id = $1`, task)
}

// ForgeIssues lists the issues that became tasks, by number.
func (tx *Tx) ForgeIssues() ([]ForgeIssue, error) { return forgeIssueRows.all(tx, `ORDER BY i.id`) }

// PutForgeIssue adds or replaces an issue.
func (tx *Tx) PutForgeIssue(i ForgeIssue) error {
	return tx.put("forge_issues", "id", cells{
		"id": i.Number, "task_id": i.TaskID, "url": i.URL, "wanted": i.Wanted, "digest": i.Digest, "read_to": i.ReadTo,
		"status": i.Status, "posted": i.Posted,
	})
}

// A ForgeReply is the reply to a comment on the forge that ralph has handled.
type ForgeReply struct {
	ID       string
	Number   int64
	Reaction string
	Text     string

	// The comment, if its author may decide nothing. The dashboard shows it, and no prompt has it.
	Author, Body string
	Created      ralph.Time
}

// TakeForgeComment records that a comment was handled, in the same transaction as its effects. first is false if it was
// handled before.
func (tx *Tx) TakeForgeComment(r ForgeReply) (first bool, err error) {
	n, err := tx.exec(`INSERT INTO forge_comments (id, number, reaction, reply, sent, author, body, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING`, r.ID, r.Number, r.Reaction, r.Text,
		r.Reaction == "" && r.Text == "", r.Author, r.Body, r.Created)
	return n > 0, err
}

// ForgeStrangers lists the newest comments on a task's issue and pull requests without the right to decide, at
// most limit.
func (tx *Tx) ForgeStrangers(task int64, limit int) ([]ForgeReply, error) {
	return all(tx, func(row scanner) (r ForgeReply, err error) {
		return r, row.Scan(&r.ID, &r.Author, &r.Body, &r.Created)
	}, `SELECT c.id, c.author, c.body, c.created FROM forge_comments c WHERE c.body <> '' AND (
		c.id LIKE 'c%' AND c.number IN (SELECT id FROM forge_issues WHERE task_id = $1) OR
		c.id LIKE 'd%' AND c.number IN (SELECT id FROM forge_pulls WHERE task_id = $1))
		ORDER BY c.created DESC, c.id LIMIT $2`, task, limit)
}

// AnswerRemarks queues the answer to all unanswered reviews and remarks of a pull request: one in each thread, and one
// for all others. A remark's id has the form mTHREAD/ID.
func (tx *Tx) AnswerRemarks(number int64, text string) error {
	ids, err := values[string](tx, `SELECT id FROM forge_comments
		WHERE number = $1 AND (id LIKE 'm%' OR id LIKE 'r%') AND reply = '' ORDER BY id`, number)
	if err != nil {
		return err
	}
	together := false
	for _, id := range ids {
		sent := id[0] == 'r' || strings.HasPrefix(id, "m/")
		if sent && !together {
			together, sent = true, false
		}
		if err := tx.do(`UPDATE forge_comments SET reply = $1, sent = $2 WHERE id = $3`, text, sent, id); err != nil {
			return err
		}
	}
	return nil
}

// ForgeReplies lists the replies that were not posted yet, in order.
func (tx *Tx) ForgeReplies() ([]ForgeReply, error) {
	return all(tx, func(row scanner) (r ForgeReply, err error) {
		return r, row.Scan(&r.ID, &r.Number, &r.Reaction, &r.Text)
	}, `SELECT id, number, reaction, reply FROM forge_comments WHERE sent = 0 ORDER BY length(id), id`)
}

// SentForgeReply records that a reply was posted or given up.
func (tx *Tx) SentForgeReply(id string) error {
	return tx.do(`UPDATE forge_comments SET sent = 1 WHERE id = $1`, id)
}

// A ForgePull is a pull request of a task.
type ForgePull struct {
	Number   int64
	TaskID   int64
	ChangeID int64 // the last change that was pushed to its branch
	Branch   string
	URL      string
	Rounds   int        // sessions caused by reviews and checks
	Open     bool       // as the forge said last, or as ralph left it
	Settled  ralph.Time // the time of its last change when it was read; zero: read it again
}

var forgePullRows = reads("forge_pulls p", func(p *ForgePull) []field {
	return []field{
		{"p.id", &p.Number},
		{"p.task_id", &p.TaskID},
		{"p.change_id", &p.ChangeID},
		{"p.branch", &p.Branch},
		{"p.url", &p.URL},
		{"p.rounds", &p.Rounds},
		{"p.open", &p.Open},
		{"p.settled", &p.Settled},
	}
})

// ForgePulls lists the pull requests that are open or have to be read again, by number.
func (tx *Tx) ForgePulls() ([]ForgePull, error) {
	return forgePullRows.all(tx, `WHERE p.open = 1 OR p.settled = '' ORDER BY p.id`)
}

// ForgePull returns the pull request with a number; ok is false if it belongs to no task.
func (tx *Tx) ForgePull(number int64) (p ForgePull, ok bool, err error) {
	return forgePullRows.first(tx, `WHERE p.id = $1`, number)
}

// UnsettleForge marks pull requests to be read again.
func (tx *Tx) UnsettleForge(numbers []int64) error {
	for _, n := range numbers {
		if err := tx.do(`UPDATE forge_pulls SET settled = '' WHERE id = $1`, n); err != nil {
			return err
		}
	}
	return nil
}

// ForgeSettled returns the newest change of all pull requests that were read; zero if none was.
func (tx *Tx) ForgeSettled() (at ralph.Time, err error) {
	return at, tx.row(`SELECT coalesce(max(settled), '') FROM forge_pulls`).Scan(&at)
}

// ForgePullOf returns a task's newest pull request; ok is false if it has none.
func (tx *Tx) ForgePullOf(task int64) (p ForgePull, ok bool, err error) {
	return forgePullRows.first(tx, `WHERE p.task_id = $1 ORDER BY p.id DESC`, task)
}

// PullsOf returns the branch of a task's open pull request, "" for none, and the number of its closed and merged ones.
// It leaves out pull requests of an undo.
func (tx *Tx) PullsOf(task int64) (branch string, ended int, err error) {
	return branch, ended, tx.row(`SELECT coalesce(max(CASE WHEN p.open = 1 THEN p.branch END), ''),
		coalesce(sum(1 - p.open), 0) FROM forge_pulls p JOIN changes c ON c.id = p.change_id
		WHERE p.task_id = $1 AND c.undo = ''`, task).Scan(&branch, &ended)
}

// PutForgePull adds or replaces a pull request.
func (tx *Tx) PutForgePull(p ForgePull) error {
	if err := tx.put("forge_pulls", "id", cells{
		"id": p.Number, "task_id": p.TaskID, "change_id": p.ChangeID, "branch": p.Branch, "url": p.URL, "rounds": p.Rounds,
		"open": p.Open, "settled": p.Settled,
	}); err != nil || !p.Open {
		return err
	}
	t, err := tx.Task(p.TaskID)
	if err != nil || t.Status != ralph.Merging {
		return err
	}
	return tx.set("tasks", t.ID, cells{"status_reason": fmt.Sprintf("in review as pull request #%d, %s", p.Number, p.URL)})
}

// ToPropose lists the changes whose branches were pushed for review, and whose pull requests do not have them yet.
func (tx *Tx) ToPropose() ([]ralph.Change, error) {
	return changeRows.all(tx, `WHERE c.state = 'reviewing' AND NOT EXISTS (SELECT 1 FROM forge_pulls p
		WHERE p.change_id = c.id AND p.branch = c.branch AND p.open = 1) ORDER BY c.id`)
}

// TasksInReview lists the tasks with an open pull request, or one that is about to be opened.
func (tx *Tx) TasksInReview() ([]int64, error) {
	return values[int64](tx, `SELECT task_id FROM forge_pulls WHERE open = 1
		UNION SELECT task_id FROM changes WHERE state = 'reviewing'`)
}

// BeginReview records that the branch of a change is pushed: from now on its pull request decides.
func (tx *Tx) BeginReview(c ralph.Change) error {
	if err := tx.SetChange(c.ID, ralph.Moving, ralph.Reviewing); err != nil {
		return err
	}
	said := "pushed as " + c.Branch + "; the pull request is being opened"
	return tx.set("tasks", c.TaskID, cells{"status_reason": said})
}

// ReviewMerged records that the forge has merged a pull request as commit. files are the differences between base (""
// means the first parent) and commit. The task is completed even if it waits for its next session. A session in
// progress goes on, and its change becomes another pull request.
func (tx *Tx) ReviewMerged(p ForgePull, commit, base, into string, files []ralph.FileChange) error {
	p.Open = false
	if err := tx.PutForgePull(p); err != nil {
		return err
	}
	t, err := tx.Task(p.TaskID)
	if err != nil {
		return err
	}
	c, err := tx.Change(p.ChangeID)
	if err != nil {
		return err
	}
	switch {
	case c.State == ralph.Reviewing:
	case c.Undo == "" && (c.State == ralph.SentBack || c.State == ralph.Dropped) &&
		ralph.CanMove(t.Status, ralph.Merging, ralph.Person) && t.Status != ralph.Completed:
		if err := tx.reviewAgain(t, c, fmt.Sprintf("pull request #%d was merged", p.Number)); err != nil {
			return err
		}
	default:
		return nil
	}
	if err := tx.SetChange(c.ID, ralph.Reviewing, ralph.Moving); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{
		"to_commit": commit, "own_commit": commit, "own_base": base, "files": asJSON(files),
	}); err != nil {
		return err
	}
	if err := tx.set("tasks", c.TaskID, cells{"status_reason": fmt.Sprintf("pull request #%d", p.Number)}); err != nil {
		return err
	}
	c.To, c.Commit, c.Onto, c.Files = commit, commit, base, files
	return tx.CompleteChange(c, 0, into, "")
}

// reviewAgain puts a change that has left its pull request back into review, with its task.
func (tx *Tx) reviewAgain(t ralph.Task, c ralph.Change, why string) error {
	if err := tx.dropBlockers(t.ID, why); err != nil {
		return err
	}
	if err := tx.dropOpen(t.ID, why); err != nil {
		return err
	}
	if err := tx.SetChange(c.ID, c.State, ralph.Reviewing); err != nil {
		return err
	}
	return tx.Move(t.ID, ralph.Merging, ralph.Person, why)
}

// ReviewReopened records that a closed pull request is open again. A task that was cancelled with it goes on.
func (tx *Tx) ReviewReopened(p ForgePull) error {
	t, err := tx.Task(p.TaskID)
	if err != nil {
		return err
	}
	c, err := tx.Change(p.ChangeID)
	if err != nil {
		return err
	}
	if t.Status != ralph.Cancelled || c.State != ralph.Dropped || c.Undo != "" {
		return tx.PutForgePull(p) // the task has gone another way
	}
	if err := tx.reviewAgain(t, c, fmt.Sprintf("pull request #%d was reopened", p.Number)); err != nil {
		return err
	}
	p.Open, p.Settled = true, ralph.Time{}
	return tx.PutForgePull(p)
}

// ReviewClosed records that a pull request was closed without a merge. It cancels the task on behalf of by, unless the
// task has ended. A closed undo leaves the task as it was.
func (tx *Tx) ReviewClosed(p ForgePull, by string) error {
	p.Open = false
	if err := tx.PutForgePull(p); err != nil {
		return err
	}
	t, err := tx.Task(p.TaskID)
	if err != nil || t.Status.Ended() && t.Status != ralph.Failed {
		return err
	}
	c, err := tx.Change(p.ChangeID)
	if err != nil {
		return err
	}
	if c.Undo != "" {
		if c.State != ralph.Reviewing {
			return nil
		}
		return tx.notUndone(c, by, true)
	}
	_, err = tx.Cancel(p.TaskID, by)
	return err
}

// ReviewRound sends a change in review back to its task: the next session starts from head, the tip of its branch. If
// blocked is not "", that session waits for a person.
func (tx *Tx) ReviewRound(c ralph.Change, head, tree, reason, blocked string, conflicts []string) error {
	if c.Undo != "" {
		return tx.notUndone(c, reason, false)
	}
	if err := tx.SetChange(c.ID, ralph.Reviewing, ralph.SentBack); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{
		"head": head, "tree": tree, "reason": reason, "conflicts": asJSON(append([]string{}, conflicts...)),
	}); err != nil {
		return err
	}
	said := ralph.ChangeSentBack{ChangeID: c.ID, Reason: reason, Conflicts: conflicts}
	if err := tx.record(ofChange(c), said); err != nil {
		return err
	}
	return tx.leaveQueue(c.TaskID, reason, blocked)
}

// TookForgeComment reports whether [Tx.TakeForgeComment] has recorded an id.
func (tx *Tx) TookForgeComment(id string) (bool, error) {
	return value[bool](tx, `SELECT EXISTS (SELECT 1 FROM forge_comments WHERE id = $1)`, id)
}

// SetBranch gives a change another branch for its pull request: that of before is somebody else's.
func (tx *Tx) SetBranch(change int64, branch string) error {
	return tx.set("changes", change, cells{"branch": branch})
}

// SetHead replaces a queued change's commit by one that also has people's pushed commits.
func (tx *Tx) SetHead(c ralph.Change, head, tree string) error {
	return tx.set("changes", c.ID, cells{"head": head, "tree": tree})
}

package store

import (
	"fmt"

	"ralph"
)

// TroubleForge is the kind of trouble of a forge that a person has to mend: its token, or a right that it lacks.
const TroubleForge = "forge"

// ForgePoster is the reader of the event log that posts to the forge: the log is its outbox.
const ForgePoster = "forge"

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

var forgeIssues = reads("forge_issues i", func(i *ForgeIssue) []field {
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

// ForgeSince returns the repository that is followed and the time up to which changes of its issues were read. Both are
// empty before the first look.
func (tx *Tx) ForgeSince() (repository string, since ralph.Time, err error) {
	_, err = found(tx.row(`SELECT repository, since FROM forge WHERE id = 1`).Scan(&repository, &since))
	return repository, since, err
}

// SetForgeSince sets the time that [Tx.ForgeSince] returns.
func (tx *Tx) SetForgeSince(repository string, since ralph.Time) error {
	return tx.put("forge", "id", cells{"id": 1, "repository": repository, "since": since})
}

// ForgeIssue returns the issue of a number; ok is false if it is no task.
func (tx *Tx) ForgeIssue(number int64) (i ForgeIssue, ok bool, err error) {
	return forgeIssues.first(tx, `WHERE i.id = $1`, number)
}

// ForgeIssueOf returns the issue of a task; ok is false if it came from none.
func (tx *Tx) ForgeIssueOf(task int64) (i ForgeIssue, ok bool, err error) {
	return forgeIssues.first(tx, `WHERE i.task_id = $1`, task)
}

// ForgeIssues lists the issues that became tasks, by number.
func (tx *Tx) ForgeIssues() ([]ForgeIssue, error) { return forgeIssues.all(tx, `ORDER BY i.id`) }

// PutForgeIssue adds or replaces an issue.
func (tx *Tx) PutForgeIssue(i ForgeIssue) error {
	return tx.put("forge_issues", "id", cells{
		"id": i.Number, "task_id": i.TaskID, "url": i.URL, "wanted": i.Wanted, "digest": i.Digest, "read_to": i.ReadTo,
		"status": i.Status, "posted": i.Posted,
	})
}

// A ForgeReply is a reply to a comment that was taken.
type ForgeReply struct {
	ID       string
	Number   int64
	Reaction string
	Text     string
}

// TakeForgeComment records that a comment was taken, in the transaction that obeys it; first is false if it was before.
func (tx *Tx) TakeForgeComment(r ForgeReply) (first bool, err error) {
	n, err := tx.exec(`INSERT INTO forge_comments (id, number, reaction, reply, sent) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO NOTHING`, r.ID, r.Number, r.Reaction, r.Text, r.Reaction == "" && r.Text == "")
	return n > 0, err
}

// ForgeReplies lists the replies that were not posted yet, in order.
func (tx *Tx) ForgeReplies() ([]ForgeReply, error) {
	return all(tx, func(row scanner) (r ForgeReply, err error) {
		return r, row.Scan(&r.ID, &r.Number, &r.Reaction, &r.Text)
	}, `SELECT id, number, reaction, reply FROM forge_comments WHERE sent = 0 ORDER BY length(id), id`)
}

// SentForgeReply records that it was said, or given up.
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
	Rounds   int // sessions that reviews and checks have caused
	Open     bool
}

var forgePulls = reads("forge_pulls p", func(p *ForgePull) []field {
	return []field{
		{"p.id", &p.Number},
		{"p.task_id", &p.TaskID},
		{"p.change_id", &p.ChangeID},
		{"p.branch", &p.Branch},
		{"p.url", &p.URL},
		{"p.rounds", &p.Rounds},
		{"p.open", &p.Open},
	}
})

// ForgePulls lists the open pull requests, by number.
func (tx *Tx) ForgePulls() ([]ForgePull, error) {
	return forgePulls.all(tx, `WHERE p.open = 1 ORDER BY p.id`)
}

// ForgePullOf returns a task's newest pull request; ok is false if it has none.
func (tx *Tx) ForgePullOf(task int64) (p ForgePull, ok bool, err error) {
	return forgePulls.first(tx, `WHERE p.task_id = $1 ORDER BY p.id DESC`, task)
}

// PutForgePull adds or replaces a pull request.
func (tx *Tx) PutForgePull(p ForgePull) error {
	if err := tx.put("forge_pulls", "id", cells{
		"id": p.Number, "task_id": p.TaskID, "change_id": p.ChangeID, "branch": p.Branch, "url": p.URL, "rounds": p.Rounds,
		"open": p.Open,
	}); err != nil || !p.Open {
		return err
	}
	t, err := tx.Task(p.TaskID)
	if err != nil || t.Status != ralph.Merging {
		return err
	}
	return tx.set("tasks", t.ID, cells{"status_reason": fmt.Sprintf("in review: #%d, %s", p.Number, p.URL)})
}

// InReview lists the changes whose branches wait for a pull request to be merged.
func (tx *Tx) InReview() ([]ralph.Change, error) {
	return changes.all(tx, `WHERE c.state = 'reviewing' ORDER BY c.id`)
}

// BeginReview records that the branch of a change is pushed: from now on its pull request decides.
func (tx *Tx) BeginReview(c ralph.Change, branch string) error {
	if err := tx.SetChange(c.ID, ralph.Moving, ralph.Reviewing); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{"branch": branch}); err != nil {
		return err
	}
	return tx.set("tasks", c.TaskID, cells{"status_reason": "pushed as " + branch + "; the pull request is being opened"})
}

// ReviewMerged records that the forge has merged a change as a commit of a branch. files is how that commit differs
// from its first parent.
func (tx *Tx) ReviewMerged(c ralph.Change, commit, into string, files []ralph.FileChange) error {
	if err := tx.SetChange(c.ID, ralph.Reviewing, ralph.Moving); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{
		"to_commit": commit, "own_commit": commit, "files": asJSON(files),
	}); err != nil {
		return err
	}
	p, _, err := tx.ForgePullOf(c.TaskID)
	if err != nil {
		return err
	}
	if err := tx.set("tasks", c.TaskID, cells{"status_reason": fmt.Sprintf("pull request #%d", p.Number)}); err != nil {
		return err
	}
	c.To, c.Commit, c.Files = commit, commit, files
	return tx.CompleteChange(c, 0, into, "")
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

// BranchOf returns the branch on which a change in review was pushed.
func (tx *Tx) BranchOf(change int64) (string, error) {
	return value[string](tx, `SELECT branch FROM changes WHERE id = $1`, change)
}

// SetHead replaces a queued change's commit by one that also has people's pushed commits.
func (tx *Tx) SetHead(c ralph.Change, head, tree string) error {
	return tx.set("changes", c.ID, cells{"head": head, "tree": tree})
}

package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/signals"
)

// A Reference names one thing in the database.
type Reference struct {
	Of string // one of the constants below; "" for the item's task itself
	ID int64
}

// The kinds of things that a Reference names.
const (
	OfComment    = "comment"
	OfPermission = "permission"
	OfAmendment  = "amendment"
	OfLearning   = "learning"
	OfTask       = "task"
	OfFeature    = "feature"
)

// MarshalJSON writes the id alone: the item's kind implies its table.
func (r Reference) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, r.ID, 10), nil }

// An InboxItem is one thing that waits for a person.
type InboxItem struct {
	Kind   string `json:"kind"` // one of [InboxKinds]
	TaskID int64  `json:"task_id"`
	Title  string `json:"title"`

	Ref      Reference `json:"ref"`                // its subject; 0 for the task itself
	Severity string    `json:"severity,omitempty"` // of a flag
	Sort     string    `json:"sort,omitempty"`     // a flag's category, or a suggestion's purpose

	Text    string     `json:"text"`
	Asks    string     `json:"asks,omitempty"` // for held work: the needed approval in one line
	Holding bool       `json:"holding"`        // the task cannot go on before this is decided
	Created ralph.Time `json:"created"`
	Item    string     `json:"item"` // its name in approve, reject and answer: Q8, A3, TASK-12, config
	// Commands answer the item, each in another way.
	Commands []string `json:"commands"`

	Options   []string   `json:"options,omitempty"`
	Preferred string     `json:"preferred,omitempty"`
	Diff      []string   `json:"diff,omitempty"`    // changes of an amendment, as [ralph.Patch.Diff] has them
	Session   string     `json:"session,omitempty"` // the session that waits for the permission
	Expires   ralph.Time `json:"expires,omitzero"`  // when the permission is denied automatically
	// The allowed action: split, adopt, task; undo of a flag; retry, as is. "mend" is a trouble that stays until it is
	// fixed.
	Action string `json:"-"`
	// Open parts of a plan: proposals, amendments and proposals to cancel a task.
	Parts []InboxItem `json:"-"`
}

// Command returns the item's commands in one line.
func (i InboxItem) Command() string { return strings.Join(i.Commands, " · ") }

// An inboxQuery finds the items of one kind. add, if not nil, completes each.
type inboxQuery struct {
	kind, of, query string
	add             func(*Tx, *InboxItem) error
}

// flags selects the unresolved flags that hold no task.
const flags = `
		SELECT t.id, t.title, c.id, c.what, 0, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.signal_verb = 'flag' AND c.resolved_at = '' AND c.severity <> 'info' AND c.holding = 0`

// Open parts of a plan: new tasks, and changes and cancellations of existing ones. A plan is one item; a worker's
// proposals for the feature are not part of it.
const (
	added = `
		SELECT t.id, t.title, 0, CASE WHEN t.description = '' THEN t.status_reason ELSE t.description END, 0, t.created
		FROM tasks t WHERE t.status = 'proposed' AND `
	amended = `
		SELECT t.id, t.title, m.id, m.rationale, 0, m.created
		FROM task_amendments m JOIN tasks t ON t.id = m.task_id
		WHERE m.status = 'proposed' AND t.status NOT IN ('cancelled', 'completed', 'rejected') AND `
	nacked = `
		SELECT t.id, t.title, c.id, c.body` + because + `, 0, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.kind = 'nack' AND c.resolved_at = '' AND t.status NOT IN ('cancelled', 'completed', 'rejected') AND `

	isAdded   = `(t.feature_id IS NOT NULL AND t.external_source LIKE '` + ralph.PlanSource + `%')`
	isAmended = `(t.feature_id IS NOT NULL AND EXISTS (` + byPlanner + `m.session_id))`
	isNacked  = `(t.feature_id IS NOT NULL AND EXISTS (` + byPlanner + `c.session_id))`
	byPlanner = `SELECT 1 FROM sessions s JOIN tasks p ON p.id = s.task_id WHERE p.role = 'plan' AND s.id = `
)

// planQueries find the open parts of a feature's plan.
var planQueries = []inboxQuery{
	{"proposal", "", added + isAdded + ` AND t.feature_id = $1 ORDER BY t.id`, (*Tx).addMarks},
	{"amendment", OfAmendment, amended + isAmended + ` AND t.feature_id = $1 ORDER BY m.id`, (*Tx).addDiff},
	{"nack", OfComment, nacked + isNacked + ` AND t.feature_id = $1 ORDER BY c.id`, nil},
}

// waitingPlans selects the features with an open plan.
const waitingPlans = `
		SELECT 0, f.name, f.id, '', 0, min(planned.created)
		FROM (SELECT t.feature_id, t.created FROM tasks t WHERE t.status = 'proposed' AND ` + isAdded + `
			UNION ALL SELECT t.feature_id, m.created FROM task_amendments m JOIN tasks t ON t.id = m.task_id
				WHERE m.status = 'proposed' AND t.status NOT IN ('cancelled', 'completed', 'rejected') AND ` + isAmended + `
			UNION ALL SELECT t.feature_id, c.created FROM task_comments c JOIN tasks t ON t.id = c.task_id
				WHERE c.kind = 'nack' AND c.resolved_at = '' AND t.status NOT IN ('cancelled', 'completed', 'rejected')
					AND ` + isNacked + `) planned
		JOIN features f ON f.id = planned.feature_id GROUP BY f.id, f.name ORDER BY f.id`

// longClaim is the age from which a person's claim is shown in the inbox (decision 13).
const longClaim = 24 * time.Hour

// inboxQueries list the kinds in display order: first a paused agent and blocking flags, then items that hold work,
// then the rest. Each selects task, title, reference, text, holding, created. Questions and flags occur twice: those
// that hold a task or are blocking, and the others. {long} is replaced by the start time before which a claim counts as
// long. CROSS JOIN makes SQLite keep the written order, which begins with the few failed and cancelled tasks.
var inboxQueries = []inboxQuery{
	{"permission", OfPermission, `
		SELECT t.id, t.title, p.id, p.tool || ' ' || p.input, 1, p.created
		FROM permission_requests p JOIN tasks t ON t.id = p.task_id
		WHERE p.decided_at = '' ORDER BY p.id`, (*Tx).addPermission},
	{"flag", OfComment, flags + ` AND c.severity = 'blocking' ORDER BY c.id`, (*Tx).addFlag},
	{"question", OfComment, `
		SELECT t.id, t.title, c.id, c.question, 1, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.signal_verb = 'ask' AND c.signal_answered IS NULL AND c.holding = 1
			AND t.status NOT IN ('cancelled', 'rejected') ORDER BY c.id`, (*Tx).addOptions},
	{"merging", "", `
		SELECT 0, 'nothing is merged', 0, q.paused, 1,
			coalesce((SELECT e.created FROM events e
				WHERE e.task_id IS NULL AND e.type = 'queue.paused' ORDER BY e.id DESC LIMIT 1), '')
		FROM merge_queue q WHERE q.id = 1 AND q.paused <> ''`, nil},
	{"behind", "", `
		SELECT 0, 'passed, not on ' || q.target || ' yet', 0, q.behind, 1,
			coalesce((SELECT e.created FROM events e
				WHERE e.task_id IS NULL AND e.type = 'target.behind' ORDER BY e.id DESC LIMIT 1), '')
		FROM merge_queue q WHERE q.id = 1 AND q.behind <> ''`, (*Tx).addCommand},
	{"trouble", "", `SELECT 0, kind, 0, what, 0, created FROM {troubles} ORDER BY created, kind`, (*Tx).addTrouble},
	{"blocker", OfComment, `
		SELECT t.id, t.title, c.id, coalesce(c.waits_for, c.what, c.body)
			|| CASE WHEN coalesce(c.detail, '') = '' THEN '' ELSE ': ' || c.detail END
			|| CASE WHEN c.hold_reason = '' THEN '' ELSE ' (' || c.hold_reason || ')' END` + because + `, 1, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.holding = 1 AND coalesce(c.signal_verb, '') <> 'ask' AND c.review = ''
			AND t.status NOT IN ('cancelled', 'rejected') ORDER BY c.id`, (*Tx).addRetry},
	{"tests changed", OfComment, `
		SELECT t.id, t.title, c.id, c.body, 1, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.holding = 1 AND c.review <> '' AND c.hold_reason = '` + ralph.ApprovalTests + `'
			AND t.status NOT IN ('cancelled', 'rejected') ORDER BY c.id`, (*Tx).addApproval},
	{"review", OfComment, `
		SELECT t.id, t.title, c.id, c.body, 1, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.holding = 1 AND c.review <> '' AND c.hold_reason <> '` + ralph.ApprovalTests + `'
			AND t.status NOT IN ('cancelled', 'rejected') ORDER BY c.id`, (*Tx).addApproval},
	{"dependency", OfTask, `
		SELECT t.id, t.title, u.id, 'waits for TASK-' || u.id || ' (' || u.title || '), which '
			|| CASE u.status WHEN 'failed' THEN 'failed' ELSE 'was ' || u.status END, 1, t.updated
		FROM tasks u CROSS JOIN task_dependencies d CROSS JOIN tasks t
		WHERE d.depends_on = u.id AND t.id = d.task_id AND u.status IN ('failed', 'cancelled', 'rejected')
			AND t.status IN ('blocked', 'needs_input', 'pending')
		ORDER BY t.id, u.id`, nil},
	{"plan", OfFeature, waitingPlans, (*Tx).addPlan},
	{"amendment", OfAmendment, amended + `NOT ` + isAmended + ` ORDER BY m.id`, (*Tx).addDiff},
	{"failed", "", `
		SELECT t.id, t.title, 0, t.status_reason, 0, t.updated FROM tasks t WHERE t.status = 'failed' ORDER BY t.id`, nil},
	{"claim", "", `
		SELECT t.id, t.title, 0, s.worker || ' has had it since ' || s.started_at, 0, s.started_at
		FROM sessions s JOIN tasks t ON t.id = s.task_id
		WHERE s.origin = 'human' AND s.completed_at = '' AND s.started_at < {long} ORDER BY s.started_at`, nil},
	{"flag", OfComment, flags + ` AND c.severity <> 'blocking' ORDER BY c.id`, (*Tx).addFlag},
	{"question", OfComment, `
		SELECT t.id, t.title, c.id, coalesce(c.question, c.body` + because + `), 0, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.holding = 0 AND c.review = '' AND c.id IN (
				SELECT a.id FROM task_comments a WHERE a.signal_verb = 'ask' AND a.signal_answered IS NULL
				UNION ALL SELECT q.id FROM task_comments q WHERE q.kind = 'question' AND q.resolved_at = '')
			AND t.status NOT IN ('cancelled', 'rejected') ORDER BY c.id`, (*Tx).addOptions},
	{"proposal", "", added + `NOT ` + isAdded + ` ORDER BY t.id`, (*Tx).addMarks},
	{"suggestion", OfComment, `
		SELECT t.id, t.title, c.id, c.what || '

Why: ' || c.why, 0, c.created
		FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.signal_verb = 'suggest' AND c.resolved_at = '' AND c.signal_kind <> 'new_task'
		ORDER BY c.id`, (*Tx).addAction},
	{"learning", OfLearning, `
		SELECT coalesce(l.task_id, 0), coalesce((SELECT t.title FROM tasks t WHERE t.id = l.task_id), ''), l.id,
			l.text || CASE WHEN l.rationale = '' THEN '' ELSE ' (' || l.rationale || ')' END, 0, l.created
		FROM learnings l WHERE l.claim = 1 AND l.status = 'active' ORDER BY l.id`, nil},
	{"nack", OfComment, nacked + `NOT ` + isNacked + ` ORDER BY c.id`, nil},
}

// because appends a comment's rationale to its text, unless both are equal.
const because = ` || CASE WHEN c.rationale IN ('', c.body) THEN '' ELSE ' (' || c.rationale || ')' END`

// InboxKinds lists the kinds of inbox items.
func InboxKinds() (kinds []string) {
	for _, q := range inboxQueries {
		if !slices.Contains(kinds, q.kind) {
			kinds = append(kinds, q.kind)
		}
	}
	return kinds
}

// Inbox lists everything that waits for a person; items that hold work come first.
func (tx *Tx) Inbox() ([]InboxItem, error) { return tx.InboxPart(nil, math.MaxInt32, 0) }

// InboxOf lists the inbox items of one kind.
func (tx *Tx) InboxOf(kind string) ([]InboxItem, error) {
	return tx.InboxPart([]string{kind}, math.MaxInt32, 0)
}

// WaitsOfPlan lists the open parts of a feature's plan, which is one item of the inbox: new tasks, then changes, then
// cancellations.
func (tx *Tx) WaitsOfPlan(feature int64) (list []InboxItem, err error) {
	for _, q := range planQueries {
		items, err := tx.items(q, q.query, feature)
		if err != nil {
			return nil, err
		}
		list = append(list, items...)
	}
	return list, nil
}

// items reads items of a kind, and completes them.
func (tx *Tx) items(q inboxQuery, query string, args ...any) ([]InboxItem, error) {
	items, err := all(tx, q.scan, query, args...)
	for i := range items {
		if err == nil && q.add != nil {
			err = q.add(tx, &items[i])
		}
	}
	return items, err
}

// addPermission adds the session of a permission, and its deadline.
func (tx *Tx) addPermission(item *InboxItem) error {
	p, err := tx.Permission(item.Ref.ID)
	item.Session, item.Expires = p.SessionID, p.Expires
	return err
}

// addTrouble adds the command that fixes a trouble.
func (tx *Tx) addTrouble(item *InboxItem) error {
	list, err := tx.seenTroubles()
	item.Sort = item.Title
	for _, t := range list {
		if t.Kind == item.Sort {
			item.Commands, item.Action = []string{t.Command}, "mend"
		}
	}
	if err != nil || item.Action != "" {
		return err
	}
	command, err := value[string](tx, `SELECT command FROM troubles WHERE kind = $1`, item.Sort)
	if command != "" {
		item.Commands = []string{command}
	}
	return err
}

// seenTroubles returns the troubles that are not stored: a full disk, and a lost run.
func (tx *Tx) seenTroubles() (list []Trouble, err error) {
	if tx.db.NoRoom != nil {
		if full := tx.db.NoRoom(); full != "" {
			list = append(list, Trouble{troubleDisk, "Nothing can be stored: " + full, "ralph doctor"})
		}
	}
	open, err := runRows.all(tx, `WHERE r.ended_at = ''`)
	if slices.ContainsFunc(open, func(r ralph.Run) bool { return !tx.Alive(r) }) {
		list = append(list, Trouble{troubleLost, "The last run did not end by itself: it was killed", "ralph run"})
	}
	return list, err
}

// addRetry allows a retry if that resolves one of ralph's own blockers: "as is" if a change is held.
func (tx *Tx) addRetry(item *InboxItem) error {
	return tx.row(`SELECT CASE WHEN c.released_by <> 'retry' THEN '' WHEN EXISTS (
			SELECT 1 FROM changes h JOIN sessions s ON s.id = h.session_id
			WHERE h.task_id = c.task_id AND h.state = 'held' AND s.accepted = 1) THEN 'as is' ELSE 'retry' END
		FROM task_comments c WHERE c.id = $1`, item.Ref.ID).Scan(&item.Action)
}

// addApproval adds the approval that is asked for.
func (tx *Tx) addApproval(item *InboxItem) error {
	a, err := tx.Approval(item.Ref.ID)
	item.Asks = a.Asks()
	return err
}

// addMarks adds ralph's notes on a proposed task.
func (tx *Tx) addMarks(item *InboxItem) error {
	var marks []string
	err := tx.row(`SELECT marks FROM tasks WHERE id = $1`, item.TaskID).Scan(column(&marks))
	for _, mark := range marks {
		item.Text += "\n(ralph: " + mark + ")"
	}
	return err
}

// addCommand adds the command that brings a branch up to date.
func (tx *Tx) addCommand(item *InboxItem) error {
	q, err := tx.MergeQueue()
	item.Commands = []string{q.Command}
	return err
}

// addAction adds a suggestion's purpose and its allowed action: a task that has ended can neither be split nor adopt an
// alternative.
func (tx *Tx) addAction(item *InboxItem) error {
	var status ralph.Status
	if err := tx.row(`SELECT c.signal_kind, t.status FROM task_comments c JOIN tasks t ON t.id = c.task_id
		WHERE c.id = $1`, item.Ref.ID).Scan(&item.Sort, &status); err != nil {
		return err
	}
	item.Action = "task"
	if status.Ended() && status != ralph.Failed {
		return nil
	}
	switch item.Sort {
	case "split":
		item.Action = "split"
	case "alternative":
		item.Action = "adopt"
	}
	return nil
}

// addFlag adds a flag's severity and subject, and whether its task's merged changes can be undone.
func (tx *Tx) addFlag(item *InboxItem) error {
	if err := tx.row(`SELECT severity, category FROM task_comments WHERE id = $1`,
		item.Ref.ID).Scan(&item.Severity, &item.Sort); err != nil {
		return err
	}
	_, to, err := tx.Undoable(item.TaskID)
	switch {
	case err == nil && to == ralph.Cancelled:
		item.Action = "undo"
	case errors.Is(err, ralph.ErrConflict):
		err = nil
	}
	return err
}

// addPlan lists a plan's additions, changes and cancellations in lines, with ralph's notes.
func (tx *Tx) addPlan(item *InboxItem) error {
	parts, err := tx.WaitsOfPlan(item.Ref.ID)
	if err != nil {
		return err
	}
	lines, marked, err := tx.PlanLines(parts)
	if err != nil {
		return err
	}
	n := map[string]int{}
	for _, p := range parts {
		n[p.Kind]++
	}
	var said []string
	for _, kind := range []string{"proposal", "amendment", "nack"} {
		if n[kind] > 0 {
			said = append(said, planVerbs[kind]+text.Count(n[kind], "task"))
		}
	}
	item.Parts, item.Text = parts, strings.Join(said, ", ")
	if marked > 0 {
		item.Text += fmt.Sprintf("; %d marked", marked)
	}
	item.Text += "\n- " + strings.Join(lines, "\n- ")
	return nil
}

// planVerbs has the verb for each kind of a plan's parts.
var planVerbs = map[string]string{"proposal": "adds ", "amendment": "changes ", "nack": "drops "}

// PlanLines describes parts of a plan in a line each, with ralph's notes on new tasks, and counts the tasks with notes.
func (tx *Tx) PlanLines(parts []InboxItem) (lines []string, marked int, err error) {
	for _, p := range parts {
		line := fmt.Sprintf("%sTASK-%d %s", planVerbs[p.Kind], p.TaskID, p.Title)
		if p.Kind == "proposal" {
			t, err := tx.Task(p.TaskID)
			if err != nil {
				return nil, 0, err
			}
			for _, mark := range t.Marks {
				line += "\n  (ralph: " + mark + ")"
			}
			if len(t.Marks) > 0 {
				marked++
			}
		}
		lines = append(lines, line)
	}
	return lines, marked, nil
}

// addDiff adds the changes of an amendment.
func (tx *Tx) addDiff(item *InboxItem) error {
	m, err := tx.Amendment(item.Ref.ID)
	if err != nil {
		return err
	}
	t, err := tx.Task(item.TaskID)
	item.Diff, item.Text = m.Patch.Diff(m.Patch.Of(t)), strings.Join(m.Patch.Keys(), ", ")+": "+m.Rationale
	return err
}

// InboxPart lists at most limit items of [Tx.Inbox] after the first skip, of the given kinds; no kinds means all.
func (tx *Tx) InboxPart(kinds []string, limit, skip int) ([]InboxItem, error) {
	inbox := []InboxItem{}
	for _, q := range inboxQueries {
		if len(kinds) > 0 && !slices.Contains(kinds, q.kind) {
			continue
		}
		gone := 0
		if skip > 0 {
			n, err := tx.inboxCount(q)
			if err != nil {
				return nil, err
			}
			gone = min(skip, n)
			if skip -= gone; gone == n {
				continue
			}
		}
		if len(inbox) >= limit {
			break
		}
		query, err := tx.inboxQuery(q)
		if err != nil {
			return nil, err
		}
		items, err := tx.items(q, query+` LIMIT $1 OFFSET $2`, limit-len(inbox), gone)
		if err != nil {
			return nil, err
		}
		inbox = append(inbox, items...)
	}
	return inbox, nil
}

// InboxCounts counts the inbox items by kind.
func (tx *Tx) InboxCounts() (map[string]int, error) {
	counts := map[string]int{}
	for _, q := range inboxQueries {
		n, err := tx.inboxCount(q)
		if err != nil {
			return nil, err
		}
		counts[q.kind] += n
	}
	return counts, nil
}

func (tx *Tx) inboxCount(q inboxQuery) (n int, err error) {
	query, err := tx.inboxQuery(q)
	if err != nil {
		return 0, err
	}
	return value[int](tx, `SELECT count(*) FROM (`+query+`) waiting`)
}

// scan reads an item of this query's kind.
func (q inboxQuery) scan(row scanner) (InboxItem, error) {
	i := InboxItem{Kind: q.kind, Ref: Reference{Of: q.of}}
	return i, row.Scan(&i.TaskID, &i.Title, &i.Ref.ID, &i.Text, &i.Holding, &i.Created)
}

// addOptions adds the answers that an agent offered for its question.
func (tx *Tx) addOptions(item *InboxItem) error {
	var c ralph.Comment
	err := tx.row(`SELECT coalesce(signal_verb, ''), coalesce(signal_payload, 'null') FROM task_comments WHERE id = $1`,
		item.Ref.ID).Scan(&c.Verb, column(&c.Payload))
	if err != nil || c.Verb == "" {
		return err
	}
	p, err := signals.Parse(c.Verb, c.Payload)
	if err != nil {
		return fmt.Errorf("comment %d: %w", item.Ref.ID, err)
	}
	if ask, ok := p.(signals.Ask); ok {
		item.Options, item.Preferred = ask.Options, ask.Preferred
	}
	return nil
}

// inboxQuery fills in the current time and [Tx.seenTroubles].
func (tx *Tx) inboxQuery(q inboxQuery) (string, error) {
	query := strings.ReplaceAll(q.query, "{long}", "'"+ralph.At(tx.Now().Add(-longClaim)).String()+"'")
	if !strings.Contains(query, "{troubles}") {
		return query, nil
	}
	list, err := tx.seenTroubles()
	troubles := "SELECT kind, what, created FROM troubles"
	for _, t := range list {
		troubles += fmt.Sprintf(" UNION ALL SELECT '%s', '%s', '%s'", t.Kind, strings.ReplaceAll(t.What, "'", "''"), tx.Now())
	}
	return strings.ReplaceAll(query, "{troubles}", "("+troubles+") t"), err
}

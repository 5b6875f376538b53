package signals

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ralph"
	"ralph/internal/text"
)

// Said is one recorded signal of a session.
type Said struct {
	ID       int64 // the comment's id
	Payload  Payload
	Answered bool // an ask that a person has answered in the meantime
	Resolved bool // a blocker, flag or suggestion that a person has answered in the meantime
}

// said is a [Said] as JSON.
type said struct {
	ID       int64           `json:"id"`
	Verb     ralph.Verb      `json:"verb"`
	Payload  json.RawMessage `json:"payload"`
	Answered bool            `json:"answered,omitempty"`
	Resolved bool            `json:"resolved,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (s Said) MarshalJSON() ([]byte, error) {
	payload, err := json.Marshal(s.Payload)
	if err != nil {
		return nil, fmt.Errorf("signal %d: %w", s.ID, err)
	}
	return json.Marshal(said{s.ID, s.Payload.Verb(), payload, s.Answered, s.Resolved})
}

// UnmarshalJSON implements [json.Unmarshaler]. It refuses input that [Parse] refuses.
func (s *Said) UnmarshalJSON(b []byte) error {
	var of said
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	payload, err := Parse(of.Verb, of.Payload)
	if err != nil {
		return fmt.Errorf("signal %d: %w", of.ID, err)
	}
	*s = Said{of.ID, payload, of.Answered, of.Resolved}
	return nil
}

// Facts has everything that a decision depends on. The caller looks up the facts from the database beforehand. As JSON
// they are stored with the session, without known learnings and rules, for `ralph session show --decision`.
type Facts struct {
	Task        Task          `json:"task"`                   // while the session is being decided
	Ending      ralph.Ending  `json:"ending"`                 // how the process ended
	EndingWhy   string        `json:"ending_why,omitempty"`   // one sentence for people
	Said        []Said        `json:"said,omitempty"`         // in the order in which they were given
	Told        []Notice      `json:"told,omitempty"`         // messages to the agent at the ends of its turns, in order
	Changed     bool          `json:"changed"`                // the digests before and after the session differ
	Untouched   bool          `json:"untouched"`              // the session changed nothing in the work tree
	Carries     bool          `json:"carries,omitempty"`      // an earlier session's work is merged with it
	Vouched     bool          `json:"vouched,omitempty"`      // a person vouches for the done
	Worker      bool          `json:"worker,omitempty"`       // ralph did not start the agent
	Cloned      bool          `json:"cloned,omitempty"`       // it works in one of ralph's workspaces
	Verify      []ralph.Check `json:"verify,omitempty"`       // checks without their output
	Protected   []string      `json:"protected,omitempty"`    // protected files that it changed
	Void        bool          `json:"void"`                   // others ended it: no closing verb counts
	CancelledBy string        `json:"cancelled_by,omitempty"` // person that cancelled the task; "" for nobody
	Unchecked   string        `json:"unchecked,omitempty"`    // why the done could not be checked; "" if it could
	Unseen      []string      `json:"unseen,omitempty"`       // other unknowns, each with the reason
	Merges      bool          `json:"merges,omitempty"`       // the work is in a workspace and has to be merged
	Conflict    string        `json:"conflict,omitempty"`     // why it cannot be merged; "" if it can
	Conflicts   []string      `json:"conflicts,omitempty"`    // the conflicting files
	Marks       []string      `json:"marks,omitempty"`        // files that still have ralph's conflict markers
	Moved       bool          `json:"moved,omitempty"`        // the target is newer than the agent knows
	Head        string        `json:"head,omitempty"`         // the commit that would be merged; "" if nothing was changed
	Planned     string        `json:"planned,omitempty"`      // a summary of the complete plan; "" if there is none

	Approvals []ralph.Approval `json:"approvals,omitempty"`  // people's approvals for this task
	OpenFlags []int64          `json:"open_flags,omitempty"` // unanswered blocking flags of the task's earlier sessions

	Evidence ralph.Evidence `json:"evidence"` // further observations when the done was checked

	Waits ralph.Waits `json:"waits"` // reasons why the task waited before this session's signals

	Upstream map[int64]Upstream `json:"upstream,omitempty"` // for each blocked(upstream_task): the task in its text
	Known    []ralph.Learning   `json:"-"`                  // the learnings that this session may repeat
	Titles   map[string]bool    `json:"titles,omitempty"`   // NormalTitle of open tasks and proposals
	Features map[string]bool    `json:"features,omitempty"` // names of existing features
	Approved int                `json:"approved,omitempty"` // suggested tasks that were auto-approved within a day

	Waiting bool  `json:"-"` // the agent has ended a turn and waits for a message
	Unheard int64 `json:"-"` // the latest comment of a person that is on its way to the agent; 0 for none
	Rules   Rules `json:"-"`
}

// Task has the fields of a task that decisions depend on.
type Task struct {
	ID             int64  `json:"id"`
	Feature        string `json:"feature,omitempty"`
	Attempts       int    `json:"attempts"`
	StuckCount     int    `json:"stuck_count"`
	VerifyFailures int    `json:"verify_failures"`
	PromptTooLong  int    `json:"prompt_too_long"`
	LostCount      int    `json:"lost_count,omitempty"`
	TimesSentBack  int    `json:"times_sent_back,omitempty"`
}

// TaskOf returns the fields of a task that decisions depend on.
func TaskOf(t ralph.Task) Task {
	return Task{
		ID: t.ID, Feature: t.Feature, Attempts: t.Attempts, StuckCount: t.StuckCount, VerifyFailures: t.VerifyFailures,
		PromptTooLong: t.PromptTooLong, LostCount: t.LostCount, TimesSentBack: t.TimesSentBack,
	}
}

// Upstream is the task named in the text of a blocked(upstream_task).
type Upstream struct {
	Matches   []int64 // tasks that it could mean
	Completed bool    // the only match has already completed
	Cycle     bool    // depending on the only match would create a cycle
}

// Rules are the limits that a project can configure.
type Rules struct {
	StuckLimit     int    // stuck sessions after which a task fails
	VerifyFailures int    // refused claims after which a task fails
	Attempts       int    // sessions after which a task fails
	AutoApprove    int    // maximum number of auto-approved suggested tasks a day; 0 is none
	ReviewProtect  bool   // a change of protected files waits for a person instead of being refused
	MaxSentBack    int    // conflicts and refused merges of a task before it is merged alone
	Reminders      int    // number of times that an agent is asked for a missing closing signal
	Retries        int    // refusals that an agent is told of in the same conversation
	Lost           string // effect of lost and loosened tests: [PolicyAsk], [PolicyRefuse] or [PolicyNote]
	Scope          string // effect of files outside the task's: [PolicyAsk] or [PolicyNote]
	TestsChanged   string // effect of changed tests: [PolicyAsk] or [PolicyNote]
	InPull         bool   // the pull request asks people for approvals, not the inbox
}

// promptTries is how often a prompt's budget is halved before its task fails.
const promptTries = 2

// Signalled returns the closing verb that the agent gave; "" also if stuck was inferred.
func (d Decision) Signalled() ralph.Verb {
	if d.Inferred {
		return ""
	}
	return d.Closing
}

// A Decision is the verdict on a session and its task. It is plain data: stored with the session, printed by `ralph
// session show`, and applied in one transaction.
type Decision struct {
	Closing  ralph.Verb // the verb that was judged, even if inferred; "" if none was
	Inferred bool       // no closing verb was given and stuck was inferred
	Accepted bool       // the session claimed done, and the claim holds
	Verified bool       // it holds because commands passed, not because there are none

	Status         ralph.Status
	Mover          ralph.Mover
	StatusReason   string
	Waits          ralph.Waits // reasons why the task waits
	Attempts       int         // the task's new counters
	StuckCount     int
	VerifyFailures int
	PromptTooLong  int
	LostCount      int

	SentBack      string   // why a verified done cannot be merged yet (no attempt, no failure); "" if it can
	Conflicts     []string // the conflicting files
	TimesSentBack int      // the task's new counter if it was sent back

	Blocker string // a question that a person has to answer before the next attempt; "" for none

	Outcome string // the session's
	Reason  string // one sentence: why the session ended this way

	Stagnant  bool // the session counts, but changed nothing
	Evidence  ralph.Evidence
	Approval  *ralph.Approval `json:",omitempty"` // parts to approve before the merge; nil for none
	Answered  []int64         // the session's flags that its done answers
	Holds     []Hold          // comments that now hold the task back
	DependsOn []int64         // tasks that it now depends on
	Learn     []Learn         // learnings to add or to count again
	Propose   []Proposal      // tasks to propose
	Announce  []int64         // ids of the blocking flags

	Reply Reply `json:"-"` // reply to an agent that waits; "" if the session is over
}

// A Hold is a question or blocker that holds the task back until a person answers it.
type Hold struct {
	Comment int64
	Why     string // for a blocker that names no single task: the reason; otherwise ""
}

// A Learn is a learning to store. Into is the known learning that it repeats, or 0.
type Learn struct {
	Comments  []int64 // the signals that reported it
	Into      int64
	Text      string
	Kind      string
	Scope     string
	Rationale string

	Claim bool `json:",omitempty"` // it is about checks, permissions or signals, and a person has to confirm it
}

// A Proposal is a task suggested by an agent.
type Proposal struct {
	Comment     int64
	Title       string
	Description string
	Feature     string
	Status      ralph.Status // proposed, or pending if it is auto-approved
}

// Decide applies the rules of docs/outcomes.md, in the order of that page.
// They are implemented nowhere else.
func Decide(f Facts) Decision {
	d := Decision{
		Status: ralph.Pending, Mover: ralph.Verdict,
		Attempts: f.Task.Attempts, StuckCount: f.Task.StuckCount, VerifyFailures: f.Task.VerifyFailures,
		Outcome: ralph.OutcomeFailure, Evidence: f.Evidence,
	}
	d.Learn = learnings(f)
	if counts(f) {
		d.Attempts++
	}
	closing, why := verdict(f, &d)
	d.StatusReason, d.Reason = why, why

	d.Stagnant = stagnant(f, d)
	d.Propose = proposals(f)
	d.Announce = announcements(f)
	if !d.Accepted { // rule 6: with done every ask and blocked is informational
		holdBack(f, &d)
		exhausted(f, &d)
		d.Outcome = outcome(f, d, closing)
	}
	lost(f, &d)
	sentBack(f, &d)
	unseen(f, &d)
	cancelled(f, &d)
	d.Reply = reply(f)
	return d
}

// Closing returns the closing signal of a session: the last of done,
// partial and stuck (rule 1). Its payload is nil if there is none.
func Closing(said []Said) Said {
	for i := len(said) - 1; i >= 0; i-- {
		if said[i].Payload.Verb().Closes() {
			return said[i]
		}
	}
	return Said{}
}

// counts reports whether the session counts as an attempt: ralph did not
// cut it short, it did not crash, and its agent could work.
func counts(f Facts) bool {
	return !f.Ending.AgentError() && f.Ending != ralph.Interrupted && f.Ending != ralph.Lost &&
		!f.Void && f.Unchecked == ""
}

// verdict applies rules 1 to 4: the verb that closed the session, and its effect on the task apart from open questions
// and blockers.
func verdict(f Facts, d *Decision) (Payload, string) {
	closing := Closing(f.Said).Payload
	if f.Void || f.Unchecked != "" {
		return nil, unjudged(f, d)
	}
	if closing == nil && (f.Ending == ralph.Finished || f.Ending == ralph.TimedOut) {
		closing, d.Inferred = Stuck{Reason: inferred(f)}, true
	}
	if closing == nil {
		return nil, unjudged(f, d)
	}
	d.Closing = closing.Verb()
	switch c := closing.(type) {
	case Done:
		return closing, judgeDone(f, d, c)
	case Partial:
		if f.Changed || taughtNew(d.Learn) {
			d.StuckCount = 0
			return closing, "partial: " + text.FirstLine(c.Remaining)
		}
		return closing, stuckOnce(f, d, "stopped; changed nothing: "+text.FirstLine(c.Summary))
	case Stuck:
		return closing, stuckOnce(f, d, "stuck: "+text.FirstLine(c.Reason))
	}
	return closing, ""
}

// inferred returns the reason for a stuck that nobody signalled (rule 1).
func inferred(f Facts) string {
	if f.Ending == ralph.TimedOut {
		return f.EndingWhy
	}
	return "the agent stopped without a verdict"
}

// unjudged is the other half of rule 1: a session without a claim that was
// interrupted, lost or ended by an agent error. The task goes back to the
// queue and no counter changes, except for a prompt that stays too long.
func unjudged(f Facts, d *Decision) string {
	if f.Unchecked != "" && !f.Void {
		return f.Unchecked
	}
	if f.Ending != ralph.PromptTooLong {
		return f.EndingWhy
	}
	d.PromptTooLong = f.Task.PromptTooLong + 1
	if d.PromptTooLong <= promptTries {
		return "the prompt is too long for the agent; it is tried again with half the budget"
	}
	d.Status = ralph.Failed
	return fmt.Sprintf("the prompt is too long for the agent, even after its budget was halved %d times; "+
		"shorten the task's description or split it", promptTries)
}

// judgeDone applies rule 2: a claim and its check.
func judgeDone(f Facts, d *Decision, c Done) string {
	if f.Planned != "" {
		d.Accepted, d.Status, d.Outcome, d.StuckCount, d.VerifyFailures = true, ralph.Completed, ralph.OutcomeSuccess, 0, 0
		return f.Planned + ": " + text.FirstLine(c.Summary)
	}
	if f.nothing() && len(f.Verify) == 0 && !f.confirmed() && f.Conflict == "" {
		why := "done without any change, and not confirmed: " + text.FirstLine(c.Summary)
		if !counts(f) {
			return why // the agent could not be asked
		}
		return stuckOnce(f, d, why)
	}
	refusal := f.refusal()
	switch {
	case !refusal.Any() && f.Conflict != "":
		d.SentBack, d.Conflicts, d.Attempts = f.Conflict, f.Conflicts, f.Task.Attempts
		return f.Conflict
	case !refusal.Any() && len(OpenFlags(f.Said, f.OpenFlags, c)) > 0:
		open := OpenFlags(f.Said, f.OpenFlags, c)
		for _, id := range open {
			d.Holds = append(d.Holds, Hold{Comment: id, Why: "a done waits for it"})
		}
		return flagged(open)
	case !refusal.Any():
		return accept(f, d, c)
	}
	d.VerifyFailures++
	why := "done was refused: " + refusal.String()
	if d.VerifyFailures >= f.Rules.VerifyFailures {
		d.Status = ralph.Failed
		return fmt.Sprintf("%s; refused %s", why, text.Count(d.VerifyFailures, "time"))
	}
	return why
}

// sentBack counts how often a task's changes were sent back. A task that is sent back
// although nothing else was merged waits for a person.
func sentBack(f Facts, d *Decision) {
	if d.SentBack == "" {
		return
	}
	before := f.Task.TimesSentBack
	if f.told(ReplyConflict) > 0 && !f.Moved { // the conflict was already counted
		before--
	}
	d.TimesSentBack = before + 1
	why := SentBackAlone(before, f.Rules.MaxSentBack, d.SentBack)
	if why != "" && !f.Moved && d.Status == ralph.Pending {
		d.Blocker = why
		blockedBy(d)
	}
}

// blockedBy makes the task wait until a person resolves d.Blocker.
func blockedBy(d *Decision) {
	d.Status, d.Waits = ralph.Blocked, ralph.Waits{Blockers: 1}
	d.StatusReason = d.Waits.String() + "; " + d.Blocker
}

// SentBackAlone returns the question for a person if the task has been merged alone already and may not be sent back
// again; otherwise "".
func SentBackAlone(before, limit int, why string) string {
	if limit <= 0 || before < limit {
		return ""
	}
	return fmt.Sprintf("could not be merged, %s, at last by itself: %s", text.Count(before+1, "time"), why)
}

// accept applies a claim that was verified. If protected files were changed, a person has the last word.
func accept(f Facts, d *Decision, c Done) string {
	d.Accepted, d.Verified = true, len(f.Verify) > 0
	d.Status, d.Outcome, d.StuckCount, d.VerifyFailures = ralph.Completed, ralph.OutcomeSuccess, 0, 0
	why := "done (nothing is configured to verify it"
	if d.Verified {
		why = "done and verified"
	}
	notes := notes(f)
	switch {
	case !d.Verified:
		why = strings.Join(append([]string{why}, notes...), "; ") + ")"
	case len(notes) > 0:
		why += " (" + strings.Join(notes, "; ") + ")"
	}
	if f.Merges {
		d.Status = ralph.Merging
	}
	if r := approval(f, c); r.Kind() != "" {
		if f.Rules.InPull && f.Merges && !r.Unchanged && len(r.Protected) == 0 {
			why = "its pull request asks for approval of " + asked(r) + "; " + why
		} else {
			d.Status, d.Approval = ralph.NeedsInput, &r
			why = "waits for approval of " + asked(r) + "; " + why
		}
	}
	if c.FlagsAnswered != "" {
		for _, s := range f.Said {
			if flag, ok := s.Payload.(Flag); ok && flag.Severity == "blocking" && !s.Resolved {
				d.Answered = append(d.Answered, s.ID)
			}
		}
	}
	return why + ": " + text.FirstLine(c.Summary)
}

// excused counts the failing tests that also failed before the task began.
func excused(checks []ralph.Check) (n int) {
	for _, c := range checks {
		n += len(c.Excused)
	}
	return n
}

// filesNamed is the maximum number of files in a reason.
const filesNamed = 5

// FileList lists files, or other short names, up to filesNamed, and counts the rest. See [text.Names].
func FileList(files []string) string { return text.Names(files, filesNamed) }

// how describes in a few words how a check failed.
func how(c ralph.Check) string {
	switch {
	case c.Error != "":
		return c.Error
	case len(c.Failures) > 0:
		return fmt.Sprintf("exits %d (%s)", c.Exit, FileList(c.Failures))
	case c.Cause != "":
		return fmt.Sprintf("exits %d (%s: `%s` in ralph.yaml)", c.Exit, c.Cause.Said(), c.Cause.Key())
	}
	return fmt.Sprintf("exits %d", c.Exit)
}

// stuckOnce applies rule 4. Rules 1 and 3 use it too.
func stuckOnce(f Facts, d *Decision, why string) string {
	d.StuckCount++
	if d.StuckCount >= f.Rules.StuckLimit {
		d.Status = ralph.Failed
		return fmt.Sprintf("%s (stuck %s)", why, text.Count(d.StuckCount, "time"))
	}
	return why
}

// holdBack applies rule 5: blocking questions and blockers hold the task back. They take precedence over failure.
func holdBack(f Facts, d *Decision) {
	waits := f.Waits
	waits.Tasks, waits.Blockers = slices.Clone(waits.Tasks), waits.Blockers+len(d.Holds)
	for _, s := range f.Said {
		switch p := s.Payload.(type) {
		case Ask:
			if p.IsBlocking() && !s.Answered {
				d.Holds = append(d.Holds, Hold{Comment: s.ID})
				waits.Questions++
			}
		case Blocked:
			if s.Resolved {
				continue
			}
			task, why := upstream(f, s.ID, p)
			switch {
			case task == 0 && why == "":
				// It names a completed task, so there is nothing left to wait for.
			case task != 0:
				d.DependsOn = append(d.DependsOn, task)
				waits.Tasks = append(waits.Tasks, task)
			default:
				d.Holds = append(d.Holds, Hold{Comment: s.ID, Why: why})
				waits.Blockers++
			}
		}
	}
	slices.Sort(waits.Tasks)
	waits.Tasks = slices.Compact(waits.Tasks)
	if held := waits.Status(); held != ralph.Pending {
		d.Status, d.Waits, d.StatusReason = held, waits, waits.String()
	}
}

// upstream returns the task that a blocker waits for, or why that is unclear.
func upstream(f Facts, comment int64, b Blocked) (task int64, why string) {
	if b.Kind != "upstream_task" {
		return 0, "waits for something outside"
	}
	u := f.Upstream[comment]
	switch {
	case len(u.Matches) == 0:
		return 0, fmt.Sprintf("no task matches %q", text.FirstLine(b.On))
	case len(u.Matches) > 1:
		return 0, fmt.Sprintf("several tasks match %q: %s", text.FirstLine(b.On), ralph.TaskNames(u.Matches, ", "))
	case u.Matches[0] == f.Task.ID:
		return 0, fmt.Sprintf("%q is this task itself", text.FirstLine(b.On))
	case u.Completed:
		return 0, ""
	case u.Cycle:
		return 0, fmt.Sprintf("TASK-%d depends on this task already; waiting for it would never end (a cycle)", u.Matches[0])
	}
	return u.Matches[0], ""
}

// exhausted fails a task that would be tried again but has no attempts left.
func exhausted(f Facts, d *Decision) {
	if d.Status == ralph.Pending && d.Attempts >= f.Rules.Attempts {
		d.Status = ralph.Failed
		d.StatusReason = fmt.Sprintf("%s without success; last: %s", text.Count(d.Attempts, "attempt"), d.StatusReason)
	}
}

// cancelled lets a person's cancellation override everything else.
func cancelled(f Facts, d *Decision) {
	if f.CancelledBy != "" {
		d.Status, d.Mover = ralph.Cancelled, ralph.Person
		d.StatusReason = "cancelled by " + f.CancelledBy + " while it was worked on"
	}
}

// outcome sums up a session whose done was not accepted.
func outcome(f Facts, d Decision, closing Payload) string {
	if f.Ending == ralph.TimedOut {
		return ralph.OutcomeTimeout
	}
	if _, ok := closing.(Partial); ok && (d.StuckCount == 0 || len(d.Holds) > 0) { // it could do nothing more than ask
		return ralph.OutcomeSuccess
	}
	return ralph.OutcomeFailure
}

// stagnant reports whether the session counts, but changed nothing. An agent
// that could not work does not count, and a verified done is not stagnant.
func stagnant(f Facts, d Decision) bool {
	return counts(f) && !f.Changed && !d.Verified && !taughtNew(d.Learn)
}

// announcements applies the last part of rule 7: people learn of blocking flags at once.
func announcements(f Facts) []int64 {
	var ids []int64
	for _, s := range f.Said {
		if flag, ok := s.Payload.(Flag); ok && flag.Severity == "blocking" {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// proposals applies rule 9: new tasks, unless an open task has the same title. They wait for a person unless they are
// auto-approved.
func proposals(f Facts) []Proposal {
	taken := map[string]bool{}
	room := f.Rules.AutoApprove - f.Approved
	var out []Proposal
	for _, s := range f.Said {
		p, ok := s.Payload.(Suggest)
		if !ok || p.Kind != "new_task" {
			continue
		}
		title := ProposedTitle(p)
		key := NormalTitle(title)
		if f.Titles[key] || taken[key] {
			continue
		}
		taken[key] = true
		q := proposal(f, s.ID, title, p)
		if room > 0 {
			q.Status, room = ralph.Pending, room-1
		}
		out = append(out, q)
	}
	return out
}

func proposal(f Facts, comment int64, title string, p Suggest) Proposal {
	q := Proposal{
		Comment: comment, Title: title, Status: ralph.Proposed,
		Description: strings.TrimSpace(p.What) + "\n\nWhy: " + strings.TrimSpace(p.Why),
	}
	switch {
	case p.Feature == "":
		q.Feature = f.Task.Feature
	case f.Features[p.Feature]:
		q.Feature = p.Feature
	default:
		q.Description += "\n\nFeature (there is none of that name): " + p.Feature
	}
	return q
}

// titleLimit cuts proposed titles to a line of `ralph task list`.
const titleLimit = 120

// ProposedTitle returns the title of a suggested task: its first line,
// cut, without control characters.
func ProposedTitle(p Suggest) string {
	return text.Short(text.FirstLine(p.What), titleLimit)
}

// NormalTitle returns the form for comparing titles: letters and digits in lower case,
// and the signs that distinguish C from C++ and P=NP from P≠NP.
func NormalTitle(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Sm, r) && r != '#'
	}), " ")
}

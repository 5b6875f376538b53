package signals

import (
	"fmt"
	"strings"
	"unicode"

	"ralph"
	"ralph/internal/text"
)

// Said is one recorded signal of a session.
type Said struct {
	ID       int64 // of its comment
	Payload  Payload
	Answered bool // an ask that a person has answered meanwhile
	Resolved bool // a blocker, flag or suggestion that a person has settled meanwhile
}

// Facts are all that a decision may depend on. What has to be looked up in the
// database is looked up before and stands here as a value.
type Facts struct {
	Task        ralph.Task   // as it is while the session is being settled
	Ending      ralph.Ending // how the process ended
	EndingWhy   string       // in one sentence, for people
	Said        []Said       // in the order in which it was said
	Changed     bool         // the stagnation hashes before and after differ
	Untouched   bool         // the work tree is as it was before the session
	Confirmed   bool         // asked about a done without any change, the agent said done again
	Verify      []ralph.Check
	Protected   []string // protected files that are not as people left them
	Void        bool     // its closing verb does not count: its contract was changed, or the claim could not be checked
	CancelledBy string   // who called the task off while it was worked on; "" for nobody
	Unchecked   string   // why its done could not be checked, although nobody stopped that; "" if it was, or there is none
	Unseen      []string // what else could not be looked at, each with the reason

	Evidence ralph.Evidence // what else was seen when its done was checked

	OpenQuestions int // blocking questions of earlier sessions that nobody has answered
	OpenBlockers  int // unresolved blockers from before
	Unfinished    int // dependencies that have not completed

	Upstream map[int64]Upstream // for each blocked(upstream_task): what its text names
	Known    []ralph.Learning   // what may be repeated by a learned of this session
	Titles   map[string]bool    // NormalTitle of open tasks and proposals, of those that matter here
	Features map[string]bool    // names of the features that exist
	Approved int                // suggested tasks that have entered the queue unapproved within a day

	Rules Rules
}

// Upstream is what the text of a blocked(upstream_task) was found to name.
type Upstream struct {
	Matches   []int64 // tasks it could mean
	Completed bool    // the only match has already completed
	Cycle     bool    // depending on the only match would close a circle
}

// Rules are the numbers of the rules that a project can set.
type Rules struct {
	StuckLimit     int  // stuck sessions after which a task fails
	VerifyFailures int  // refused claims after which a task fails
	Attempts       int  // sessions after which a task fails
	AutoApprove    int  // so many suggested tasks a day enter the queue at once; 0 is none
	ReviewProtect  bool // a change of protected files waits for a person, instead of being refused
}

// promptTries is how often the budget of a prompt is halved before its task fails.
const promptTries = 2

// A Decision is what becomes of a session and its task. It is data: stored with
// the session, printed by `ralph session show`, and applied in one transaction.
type Decision struct {
	Closing  ralph.Verb // the verb that was judged; inferred stuck included; "" if none was
	Inferred bool       // no closing verb was given and stuck was inferred
	Accepted bool       // done was claimed and the claim holds
	Verified bool       // it holds because commands passed, not for want of commands

	Status         ralph.Status
	Mover          ralph.Mover
	StatusReason   string
	Attempts       int // the task's counters from now on
	StuckCount     int
	VerifyFailures int
	PromptTooLong  int
	LostCount      int

	Blocker string // what a person has to settle before the task is tried again; "" for nothing

	Outcome string // of the session
	Reason  string // why the session ended as it did, in one sentence

	Stagnant  bool // the session counts and left nothing behind
	Evidence  ralph.Evidence
	Review    []string   // protected files whose change a person has to approve before the task is completed
	Holds     []Hold     // comments that hold the task back from now on
	DependsOn []int64    // tasks that it depends on from now on
	Learn     []Learn    // learnings to add or to raise
	Propose   []Proposal // tasks to propose
	Announce  []int64    // blocking flags
}

// A Hold is a question or blocker that holds the task back until it is settled.
type Hold struct {
	Comment int64
	Why     string // what ralph made of it, for a blocker that names no single task; "" otherwise
}

// A Learn is a learning to store. Into is the known one that it repeats, or 0.
type Learn struct {
	Comments  []int64 // the signals that said it, which is how often it was seen
	Into      int64
	Text      string
	Kind      string
	Scope     string
	Rationale string

	Contradicts []int64 // known learnings that say the contrary; both are kept
}

// A Proposal is a task that an agent suggests.
type Proposal struct {
	Comment     int64
	Title       string
	Description string
	Feature     string
	Status      ralph.Status // proposed, or pending where the project approves by itself
}

// Decide is the one place where the rules of docs/pipeline.md are. The order of
// its steps is the order of the rules there.
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
	unseen(f, &d)
	cancelled(f, &d)
	return d
}

// Closing is the closing signal of a session: the last of done, partial and stuck
// (rule 1). Its payload is nil if none was given.
func Closing(said []Said) Said {
	for i := len(said) - 1; i >= 0; i-- {
		if said[i].Payload.Verb().Closes() {
			return said[i]
		}
	}
	return Said{}
}

// counts reports whether the session was one that the task and the agent had to
// themselves: not cut short by ralph, by a crash or by an agent that could not work.
func counts(f Facts) bool {
	return !f.Ending.AgentError() && f.Ending != ralph.Interrupted && f.Ending != ralph.Lost &&
		!f.Void && f.Unchecked == ""
}

// verdict applies rules 1 to 4: which verb closed the session and what the task
// comes to by it, before anything that is open is looked at.
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
		return closing, stuckOnce(f, d, "partial without any change: "+text.FirstLine(c.Summary))
	case Stuck:
		return closing, stuckOnce(f, d, "stuck: "+text.FirstLine(c.Reason))
	}
	return closing, ""
}

// inferred is the reason of a stuck that nobody signalled (rule 1).
func inferred(f Facts) string {
	if f.Ending == ralph.TimedOut {
		return f.EndingWhy
	}
	return "session ended without closing signal"
}

// unjudged is rule 1's other half: interrupted, lost or stopped by an agent
// error, and nothing was claimed. The task goes back and no counter moves, but
// for a prompt that stays too long.
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

// judgeDone is rule 2: a claim, checked.
func judgeDone(f Facts, d *Decision, c Done) string {
	if f.Untouched && len(f.Verify) == 0 && !f.Confirmed {
		why := "done without any change, and not confirmed: " + text.FirstLine(c.Summary)
		if !counts(f) {
			return why // it could not be asked
		}
		return stuckOnce(f, d, why)
	}
	refused := Refused(f.Verify, f.Protected, f.Evidence, f.Rules)
	if refused == "" {
		return accept(f, d, c)
	}
	d.VerifyFailures++
	why := "done was refused: " + refused
	if d.VerifyFailures >= f.Rules.VerifyFailures {
		d.Status = ralph.Failed
		return fmt.Sprintf("%s; refused %s", why, text.Count(d.VerifyFailures, "time"))
	}
	return why
}

// accept is what a claim that holds leads to. Where it rests on changed protected
// files, a person has the last word.
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
	if len(f.Protected) > 0 {
		d.Status, d.Review = ralph.NeedsInput, f.Protected
		why = "waits for approval of changed protected files (" + FileList(f.Protected) + "); " + why
	}
	return why + ": " + text.FirstLine(c.Summary)
}

// excused counts the tests that fail and did so before the task was begun.
func excused(checks []ralph.Check) (n int) {
	for _, c := range checks {
		n += len(c.Excused)
	}
	return n
}

// filesNamed is how many files a reason names.
const filesNamed = 5

// FileList names files, or what else has short names, and the number of those beyond some.
func FileList(files []string) string {
	if n := len(files) - filesNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:filesNamed], ", "), n)
	}
	return strings.Join(files, ", ")
}

// how says in a few words how a check failed.
func how(c ralph.Check) string {
	switch {
	case c.Error != "":
		return c.Error
	case len(c.Failures) > 0:
		return fmt.Sprintf("exits %d (%s)", c.Exit, FileList(c.Failures))
	}
	return fmt.Sprintf("exits %d", c.Exit)
}

// stuckOnce is rule 4, also for what rules 1 and 3 count as stuck.
func stuckOnce(f Facts, d *Decision, why string) string {
	d.StuckCount++
	if d.StuckCount >= f.Rules.StuckLimit {
		d.Status = ralph.Failed
		return fmt.Sprintf("%s (stuck %d times)", why, d.StuckCount)
	}
	return why
}

// holdBack is rule 5: what was asked and what blocks holds the task back, and
// outranks failed.
func holdBack(f Facts, d *Decision) {
	questions, blockers, dependencies := f.OpenQuestions, f.OpenBlockers, f.Unfinished
	for _, s := range f.Said {
		switch p := s.Payload.(type) {
		case Ask:
			if p.IsBlocking() && !s.Answered {
				d.Holds = append(d.Holds, Hold{Comment: s.ID})
				questions++
			}
		case Blocked:
			if s.Resolved {
				continue
			}
			task, why := upstream(f, s.ID, p)
			switch {
			case task == 0 && why == "":
				// It names a task that has completed meanwhile: nothing is left to wait for.
			case task != 0:
				d.DependsOn = append(d.DependsOn, task)
				dependencies++
			default:
				d.Holds = append(d.Holds, Hold{Comment: s.ID, Why: why})
				blockers++
			}
		}
	}
	waiting := ralph.Waiting(questions, blockers, dependencies)
	if waiting != ralph.Pending {
		d.Status, d.StatusReason = waiting, WaitingReason(questions, blockers, dependencies)+"; "+d.StatusReason
	}
}

// upstream says which task a blocker waits for, or why none can be told.
func upstream(f Facts, comment int64, b Blocked) (task int64, why string) {
	if b.Kind != "upstream_task" {
		return 0, "waits for something outside"
	}
	u := f.Upstream[comment]
	switch {
	case len(u.Matches) == 0:
		return 0, fmt.Sprintf("no task matches %q", text.FirstLine(b.On))
	case len(u.Matches) > 1:
		return 0, fmt.Sprintf("several tasks match %q: %s", text.FirstLine(b.On), taskList(u.Matches))
	case u.Matches[0] == f.Task.ID:
		return 0, fmt.Sprintf("%q is this task itself", text.FirstLine(b.On))
	case u.Completed:
		return 0, ""
	case u.Cycle:
		return 0, fmt.Sprintf("TASK-%d depends on this task already; waiting for it would never end (a cycle)", u.Matches[0])
	}
	return u.Matches[0], ""
}

func taskList(ids []int64) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprintf("TASK-%d", id)
	}
	return strings.Join(names, ", ")
}

// WaitingReason says what a task waits for; "" if nothing holds it back.
func WaitingReason(questions, blockers, dependencies int) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{questions, "an answer"}, {blockers, "a blocker to be resolved"}, {dependencies, "a task that it depends on"}} {
		if p.n > 0 {
			parts = append(parts, p.what)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "waits for " + strings.Join(parts, " and ")
}

// exhausted fails a task that would be tried again without an attempt left.
func exhausted(f Facts, d *Decision) {
	if d.Status == ralph.Pending && d.Attempts >= f.Rules.Attempts {
		d.Status = ralph.Failed
		d.StatusReason = fmt.Sprintf("%d attempts without success; last: %s", d.Attempts, d.StatusReason)
	}
}

// cancelled gives a person's word the last say.
func cancelled(f Facts, d *Decision) {
	if f.CancelledBy != "" {
		d.Status, d.Mover = ralph.Cancelled, ralph.Person
		d.StatusReason = "cancelled by " + f.CancelledBy + " while it was worked on"
	}
}

// outcome sums a session up whose done was not accepted.
func outcome(f Facts, d Decision, closing Payload) string {
	if f.Ending == ralph.TimedOut {
		return ralph.OutcomeTimeout
	}
	if _, ok := closing.(Partial); ok && d.StuckCount == 0 {
		return ralph.OutcomeSuccess
	}
	return ralph.OutcomeFailure
}

// stagnant reports whether the session counts as one that left nothing behind:
// an agent that could not work is not idle, and a verified done is work.
func stagnant(f Facts, d Decision) bool {
	return counts(f) && !f.Changed && !d.Verified && !taughtNew(d.Learn)
}

// announcements is rule 7's last part: blocking flags are told to people at once.
func announcements(f Facts) []int64 {
	var ids []int64
	for _, s := range f.Said {
		if flag, ok := s.Payload.(Flag); ok && flag.Severity == "blocking" {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// proposals is rule 9: new tasks, unless an open one has that title already. They
// wait for a person, but for those that the project lets in by itself.
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

// titleLimit keeps proposed titles to what fits a line of `ralph task list`.
const titleLimit = 120

// ProposedTitle makes a title of what an agent proposes: its first line, cut, without
// control characters.
func ProposedTitle(p Suggest) string {
	return text.Short(text.FirstLine(p.What), titleLimit)
}

// NormalTitle is what two titles are compared by: letters and digits in lower
// case, and the signs that tell C from C++ and P=NP from P≠NP.
func NormalTitle(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Sm, r) && r != '#'
	}), " ")
}

package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/lazy"
)

// An Action is ralph's reaction to an issue.
type Action string

// The actions.
const (
	Ignore  Action = "ignore"
	Create  Action = "create"  // a task is added
	Propose Action = "propose" // add a task that a person has to approve first
	Change  Action = "change"  // the task is edited
	Cancel  Action = "cancel"
	Requeue Action = "queue again"
)

// Seen is all that the decision on an issue depends on.
type Seen struct {
	Label  string // label that makes a task
	Has    bool   // the issue has it
	Closed bool
	Acted  bool // a person with the right made its last change between wanted and not wanted
	Author bool // the author and the last editor have write access
	Late   bool // somebody else has changed the issue since the label was set

	Known   bool         // it is a task
	Wanted  bool         // it was open and had the label at the last look
	Changed bool         // its text has changed since
	Status  ralph.Status // status of its task
	Review  bool         // its task has an open pull request, which decides: merging that closes the issue
}

// wants reports whether the issue should be a task now.
func (s Seen) wants() bool { return s.Has && !s.Closed }

// Decide returns the reaction to an issue. A stranger's label, edit or close changes nothing.
func Decide(s Seen) Action {
	switch {
	case s.Label == "":
		return Ignore
	case !s.Known && (!s.wants() || !s.Acted):
		return Ignore
	case !s.Known && !s.Author && s.Late:
		return Propose
	case !s.Known:
		return Create
	case s.Wanted != s.wants() && !s.Acted, s.Review && s.Closed:
		return Ignore
	case s.Wanted && !s.wants() && (!s.Status.Ended() || s.Status == ralph.Failed):
		return Cancel
	case !s.Wanted && s.wants() && (s.Status == ralph.Cancelled || s.Status == ralph.Rejected || s.Status == ralph.Failed):
		return Requeue
	case s.wants() && s.Changed && s.Author && !s.Status.Ended():
		return Change
	}
	return Ignore
}

// digest identifies the text of an issue.
func digest(parts ...any) string {
	sum := sha256.Sum256(fmt.Append(nil, parts...))
	return hex.EncodeToString(sum[:8])
}

// A Command is a person's command in a comment.
type Command struct {
	Verb     Verb
	Text     string
	Question int64  // number of the question that it answers; 0 if it names none
	Quotes   string // what a comment without a command quotes
}

// A Verb is a kind of command.
type Verb string

// The verbs. A comment without a command is [Say].
const (
	Say     Verb = "comment"
	Answer  Verb = "answer"
	Approve Verb = "approve"
	Reject  Verb = "reject"
	Retry   Verb = "retry"
	Stop    Verb = "cancel"
)

// verbs are the commands, in their written form.
var verbs = []Verb{Answer, Approve, Reject, Retry, Stop, Say}

// Commands lists the commands for people.
const Commands = "/answer TEXT, /approve, /reject WHY, /retry HINT, /cancel, /comment TEXT"

var (
	commandLine = lazy.Regexp(`^ {0,3}/([A-Za-z][A-Za-z-]*)([.,:;!]*)(?:[ \t]+(.*))?$`)
	quotedLine  = lazy.Regexp(`^ {0,3}>`)
	fenceLine   = lazy.Regexp("^ {0,3}(```|~~~)")
	questionID  = lazy.Regexp(`\bQ(\d{1,15})\b`)
)

// Parse reads a comment. The first line that is neither a quotation nor code may begin with a command; ok is false for
// an unknown command. A comment that quotes a question answers it.
func Parse(body string) (c Command, ok bool) {
	var quoted, rest []string
	fence := "" // the end of the present block of code
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\u00a0", " ").Replace(body)) {
		line = strings.TrimRight(line, " \t\n")
		m := fenceLine().FindStringSubmatch(line)
		switch {
		case fence == "" && quotedLine().MatchString(line):
			quoted = append(quoted, line)
			continue
		case m != nil && fence == "":
			fence = m[1]
		case m != nil && fence == m[1]:
			fence = ""
		}
		if line != "" || len(rest) > 0 {
			rest = append(rest, line)
		}
	}
	said := strings.Join(rest, "\n")
	quotes := strings.Join(quoted, "\n")
	if m := questionID().FindStringSubmatch(quotes); m != nil {
		// A number of at most 15 digits fits.
		c.Question, _ = strconv.ParseInt(m[1], 10, 64)
	}
	first, more, _ := strings.Cut(said, "\n")
	if m := commandLine().FindStringSubmatch(first); m != nil {
		c.Verb, c.Text = Verb(strings.ToLower(m[1])), strings.TrimSpace(m[3]+"\n"+more)
		if ok = slices.Contains(verbs, c.Verb); ok || m[2] == "" { // "/tmp: full" is no command
			return c, ok
		}
	}
	c.Verb, c.Text, c.Quotes = Say, strings.TrimSpace(said), quotes
	if c.Question != 0 {
		c.Verb = Answer
	}
	return c, true
}

// A Step is the next step with a pull request.
type Step string

// The steps.
const (
	Wait     Step = "wait"
	Done     Step = "done"     // it was merged: complete the task
	Drop     Step = "drop"     // it was closed: cancel the task
	Resume   Step = "resume"   // it was reopened: continue with the task
	Withdraw Step = "withdraw" // the task was cancelled: close it
	Work     Step = "work"     // have a session of the task continue on its branch
	Ask      Step = "ask"      // the same, after a person agrees: limits.review_rounds is reached
	MergeNow Step = "merge"    // have the forge merge it
)

// News are the facts that decide on a pull request. They exclude reviews and remarks of people
// without the right.
type News struct {
	Open      bool // ralph takes it for open
	Closed    bool // on the forge
	Merged    bool
	Unwanted  bool // its task was cancelled
	Reviewing bool // its change waits for the task; otherwise a session works, or will
	Conflict  bool // it conflicts with its base
	Pending   bool // checks have not ended
	Red       []Check
	Reviews   []Review // new reviews that object
	Remarks   []Remark // new remarks
	Objects   bool     // a reviewer requests changes
	Approved  bool
	Rounds    int // sessions that it has caused
	Most      int // limits.review_rounds
	Auto      bool
}

// Follow returns the next step with a pull request.
func Follow(n News) Step {
	asks := len(n.Reviews)+len(n.Remarks) > 0 || n.Conflict || len(n.Red) > 0 && !n.Pending
	switch {
	case n.Merged && n.Open:
		return Done
	case n.Closed && n.Open:
		return Drop
	case n.Closed:
		return Wait
	case !n.Open:
		return Resume
	case n.Unwanted:
		return Withdraw
	case !n.Reviewing:
		return Wait
	case asks && n.Rounds >= n.Most:
		return Ask
	case asks:
		return Work
	case n.Auto && n.Approved && !n.Objects && !n.Pending:
		return MergeNow
	}
	return Wait
}

// markForm matches the mark at the beginning of ralph's own comments.
var markForm = lazy.Regexp(`^<!-- ralph: ([^\n]*?)(?:, queue \w+)? -->`)

// mark returns the first line of a post. It separates ralph's comments from those of a person with the same account,
// and those of a queue from those of others on the same repository. ralph searches for it before it sends a post again.
func mark(of, queue string) string { return "<!-- ralph: " + of + ", queue " + queue + " -->" }

// Marked returns the subject in a comment's mark; ok is false if it has none.
func Marked(body string) (of string, ok bool) {
	m := markForm().FindStringSubmatch(body)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// lateAfter is the time after its label within which an issue may change without counting as
// changed: the label is a change, too.
const lateAfter = 10 * time.Second

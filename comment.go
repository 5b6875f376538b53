package ralph

import (
	"cmp"
	"encoding/json"
)

// A Verb is a kind of signal that an agent can give.
type Verb string

// The verbs. The first three close a session; the last closing signal counts.
const (
	VerbDone    Verb = "done"
	VerbPartial Verb = "partial"
	VerbStuck   Verb = "stuck"
	VerbAsk     Verb = "ask"
	VerbFlag    Verb = "flag"
	VerbLearned Verb = "learned"
	VerbSuggest Verb = "suggest"
	VerbBlocked Verb = "blocked"
)

// Verbs lists every verb, the closing ones first.
var Verbs = []Verb{VerbDone, VerbPartial, VerbStuck, VerbAsk, VerbFlag, VerbLearned, VerbSuggest, VerbBlocked}

// A Look is how a thing is shown: an icon, a word and a colour, so that
// nothing depends on the colour alone.
type Look struct{ Icon, Label, Colour string }

// verbLooks has the look of each verb (sessions, "Signal cards").
var verbLooks = map[Verb]Look{
	VerbDone:    {"✓", "Done", "green"},
	VerbPartial: {"⊙", "Partial", "cyan"},
	VerbStuck:   {"⚠", "Stuck", "purple"},
	VerbAsk:     {"❓", "Ask", "yellow"},
	VerbFlag:    {"🚩", "Flag", "red"},
	VerbLearned: {"💡", "Learned", "blue"},
	VerbSuggest: {"💭", "Suggest", "teal"},
	VerbBlocked: {"🚫", "Blocked", "orange"},
}

// Look returns the look of signals with this verb.
func (v Verb) Look() Look { return verbLooks[v] }

// Closes reports whether the verb ends a session.
func (v Verb) Closes() bool { return v == VerbDone || v == VerbPartial || v == VerbStuck }

// A CommentKind is the purpose of a comment that is not a signal (discussion, "typed comments").
type CommentKind string

// The kinds of comments.
const (
	Note      CommentKind = "note"      // something useful; a person's plain comment
	Question  CommentKind = "question"  // a requirement is unclear; blocks nothing
	Blocker   CommentKind = "blocker"   // holds the task back while open; needs a rationale
	Reference CommentKind = "reference" // a link to a task, a document, a path
	Nack      CommentKind = "nack"      // proposes to cancel the task; needs a rationale
)

// CommentKinds lists the kinds in the order in which they are offered.
var CommentKinds = []CommentKind{Note, Question, Blocker, Reference, Nack}

// NeedsRationale reports whether a comment of this kind needs a reason.
func (k CommentKind) NeedsRationale() bool { return k == Blocker || k == Nack }

// A Comment is one entry of a task's timeline. A signal has a Verb, any other comment has a Kind, and none has both.
type Comment struct {
	ID         int64           `json:"id"`
	TaskID     int64           `json:"task_id"`
	SessionID  string          `json:"session_id"` // "" if it was written outside a session
	Author     string          `json:"author"`     // a person's name, a discipline's name, or "agent"
	AuthorKind Origin          `json:"author_kind"`
	Kind       CommentKind     `json:"kind"`
	Verb       Verb            `json:"signal_verb"`
	Payload    json.RawMessage `json:"signal_payload"`  // the validated call; null for comments
	Answer     *string         `json:"signal_answered"` // the answer to an ask; null until it is answered
	Body       string          `json:"body"`            // Markdown
	ParentID   *int64          `json:"parent_id"`
	Created    Time            `json:"created"`
	ResolvedAt Time            `json:"resolved_at"`
	ResolvedBy string          `json:"resolved_by"`
	Decision   string          `json:"decision"` // the text that resolved it
	Rationale  string          `json:"rationale"`
	Holding    bool            `json:"holding"` // it holds its task back now, as an open question or blocker
	// ralph's note, such as the reason why a blocker names no single task
	HoldReason  string `json:"hold_reason"`
	Delivered   Time   `json:"delivered_at"` // when it was handed to a running session
	DeliveredTo string `json:"delivered_to"` // that session's id; "" for none
}

// Settled returns the error for a second answer to the comment or decision on it; nil if there was none.
func (c Comment) Settled() error {
	switch {
	case c.Answer != nil:
		return Conflict("Q%d of TASK-%d is answered already: %q", c.ID, c.TaskID, *c.Answer)
	case !c.ResolvedAt.IsZero():
		by := cmp.Or(c.ResolvedBy, "ralph")
		return Conflict("C%d of TASK-%d is decided already by %s: %q", c.ID, c.TaskID, by, c.Decision)
	}
	return nil
}

// Threads returns the comments with each reply directly after its parent, if the parent is in the list. The rest keeps
// its order.
func Threads(comments []Comment) []Comment {
	replies := map[int64][]Comment{}
	shown := map[int64]bool{}
	for _, c := range comments {
		shown[c.ID] = true
	}
	for _, c := range comments {
		if c.ParentID != nil && shown[*c.ParentID] {
			replies[*c.ParentID] = append(replies[*c.ParentID], c)
		}
	}
	var list []Comment
	for _, c := range comments {
		if c.ParentID == nil || !shown[*c.ParentID] {
			list = append(append(list, c), replies[c.ID]...)
		}
	}
	return list
}

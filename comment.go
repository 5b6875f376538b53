package ralph

import "encoding/json"

// A Verb is one of the things that an agent can signal.
type Verb string

// The verbs. The first three close a session: the last of them counts.
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

// Verbs lists the verbs, the closing ones first.
var Verbs = []Verb{VerbDone, VerbPartial, VerbStuck, VerbAsk, VerbFlag, VerbLearned, VerbSuggest, VerbBlocked}

// A Look is how a thing is shown: by its sign, its word and its colour, so that
// nothing is told by the colour alone.
type Look struct{ Icon, Label, Colour string }

// verbLooks are the looks of signals (sessions, "Signal cards").
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

// Look is how the signals of the verb are shown.
func (v Verb) Look() Look { return verbLooks[v] }

// Closes reports whether the verb ends a session.
func (v Verb) Closes() bool { return v == VerbDone || v == VerbPartial || v == VerbStuck }

// A CommentKind says what a comment that is no signal is for (discussion, "typed comments").
type CommentKind string

// The kinds of comments.
const (
	Note      CommentKind = "note"      // something useful; a person's plain comment
	Question  CommentKind = "question"  // a requirement is unclear; holds nothing back
	Blocker   CommentKind = "blocker"   // holds the task back while open; needs a rationale
	Reference CommentKind = "reference" // a link to a task, a document, a path
	Nack      CommentKind = "nack"      // proposes to cancel the task; needs a rationale
)

// CommentKinds lists the kinds in the order in which they are offered.
var CommentKinds = []CommentKind{Note, Question, Blocker, Reference, Nack}

// NeedsRationale reports whether a comment of this kind must say why.
func (k CommentKind) NeedsRationale() bool { return k == Blocker || k == Nack }

// A Comment is one line of a task's timeline. It is an agent's signal if Verb is
// set, and has a Kind otherwise; never both, and its text never decides which.
type Comment struct {
	ID         int64           `json:"id"`
	TaskID     int64           `json:"task_id"`
	SessionID  string          `json:"session_id"` // "" for what people say outside a session
	Author     string          `json:"author"`     // "human", or the discipline's name, or "agent"
	AuthorKind Origin          `json:"author_kind"`
	Kind       CommentKind     `json:"kind"`
	Verb       Verb            `json:"signal_verb"`
	Payload    json.RawMessage `json:"signal_payload"`  // the validated call; null for comments
	Answer     *string         `json:"signal_answered"` // an ask's answer, null while there is none
	Body       string          `json:"body"`            // Markdown
	ParentID   *int64          `json:"parent_id"`
	Created    Time            `json:"created"`
	ResolvedAt Time            `json:"resolved_at"`
	ResolvedBy string          `json:"resolved_by"`
	Decision   string          `json:"decision"` // the words with which it was resolved
	Rationale  string          `json:"rationale"`
	Holding    bool            `json:"holding"` // it holds its task back now: an open question or blocker
	// what ralph made of it: why a blocker could not be resolved to a task
	HoldReason string `json:"hold_reason"`
	Delivered  Time   `json:"delivered_at"` // when a running session was handed it
}

// Threads puts replies below what they reply to, where that is among the comments
// too; the rest stays in its order.
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

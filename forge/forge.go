// Package forge keeps the queue and a forge in step: issues become tasks, and their progress, questions and pull
// requests are posted there.
//
// Only the queue decides, never the forge. Issues, comments and reviews are wishes of people with write access;
// everybody else's change nothing. A slow, limited, absent or faulty forge delays posts and pulls, and stops no
// session. Pure functions ([Decide], [Parse], [Follow]) decide on issues, comments and pull requests; [Syncer]
// carries their decisions out.
package forge

import (
	"context"
	"time"
)

// A Forge is one repository on GitHub, GitLab, Gitea or Forgejo. Errors about a request wrap [*Error].
type Forge interface {
	// Repository returns the repository's address for people, such as "github.com/octo/app".
	Repository() string
	// Leads reports whether an earlier address, as Repository returns it, leads to this repository: it was renamed.
	Leads(ctx context.Context, from string) (bool, error)
	// Self returns the account of the token and its right to write.
	Self(ctx context.Context) (Account, error)
	// CanWrite reports whether an account may push to the repository.
	CanWrite(ctx context.Context, login string) (bool, error)
	// Issues lists a page of the issues that have changed since a moment, the oldest change first, and reports whether
	// there are more. Pages begin at 1. The zero time lists all issues. A pull request may be among them, without labels.
	Issues(ctx context.Context, since time.Time, page int) (list []Issue, more bool, err error)
	// Last returns the account that did something to an issue last, and when. [Labelled] and [Unlabelled] need the label.
	// [Edited] is "" where only its author and accounts that may push can edit an issue.
	Last(ctx context.Context, issue int64, act Act, label string) (login string, at time.Time, err error)
	// Comments lists the comments on an issue that were written or edited since a moment.
	Comments(ctx context.Context, issue int64, since time.Time) ([]Comment, error)
	// Comment adds a comment to an issue and returns its id; Edit replaces the text of one.
	Comment(ctx context.Context, issue int64, body string) (id string, err error)
	Edit(ctx context.Context, issue int64, id, body string) error
	// React adds a reaction to a comment on an issue or a pull request: [Taken] or [Refused].
	React(ctx context.Context, number int64, id string, reaction Reaction) error
	// SetLabel gives an issue a label ("" for none), and removes the labels in without.
	SetLabel(ctx context.Context, issue int64, label string, without []string) error
	// Changed lists the pull requests that have changed since a moment, by one request unless there are many.
	Changed(ctx context.Context, since time.Time) ([]Changed, error)
	// Pull returns a pull request; an open one has its checks, reviews and comments.
	Pull(ctx context.Context, number int64) (Pull, error)
	// Said lists the comments on a pull request, in its conversation and in its threads.
	Said(ctx context.Context, pull int64) ([]Comment, error)
	// Say adds a comment to a pull request: to a thread of [Remark], or to the conversation if that is "".
	Say(ctx context.Context, pull int64, thread, body string) error
	// Close closes a pull request without merging it.
	Close(ctx context.Context, pull int64) error
	// PullOf returns the number of the open pull request of a branch; 0 if there is none.
	PullOf(ctx context.Context, branch string) (int64, error)
	// Open opens a pull request.
	Open(ctx context.Context, p Proposal) (int64, error)
	// Merge merges a pull request, if its branch is still at head. If the target has a merge queue, it puts the pull
	// request there, and queued is true.
	Merge(ctx context.Context, number int64, head string) (queued bool, err error)
	// Limit returns the requests left of the rate limit; ok is false until a response has named them.
	Limit() (left int, ok bool)
}

// An Account is the account of the token.
type Account struct {
	Login string
	Write bool // whether it may push to the repository
}

// An Issue is an issue of the repository.
type Issue struct {
	Number    int64
	URL       string
	Title     string
	Body      string
	Author    string
	Labels    []string
	Milestone string
	Closed    bool
	Updated   time.Time
}

// A Comment is a comment on an issue or a pull request.
type Comment struct {
	ID      string
	Author  string
	Body    string
	Updated time.Time
}

// An Act is an event of an issue.
type Act string

// The acts.
const (
	Labelled   Act = "labeled"
	Unlabelled Act = "unlabeled"
	Closed     Act = "closed"
	Reopened   Act = "reopened"
	Edited     Act = "edited" // its title or text
)

// A Reaction shows that a comment was read.
type Reaction string

// The reactions.
const (
	Taken   Reaction = "+1"
	Refused Reaction = "-1"
)

// A Proposal is a pull request to open.
type Proposal struct {
	Title, Body, Branch, Into string
}

// A Changed is a pull request in a list.
type Changed struct {
	Number  int64
	Open    bool
	Updated time.Time
}

// A Pull is a pull request.
type Pull struct {
	Number   int64
	URL      string
	Head     string // the commit of its branch
	Into     string // the branch that it goes into, which people may change
	Draft    bool
	Closed   bool   // also after its merge
	Merged   string // the last commit of its merge on the target; "" before
	Updated  time.Time
	Checks   []Check
	Reviews  []Review
	Remarks  []Remark
	Comments []Comment // in its conversation
}

// A Check is a result of continuous integration for the head.
type Check struct {
	Name string
	Done bool
	Red  bool
	URL  string
	Log  string // the end of its log, or its summary; "" if the forge has neither
}

// A Review is the latest review of a reviewer.
type Review struct {
	ID       string
	Author   string
	Approves bool
	Objects  bool
	Body     string
	Commit   string
}

// A Remark is a comment of a review, on a line or in a thread.
type Remark struct {
	ID     string
	Thread string // for [Forge.Say]; "" on a forge without threads
	Author string
	File   string // "" if it is on no line
	Line   int
	Body   string
	Commit string // the commented commit
}

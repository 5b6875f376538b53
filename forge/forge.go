// Package forge keeps the queue and a forge in step: issues become tasks, and their progress, questions and pull
// requests are posted there.
//
// The queue is the truth, and the forge decides nothing: what it says is read as a person's wish, if that person may
// write to the repository, and else as nothing. A forge that is slow, limited, away or wrong delays posts and pulls;
// it stops no session. What follows from an issue, a comment or a pull request is decided by pure functions
// ([Decide], [Parse], [Follow]); [Syncer] carries it out.
package forge

import (
	"context"
	"time"
)

// A Forge is one repository on GitHub, GitLab, Gitea or Forgejo. Errors about a request wrap [*Error].
type Forge interface {
	// Repository is the repository's address for people, such as "github.com/octo/app".
	Repository() string
	// Self returns the account of the token, and what it may do.
	Self(ctx context.Context) (Account, error)
	// CanWrite reports whether an account may push to the repository.
	CanWrite(ctx context.Context, login string) (bool, error)
	// Issues lists the issues that have changed since a moment, the oldest change first; zero lists all.
	Issues(ctx context.Context, since time.Time) ([]Issue, error)
	// Last returns who did something to an issue last, and when; label is that of [Labelled] and [Unlabelled].
	Last(ctx context.Context, issue int64, act Act, label string) (login string, at time.Time, err error)
	// Comments lists the comments on an issue or a pull request that were written or edited since a moment.
	Comments(ctx context.Context, number int64, since time.Time) ([]Comment, error)
	// Comment adds a comment and returns its id; Edit replaces the text of one.
	Comment(ctx context.Context, number int64, body string) (id string, err error)
	Edit(ctx context.Context, number int64, id, body string) error
	// React adds a reaction to a comment: [Taken] or [Refused].
	React(ctx context.Context, number int64, id string, reaction Reaction) error
	// SetLabel gives an issue a label ("" for none), and takes the others of a list away.
	SetLabel(ctx context.Context, issue int64, label string, without []string) error
	// Pull returns a pull request with its checks and reviews.
	Pull(ctx context.Context, number int64) (Pull, error)
	// PullOf returns the number of the open pull request of a branch; 0 if there is none.
	PullOf(ctx context.Context, branch string) (int64, error)
	// Open opens a pull request.
	Open(ctx context.Context, p Proposal) (int64, error)
	// Merge merges a pull request, if its branch is still at head.
	Merge(ctx context.Context, number int64, head string) error
	// Limit returns how much of the rate limit is left; ok is false if the forge has not said.
	Limit() (left int, ok bool)
}

// An Account is the token's.
type Account struct {
	Login string
	Write bool // it may push to the repository
}

// An Issue is one as the forge has it.
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

// A Comment is one on an issue or a pull request.
type Comment struct {
	ID      string
	Author  string
	Body    string
	Updated time.Time
}

// An Act is something done to an issue.
type Act string

// The acts.
const (
	Labelled   Act = "labeled"
	Unlabelled Act = "unlabeled"
	Closed     Act = "closed"
	Reopened   Act = "reopened"
)

// A Reaction says that a comment was read.
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

// A Pull is a pull request as the forge has it.
type Pull struct {
	Number   int64
	URL      string
	Head     string // the commit of its branch
	Closed   bool   // also if it was merged
	Merged   string // the commit on the target; "" if it was not merged
	Conflict bool   // it cannot be merged with its base
	Checks   []Check
	Reviews  []Review
	Remarks  []Remark
}

// A Check is one result of continuous integration for the head.
type Check struct {
	Name string
	Done bool
	Red  bool
	URL  string
	Log  string // the end of it, or its summary; "" if the forge does not say
}

// A Review is the last word of one reviewer.
type Review struct {
	ID       string
	Author   string
	Approves bool
	Objects  bool
	Body     string
	Commit   string
}

// A Remark is a comment of a review on a line.
type Remark struct {
	ID     string
	Author string
	File   string
	Line   int
	Body   string
	Commit string // that it is about
}

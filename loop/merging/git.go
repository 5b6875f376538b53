package merging

import (
	"context"

	"ralph"
	"ralph/internal/worktree"
)

// Git has the methods of [worktree.Tree] that a Merger uses on people's repository.
type Git interface {
	Ref(ctx context.Context, name string) (string, error)
	Refs(ctx context.Context, prefix string) (map[string]string, error)
	SetRef(ctx context.Context, name, commit string) error
	Pack(ctx context.Context) error
	Move(ctx context.Context, ref, from, to, why string) (moved bool, err error)

	Ancestor(ctx context.Context, commit, of string) (bool, error)
	Begin(ctx context.Context, base, head string, targets ...string) (string, error)
	Symlinks(ctx context.Context, commit string) (map[string]string, error)
	History(ctx context.Context, tips []string) (map[string]bool, error)
	Reverts(ctx context.Context, tips []string, lacks string) ([]worktree.Revert, error)
	Count(ctx context.Context, lacks, of string) (int, error)
	Commits(ctx context.Context, of, lacks string) ([]ralph.Commit, error)
	Replayed(ctx context.Context, head, merged string) (string, error)
	Has(ctx context.Context, commit string) bool
	Whole(ctx context.Context, commit string) (string, error)
	Files(ctx context.Context, from, to string) ([]string, error)
	Changes(ctx context.Context, from, to string) ([]ralph.FileChange, error)
	Patch(ctx context.Context, from, to string, paths []string, options ...string) (string, error)
	Below(path string) string
	Pairs(ctx context.Context, from, to string) ([]worktree.Pair, error)
	Content(ctx context.Context, commit, name string) []byte
	Exchanged(ctx context.Context, tree, from string, files []worktree.Exchange, state string) (string, error)
	Names(ctx context.Context, commit string) ([]string, error)
	Links(ctx context.Context, from, to string) ([]worktree.Link, error)

	MergeTree(ctx context.Context, ours, theirs string) (worktree.Merge, error)
	CommitTree(ctx context.Context, tree string, parents []string, message string, user [2]string) (string, error)
	Variant(ctx context.Context, commit, tree string) (string, error)
	User(ctx context.Context) [2]string
	Signed(ctx context.Context, commit, onto string, env []string) (string, error)

	Checkouts(ctx context.Context) ([]worktree.Checkout, error)
	In(ctx context.Context, dir string) (*worktree.Tree, error)
	Remote(ctx context.Context, name, dir string, env []string) (*worktree.Remote, error)
	Top() string
}

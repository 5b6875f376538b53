package worktree

// OnlyNative has a tree ask native git for everything.
func OnlyNative(t *Tree) { t.foreign = true }

// WithoutNative has a tree do without native git.
func WithoutNative(t *Tree) { t.native = false }

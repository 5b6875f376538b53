package worktree

// OnlyNative makes a tree use native git for everything.
func OnlyNative(t *Tree) { t.foreign = true }

// WithoutNative makes a tree work without native git.
func WithoutNative(t *Tree) { t.native = false }

// LimitLarge sets the bound for large files during a test.
func LimitLarge(t interface{ Cleanup(func()) }, bytes int64) {
	was := maxLarge
	maxLarge = bytes
	t.Cleanup(func() { maxLarge = was })
}

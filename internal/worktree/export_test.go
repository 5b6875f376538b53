package worktree

import "context"

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

// TheirRefs reads a clone's refs and stashes without native git.
func TheirRefs(c *Clone) ([2]any, error) {
	s, err := c.refsOfTheirs()
	return [2]any{s.refs, s.stashes}, err
}

// NativeRefs reads a clone's refs and stashes with native git.
func NativeRefs(ctx context.Context, c *Clone) ([2]any, error) {
	s, err := c.nativeRefs(ctx)
	return [2]any{s.refs, s.stashes}, err
}

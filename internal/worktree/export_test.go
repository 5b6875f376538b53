package worktree

import "context"

// OnlyNative makes a tree use native git for everything.
func OnlyNative(t *Tree) { t.foreign = true }

// TheirRefs reads a clone's refs without native git.
func TheirRefs(c *Clone) (map[string]string, error) { return c.refsOfTheirs() }

// NativeRefs reads a clone's refs with native git.
func NativeRefs(ctx context.Context, c *Clone) (map[string]string, error) {
	return c.nativeRefs(ctx, "refs/")
}

package worktree

// OnlyNative makes a tree use native git for everything.
func OnlyNative(t *Tree) { t.foreign = true }

// Leaves exposes leaves.
var Leaves = leaves

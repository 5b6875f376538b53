package store

import "testing"

// TestFateOf: only what the server knows of a transaction decides whether it is done again.
func TestFateOf(t *testing.T) {
	for status, want := range map[string]fate{
		"committed": fateStored, "aborted": fateUndone, "in progress": fateUnknown, "": fateUnknown,
	} {
		if got := fateOf(status); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}

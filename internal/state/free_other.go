//go:build !unix

package state

// free is unknown on this system.
func free(string) (bytes int64, known bool) { return 0, false }

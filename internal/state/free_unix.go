//go:build unix

package state

import "golang.org/x/sys/unix"

// free returns how many bytes can be written below a folder; false if that is unknown.
func free(dir string) (bytes int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the types differ between systems
}

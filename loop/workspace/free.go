package workspace

import "golang.org/x/sys/unix"

// freeBytes returns the disk space available to the user, in bytes.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return uint64(s.Bavail) * uint64(s.Bsize), err //nolint:unconvert // the types differ between systems
}

package state

import "golang.org/x/sys/unix"

// networkDisk names the file system of a folder if it is a network file system; "" if it is not, or
// if that is unknown.
var networkDisk = func(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}

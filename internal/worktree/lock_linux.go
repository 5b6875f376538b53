package worktree

import (
	"os"
	"path/filepath"
	"strings"
)

// inUse reports whether a process may hold a lock: it has the lock open, or it is a git in the work tree at top. (Git
// closes an index's lock while a person writes a message.) top may be "" for none. Of another user's process only the
// name is visible.
func inUse(lock, top string) bool {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, p := range processes {
		if strings.Trim(p.Name(), "0123456789") != "" {
			continue
		}
		dir := filepath.Join("/proc", p.Name())
		// An ended process holds no lock.
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		within := err == nil && top != "" && (cwd == top || strings.HasPrefix(cwd, top+"/"))
		if strings.HasPrefix(string(name), "git") && (top != "" && os.IsPermission(err) || within) {
			return true
		}
		files, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			continue
		}
		for _, f := range files {
			if target, err := os.Readlink(filepath.Join(dir, "fd", f.Name())); err == nil && target == lock {
				return true
			}
		}
	}
	return false
}

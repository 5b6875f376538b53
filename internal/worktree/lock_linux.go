package worktree

import (
	"os"
	"path/filepath"
	"strings"
)

// inUse tells whether a process may hold a lock in a work tree: one that has it open,
// or a git at work there, which closes it while a person writes a message. Of a process
// of someone else's only its name can be seen.
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
		// One that ends meanwhile holds nothing.
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		within := err == nil && (cwd == top || strings.HasPrefix(cwd, top+"/"))
		if strings.HasPrefix(string(name), "git") && (os.IsPermission(err) || within) {
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

package proc

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Kin is this process or one that it descends from.
type Kin struct {
	pid     int
	Environ []string // as it was when it executed its program; nil if that cannot be read
}

// Lineage is this process and those that it descends from, itself first. What a
// supervisor has started descends from it whatever it does: it adopts orphans.
func Lineage() []Kin {
	var kin []Kin
	seen := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !seen[pid]; {
		seen[pid] = true
		k := Kin{pid: pid}
		if environ, err := readMemory(pid, "environ"); err == nil && len(environ) > 0 {
			k.Environ = strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00")
		}
		kin = append(kin, k)
		p, err := readProcess(pid)
		if err != nil {
			break // it has just ended, and so do the ways up from it
		}
		pid = p.parent
	}
	return kin
}

// HasOpen tells whether the process has the file open. It is false where that
// cannot be seen: another user's process, or a file that is not there.
func (k Kin) HasOpen(path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	dir := filepath.Join("/proc", strconv.Itoa(k.pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if open, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(open, file) {
			return true
		}
	}
	return false
}

// GroupMarkers are the values of the markers of the commands in whose cgroups
// this process is; see [Spec.Marker].
func GroupMarkers() []string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var values []string
	for part := range strings.FieldsFuncSeq(string(groups), func(r rune) bool { return r == '/' || r == '\n' }) {
		rest, ours := strings.CutPrefix(part, "ralph-")
		value, number, numbered := cutLast(rest, ".")
		if _, err := strconv.ParseUint(number, 10, 64); !ours || !numbered || err != nil {
			continue
		}
		if value, err := url.PathUnescape(value); err == nil {
			values = append(values, value)
		}
	}
	return values
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Supervises tells whether the process is the supervisor of a command.
func (k Kin) Supervises() bool { return slices.Contains(k.Environ, supervisorEnv+"=1") }

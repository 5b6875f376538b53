package proc

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A cgroup is the directory of a command's cgroup. "" means none; all methods treat it like an
// empty one.
type cgroup string

// newGroup creates a cgroup for a command.
func newGroup(e enclosure) (cgroup, error) {
	if e.Parent == "" {
		return "", nil
	}
	dir, err := os.MkdirTemp(e.Parent, groupPrefix(e.Marker)+"*")
	if err != nil {
		return "", fmt.Errorf("the cgroup of the command: %w", err)
	}
	return cgroup(dir), nil
}

// maxGroupName bounds the part of a marker in a name; file systems allow 255 bytes.
const maxGroupName = 200

// A slash cannot be in the name of a file.
var (
	escaper   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescaper = strings.NewReplacer("%25", "%", "%2F", "/")
)

// groupPrefix is the start of the names of a marker's cgroups. Digits follow.
func groupPrefix(marker string) string {
	_, value, _ := strings.Cut(marker, "=")
	if value = escaper.Replace(value); len(value) > maxGroupName {
		value = fmt.Sprintf("%x", sha256.Sum256([]byte(value)))
	}
	return "ralph-" + value + "."
}

// groupsOf finds the cgroups of a marker, wherever they are: a killed ralph may have run in another
// cgroup than this process.
func groupsOf(marker string) []cgroup {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	mount, _ := cgroupMount(string(mounts))
	if mount == "" {
		return nil
	}
	prefix := groupPrefix(marker)
	var groups []cgroup
	_ = filepath.WalkDir(mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // unreadable or just removed: not ours
		}
		number, ok := strings.CutPrefix(d.Name(), prefix)
		if _, err := strconv.ParseUint(number, 10, 64); ok && err == nil {
			groups = append(groups, cgroup(path))
			return fs.SkipDir
		}
		return nil
	})
	return groups
}

// members lists the processes in the cgroup and those below it.
func (g cgroup) members() []process {
	var list []process
	for _, dir := range g.tree() {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // it has just been removed
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				if p, err := readProcess(pid); err == nil {
					list = append(list, p)
				}
			}
		}
	}
	return list
}

// tree lists the cgroup's directory and those below it, parents first.
func (g cgroup) tree() []string {
	if g == "" {
		return nil
	}
	var dirs []string
	_ = filepath.WalkDir(string(g), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() { // otherwise it has just been removed
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

// kill kills all processes in the cgroup.
func (g cgroup) kill() error {
	if g == "" {
		return nil
	}
	if err := put(string(g), "cgroup.kill", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// freeze freezes or thaws all processes in the cgroup. It has taken effect when "frozen" in
// cgroup.events says so.
func (g cgroup) freeze(on bool) error {
	text := "0"
	if on {
		text = "1"
	}
	return put(string(g), "cgroup.freeze", text)
}

// remove removes the cgroup and those below it, and kills their processes. The error names
// processes that cannot be killed.
func (g cgroup) remove() error {
	for begin := time.Now(); g != ""; time.Sleep(pause) {
		var err error
		dirs := g.tree()
		for i := len(dirs) - 1; i >= 0; i-- { // children first
			if e := os.Remove(dirs[i]); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
		if err == nil {
			break
		}
		if time.Since(begin) > patience {
			var names []string
			for _, p := range g.members() {
				names = append(names, p.String())
			}
			return fmt.Errorf("%w: it holds %q", err, names)
		}
		if err := g.kill(); err != nil {
			return err
		}
	}
	return nil
}

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Contain finds out what can contain commands here. On Linux that is a cgroup (version 2) for each, if
// this process may create one in its own: usually in a systemd unit or scope with Delegate=yes.
func Contain() (c Containment) {
	if own, err := ownGroup(); err == nil && probe(own) == nil {
		c.parent = own
	}
	return c
}

// ownGroup returns the directory of this process's cgroup.
func ownGroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mount, root := cgroupMount(string(mounts))
	if mount == "" {
		return "", errors.New("there are no cgroups of version 2 here")
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			inside, err := filepath.Rel(root, path)
			if err != nil || !filepath.IsLocal(inside) {
				return "", fmt.Errorf("the cgroup %s is not below %s", path, mount)
			}
			return filepath.Join(mount, inside), nil
		}
	}
	return "", errors.New("this process has no cgroup of version 2")
}

// cgroupMount returns where cgroups of version 2 are mounted, and which of them is at that place,
// from the text of /proc/self/mountinfo; see proc_pid_mountinfo(5).
func cgroupMount(mountinfo string) (mount, root string) {
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) >= 5 && strings.HasPrefix(after, "cgroup2 ") {
			return fields[4], fields[3]
		}
	}
	return "", ""
}

// probe checks that a cgroup that can be killed can be created below parent.
func probe(parent string) error {
	// Moving a process below parent requires write access to parent's processes.
	if err := unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, "ralph-probe.*")
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, "cgroup.kill"))
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("cgroups cannot be killed before Linux 5.14")
	}
	return errors.Join(err, os.Remove(dir))
}

// put writes an existing file of a cgroup.
func put(dir, name, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

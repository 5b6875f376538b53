package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaf is the cgroup into which Contain moves this process: a cgroup with processes of its own
// cannot distribute memory and processes to others.
const leaf = "ralph-run"

// delegated says how ralph gets a cgroup that it may manage.
const delegated = "run it as a service, or by `systemd-run --user --scope -p Delegate=yes`"

// Contain finds out what can contain commands here. On Linux that is a cgroup (version 2) for each, if
// this process may create one in its own: usually in a systemd unit or scope with Delegate=yes.
// Call it before anything is started, because it may move this process into another cgroup.
//
// Without a cgroup, the limit of processes counts on top of all that the user runs when the command
// starts, and memory is not limited: the alternative, a limit of the address space, breaks the
// agent's runtime.
//
// missing describes the limits that cannot be enforced as intended, and why; nil for none.
func Contain(l Limits) (c Containment, missing []string) {
	c.limits = l
	own, err := ownGroup()
	if err == nil {
		if filepath.Base(own) == leaf {
			own = filepath.Dir(own)
		}
		err = probe(own)
	}
	if err == nil {
		c.parent = own
		if l.Memory > 0 || l.Processes > 0 {
			err = delegate(own)
			c.meters = err == nil
		}
	}
	if l.Memory > 0 && !c.meters {
		missing = append(missing, fmt.Sprintf("memory is not limited: %v", err))
	}
	if l.Processes > 0 && !c.meters {
		how := "processes are counted with all others of the user"
		if os.Geteuid() == 0 {
			how = "processes are not limited"
		}
		missing = append(missing, fmt.Sprintf("%s: %v", how, err))
	}
	return c, missing
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
		return fmt.Errorf("no cgroup can be used (%s): %w", delegated, err)
	}
	dir, err := os.MkdirTemp(parent, "ralph-probe.*")
	if err != nil {
		return fmt.Errorf("no cgroup can be made (%s): %w", delegated, err)
	}
	_, err = os.Stat(filepath.Join(dir, "cgroup.kill"))
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("cgroups cannot be killed before Linux 5.14")
	}
	return errors.Join(err, os.Remove(dir))
}

// delegate enables the memory and process controllers for the cgroups below parent.
func delegate(parent string) error {
	controls := filepath.Join(parent, "cgroup.subtree_control")
	err := enable(parent, controls)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	// Only a cgroup without processes of its own can do that; see cgroups(7).
	own := filepath.Join(parent, leaf)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := put(own, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	if err = enable(parent, controls); errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("ralph is not alone in its cgroup (%s): %w", delegated, err)
	}
	return err
}

func enable(parent, controls string) error {
	for _, name := range []string{"memory", "pids"} {
		err := put(parent, "cgroup.subtree_control", "+"+name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("the cgroup %s has no %s controller", parent, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", controls, err)
		}
	}
	return nil
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

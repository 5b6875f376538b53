package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"ralph/internal/files"
)

// confineArg is the first argument that selects [confine].
const confineArg = "__confine"

// An order tells the helper how to confine a process, as JSON.
type order struct {
	Policy Policy
	Paths  bool // apply the policy
	Scopes bool // restrict abstract sockets and signals alone
}

// before returns the words to put before a command to confine it.
func before(self string, o order) ([]string, error) {
	b, err := json.Marshal(o)
	return []string{self, confineArg, string(b)}, err
}

// landlockABI returns the version of the kernel's Landlock; 0 if there is none.
func landlockABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

func init() { //nolint:gochecknoinits // before the packages that take long, as in package proc
	if len(os.Args) > 1 && os.Args[1] == confineArg {
		err := confine(os.Args[2:])
		fmt.Fprintf(os.Stderr, "ralph: the sandbox: %v\n", err)
		os.Exit(126) //nolint:forbidigo // main is not reached
	}
}

// confine applies an order to this process and then executes the command in the arguments. It
// returns if that fails.
func confine(args []string) error {
	if len(args) < 2 {
		return errors.New(confineArg + " is for ralph's own use")
	}
	var o order
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	if o.Paths || o.Scopes {
		if err := landlocked(o); err != nil {
			return err
		}
	}
	if err := withoutKeys(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", args[1], syscall.Exec(args[1], args[1:], os.Environ()))
}

// landlocked applies Landlock to this process and drops the capabilities that lead out of it.
func landlocked(o order) error {
	abi := landlockABI()
	if abi == 0 {
		return errors.New("the kernel has no Landlock any more")
	}
	// As much as the kernel supports; Cannot uses the ABI version for that.
	config := landlock.V11.BestEffort()
	var rules []landlock.Rule
	if o.Scopes {
		config.HandledAccessFS, config.HandledAccessNet = 0, 0
		if abi < abiScopes {
			return fmt.Errorf("the kernel's Landlock (ABI %d) has no scopes", abi)
		}
	} else {
		if o.Policy.Network {
			config.HandledAccessNet = 0
		}
		for _, g := range grants(o.Policy, list) {
			rules = append(rules, rule(g, abi))
		}
	}
	if err := config.Restrict(rules...); err != nil {
		return err
	}
	return renounce()
}

// renounce drops the capabilities that lead out of the sandbox, for this thread and its programs: Landlock does not
// cover most of them.
func renounce() error {
	runtime.LockOSThread()
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(keptNumbers, c) {
			continue
		}
		// EINVAL: the kernel does not have it; EPERM: without privileges there are none to drop.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
	return nil
}

// keptNumbers are the numbers of kept.
var keptNumbers = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_NET_BIND_SERVICE,
	unix.CAP_SETGID, unix.CAP_SETUID,
}

// rule converts a grant to a Landlock rule.
func rule(g grant, abi int) landlock.Rule {
	info, err := os.Stat(g.path)
	dir := err == nil && info.IsDir()
	switch {
	case g.access != Writable && dir:
		return landlock.RODirs(g.path).IgnoreIfMissing()
	case g.access != Writable:
		return landlock.ROFiles(g.path).IgnoreIfMissing()
	case !dir:
		return landlock.RWFiles(g.path).WithIoctlDev().WithResolveUnix().IgnoreIfMissing()
	}
	r := landlock.RWDirs(g.path).WithIoctlDev().WithResolveUnix().IgnoreIfMissing()
	if abi >= abiRefer {
		// If the kernel does not support it, asking for it would disable all of Landlock.
		r = r.WithRefer()
	}
	return r
}

// list returns the entries of a folder except symbolic links: a rule for a link would apply to its
// target.
func list(dir string) (paths []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // nothing in the sandbox may see more than ralph itself
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// ownFolder creates the folder of a command. It is locked, which distinguishes folders in use
// from those left by a killed ralph, and removed.
func ownFolder() (dir string, leave func(), err error) {
	Sweep()
	base, prefix := os.TempDir(), fmt.Sprintf("ralph-%d-", os.Getuid())
	for range 100 { // another ralph may remove it as a leftover before it is locked
		if dir, leave, err = lockedFolder(base, prefix); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return dir, leave, err
}

// Sweep removes the folders of commands whose ralph was killed.
func Sweep() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("ralph-%d-*", os.Getuid())))
	if err != nil {
		return // there are none
	}
	for _, old := range left {
		if unlock := lockFolder(old); unlock != nil {
			_ = files.RemoveAll(old) // the next command tries again
			unlock()
		}
	}
}

// lockedFolder creates and locks a folder. [os.ErrNotExist] means that it was removed before it was
// locked.
func lockedFolder(base, prefix string) (dir string, leave func(), err error) {
	made, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return "", nil, err
	}
	unlock := lockFolder(made)
	if unlock == nil {
		return "", nil, fmt.Errorf("%s cannot be locked: %w", made, os.ErrNotExist)
	}
	leave = func() {
		_ = files.RemoveAll(made)
		unlock()
	}
	if dir, err = filepath.EvalSymlinks(made); err == nil {
		err = os.Mkdir(filepath.Join(dir, "tmp"), 0o700)
	}
	if err != nil {
		leave()
		return "", nil, err
	}
	return dir, leave, nil
}

// lockFolder locks a folder of this user; it returns nil if the folder is locked or cannot be.
func lockFolder(dir string) (unlock func()) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || int(stat.Uid) != os.Getuid() || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = unix.Close(fd)
		return nil
	}
	return func() { _ = unix.Close(fd) }
}

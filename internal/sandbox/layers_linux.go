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

	"golang.org/x/sys/unix"
)

// layersArg is the first argument that selects [mountLayers].
const layersArg = "__layers"

// first returns the words to put before all others for a view.
func first(v View) ([]string, error) {
	b, err := json.Marshal(v)
	return []string{"/proc/self/exe", layersArg, string(b)}, err
}

func init() { //nolint:gochecknoinits // before the packages that take long, as in package proc
	if len(os.Args) > 1 && os.Args[1] == layersArg {
		err := mountLayers(os.Args[2:])
		fmt.Fprintf(os.Stderr, "ralph: the sandbox: %v\n", err)
		os.Exit(126) //nolint:forbidigo // main is not reached
	}
}

// mountLayers makes the view from the argument in this process's own namespaces, and then executes
// the command in the others. It returns only on failure.
func mountLayers(args []string) error {
	if len(args) < 2 {
		return errors.New(layersArg + " is for ralph's own use")
	}
	var v View
	if err := json.Unmarshal([]byte(args[0]), &v); err != nil {
		return err
	}
	runtime.LockOSThread()
	// Nothing that is mounted here reaches the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	for i := range v.Layers { // all of them before the first mount: a layer may lie below another
		if err := v.Layers[i].open(); err != nil {
			return err
		}
	}
	for _, l := range v.Layers {
		if err := unix.Mount("overlay", l.At, "overlay", unix.MS_NOSUID|unix.MS_NODEV, l.options()); err != nil {
			return fmt.Errorf("mount the layers of %s: %w", l.At, err)
		}
	}
	if err := errors.Join(v.mask(), v.fix()); err != nil {
		return err
	}
	if v.Shm {
		if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("mount /dev/shm: %w", err)
		}
	}
	if v.Network {
		if err := loopback(); err != nil {
			return fmt.Errorf("the loopback interface: %w", err)
		}
	}
	if err := os.Chdir(v.Dir); err != nil { // even if this process is already there: a layer may be on top
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return fmt.Errorf("%s: %w", args[1], syscall.Exec(args[1], args[1:], os.Environ()))
}

// mask covers files and folders with empty ones.
func (v View) mask() error {
	for _, path := range v.Masked {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist): // an earlier command has removed it from its layer
			continue
		case err == nil && info.IsDir():
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "size=4k")
		case err == nil:
			err = unix.Mount(os.DevNull, path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// fix makes files read-only. Their folders become mounts too, because a folder that is not a mount could be replaced.
func (v View) fix() error {
	mounted := map[string]bool{}
	bind := func(path string, more uintptr) error {
		err := unix.Mount(path, path, "", unix.MS_BIND, "")
		if err == nil && more != 0 {
			err = unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV|more, "")
		}
		if err != nil {
			return fmt.Errorf("keep %s as it is: %w", path, err)
		}
		return nil
	}
	folders := func(file string) (list []string) { // the highest first
		for dir := filepath.Dir(file); within(dir, v.Dir) && dir != v.Dir && !mounted[dir]; dir = filepath.Dir(dir) {
			list, mounted[dir] = append([]string{dir}, list...), true
		}
		return list
	}
	for _, file := range slices.Sorted(slices.Values(v.Fixed)) {
		for _, dir := range folders(file) {
			if err := bind(dir, 0); err != nil {
				return err
			}
		}
	}
	for _, file := range v.Fixed { // a later mount on a folder above would cover those of files
		if err := bind(file, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	return nil
}

// open replaces the layer's folders by open files.
func (l *Layer) open() error {
	for _, dir := range append(pointers(l.Lower), &l.Upper, &l.Work) {
		fd, err := unix.Open(*dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", *dir, err)
		}
		*dir = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	return nil
}

func pointers(list []string) (all []*string) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// loopback switches on the only interface of a new network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ifr, err := unix.NewIfreq("lo")
	if err == nil {
		ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
	}
	return errors.Join(err, unix.Close(fd))
}

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kept are the capabilities that root keeps in the sandbox, for builds and tests. Capabilities that lead out of the
// sandbox (mounting, other processes' memory, devices, files by handle) are dropped.
var kept = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
	"CAP_SETGID", "CAP_SETUID",
}

// bubblewrap returns the arguments of bwrap before the command. own is the command's folder. --die-with-parent is not
// used: the supervisor kills the remaining processes when the command or ralph ends, and reports them.
func bubblewrap(program string, p Policy, own string, root bool) []string {
	args := []string{program, "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--unshare-ipc", "--proc", "/proc"}
	if !p.Network {
		args = append(args, "--unshare-net")
	}
	if root {
		for _, path := range kernel("/proc") {
			args = append(args, "--ro-bind-try", path, path)
		}
		args = append(args, "--cap-drop", "ALL")
		for _, c := range kept {
			args = append(args, "--cap-add", c)
		}
	}
	var closed []string
	temp := filepath.Join(own, "tmp")
	p = p.clone()
	for _, dir := range p.Temp {
		p.Paths[dir] = Scratch
	}
	for _, path := range p.sorted() {
		info, err := os.Lstat(path)
		if err != nil || path == "/" || within(path, "/dev") || within(path, "/proc") {
			continue
		}
		switch a := p.Paths[path]; {
		case isTemp(p, path):
			args = append(args, "--bind", temp, path)
		case a == Writable:
			args = append(args, "--bind", path, path)
		case p.copied(path, info.Mode()):
			// It is in the command's folder.
		case a == ReadOnly || !info.IsDir() && a == Scratch:
			args = append(args, "--ro-bind", path, path)
		case a == Scratch:
			args = append(args, scratch(p, path, own)...)
		case info.IsDir():
			args = append(args, "--tmpfs", path)
			closed = append(closed, "--remount-ro", path)
		default:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	for _, link := range p.Links {
		if target, err := os.Readlink(link); err == nil {
			args = append(args, "--symlink", target, link)
		}
	}
	for file, dir := range p.Into {
		if dir, err := filepath.EvalSymlinks(dir); err == nil {
			args = append(args, "--bind-try", file, filepath.Join(dir, filepath.Base(file)))
		}
	}
	return append(append(args, closed...), "--")
}

// kernel lists writable entries of /proc other than processes: the settings and switches of the kernel. Root may write
// them without a capability, and some of them name a program that the kernel runs as root outside of every sandbox.
func kernel(proc string) (paths []string) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil // without it, there is nothing to mount over
	}
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") == "" || e.Type()&fs.ModeSymlink != 0 {
			continue
		}
		if info, err := e.Info(); err == nil && (info.IsDir() || info.Mode()&0o222 != 0) {
			paths = append(paths, filepath.Join(proc, e.Name()))
		}
	}
	return paths
}

func isTemp(p Policy, path string) bool {
	return slices.Contains(p.Temp, path)
}

// scratch mounts a folder that accepts new entries: an empty folder of the command, with the entries of the real
// one mounted read-only, except the copied ones. Mounted entries cannot be replaced either. An entry that is
// removed during the set-up, such as another program's temporary file, is left out.
func scratch(p Policy, dir, own string) (args []string) {
	args = []string{"--bind", scratchIn(own, dir), dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return args // nobody can read it then
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch target, err := os.Readlink(path); {
		case p.copied(path, e.Type()):
		case err != nil:
			args = append(args, "--ro-bind-try", path, path)
		case p.linksToReadOnly(path):
			args = append(args, "--ro-bind-try", path, path) // the link's target; the link could be replaced
		default:
			args = append(args, "--symlink", target, path)
		}
	}
	return args
}

// linksToReadOnly reports whether a symbolic link leads to something that can be read but not
// written to, in all of its parts.
func (p Policy) linksToReadOnly(link string) bool {
	real, err := filepath.EvalSymlinks(link)
	if err != nil || len(p.below(real)) > 0 {
		return false
	}
	a, by := p.of(real)
	return a == ReadOnly || a == Scratch && by != real && !isTemp(p, by)
}

// copied reports whether a command gets a copy of a path: a [Scratch] file in a [Scratch] folder.
func (p Policy) copied(path string, mode fs.FileMode) bool {
	a, is := p.Paths[path]
	return is && a == Scratch && mode.IsRegular() && p.Paths[filepath.Dir(path)] == Scratch
}

// provide creates a command's own copies in the folder own: a folder for each [Scratch] folder, and the copies in it.
// It omits files that are removed during this.
func (p Policy) provide(own string) error {
	for _, path := range p.sorted() { // a folder before its files
		if p.Paths[path] != Scratch {
			continue
		}
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && info.IsDir():
			err = os.MkdirAll(scratchIn(own, path), 0o700)
		case err == nil && p.copied(path, info.Mode()):
			var content []byte
			if content, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				dir, name := filepath.Split(path)
				err = os.WriteFile(filepath.Join(scratchIn(own, filepath.Clean(dir)), name), content, info.Mode().Perm())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scratchIn returns the stand-in of a [Scratch] folder in a command's own folder.
func scratchIn(own, dir string) string {
	return filepath.Join(own, "scratch", strings.ReplaceAll(dir, "/", "_"))
}

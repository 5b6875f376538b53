package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

// kept are the capabilities that root keeps in the sandbox: what builds and tests need, without
// those that lead out of it (mounting, other processes' memory, devices, files by handle).
var kept = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
	"CAP_SETGID", "CAP_SETUID",
}

// bubblewrap returns the arguments of bwrap before the command. own is the command's folder.
// --die-with-parent is not used: killing what is left when the command or ralph ends is up to the
// supervisor, which also reports it.
func bubblewrap(program string, p Policy, own string, root bool) []string {
	args := []string{program, "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--unshare-ipc", "--proc", "/proc"}
	if !p.Network {
		args = append(args, "--unshare-net")
	}
	if root {
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
		case a == ReadOnly || !info.IsDir() && a == Scratch:
			args = append(args, "--ro-bind", path, path)
		case a == Scratch:
			args = append(args, scratch(path, filepath.Join(own, "scratch"))...)
		case info.IsDir():
			args = append(args, "--tmpfs", path)
			closed = append(closed, "--remount-ro", path)
		default:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	for file, dir := range p.Into {
		if dir, err := filepath.EvalSymlinks(dir); err == nil {
			args = append(args, "--bind-try", file, filepath.Join(dir, filepath.Base(file)))
		}
	}
	return append(append(args, closed...), "--")
}

func isTemp(p Policy, path string) bool {
	for _, dir := range p.Temp {
		if dir == path {
			return true
		}
	}
	return false
}

// scratch mounts a folder in which new entries can be made: a folder of the command's own, with the
// entries of the real one mounted read-only.
func scratch(dir, own string) (args []string) {
	args = []string{"--bind", filepath.Join(own, strings.ReplaceAll(dir, "/", "_")), dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return args // then nobody can read it
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if target, err := os.Readlink(path); err == nil {
			args = append(args, "--symlink", target, path)
			continue
		}
		args = append(args, "--ro-bind", path, path)
	}
	return args
}

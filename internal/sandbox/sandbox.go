// Package sandbox lets a command write only where it should, by bubblewrap
// (bwrap, github.com/containers/bubblewrap): everything else that the user could
// write to is read-only, processes outside are out of sight, and the network can
// be taken away.
//
// It builds arguments and never starts a command in a sandbox itself; that is
// [ralph/internal/proc] with its Spec.Wrapper. It keeps no secrets: what the user
// can read, the command can, and sockets of the file system (docker's among
// them) can be talked to. Whoever needs more runs ralph in a virtual machine.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph/internal/proc"
)

// Options say what a command in a sandbox may do.
type Options struct {
	Program  string   // the path of bwrap
	Writable []string // folders and files, see [Resolve]; all others are read-only
	Network  bool     // without it there is no other host, and not this one's loopback either
}

// Wrapper is the program and the arguments before those of a command. A daemon
// in the sandbox is not killed by bwrap when the command ends or ralph does
// (--die-with-parent): that is the supervisor's, who reports it.
func Wrapper(o Options) []string {
	args := []string{o.Program, "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"}
	if !o.Network {
		args = append(args, "--unshare-net")
	}
	for _, path := range o.Writable {
		args = append(args, "--bind", path, path)
	}
	return append(args, "--")
}

// Resolve turns paths into those that bwrap can make writable: absolute, without
// symbolic links, none twice and none in another, and only those that exist.
func Resolve(paths ...string) []string {
	var list []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue
		}
		if path, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	var outer []string
	for _, path := range list {
		if !slices.ContainsFunc(outer, func(o string) bool { return within(path, o) }) {
			outer = append(outer, path)
		}
	}
	return outer
}

func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// trial is how long bwrap may take to start nothing.
const trial = 10 * time.Second

// Available returns the path of bwrap if it works here, for this user and with
// or without network. path is the PATH to look in. The error says what to do.
func Available(ctx context.Context, path string, network bool) (program string, err error) {
	if program = look(path); program == "" {
		return "", errors.New("bwrap is not installed: " +
			"install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set sandbox: off")
	}
	limited, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	r, err := proc.Run(limited, proc.Spec{
		Args: []string{"true"}, Dir: "/", Env: []string{"PATH=" + path},
		Wrapper: Wrapper(Options{Program: program, Network: network}),
	}, 1000, nil)
	if err != nil {
		return "", fmt.Errorf("the sandbox cannot be tried: %w", err)
	}
	if r.Exit.Code != 0 {
		return "", fmt.Errorf("bwrap may not make a sandbox here (%s): allow user namespaces, "+
			"as sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces and AppArmor's "+
			"kernel.apparmor_restrict_unprivileged_userns rule them, or set sandbox: off", strings.TrimSpace(r.Output))
	}
	return program, nil
}

// look finds bwrap in a PATH. What merely lies in the working directory is not it.
func look(path string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, "bwrap")
		info, err := os.Stat(file)
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ralph/internal/files"
	"ralph/internal/proc"
)

// A Layer is a folder that a command sees, and may write to, while the folders below stay unchanged: its changes go
// to a separate folder.
type Layer struct {
	At    string   // where the command sees it; an existing folder
	Lower []string // its contents, the uppermost first: existing folders
	Upper string   // where changes go, in overlayfs's form; it is created
	Work  string   // next to Upper; set by [Box.Enter]
}

// A View has a command's own layers and folders, beside its [Policy]. It takes namespaces, see [Mechanism.Layers].
type View struct {
	Layers  []Layer
	Dir     string   // the working directory in it; "" is that of the command, which may be the path of a layer
	Fixed   []string // files that can neither be changed nor replaced, as the command sees them
	Masked  []string // files and folders that are empty for the command; set by [Box.Enter]
	Network bool     // its own network, which has only a loopback interface
	Shm     bool     // its own /dev/shm
}

// provided creates the folders of the layers. gone removes the temporary ones.
func (v View) provided() (made View, gone func(), err error) {
	made = v
	made.Layers = slices.Clone(v.Layers)
	var works []string
	gone = func() {
		for _, dir := range works {
			_ = files.RemoveAll(dir) // the rest is removed with the upper layers
		}
	}
	for i := range made.Layers {
		l := &made.Layers[i]
		if err := os.MkdirAll(l.Upper, 0o700); err != nil {
			return v, gone, err
		}
		if l.Work, err = os.MkdirTemp(filepath.Dir(l.Upper), ".work-"); err != nil {
			return v, gone, err
		}
		works = append(works, l.Work)
	}
	return made, gone, nil
}

// masked returns the hidden paths in the layers. A layer is writable, and Landlock cannot exclude a part of it.
func (v View) masked(p Policy) (list []string) {
	for _, l := range v.Layers {
		for _, path := range p.below(l.At) {
			shown := slices.ContainsFunc(p.below(path), func(b string) bool { return p.Paths[b] != Hidden })
			if p.Paths[path] == Hidden && !shown {
				list = append(list, path)
			}
		}
	}
	return list
}

// options returns the layer as options of mount(8). Writes are not flushed to the disk before the command ends: a
// crash of the machine drops the upper layer anyway.
func (l Layer) options() string {
	return "userxattr,volatile,lowerdir=" + strings.Join(l.Lower, ":") + ",upperdir=" + l.Upper + ",workdir=" + l.Work
}

// TryLayers finds out whether commands can have a [View], with uppermost layers in a folder. If not, why names the
// missing part.
func (m *Mechanism) TryLayers(ctx context.Context, in string) (why string) {
	m.Layers = true
	if err := m.tryLayers(ctx, in); err != nil {
		m.Layers = false
		return err.Error()
	}
	return ""
}

// trialName begins the names of the folders of trials; the id of the process that tries follows.
const trialName = ".layers-"

// removeTrials removes the leftovers of trials by killed processes.
func removeTrials(in string) error {
	left, err := filepath.Glob(filepath.Join(in, trialName+"*"))
	for _, dir := range left {
		var pid int
		_, serr := fmt.Sscanf(filepath.Base(dir), trialName+"%d-", &pid)
		if serr == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			err = errors.Join(err, files.RemoveAll(dir))
		}
	}
	return err
}

func (m *Mechanism) tryLayers(ctx context.Context, in string) (err error) {
	if err := os.MkdirAll(in, 0o700); err != nil {
		return err
	}
	if err := removeTrials(in); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(in, fmt.Sprintf("%s%d-", trialName, os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.RemoveAll(dir)) }()
	at, upper := filepath.Join(dir, "at"), filepath.Join(dir, "upper")
	if err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(filepath.Join(at, "file"), nil, 0o600)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	spec := proc.Spec{Args: []string{"/bin/sh", "-c", "rm file && echo > new"}, Dir: at}
	view := View{Layers: []Layer{{At: at, Lower: []string{at}, Upper: upper}}, Network: true, Shm: true}
	leave, err := Box{Mechanism: Mechanism{Layers: true}, View: view}.Enter(&spec)
	if err != nil {
		return err
	}
	defer leave()
	r, err := proc.Run(limited, spec, 1000, nil)
	switch _, kept := os.Stat(filepath.Join(at, "file")); {
	case err != nil:
		return fmt.Errorf("namespaces are not allowed: %w", err)
	case r.Exit.Code != 0:
		return fmt.Errorf("layers cannot be mounted: %s", strings.TrimSpace(r.Output))
	case kept != nil:
		return kept
	}
	return nil
}

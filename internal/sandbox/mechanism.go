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

// Names of the mechanisms.
const (
	Bubblewrap = "bubblewrap"
	Landlock   = "Landlock"
	None       = "none"
)

// A Mechanism enforces policies on this machine.
type Mechanism struct {
	Name    string
	Program string   // bwrap, for bubblewrap
	ABI     int      // ABI of the kernel's Landlock, which bubblewrap uses too; 0 if there is none
	Why     []string // why no better one is used
	Layers  bool     // commands can have a [View]; see [Mechanism.TryLayers]
}

// trial is the time for bwrap to run an empty command. It is long, so that a busy machine does not
// get a weaker sandbox.
const trial = 2 * time.Minute

// Find returns the best mechanism for a policy on this machine, for this user. path is the PATH in
// which programs are searched.
func Find(ctx context.Context, path string, p Policy) Mechanism {
	m := Mechanism{Name: Bubblewrap, ABI: landlockABI()}
	err := m.try(ctx, path, p)
	if err == nil {
		return m
	}
	m.Name, m.Program, m.Why = Landlock, "", []string{err.Error()}
	if m.ABI == 0 {
		m.Name, m.Why = None, append(m.Why, "the kernel has no Landlock, or may not be asked for it")
	}
	return m
}

// try checks that bwrap works. The error has the remedy.
func (m *Mechanism) try(ctx context.Context, path string, p Policy) (err error) {
	if m.Program = bwrapIn(path); m.Program == "" {
		return errors.New("bwrap is not installed: install bubblewrap (apt install bubblewrap, dnf install bubblewrap)")
	}
	limited, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	spec := proc.Spec{Args: []string{"true"}, Dir: "/", Env: []string{"PATH=" + path}}
	leave, err := Box{Mechanism: *m, Policy: p}.Enter(&spec)
	if err != nil {
		return fmt.Errorf("the sandbox cannot be tried: %w", err)
	}
	defer leave()
	r, err := proc.Run(limited, spec, 1000, nil)
	if err != nil {
		return fmt.Errorf("the sandbox cannot be tried: %w", err)
	}
	if r.Exit.Code != 0 {
		return fmt.Errorf("bwrap may not make a sandbox here (%s): allow user namespaces, "+
			"as sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces and AppArmor's "+
			"kernel.apparmor_restrict_unprivileged_userns rule them", strings.TrimSpace(r.Output))
	}
	return nil
}

// bwrapIn finds bwrap in a PATH, except in relative folders.
func bwrapIn(path string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, "bwrap")
		info, err := os.Stat(file)
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// The versions of Landlock's ABI that brought a feature.
const (
	abiRefer    = 2
	abiTruncate = 3
	abiScopes   = 6
	abiUnix     = 9
)

// RefusesSockets reports whether sockets outside the policy are refused.
func (m Mechanism) RefusesSockets() bool {
	return m.Name == Bubblewrap || m.Name == Landlock && m.ABI >= abiUnix
}

// Cannot lists the parts of a policy that the mechanism does not enforce.
func (m Mechanism) Cannot(p Policy) (list []string) {
	add := func(when bool, what string) {
		if when {
			list = append(list, what)
		}
	}
	if m.Name != None {
		add(!refusesKeys(), "the kernel's keyrings can be read and written to")
	}
	switch m.Name {
	case Bubblewrap:
		add(m.ABI < abiScopes && p.Network, "abstract sockets of other programs can be talked to")
		return list
	case None:
		return []string{"the agent reads and writes all your files"}
	}
	open := map[bool][]string{} // by whether the paths are hidden
	for _, path := range p.sorted() {
		if _, by := p.of(filepath.Dir(path)); by != "" && p.Paths[by] == Writable && p.Paths[path] != Writable {
			hidden := p.Paths[path] == Hidden
			open[hidden] = append(open[hidden], path)
		}
	}
	add(len(open[true]) > 0, strings.Join(open[true], ", ")+" can be read and written to, as the folders around can")
	add(len(open[false]) > 0, strings.Join(open[false], ", ")+" can be written to, as the folders around can")
	add(true, "the modes, owners and times of files can be changed")
	add(m.ABI < abiUnix, "sockets in the file system, docker's among them, can be talked to")
	add(m.ABI < abiScopes, "abstract sockets can be talked to, and other processes of the user be signalled")
	add(m.ABI < abiTruncate, "files that can be read can be emptied")
	add(m.ABI < abiRefer, "files cannot be moved to another folder")
	add(!p.Network, "the network is not wholly taken away")
	return list
}

// A Box is a sandbox in which commands can be started.
type Box struct {
	Mechanism Mechanism
	Policy    Policy
	View      View             // without its own namespaces, a command has none
	Env       []string         // added to the commands' environment
	Folders   []string         // folders to create for the commands, and writable
	Own       func(dir string) // called with the folder of a command's temporary files; may be nil
}

// Enter changes spec so that its command runs in the sandbox, with its own temporary folder,
// which leave removes.
func (b Box) Enter(spec *proc.Spec) (leave func(), err error) {
	for _, dir := range b.Folders {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("the sandbox: %w", err)
		}
	}
	spec.Env = proc.Joined(spec.Env, b.Env)
	gone, err := b.layer(spec)
	if err != nil {
		gone()
		return nil, fmt.Errorf("the sandbox: %w", err)
	}
	out, err := b.enclose(spec)
	if err != nil {
		gone()
		return nil, err
	}
	return func() { out(); gone() }, nil
}

// layer gives the command its view.
func (b Box) layer(spec *proc.Spec) (gone func(), err error) {
	v, none := b.View, func() {}
	if !b.Mechanism.Layers || len(v.Layers) == 0 && !v.Network && !v.Shm {
		return none, nil
	}
	if v, gone, err = v.provided(); err != nil {
		return gone, err
	}
	if v.Dir == "" {
		v.Dir = spec.Dir
	}
	if b.Mechanism.Name == Landlock {
		v.Masked = v.masked(b.Policy)
	}
	spec.Apart = proc.Namespaces{Mounts: true, Network: v.Network}
	spec.First, err = first(v)
	return gone, err
}

// enclose puts the command into the mechanism.
func (b Box) enclose(spec *proc.Spec) (leave func(), err error) {
	if b.Mechanism.Name == "" || b.Mechanism.Name == None {
		return func() {}, nil
	}
	own, leave, err := ownFolder()
	if err != nil {
		return nil, fmt.Errorf("the sandbox: %w", err)
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	if b.Own != nil {
		b.Own(own)
	}
	p := b.Policy.clone()
	p.Add(Writable, append(slices.Clip(spec.Reach), b.Folders...)...)
	temp := filepath.Join(own, "tmp")
	if b.Mechanism.Name == Landlock {
		p.Add(Writable, temp)
		p.Add(Hidden, p.Temp...)
		spec.Env = proc.Joined(spec.Env, []string{"TMPDIR=" + temp})
		spec.Before, err = before("/proc/self/exe", order{Policy: p, Paths: true})
		return leave, err
	}
	if err := p.provide(own); err != nil {
		return nil, fmt.Errorf("the sandbox: %w", err)
	}
	if len(p.Temp) > 0 {
		spec.Env = proc.Joined(spec.Env, []string{"TMPDIR=" + p.Temp[0]})
	}
	spec.Wrapper = bubblewrap(b.Mechanism.Program, p, own, os.Geteuid() == 0)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	spec.Before, err = before(self, order{Scopes: b.Mechanism.ABI >= abiScopes && p.Network})
	return leave, err
}

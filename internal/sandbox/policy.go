// Package sandbox restricts a command's reach in the file system, to other processes' sockets and in the network.
//
// A [Policy] sets the reach path by path; the most specific path counts. A [Mechanism] of the machine enforces it:
// bubblewrap gives the command its own file system, and Landlock makes the kernel check each opened file.
// [Mechanism.Cannot] lists the parts that a mechanism cannot enforce.
//
// This package starts no commands; [Box.Enter] prepares them for [ralph/internal/proc]. Landlock is applied by this
// same program, which then executes the command.
package sandbox

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// An Access is the access to a path and everything below it.
type Access int

// The accesses, the smallest first. With Scratch, a folder is read-only except that new entries can
// be made. A Scratch file in such a folder can be changed and replaced, because the command has a
// copy. Both end with the command.
const (
	Hidden   Access = iota // no access
	ReadOnly               // read and execute
	Scratch                // see above
	Writable
)

// A Policy sets the reach of a command.
type Policy struct {
	Paths   map[string]Access // absolute, without symbolic links, including "/"; see [Policy.Add]
	Temp    []string          // folders for temporary files; each command gets its own in their place
	Links   []string          // symbolic links in hidden folders that can be followed nevertheless
	Into    map[string]string // writable files that are to appear in another writable folder, too (bubblewrap)
	Network bool              // false cuts off all hosts, including this one's loopback
}

// Add sets the access to paths. Paths that do not exist or are not absolute are skipped: there is
// nothing to hide or to write to. A symbolic link stands for its target.
func (p *Policy) Add(a Access, paths ...string) {
	if p.Paths == nil {
		p.Paths = map[string]Access{}
	}
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			p.Paths[real] = a
		}
	}
}

// clone returns a copy that can be extended.
func (p Policy) clone() Policy {
	p.Paths = maps.Clone(p.Paths)
	return p
}

// sorted returns the paths, each before those below it.
func (p Policy) sorted() []string { return slices.Sorted(maps.Keys(p.Paths)) }

// Of returns the access to a path without symbolic links.
func (p Policy) Of(path string) Access {
	a, _ := p.of(path)
	return a
}

// of returns the access to a path and the policy's path that grants it; "" if none does.
func (p Policy) of(path string) (a Access, by string) {
	for {
		if a, ok := p.Paths[path]; ok {
			return a, path
		}
		if path == filepath.Dir(path) {
			return Hidden, ""
		}
		path = filepath.Dir(path)
	}
}

// below returns the policy's paths in a folder, at any depth.
func (p Policy) below(dir string) (list []string) {
	for _, path := range p.sorted() {
		if path != dir && within(path, dir) {
			list = append(list, path)
		}
	}
	return list
}

// within reports whether a path is a folder or in it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// Replace adds folders for temporary files, which each command gets its own instance of. Folders
// in a writable folder are skipped.
func (p *Policy) Replace(dirs ...string) {
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.Contains(p.Temp, real) {
			continue
		}
		if a, _ := p.of(real); a != Writable {
			p.Temp = append(p.Temp, real)
		}
	}
}

// Show makes paths readable that are hidden only because a folder above them is, such as programs
// in a temporary folder.
func (p *Policy) Show(paths ...string) {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		a, by := p.of(real)
		for _, dir := range p.Temp {
			if within(real, dir) && len(dir) >= len(by) {
				a = Hidden
			}
		}
		if a == Hidden {
			p.Add(ReadOnly, path)
		}
	}
}

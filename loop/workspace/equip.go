package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph"
	"ralph/internal/proc"
)

// includeFile lists ignored files, in the syntax of .gitignore, that other
// tools copy into their work trees too.
const includeFile = ".worktreeinclude"

// given lists the person's files that a workspace gets a copy of, relative to the project's root.
type given []string

// patterns returns the files as patterns for git's exclude file.
func (g given) patterns() (list []string) {
	for _, name := range g {
		list = append(list, "/"+strings.NewReplacer("[", `\[`, "*", `\*`, "?", `\?`).Replace(name))
	}
	return list
}

// given finds the files for a workspace that exist and that git ignores.
// Tracked files are in the workspace already.
func (p *Pool) given(ctx context.Context) (given, error) {
	included, err := p.Here.Tree.Matching(ctx, includeFile)
	if err != nil {
		return nil, err
	}
	return p.Here.Tree.IgnoredOf(ctx, included)
}

// A SetupError means that a workspace's set-up failed.
type SetupError struct {
	Command, Said string
	Cause         ralph.Cause // the thing missing on this machine: set-up has the network
	Spare         string      // why no copy of the person's own folder replaces it; "" if none could
}

// Error includes the remedy.
func (e *SetupError) Error() string {
	if e.Cause != "" {
		why := e.Cause.Said()
		if e.Spare != "" {
			why += ", and " + e.Spare
		}
		return fmt.Sprintf("workspace.setup: %q failed: %s; `ralph init` tries it again: %s", e.Command, why, e.Said)
	}
	return fmt.Sprintf("workspace.setup: %q fails in a workspace; fix it in ralph.yaml: %s",
		e.Command, e.Said)
}

// equip gives the workspace the person's files and runs the set-up, unless it
// ran with the same input before. It returns true if, apart from ignored
// files, nothing changed: no file was given and no command ran.
func (w *Workspace) equip(ctx context.Context, g given) (as bool, err error) {
	c, began := w.Clone, time.Now()
	if err := w.give(g); err != nil {
		return false, err
	}
	as = len(g) == 0
	mark := filepath.Join(c.folder, setupFile)
	key, err := w.setupKey()
	if err != nil {
		return false, err
	}
	done, err := os.ReadFile(mark)
	if err == nil && string(done) == key && !c.git.HasModules() { // submodules are empty each time
		return as, nil
	}
	if err := c.forget(setupFile); err != nil {
		return false, err
	}
	if err := w.commands(ctx, c.pool.Setup); err != nil {
		return false, err
	}
	if len(g)+len(c.pool.Setup) > 0 {
		if err := w.noteLinks(c.folder, c.git.Top(), c.git.Top(), g, began); err != nil {
			return false, err
		}
	}
	if key, err = w.setupKey(); err != nil { // a command may have been replaced
		return false, err
	}
	return as && len(c.pool.Setup) == 0 && !c.git.HasModules(), os.WriteFile(mark, []byte(key), 0o600)
}

// setupKey returns a digest of the set-up's input, and of the copies that replace its commands.
func (w *Workspace) setupKey() (string, error) {
	sum := sha256.New()
	err := w.addSetup(sum)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// addSetup adds the set-up's input, and the copies that replace its commands.
func (w *Workspace) addSetup(sum hash.Hash) error {
	copied, err := w.Copied()
	fmt.Fprintf(sum, "%q\n%s", w.Clone.pool.Setup, copied)
	w.addManifests(sum)
	return err
}

// manifests are the files that list a project's packages: when one changes, set-up runs again.
var manifests = []string{
	"package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb",
	"go.mod", "go.sum", "Cargo.toml", "Cargo.lock", "Gemfile.lock", "composer.lock", "mix.lock",
	"pyproject.toml", "requirements.txt", "requirements-dev.txt", "uv.lock", "poetry.lock",
}

// addManifests adds the project's manifests, and those of the packages one level below.
func (w *Workspace) addManifests(sum hash.Hash) {
	folders := []string{"."}
	entries, _ := os.ReadDir(w.Dir) // if a folder cannot be read, set-up fails and reports it
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	for _, folder := range folders {
		for _, name := range manifests {
			name = filepath.Join(folder, name)
			if err := addFile(sum, w.Path(name), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(sum, "%q %s\n", name, reason(err))
			}
		}
	}
}

// give copies the person's files into the workspace.
func (w *Workspace) give(g given) error {
	for _, name := range g {
		if err := copyInto(w.Clone.pool.Here.Dir, w.Dir, name); err != nil {
			return fmt.Errorf("%s: %s: %w", includeFile, name, err)
		}
	}
	return nil
}

// setupTail is the number of bytes of a failed command's output that are quoted.
const setupTail = 2000

// commands runs the person's set-up commands in the workspace. The person's own packages may replace a failed one.
func (w *Workspace) commands(ctx context.Context, commands []string) error {
	for _, command := range commands {
		err := w.command(ctx, command)
		if failed, ok := errors.AsType[*SetupError](err); ok {
			err = w.borrow(ctx, failed)
		} else if err == nil {
			err = w.Clone.pool.copied(command, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// command runs a set-up command. The error is a [SetupError] if it fails.
func (w *Workspace) command(ctx context.Context, command string) error {
	p := w.Clone.pool
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	marker := Marker("workspace-" + w.Clone.name() + "-" + w.State)
	spec := proc.Spec{
		Args: []string{"/bin/sh", "-c", command}, Dir: w.Dir, Marker: marker,
		Env: proc.Joined(p.Env, w.Environ(), []string{marker}), Through: p.Through,
	}
	leave, err := p.Enter.Enter(&spec)
	if err != nil {
		return fmt.Errorf("set-up of workspace %s: %w", w.Clone.name(), err)
	}
	result, err := proc.Run(limited, spec, setupTail, nil)
	leave()
	said := ""
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &SetupError{Command: command, Said: err.Error()}
	case limited.Err() != nil:
		said = fmt.Sprintf("it took longer than %s", p.Timeout)
	case result.Exit.Code != 0:
		said = fmt.Sprintf("exit status %d: %s", result.Exit.Code, strings.TrimSpace(result.Output))
	default:
		return nil
	}
	return &SetupError{Command: command, Said: said, Cause: ralph.CauseOf(result.Output)}
}

// composeName returns a valid Docker Compose project name.
func composeName(name string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name), "-_")
}

// copyInto copies a file or a folder's content from one root to another.
// It replaces existing files, and follows no link out of the target root.
func copyInto(from, to, name string) (err error) {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	source := filepath.Join(from, filepath.FromSlash(name))
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || entry.IsDir() {
			return errors.Join(err, root.MkdirAll(rel, 0o755))
		}
		if err := errors.Join(root.MkdirAll(filepath.Dir(rel), 0o755), root.RemoveAll(rel)); err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			return errors.Join(err, root.Symlink(target, rel))
		}
		if !entry.Type().IsRegular() {
			return nil // skip sockets and pipes
		}
		return copyFile(path, root, rel)
	})
}

func copyFile(from string, root *os.Root, name string) (err error) {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	to, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, to.Close())
}

package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"ralph/internal/files"
	"ralph/internal/lazy"
)

// A check workspace begins each time with only the files of people and of the set-up of merged work. Where commands can
// have layers, that is its ground: they write to a folder upon it, which is dropped after the check. Elsewhere each
// check starts cold: everything that git does not track is removed, and set-up runs again.
//
// Names in the folder of a workspace, or of all workspaces:
const (
	Seen    = "seen"     // the path of any check workspace as commands see it
	Dropped = "dropped"  // writes of a check, in a workspace's folder
	Ground  = "ground"   // a link to the workspace's ground; for all workspaces, the folder of the grounds by their keys
	Warm    = "warm"     // the verification's build output
	GoBuild = "go-build" // the folder of Go's build cache in them
)

// At prepares a workspace for checking a commit: exactly its files, and the ignored ones from
// set-up.
func (w *Workspace) At(ctx context.Context, commit string) error {
	c := w.Clone
	if err := w.drop(); err != nil {
		return err
	}
	given, err := c.pool.given(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(c.forget(linkedFile), w.noteLinks(c.folder, "", "", given, time.Time{})); err != nil {
		return err
	}
	if err := w.stand(ctx, commit, given); err != nil {
		return err
	}
	prepare := w.onGround
	if !c.pool.Layers {
		prepare = w.cold
	}
	differs, err := prepare(ctx, commit, given)
	if err != nil {
		return err
	}
	if differs || c.git.HasModules() && len(c.pool.Setup) > 0 { // submodules are empty each time
		if err := w.commands(ctx, c.pool.Setup); err != nil {
			return err
		}
	}
	tree, err := c.pool.Here.Tree.Whole(ctx, commit)
	if err != nil {
		return err
	}
	return w.note(standing{commit, tree})
}

// stand checks out a commit and gives the workspace the person's files.
func (w *Workspace) stand(ctx context.Context, commit string, given given) error {
	if err := w.checkOut(ctx, commit, commit, "", given); err != nil {
		return err
	}
	return w.give(given)
}

// onGround puts the workspace on the ground for the checked out commit. differs is as for find.
func (w *Workspace) onGround(ctx context.Context, commit string, given given) (differs bool, err error) {
	ground, differs, err := w.find(ctx, commit, given)
	if err != nil {
		return false, err
	}
	return differs, w.begin(ctx, ground)
}

// cold removes everything but the checked out commit and the person's files, and runs the set-up of the merged
// commit. differs means that this commit needs another set-up.
func (w *Workspace) cold(ctx context.Context, commit string, given given) (differs bool, err error) {
	c := w.Clone
	if err := w.clear(ctx); err != nil {
		return false, fmt.Errorf("workspace %s: remove the leftovers of the last check: %w", c.name(), err)
	}
	if err := w.give(given); err != nil {
		return false, err
	}
	if len(c.pool.Setup) == 0 {
		return false, nil
	}
	tip, wanted := commit, w.groundFor(given)
	if c.pool.Merged != nil {
		if tip, err = c.pool.Merged(ctx); err != nil {
			return false, err
		}
	}
	if tip != commit {
		if err := w.stand(ctx, tip, given); err != nil {
			return false, err
		}
	}
	began := time.Now()
	err = w.commands(ctx, c.pool.Setup)
	if err == nil {
		err = errors.Join(c.forget(linkedFile), w.noteLinks(c.folder, c.git.Top(), c.git.Top(), given, began))
	}
	if err != nil {
		return false, err
	}
	differs = w.groundFor(given) != wanted
	if tip != commit {
		err = w.stand(ctx, commit, given)
	}
	return differs, err
}

// clear removes the files that git does not track, the home directory, and the caches of checks.
func (w *Workspace) clear(ctx context.Context) error {
	c := w.Clone
	tracked, err := c.git.Tracked(ctx)
	if err != nil {
		return err
	}
	kept := map[string]bool{".": true}
	for name := range tracked {
		for at := filepath.FromSlash(name); !kept[at]; at = filepath.Dir(at) {
			kept[at] = true
		}
	}
	top := c.git.Top()
	if err := files.Unlock(top); err != nil {
		return err
	}
	if err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		name, err := filepath.Rel(top, path)
		switch {
		case err != nil:
			return err
		case name == ".git":
			return skip(e)
		case kept[name]:
			return nil
		}
		if err := files.RemoveAll(path); err != nil {
			return err
		}
		return skip(e)
	}); err != nil {
		return err
	}
	home := filepath.Join(c.folder, "home")
	caches := filepath.Join(c.caches(), "check")
	return errors.Join(files.RemoveAll(home), os.Mkdir(home, 0o700), files.RemoveAll(caches))
}

// skip leaves a folder out of a walk.
func skip(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// find returns the ground for the checked out commit. It makes a missing one from merged work; "" if there is no
// set-up. differs reports that this commit needs another set-up.
func (w *Workspace) find(ctx context.Context, commit string, given given) (ground string, differs bool, err error) {
	c := w.Clone
	if len(c.pool.Setup) == 0 {
		return "", false, nil
	}
	ground = w.groundFor(given)
	if exists(ground) {
		return ground, false, nil
	}
	lock, err := c.pool.lock(ctx, Ground, c.pool.Timeout) // the others wait for this one's result
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if exists(ground) {
		return ground, false, nil
	}
	tip := commit
	if c.pool.Merged != nil {
		if tip, err = c.pool.Merged(ctx); err != nil {
			return "", false, err
		}
	}
	if tip != commit {
		if err := w.stand(ctx, tip, given); err != nil {
			return "", false, err
		}
	}
	merged := w.groundFor(given)
	if !exists(merged) {
		if merged, err = w.make(ctx, given); err != nil {
			return "", false, err
		}
	}
	if tip != commit {
		err = w.stand(ctx, commit, given)
	}
	return merged, merged != w.groundFor(given), err
}

// groundFor returns the folder for the result of set-up on the checked out files.
func (w *Workspace) groundFor(given given) string {
	c := w.Clone
	sum := sha256.New()
	if err := w.addSetup(sum); err != nil {
		fmt.Fprintf(sum, "%s\n", reason(err)) // the following check reports that
	}
	for _, name := range given {
		if info, err := os.Stat(w.Here().Path(name)); err == nil {
			fmt.Fprintf(sum, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return filepath.Join(c.pool.Dir, Ground, hex.EncodeToString(sum.Sum(nil))[:32])
}

// make runs the set-up on the workspace's files, which are merged work, and keeps the result as a ground.
func (w *Workspace) make(ctx context.Context, given given) (ground string, err error) {
	c := w.Clone
	if err := w.begin(ctx, ""); err != nil {
		return "", err
	}
	if err := w.commands(ctx, c.pool.Setup); err != nil {
		return "", errors.Join(err, w.drop())
	}
	if ground = w.groundFor(given); exists(ground) { // with a copy that replaces a command, as before
		return ground, w.drop()
	}
	tracked, err := c.git.Tracked(ctx)
	if err != nil {
		return "", err
	}
	made := ground + ".new"
	if err := errors.Join(files.RemoveAll(made), os.MkdirAll(made, 0o700)); err != nil {
		return "", err
	}
	tree := filepath.Join(c.dropped(), "tree")
	if err := prune(tree, tracked); err != nil {
		return "", err
	}
	if err := w.noteLinks(made, tree, filepath.Join(c.pool.Dir, Seen, "tree"), nil, time.Time{}); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(c.dropped())
	for _, e := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(c.dropped(), e.Name()), filepath.Join(made, e.Name())))
	}
	if err != nil {
		return "", err
	}
	if err := w.drop(); err != nil {
		return "", err
	}
	c.removeGrounds()
	return ground, os.Rename(made, ground)
}

// removeGrounds removes the unused grounds. It looks at the others again the next time.
func (c *Clone) removeGrounds() {
	entries, _ := os.ReadDir(filepath.Join(c.pool.Dir, Ground))
	for _, e := range entries {
		dir := filepath.Join(c.pool.Dir, Ground, e.Name())
		if filepath.Ext(dir) != "" {
			continue // a lock, or one that is being made
		}
		lock := flock.New(dir + ".lock")
		if ok, err := lock.TryLock(); err != nil || !ok {
			continue
		}
		_ = errors.Join(files.RemoveAll(dir), os.Remove(dir+".lock"), lock.Unlock())
	}
}

// prune removes foreign files from a set-up's layer: git's own files, the commit's files, and marks of removed ones.
func prune(dir string, tracked map[string]bool) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if name != ".git" && !tracked[name] && e.Type()&fs.ModeDevice == 0 {
			return nil
		}
		if err := files.RemoveAll(path); err != nil || !e.IsDir() {
			return err
		}
		return fs.SkipDir
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// begin puts the workspace on a ground, "" for none, with nothing on top.
func (w *Workspace) begin(ctx context.Context, ground string) error {
	c := w.Clone
	if err := c.stepOff(); err != nil {
		return err
	}
	if ground != "" {
		lock := flock.New(ground + ".lock")
		if _, err := lock.TryRLockContext(ctx, freeLook); err != nil {
			return fmt.Errorf("the ground of workspace %s: %w", c.name(), err)
		}
		c.standsOn = lock
		if err := os.Symlink(ground, filepath.Join(c.folder, Ground)); err != nil {
			return err
		}
	}
	return w.drop()
}

// stepOff takes the workspace off its ground.
func (c *Clone) stepOff() error {
	err := c.forget(Ground)
	if c.standsOn != nil {
		err = errors.Join(err, c.standsOn.Unlock())
		c.standsOn = nil
	}
	return err
}

// latest puts a workspace on the newest ground, if there is one: its set-up then finds the downloads of the checks'
// set-up.
func (w *Workspace) latest(ctx context.Context) error {
	c := w.Clone
	if !c.pool.Layers {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Join(c.pool.Dir, Ground))
	newest, at := "", time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && filepath.Ext(e.Name()) == "" && info.ModTime().After(at) {
			newest, at = filepath.Join(c.pool.Dir, Ground, e.Name()), info.ModTime()
		}
	}
	if err := c.stepOff(); err != nil || newest == "" {
		return err
	}
	lock := flock.New(newest + ".lock")
	if ok, err := lock.TryRLock(); err != nil || !ok {
		return err
	}
	c.standsOn = lock
	return os.Symlink(newest, filepath.Join(c.folder, Ground))
}

func (c *Clone) dropped() string { return filepath.Join(c.folder, Dropped) }

// drop removes a check's writes.
func (w *Workspace) drop() error {
	c := w.Clone
	if !c.Checks || !c.pool.Layers {
		return nil
	}
	return files.RemoveAll(c.dropped())
}

// Made returns the folder with the commands' files in the workspace, which may have more files.
func (w *Workspace) Made() string {
	if w.Clone != nil && w.Clone.Checks && w.Clone.pool.Layers {
		return filepath.Join(w.Clone.dropped(), "tree", filepath.FromSlash(w.Clone.git.Below("")))
	}
	return w.Dir
}

// Digests is [Digests] of the workspace as its commands see it.
func (w *Workspace) Digests(patterns []string) map[string]string {
	digests, _ := Digests(w.Dir, patterns)
	made := w.Made()
	if made == w.Dir {
		return digests
	}
	for name := range digests {
		if removedIn(made, name) {
			delete(digests, name)
		}
	}
	written, _ := Digests(made, patterns)
	maps.Copy(digests, written)
	return digests
}

// removedIn reports whether a layer marks a file as removed: it has a device in place of the file or of
// a folder around it.
func removedIn(layer, name string) bool {
	for ; name != "."; name = filepath.Dir(name) {
		if info, err := os.Lstat(filepath.Join(layer, name)); err == nil && info.Mode()&fs.ModeCharDevice != 0 {
			return true
		}
	}
	return false
}

// goEntry matches the files of Go's build cache, which are named by a digest of their inputs.
var goEntry = lazy.Regexp(`^[0-9a-f]{2}/[0-9a-f]{64}-[ad]$`)

// KeepWarm keeps the verification's build output as a start for all workspaces, unless there is one already. It must
// be called only before any work of a session has been merged: a session's files must not influence others' builds.
func (w *Workspace) KeepWarm() error {
	c := w.Clone
	warm, name := filepath.Join(c.pool.Dir, Warm), c.built()
	if !c.pool.Layers || exists(warm) || name == "" {
		return nil
	}
	built := filepath.Join(c.dropped(), name)
	if err := filepath.WalkDir(built, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(built, path)
		if err == nil && (!e.Type().IsRegular() || !goEntry().MatchString(filepath.ToSlash(name))) {
			err = os.Remove(path)
		}
		return err
	}); err != nil {
		return err
	}
	kept, err := os.MkdirTemp(c.pool.Dir, Warm+"-")
	if err != nil {
		return err
	}
	to := filepath.Join(kept, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(built, to), os.Rename(kept, warm)); err != nil {
		return errors.Join(err, files.RemoveAll(kept)) // another process was faster
	}
	return nil
}

// built returns the folder of Go's build cache in a check's writes: in the layer of the user's caches, in that of
// caches that the user does not have, or in its own layer; "" if it is in none.
func (c *Clone) built() string {
	for _, layer := range []string{"xdg", "caches", ""} {
		if name := filepath.Join(layer, GoBuild); exists(filepath.Join(c.dropped(), name)) {
			return name
		}
	}
	return ""
}

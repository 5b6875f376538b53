package check

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/worktree"
	"ralph/loop/place"
	"ralph/store"
)

// Agents read the files that steer them when they start, and ralph cannot redirect them.
// So the files that sessions changed are set aside while later sessions work, which get
// the version that people approved, and are brought back when these have ended. The work
// tree stays as sessions left it, but nobody obeys it before a person approves.

// steers reports whether an absolute path, which is watched because it steers
// agents or configures runs, is a file of this place that steers agents.
func (v *Verifier) steers(path string) bool {
	rel, err := filepath.Rel(v.Place.Dir, v.Place.Ours(path))
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	rel = filepath.ToSlash(rel)
	return !place.Matches(v.Own, rel) && (place.Matches(v.Steering, rel) || !slices.Contains(v.Configuration, path) &&
		!worktree.IsSettings(path) && filepath.Base(path) != "ralph.yaml")
}

// steering returns the records of the files here that steer agents and
// that sessions changed without a person's approval.
func (v *Verifier) steering(ctx context.Context) (map[string]store.ConfigurationFile, error) {
	rows, err := store.Read(ctx, v.Store, (*store.Tx).ConfigurationFiles)
	maps.DeleteFunc(rows, func(path string, row store.ConfigurationFile) bool {
		return row.Approved == row.Seen || row.Session == "" || !v.steers(path)
	})
	return rows, err
}

// SetAside replaces sessions' unapproved versions with the approved ones.
// The error is a [StuckError] if that fails for a file.
func (v *Verifier) SetAside(ctx context.Context) error {
	if v.Place.Slot != nil {
		return nil // Lay does this
	}
	rows, err := v.steering(ctx)
	if err != nil {
		return err
	}
	return v.exchange(ctx, rows, func(row *store.ConfigurationFile, now string) (wanted string, ok bool) {
		row.Aside = true
		return row.Approved, now == row.Seen
	})
}

// BringBack restores sessions' versions once no session works any more.
func (v *Verifier) BringBack(ctx context.Context) error {
	if v.Place.Slot != nil {
		return nil
	}
	rows, err := v.steering(ctx)
	if err != nil {
		return err
	}
	working, err := store.Read(ctx, v.Store, (*store.Tx).AgentsWork)
	if err != nil || working {
		return err
	}
	return v.exchange(ctx, rows, func(row *store.ConfigurationFile, now string) (wanted string, ok bool) {
		ok = row.Aside && now == row.Approved
		row.Aside = false
		return row.Seen, ok
	})
}

// named returns the display name of a file in people's folder.
func (v *Verifier) named(path string) string { return v.Place.Named(v.Place.Ours(path)) }

// Lay puts the approved versions of the files that steer agents into a slot before a
// session: the tip's version where an earlier session of the task changed them, and
// the version approved by people where a change landed without approval. The session's
// result contains the original versions, unless it changes the files itself.
func (v *Verifier) Lay(ctx context.Context, tree *worktree.Tree, kept string) error {
	base, laid := v.Place.Slot.Base, map[string]string{}
	stuck := StuckError{What: "files by which agents are steered"}
	put := func(name, digest string) error {
		if err := v.Copies.Restore(v.Place.Dir, name, digest); err != nil {
			stuck.add(name, err)
			return nil
		}
		now, err := place.Digest(v.Place.Path(name))
		laid[name] = now
		return err
	}
	rows, err := store.Read(ctx, v.Store, (*store.Tx).ConfigurationFiles)
	if err != nil {
		return err
	}
	there, _ := place.Steering(v.Place.Dir, v.Steering, v.Own...)
	is := func(name string) bool {
		_, steers := there[name]
		_, known := rows[v.Place.Theirs(v.Place.Path(name))]
		return steers || (known || place.Matches(v.Steering, name)) && v.steers(v.Place.Path(name))
	}
	var changed []string
	if kept != "" {
		if changed, err = tree.Files(ctx, base, kept); err != nil {
			return err
		}
	}
	for _, name := range changed {
		name, ok := strings.CutPrefix(name, tree.Below(""))
		if !ok || !is(name) {
			continue
		}
		version, err := tree.Version(ctx, base, name)
		if err == nil {
			err = v.Copies.Put(version.Content)
		}
		if err == nil {
			err = put(name, place.DigestOf(version))
		}
		if err != nil {
			return err
		}
	}
	names := slices.Collect(maps.Keys(there))
	for path := range rows {
		names = append(names, v.Place.Named(v.Place.Ours(path)))
	}
	left, err := Leavings(ctx, v.Store, opened(tree), names, is)
	if err != nil {
		return err
	}
	v.landed = map[string]string{}
	for name, leaving := range left {
		digest := leaving.Digest
		now, err := place.Digest(v.Place.Path(name))
		if err != nil {
			return err
		}
		path := v.Place.Theirs(v.Place.Path(name))
		if now != digest || rows[path].Approved == digest {
			continue
		}
		v.landed[path] = digest
		if err := put(name, rows[path].Approved); err != nil {
			return err
		}
	}
	if len(stuck.Files) > 0 {
		return &stuck
	}
	if len(laid) == 0 {
		return nil
	}
	return errors.Join(v.Place.Lay(ctx, laid), v.Place.Note(ctx))
}

// exchange replaces files with other versions, where choose says so based on the present
// one. It records that a file is aside before it replaces the file, and that it is back
// only afterwards, so that after a kill no session's version is taken for a person's.
func (v *Verifier) exchange(
	ctx context.Context, rows map[string]store.ConfigurationFile,
	choose func(row *store.ConfigurationFile, now string) (wanted string, ok bool),
) error {
	write := func(row store.ConfigurationFile) error {
		return v.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.PutConfigurationFiles([]store.ConfigurationFile{row})
		})
	}
	stuck := StuckError{What: "files by which agents are steered"}
	for _, path := range goneFirst(rows, func(row store.ConfigurationFile) bool { return row.Approved == "" }) {
		row := rows[path]
		now, err := digestOne(path)
		if err != nil {
			stuck.add(v.Place.Named(path), err)
			continue
		}
		wanted, ok := choose(&row, now)
		if !ok {
			continue
		}
		if err := v.Copies.save(path, now); err != nil {
			return err
		}
		if !v.Copies.has(now) || !v.Copies.has(wanted) {
			stuck.add(v.Place.Named(path), errors.New("there is no copy of it: it was too large or could not be read"))
			continue
		}
		if row.Aside {
			if err := write(row); err != nil {
				return err
			}
		}
		if err := v.Copies.Restore(v.Place.Dir, v.Place.Named(path), wanted); err != nil {
			stuck.add(v.Place.Named(path), err)
			continue
		}
		if !row.Aside {
			if err := write(row); err != nil {
				return err
			}
		}
	}
	if len(stuck.Files) > 0 {
		return &stuck
	}
	return nil
}

// goneFirst sorts paths so that files to be removed come first, and before their folders.
func goneFirst[T any](files map[string]T, gone func(T) bool) []string {
	order := slices.Sorted(maps.Keys(files))
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b string) int {
		switch x, y := gone(files[a]), gone(files[b]); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	return order
}

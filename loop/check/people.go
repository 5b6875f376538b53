package check

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/place"
	"ralph/signals"
	"ralph/store"
)

// A Verifier checks work in one place, and knows what is people's there.
type Verifier struct {
	Rules
	Store *store.DB
	Place *place.Place

	// Configuration are the files by which runs are configured, as absolute paths, and
	// Kept is where copies are of what people left.
	Configuration []string
	Kept          Kept

	Log  *slog.Logger
	Busy func(time.Duration) // is told what the next step may take; nil for nobody
}

// Takes says what the next step may take.
func (v *Verifier) Takes(d time.Duration) {
	if v.Busy != nil {
		v.Busy(d)
	}
}

// A Sight is what was seen of what is people's: digests, by path.
type Sight struct {
	Protected     map[string]string
	Hidden        map[string]string // protected files, or folders of some, that could not be seen, with the reason
	Configuration map[string]string // absolute paths
}

// Look looks at the protected files.
func (v *Verifier) Look() (s Sight) {
	s.Protected, s.Hidden = place.Digests(v.Place.Dir, v.Protect)
	return s
}

// Differs are the protected files that are others in a later sight.
func (s Sight) Differs(later Sight) []string {
	all := maps.Clone(s.Protected)
	maps.Copy(all, later.Protected)
	maps.DeleteFunc(all, func(path, _ string) bool { return s.Protected[path] == later.Protected[path] })
	return slices.Sorted(maps.Keys(all))
}

// Greet looks at what is people's before a session, and before what verifies its task
// is run for the first time: protected files and configuration that are not as the
// last session left them were changed by people. What a session left of protected
// files is put back first.
func (v *Verifier) Greet(ctx context.Context) error {
	if err := v.PutBack(ctx); err != nil {
		return err
	}
	now := v.Look()
	config := v.Configured(v.Place.Dir, nil)
	var files []store.ProtectedFile
	var configuration []store.ConfigurationFile
	needed := map[string]bool{}
	if err := v.Store.View(ctx, func(tx *store.Tx) error {
		known, elsewhere, err := v.protected(tx)
		if err != nil {
			return err
		}
		rows, err := tx.ConfigurationFiles()
		if err != nil {
			return err
		}
		working, err := tx.AgentsWork()
		if err != nil {
			return err
		}
		for _, p := range known {
			needed[sumOf(p.Approved)] = true
		}
		for _, c := range rows {
			needed[sumOf(c.Approved)] = true
		}
		files = welcome(known, elsewhere, assumed(known, now.Protected, now.Hidden))
		if working { // it may have been another session
			files = slices.DeleteFunc(files, func(p store.ProtectedFile) bool { _, ok := known[p.Path]; return ok })
		}
		for path, digest := range config {
			row, ok := rows[path]
			switch {
			case ok && (row.Seen == digest || working):
			case ok && worktree.StillLeft(row.Approved, row.Seen, digest):
				row.Seen = digest
				configuration = append(configuration, row)
			default:
				configuration = append(configuration, store.ConfigurationFile{Path: path, Approved: digest, Seen: digest})
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for path, digest := range now.Protected {
		needed[sumOf(digest)] = true
		if err := v.Kept.keep(v.Place.Path(path), digest); err != nil {
			return fmt.Errorf("copy of the protected file %s: %w", path, err)
		}
	}
	for path, digest := range config {
		needed[sumOf(digest)] = true
		if err := v.Kept.keep(path, digest); err != nil {
			return fmt.Errorf("copy of %s: %w", path, err)
		}
	}
	if err := v.Kept.forget(needed); err != nil {
		return fmt.Errorf("old copies of protected files: %w", err)
	}
	if len(files)+len(configuration) == 0 {
		return nil
	}
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(v.keepProtected(tx, files), tx.KeepConfigurationFiles(configuration))
	})
}

// unreadable stands for the digest of a file that cannot be read, which nobody left so
// for a run to start with.
const unreadable = "unreadable"

// Configured takes the digests of the files by which runs in a work tree are
// configured, and of further ones there that would configure a run below it.
func (v *Verifier) Configured(dir string, changed []ralph.FileChange) map[string]string {
	digests := map[string]string{}
	add := func(path string) {
		var err error
		if digests[path], err = place.Digest(path); err != nil {
			digests[path] = unreadable
		}
	}
	for _, path := range v.Configuration {
		if rel, err := filepath.Rel(v.Place.Dir, path); err == nil && filepath.IsLocal(rel) {
			path = filepath.Join(dir, rel)
		}
		add(path)
	}
	for _, f := range changed {
		if strings.HasSuffix("/"+f.Path, "/ralph.yaml") {
			add(filepath.Join(dir, filepath.FromSlash(f.Path)))
		}
	}
	return digests
}

// Tampered are the protected files that a session on a task has not left as people did,
// and the places that keep it from being told; before are those that could not be seen
// when it began.
func (v *Verifier) Tampered(
	tx *store.Tx, task int64, saw Sight, before []string,
) (changed, hidden []string, err error) {
	known, _, err := v.protected(tx)
	if err != nil {
		return nil, nil, err
	}
	mine, err := leftConfiguration(tx, task)
	if err != nil {
		return nil, nil, err
	}
	now := assumed(known, saw.Protected, saw.Hidden)
	changed = withEarlier(tampered(known, now), known, now, func(path string) bool { return mine[v.Place.Path(path)] })
	return changed, hiding(known, saw.Hidden, before), nil
}

// withEarlier adds to the protected files that a session has changed those that earlier
// ones of its task have, and that are not as people approved them. It is sorted.
func withEarlier(
	changed []string, known map[string]store.ProtectedFile, now map[string]string, mine func(path string) bool,
) []string {
	for path, p := range known {
		if mine(path) && p.Approved != now[path] && !slices.Contains(changed, path) {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return changed
}

// Leave notes what a session left of what is people's, and gives what is to be said of
// it in the session's record. Nothing is put back yet: that is done when the decision is durable.
func (v *Verifier) Leave(tx *store.Tx, session string, saw Sight, accepted bool) (notes []string, err error) {
	rows, err := tx.ConfigurationFiles()
	if err != nil {
		return nil, err
	}
	var left []store.ConfigurationFile
	for _, path := range slices.Sorted(maps.Keys(saw.Configuration)) {
		row, now := rows[path], saw.Configuration[path]
		if row.Seen == now {
			continue
		}
		left = append(left, store.ConfigurationFile{Path: path, Approved: row.Approved, Seen: now, Session: session})
		if row.Approved != now {
			next := "the next run starts only after `ralph approve config`, or with the file put back"
			if slices.Contains(v.Store.Instead, path) {
				next = "runs use the version that people approved until `ralph approve config`"
			}
			what := v.Place.Named(path) + ", by which runs are configured"
			if worktree.IsSettings(path) {
				names, _ := worktree.ChangedSettings(path, row.Approved, now)
				what = fmt.Sprintf("%s (%s), which no git of ralph's obeys, but yours does",
					v.Place.Named(path), signals.FileList(names))
				next = "the next run starts only after `ralph approve config`, or with it taken back (`ralph doctor` says how)"
			}
			notes = append(notes, fmt.Sprintf("it changed %s: %s", what, next))
		}
	}
	if err := tx.KeepConfigurationFiles(left); err != nil || saw.Protected == nil {
		return notes, err
	}
	known, _, err := v.protected(tx)
	if err != nil {
		return nil, err
	}
	now := assumed(known, saw.Protected, saw.Hidden)
	if err := v.keepProtected(tx, farewell(known, now)); err != nil || accepted {
		return notes, err
	}
	var back, lost []string
	for _, path := range tampered(known, now) {
		switch {
		case v.configures(path):
		case v.Kept.has(known[path].Approved):
			back = append(back, path)
		default:
			lost = append(lost, path)
		}
	}
	if len(lost) > 0 {
		notes = append(notes, "it changed protected files that ralph cannot put back, for want of a copy: "+
			strings.Join(lost, ", "))
	}
	if len(back) > 0 {
		notes = append(notes, "it changed protected files, which are put back as people left them: "+
			strings.Join(back, ", ")+"; no session begins before that")
	}
	return notes, nil
}

// configures tells whether a file of the work tree configures runs: such a file is
// never put back, it waits for approval.
func (v *Verifier) configures(path string) bool {
	return slices.Contains(v.Configuration, v.Place.Path(path))
}

// PutBack puts protected files back as people left them that are as a session left
// them and that nobody is asked to approve. What it takes away is kept. The error is
// a [StuckError] where that cannot be done.
func (v *Verifier) PutBack(ctx context.Context) error {
	var known map[string]store.ProtectedFile
	var waiting map[string]bool
	if err := v.Store.View(ctx, func(tx *store.Tx) (err error) {
		if known, _, err = v.protected(tx); err != nil {
			return err
		}
		waiting, err = tx.UnderReview(v.Place.Dir)
		return err
	}); err != nil {
		return err
	}
	maps.DeleteFunc(known, func(path string, p store.ProtectedFile) bool {
		return p.Approved == p.Seen || waiting[path] || v.configures(path)
	})
	if len(known) == 0 {
		return nil
	}
	var done []store.ProtectedFile
	var stuck StuckError
	order := slices.Sorted(maps.Keys(known))
	slices.Reverse(order) // what is new goes first, and in a folder before the folder
	slices.SortStableFunc(order, func(a, b string) int {
		return min(len(known[a].Approved), 1) - min(len(known[b].Approved), 1)
	})
	for _, path := range order {
		p := known[path]
		file := v.Place.Path(path)
		now, err := digestOne(file)
		if err == nil && now != p.Seen {
			continue // somebody has changed it since
		}
		if err == nil {
			err = v.Kept.keep(file, p.Seen)
		}
		if err == nil {
			err = v.Kept.restore(v.Place.Dir, path, p.Approved)
		}
		if err == nil {
			if now, err = digestOne(file); err == nil && now != p.Approved {
				err = errors.New("it is still not as it was: it is a link, and what that leads to was changed")
			}
		}
		if err != nil {
			stuck.Files = append(stuck.Files, fmt.Sprintf("%s (%v)", path, err))
			continue
		}
		v.Log.Info("put a protected file back as people left it",
			"file", path, "copy_of_what_was_there", v.Kept.Copy(p.Seen))
		done = append(done, store.ProtectedFile{Path: path, Approved: p.Approved, Seen: p.Approved})
	}
	if err := v.Store.Tx(ctx, func(tx *store.Tx) error { return v.keepProtected(tx, done) }); err != nil {
		return err
	}
	if len(stuck.Files) > 0 {
		return &stuck
	}
	return nil
}

// digestOne is [place.Digest], but a folder is a file that is there no more.
func digestOne(path string) (string, error) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return "", nil
	}
	return place.Digest(path)
}

// leftConfiguration are the files that configure runs and that earlier sessions on a
// task left as they are, without anybody's approval.
func leftConfiguration(tx *store.Tx, task int64) (map[string]bool, error) {
	rows, err := tx.ConfigurationFiles()
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for path, row := range rows {
		if row.Approved == row.Seen || row.Session == "" {
			continue
		}
		by, err := tx.Session(row.Session)
		if err != nil {
			return nil, err
		}
		mine[path] = by.TaskID == task
	}
	return mine, nil
}

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

// A Verifier checks work in one place, and tracks people's files there.
type Verifier struct {
	Rules
	Store *store.DB
	Place *place.Place

	// At is the state of the work tree if it is known without a look. A command without a result
	// for it is then not run, but [ErrUnknown].
	At *store.State

	// Configuration lists the files that configure runs, as absolute paths.
	// Copies has copies of the files as people left them.
	Configuration []string
	Copies        Copies

	// Steering are globs of the files in a place that steer agents, and Own
	// are globs of agents' own data among them.
	Steering, Own []string

	// landed has the digests of the files that steer agents and whose tip
	// version a session left, by their path in people's folder.
	landed map[string]string

	// Contained is set if sessions in slots cannot write the files that configure runs.
	// A person has made the changes to them then.
	Contained bool

	Log  *slog.Logger
	Busy func(time.Duration)  // is told how long the next step may take; nil for nobody
	Slow func(command string) // is told of a command outside of sessions that runs longer than a second
}

// Takes announces how long the next step may take.
func (v *Verifier) Takes(d time.Duration) {
	if v.Busy != nil {
		v.Busy(d)
	}
}

// A Sight is the observed state of people's files: digests by path.
type Sight struct {
	Protected     map[string]string
	Hidden        map[string]string // files or folders that could not be read, with the reason
	Configuration map[string]string // absolute paths
}

// Look reads the protected files.
func (v *Verifier) Look() (s Sight) {
	s.Protected, s.Hidden = place.Digests(v.Place.Dir, v.Protect)
	return s
}

// Differs returns the protected files that differ in a later sight.
func (s Sight) Differs(later Sight) []string {
	all := maps.Clone(s.Protected)
	maps.Copy(all, later.Protected)
	maps.DeleteFunc(all, func(path, _ string) bool { return s.Protected[path] == later.Protected[path] })
	return slices.Sorted(maps.Keys(all))
}

// Greet records people's changes before a session, and before its task's verification runs for
// the first time: protected files and configuration that differ from what the last session
// left were changed by people. It first puts back what sessions changed in protected files.
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
			needed[sumOf(c.Approved)], needed[sumOf(c.Seen)] = true, true
		}
		files = welcome(known, elsewhere, assumed(known, now.Protected, now.Hidden))
		if working && v.Place.Slot == nil { // another session may have changed it; in a slot nobody else works
			files = slices.DeleteFunc(files, func(p store.ProtectedFile) bool { _, ok := known[p.Path]; return ok })
		}
		v.addGone(config, rows)
		for path, digest := range config {
			row, ok := rows[path]
			_, landed := v.landed[path]
			switch {
			case !ok && v.dark(path, digest):
			case landed || ok && (row.Seen == digest || row.Aside && row.Approved == digest || working):
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
	configuration, err := v.withoutLanded(ctx, configuration)
	if err != nil {
		return err
	}
	for path, digest := range now.Protected {
		needed[sumOf(digest)] = true
		if err := v.Copies.save(v.Place.Path(path), digest); err != nil {
			return fmt.Errorf("copy of the protected file %s: %w", path, err)
		}
	}
	for path, digest := range config {
		needed[sumOf(digest)] = true
		if err := v.Copies.save(v.at(path), digest); err != nil {
			return fmt.Errorf("copy of %s: %w", path, err)
		}
	}
	if err := v.Copies.forget(needed); err != nil {
		return fmt.Errorf("old copies of protected files: %w", err)
	}
	if len(files)+len(configuration) == 0 {
		return nil
	}
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(v.putProtected(tx, files), tx.PutConfigurationFiles(configuration))
	})
}

// withoutLanded removes the files that a landing left as they are from those that people
// seem to have changed. A session has changed them: the next run asks people.
func (v *Verifier) withoutLanded(
	ctx context.Context, list []store.ConfigurationFile,
) ([]store.ConfigurationFile, error) {
	if len(list) == 0 {
		return nil, nil
	}
	here := v.Place.Here()
	var names []string
	for _, f := range list {
		names = append(names, here.Named(f.Path))
	}
	left, err := Leavings(ctx, v.Store, opened(here.Tree), names, func(name string) bool { return slices.Contains(names, name) })
	return slices.DeleteFunc(list, func(f store.ConfigurationFile) bool {
		l, landed := left[here.Named(f.Path)]
		return landed && l.Digest == f.Seen
	}), err
}

// unreadable stands for the digest of a file that cannot be read. No approved file has it.
const unreadable = "unreadable"

// Configured returns the digests of the files that configure runs in a
// work tree, and of changed files that would configure a run below it.
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
	steering, unseen := place.Steering(dir, v.Steering, v.Own...)
	for name := range unseen {
		steering[name] = unreadable
	}
	for name, digest := range steering {
		path := v.Place.Theirs(filepath.Join(dir, filepath.FromSlash(name)))
		if _, known := digests[path]; !known {
			digests[path] = digest
		}
	}
	return digests
}

// at returns where the file at a path in people's folder is in this place.
// Files that configure runs are people's own, even for a slot.
func (v *Verifier) at(path string) string {
	if slices.Contains(v.Configuration, path) {
		return path
	}
	return v.Place.Ours(path)
}

// dark reports whether a new path is an unreadable folder, such as a
// service's data. As long as it stays unreadable, it steers nobody.
func (v *Verifier) dark(path, digest string) bool {
	return digest == unreadable && v.steers(path) && !place.Matches(v.Steering, v.named(path))
}

// addGone adds the known files that steer agents and no longer exist. What
// is in an unreadable folder is taken to be unchanged.
func (v *Verifier) addGone(seen map[string]string, rows map[string]store.ConfigurationFile) {
	for path := range rows {
		if _, there := seen[path]; there || !v.steers(path) {
			continue
		}
		hidden := false
		for dir := filepath.Dir(path); v.named(dir) != dir; dir = filepath.Dir(dir) {
			hidden = hidden || seen[dir] == unreadable
		}
		if !hidden {
			seen[path] = ""
		}
	}
}

// Tampered returns the protected files that a session on a task changed, and the places that
// hide whether it changed others. Before are the places that could not be read when it began.
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

// withEarlier adds the unapproved changes of earlier sessions of the same
// task to the changed files. The result is sorted.
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

// Leave records what a session changed in people's files, and returns the notes for the
// session's record. It puts nothing back yet: that happens once the decision is durable.
func (v *Verifier) Leave(tx *store.Tx, session string, saw Sight, accepted bool) (notes []string, err error) {
	rows, err := tx.ConfigurationFiles()
	if err != nil {
		return nil, err
	}
	if len(saw.Configuration) > 0 {
		v.addGone(saw.Configuration, rows)
	}
	var left []store.ConfigurationFile
	var steering []string
	for _, path := range slices.Sorted(maps.Keys(saw.Configuration)) {
		row, known := rows[path]
		now := saw.Configuration[path]
		apart := v.at(path) != path // it is a file of a slot
		if !apart && v.Place.Slot != nil && v.Contained {
			continue
		}
		if !known && v.dark(path, now) ||
			row.Aside && row.Approved == now || !row.Aside && row.Seen == now || apart && row.Approved == now {
			continue
		}
		if !apart {
			left = append(left, store.ConfigurationFile{Path: path, Approved: row.Approved, Seen: now, Session: session})
		}
		if row.Approved != now && v.steers(path) {
			steering = append(steering, v.named(path))
		} else if row.Approved != now {
			next := "the next run starts only after `ralph approve config`, or with the file put back"
			if instead := v.Store.Instead; instead != nil && instead(path) {
				next = "runs use the version that people approved until `ralph approve config`"
			}
			what := v.Place.Here().Named(path) + ", by which runs are configured"
			if worktree.IsSettings(path) {
				names, _ := worktree.ChangedSettings(path, row.Approved, now)
				obeyed := "which no git of ralph's obeys, but yours does"
				if filepath.Base(path) == "info" {
					obeyed = "by which git, ralph's too, overlooks files"
				}
				what = fmt.Sprintf("%s (%s), %s", v.Place.Here().Named(path), signals.FileList(names), obeyed)
				next = "the next run starts only after `ralph approve config`, or with it taken back (`ralph doctor` says how)"
			}
			notes = append(notes, fmt.Sprintf("it changed %s: %s", what, next))
		}
	}
	if len(steering) > 0 {
		next := "no later session obeys that, and the next run starts only after `ralph approve config`, or with it put back"
		if v.Place.Slot != nil {
			next = "no later session obeys that, and once it has landed the next run starts only after `ralph approve config`"
		}
		if instead := v.Store.Instead; instead != nil && instead(v.Place.Theirs(v.Place.Path(steering[0]))) {
			next = "no session obeys that before `ralph approve config`"
		}
		notes = append(notes, fmt.Sprintf("it changed %s, by which agents are steered: %s", signals.FileList(steering), next))
	}
	if err := tx.PutConfigurationFiles(left); err != nil || saw.Protected == nil {
		return notes, err
	}
	known, _, err := v.protected(tx)
	if err != nil {
		return nil, err
	}
	now := assumed(known, saw.Protected, saw.Hidden)
	if err := v.putProtected(tx, farewell(known, now)); err != nil || accepted {
		return notes, err
	}
	var back, lost []string
	for _, path := range tampered(known, now) {
		switch {
		case v.configures(path):
		case v.Copies.has(known[path].Approved):
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

// configures reports whether a file of the work tree configures runs. Such
// a file is never put back; it waits for approval.
func (v *Verifier) configures(path string) bool {
	return slices.Contains(v.Configuration, v.Place.Path(path))
}

// PutBack restores protected files to people's version if they are as a
// session left them and nobody is asked to approve that. The session's
// version is kept. The error is a [StuckError] if a file cannot be restored.
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
	for _, path := range goneFirst(known, func(p store.ProtectedFile) bool { return p.Approved == "" }) {
		p := known[path]
		file := v.Place.Path(path)
		now, err := digestOne(file)
		if err == nil && now != p.Seen {
			continue // somebody changed it since
		}
		if err == nil {
			err = v.Copies.save(file, p.Seen)
		}
		if err == nil {
			err = v.Copies.Restore(v.Place.Dir, path, p.Approved)
		}
		if err == nil {
			if now, err = digestOne(file); err == nil && now != p.Approved {
				err = errors.New("it still differs: it is a link whose target was changed")
			}
		}
		if err != nil {
			stuck.add(path, err)
			continue
		}
		v.Log.Info("put a protected file back as people left it",
			"file", path, "copy_of_what_was_there", v.Copies.Copy(p.Seen))
		done = append(done, store.ProtectedFile{Path: path, Approved: p.Approved, Seen: p.Approved})
	}
	if err := v.Store.Tx(ctx, func(tx *store.Tx) error { return v.putProtected(tx, done) }); err != nil {
		return err
	}
	if len(stuck.Files) > 0 {
		return &stuck
	}
	return nil
}

// digestOne is like [place.Digest], but treats a folder as a missing file.
func digestOne(path string) (string, error) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return "", nil
	}
	return place.Digest(path)
}

// leftConfiguration returns the files that configure runs and that earlier
// sessions on a task changed without anybody's approval.
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

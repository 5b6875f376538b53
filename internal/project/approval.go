package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ralph"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/store"
)

// An unapproved file configures runs and is as a session left it.
type unapproved struct {
	store.ConfigurationFile
	now  string // its digest now
	name string // for people
}

// kept is where copies are of what people left.
func (p *Project) kept() check.Kept { return check.Kept(p.File("kept")) }

// configurationFiles are the files by which runs are configured: ralph.yaml, the
// user's own configuration, and what they name.
func (p *Project) configurationFiles() []string {
	files := []string{p.Path(state.ConfigName)}
	if p.userFile != "" {
		files = append(files, p.userFile)
	}
	if p.Git {
		files = append(files, worktree.Settings(p.Top, p.Common)...)
	}
	add := func(name string) {
		if name = p.Path(name); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	if file := p.templateFile(); file != "" {
		add(file)
	}
	// Programs of the project's own that run outside of any sandbox.
	words := slices.Clone(p.Config.Agent.Command)
	for _, r := range p.Config.Notify.Receivers {
		words = append(words, r.Command...)
	}
	for _, word := range words {
		path := p.Path(word)
		rel, err := filepath.Rel(p.Root, path)
		if info, serr := os.Stat(path); err == nil && filepath.IsLocal(rel) && serr == nil && info.Mode().IsRegular() {
			add(path)
		}
	}
	return files
}

// judge finds what sessions left of the files that configure runs and
// nobody approved. Where there is some, the approved versions are used instead. What
// people changed between sessions is theirs, and needs no word.
func (p *Project) judge(ctx context.Context, db *store.DB) error {
	// First the configuration itself, then what the approved one names.
	for range 2 {
		list, err := p.unapprovedFiles(ctx, db, p.configurationFiles())
		if err != nil {
			return err
		}
		if len(list) == len(p.unapproved) {
			break
		}
		p.unapproved, p.instead = list, p.copies(list)
		if p.Config, err = p.load(p.instead); err != nil {
			return err
		}
	}
	if p.Config.Configuration == "approved" {
		db.Instead = slices.DeleteFunc(p.replaceable(), func(path string) bool {
			i := slices.IndexFunc(p.unapproved, func(u unapproved) bool { return u.Path == path })
			return i >= 0 && p.unapproved[i].Approved != "" && p.instead[path] == ""
		})
	}
	return nil
}

// replaceable are the files that a run can read in another version: programs it cannot.
func (p *Project) replaceable() []string {
	return []string{p.Path(state.ConfigName), p.userFile, p.Path(p.templateFile())}
}

// copies are what people approved of files that are as a session left them.
func (p *Project) copies(list []unapproved) map[string]string {
	copies := map[string]string{}
	for _, u := range list {
		copies[u.Path] = p.kept().Copy(u.Approved)
	}
	return copies
}

// unapprovedFiles are those of the files, and of what is known from before, that are as
// a session left them.
func (p *Project) unapprovedFiles(ctx context.Context, db *store.DB, files []string) (list []unapproved, err error) {
	var rows map[string]store.ConfigurationFile
	var working bool
	if err := db.View(ctx, func(tx *store.Tx) (err error) {
		if rows, err = tx.ConfigurationFiles(); err != nil {
			return err
		}
		working, err = tx.AgentsWork()
		return err
	}); err != nil {
		return nil, err
	}
	var mended []store.ConfigurationFile
	for _, path := range files {
		row, known := rows[path]
		now, err := place.Digest(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		case !known || now == row.Approved && row.Seen == now:
		case now != row.Seen && !working && worktree.StillLeft(row.Approved, row.Seen, now):
			row.Seen = now
			list = append(list, unapproved{row, now, p.named(path)})
		case now == row.Approved || now != row.Seen && !working:
			mended = append(mended, store.ConfigurationFile{Path: path, Approved: now, Seen: now})
		default:
			list = append(list, unapproved{row, now, p.named(path)})
		}
	}
	if len(mended) == 0 || working {
		return list, nil
	}
	return list, db.Tx(ctx, func(tx *store.Tx) error { return tx.KeepConfigurationFiles(mended) })
}

// named is a path for people.
func (p *Project) named(path string) string {
	if rel, err := filepath.Rel(p.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// WaitsForApproval says in a sentence what is not approved; "" if all is.
func (p *Project) WaitsForApproval() string {
	if len(p.unapproved) == 0 {
		return ""
	}
	var names, by []string
	for _, u := range p.unapproved {
		name := u.name
		if worktree.IsSettings(u.Path) {
			changed, _ := worktree.ChangedSettings(u.name, u.Approved, u.now)
			name += " (" + strings.Join(changed, ", ") + ")"
		}
		names = append(names, name)
		who := "a session that has not been settled"
		if u.Session != "" && u.now == u.Seen {
			who = fmt.Sprintf("session %.8s", u.Session)
		}
		if !slices.Contains(by, who) {
			by = append(by, who)
		}
	}
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s as %s left it, and no person has approved that",
		strings.Join(names, ", "), verb, strings.Join(by, ", "))
}

// HowToApprove is what people do about it.
func (p *Project) HowToApprove() string {
	var back []string
	for _, u := range p.unapproved {
		how := []string{"git checkout"}
		if worktree.IsSettings(u.Path) {
			_, how = worktree.ChangedSettings(u.name, u.Approved, u.now)
		}
		back = append(back, how...)
	}
	slices.Sort(back)
	return "`ralph approve config` approves it; with the file put back as it was (" +
		strings.Join(slices.Compact(back), "; ") + ") runs start as well"
}

// RefuseUnapproved keeps a run from starting with what a session left, unless the
// approved version is to be used, which files can be replaced by and programs not.
func (p *Project) RefuseUnapproved(db *store.DB) error {
	if !slices.ContainsFunc(p.unapproved, func(u unapproved) bool { return !slices.Contains(db.Instead, u.Path) }) {
		return nil
	}
	return &ralph.ExitError{Status: ralph.ExitWaiting, Err: fmt.Errorf("waiting for people: %s\n%s%s",
		p.WaitsForApproval(), p.Differences(), p.HowToApprove())}
}

// Differences show what sessions changed in the files that wait for approval.
func (p *Project) Differences() string {
	var b strings.Builder
	for _, u := range p.unapproved {
		b.WriteString(p.difference(u))
	}
	return b.String()
}

// difference shows what a session changed in a file.
func (p *Project) difference(u unapproved) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s\n", u.name)
	if worktree.IsSettings(u.Path) {
		names, _ := worktree.ChangedSettings(u.name, u.Approved, u.now)
		for _, line := range worktree.ShowSettings(u.Path, names) {
			fmt.Fprintf(&b, "  + %s\n", text.Visible(line))
		}
		return b.String()
	}
	was, is := kindOf(u.Approved), kindOf(u.now)
	text := func(digest, kind, path string) (lines []string) {
		if digest == "" {
			return nil
		}
		if was != is && kind != "" { // the content may be the same
			lines = append(lines, kind)
		}
		content, err := contentOf(path)
		if err != nil {
			return append(lines, "(cannot be shown: it is too large, or no file that can be read)")
		}
		return append(lines, strings.Split(strings.TrimRight(text.Visible(content), "\n"), "\n")...)
	}
	for _, line := range ralph.LineDiff(text(u.Approved, was, p.kept().Copy(u.Approved)), text(u.now, is, u.Path)) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if u.now == "" {
		b.WriteString("  (the file is gone)\n")
	}
	return b.String()
}

// kindOf says what stands where a file with the digest is, "" for a plain one.
func kindOf(digest string) string {
	if target, ok := place.LinkTarget(digest); ok {
		if strings.HasSuffix(target, "------") { // the mode of what is no link, see place.Digest
			return "(no plain file)"
		}
		return fmt.Sprintf("(a link to %s)", target)
	}
	if strings.HasPrefix(digest, "true ") {
		return "(executable)"
	}
	return ""
}

// maxShown is how large a file is at most whose content is shown.
const maxShown = 8 << 20

// contentOf is what is in a file. It does not wait for the other end of a pipe that
// stands in the file's place.
func contentOf(path string) (content string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxShown {
		return "", fmt.Errorf("%s is no regular file of up to %d bytes", path, maxShown)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxShown))
	return string(text), err
}

// Approvable refuses to approve what no run can begin with.
func (p *Project) Approvable() error {
	if _, err := p.load(nil); err != nil {
		return ralph.Usage(fmt.Errorf("not approved, and nothing was changed: no run can begin with what is there:\n%w", err))
	}
	return nil
}

// Approve has a person approve what waits for it, as it was when the project was opened,
// and says which files that are.
func (p *Project) Approve(ctx context.Context, db *store.DB, person string) (names []string, err error) {
	var files []store.ConfigurationFile
	for _, u := range p.unapproved {
		now, err := place.Digest(u.Path)
		if err != nil {
			return nil, err
		}
		if now != u.now {
			return nil, ralph.Usage(fmt.Errorf("%s has changed since it was shown; look again: %w", u.name, ralph.ErrConflict))
		}
		files = append(files, store.ConfigurationFile{Path: u.Path, Approved: now, Seen: now})
		names = append(names, u.name)
	}
	return names, db.Tx(ctx, func(tx *store.Tx) error { return tx.ApproveConfiguration(files, person) })
}

// salvage loads the approved configuration where what is there cannot be read because
// of what a session left; the error is why it cannot be read.
func (p *Project) salvage(ctx context.Context, why error) error {
	if !state.Exists(p.File(state.Database)) {
		return why
	}
	db, err := store.Open(ctx, p.File(state.Database), store.Options{})
	if err != nil {
		return why
	}
	defer db.Close()
	list, err := p.unapprovedFiles(ctx, db, p.configurationFiles())
	if err != nil || len(list) == 0 {
		return why
	}
	if p.Config, err = p.load(p.copies(list)); err != nil {
		return why
	}
	return nil
}

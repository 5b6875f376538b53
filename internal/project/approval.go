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
	"ralph/loop/agent/kinds"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/store"
)

// An unapproved file configures runs and was changed by a session.
type unapproved struct {
	store.ConfigurationFile
	now  string // digest, as the session left it
	name string // for people
	at   string // path of that content
}

// approvedCopies returns the store of copies that people approved.
func (p *Project) approvedCopies() check.Copies { return check.Copies(p.File("kept")) }

// configurationFiles lists the files that configure runs: ralph.yaml, the user's own configuration,
// git's settings, and the files that they name.
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
	// Programs of the project that run outside of any sandbox.
	words := slices.Clone(p.Config.Agent.Command)
	for _, r := range p.Config.Notify.Receivers {
		words = append(words, r.Command...)
	}
	for _, path := range p.programs(words) {
		add(path)
	}
	return files
}

// programs returns the files of the project among the words of a command.
func (p *Project) programs(words []string) (files []string) {
	for _, word := range words {
		path := p.Path(word)
		rel, err := filepath.Rel(p.Root, path)
		if info, serr := os.Stat(path); err == nil && filepath.IsLocal(rel) && serr == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// RefuseProgram returns an error if a command has a program of the project that a session of this
// run changed without approval.
func (p *Project) RefuseProgram(ctx context.Context, db *store.DB, command []string) error {
	found, err := p.unapprovedFiles(ctx, db, p.programs(command), false)
	if err != nil || len(found) == 0 {
		return err
	}
	now := *p
	now.unapproved = found
	return fmt.Errorf("%s, so it is not run: `ralph approve config`", now.WaitsForApproval())
}

// judge finds files that configure runs and that sessions changed without a person's approval.
// Their approved versions are used instead. Changes that people made between sessions need no
// approval.
func (p *Project) judge(ctx context.Context, db *store.DB) error {
	// The first pass reads the configuration, the second what the approved one names.
	for range 2 {
		list, err := p.unapprovedFiles(ctx, db, p.configurationFiles(), true)
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
		db.Instead = func(path string) bool {
			i := slices.IndexFunc(p.unapproved, func(u unapproved) bool { return u.Path == path })
			return (slices.Contains(p.replaceable(), path) || p.steers(path)) &&
				(i < 0 || p.unapproved[i].Approved == "" || p.instead[path] != "")
		}
	}
	return nil
}

// replaceable lists the files that a run can read from a copy: not programs. Files that steer
// agents can be replaced, too ([check.Verifier.SetAside]).
func (p *Project) replaceable() []string {
	return []string{p.Path(state.ConfigName), p.userFile, p.Path(p.templateFile())}
}

// copies returns the approved copies of files that a session changed.
func (p *Project) copies(list []unapproved) map[string]string {
	copies := map[string]string{}
	for _, u := range list {
		copies[u.Path] = p.approvedCopies().Copy(u.Approved)
	}
	return copies
}

// unapprovedFiles returns those of the files, and with steering of the files that steer agents,
// that a session changed.
func (p *Project) unapprovedFiles(
	ctx context.Context, db *store.DB, files []string, steering bool,
) (list []unapproved, err error) {
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
	landed, err := p.landed(ctx, db, files, steering, rows)
	if err != nil {
		return nil, err
	}
	for _, row := range landed {
		rows[row.Path] = row
		files = append(slices.Clip(files), row.Path)
	}
	var mended []store.ConfigurationFile
	if steering {
		files = p.withSteering(files, rows, working)
	}
	for _, path := range files {
		row, known := rows[path]
		now, err := place.Digest(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		case !known && working && p.steers(path): // the session that may have left it is not settled yet
			list = append(list, unapproved{store.ConfigurationFile{Path: path}, now, p.named(path), path})
		case row.Aside && now == row.Approved:
			list = append(list, unapproved{row, row.Seen, p.named(path), p.approvedCopies().Copy(row.Seen)})
		case !known || now == row.Approved && row.Seen == now:
		case now != row.Seen && !working && worktree.StillLeft(row.Approved, row.Seen, now):
			row.Seen = now
			list = append(list, unapproved{row, now, p.named(path), path})
		case now == row.Approved || now != row.Seen && !working:
			mended = append(mended, store.ConfigurationFile{Path: path, Approved: now, Seen: now})
		default:
			list = append(list, unapproved{row, now, p.named(path), path})
		}
	}
	if len(mended) == 0 || working {
		return list, nil
	}
	return list, db.Tx(ctx, func(tx *store.Tx) error { return tx.PutConfigurationFiles(mended) })
}

// landed returns the files in the user's checkout that a landing changed and that nobody has
// approved. It records them, so that the inbox lists them.
func (p *Project) landed(
	ctx context.Context, db *store.DB, files []string, steering bool, rows map[string]store.ConfigurationFile,
) (list []store.ConfigurationFile, err error) {
	if !p.Git {
		return nil, nil
	}
	var names []string
	for path := range rows {
		names = append(names, p.named(path))
	}
	names = append(names, place.Imports(p.Root, names)...)
	for _, path := range files {
		names = append(names, p.named(path))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	open := func() (*worktree.Tree, error) { return worktree.Open(ctx, p.Root) }
	left, err := check.Leavings(ctx, db, open, names, func(name string) bool {
		return slices.Contains(files, p.Path(name)) ||
			steering && (slices.Contains(names, name) || place.Matches(p.steering(), name)) && p.steers(p.Path(name))
	})
	if err != nil {
		return nil, err
	}
	var news []store.ConfigurationFile
	for name, l := range left {
		path := p.Path(name)
		now, err := place.Digest(path)
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
		if now != l.Digest || rows[path].Approved == now {
			continue
		}
		row := store.ConfigurationFile{Path: path, Approved: rows[path].Approved, Seen: now, Session: l.Session}
		if rows[path] != row {
			news = append(news, row)
		}
		list = append(list, row)
	}
	if len(news) == 0 {
		return list, nil
	}
	return list, db.Tx(ctx, func(tx *store.Tx) error { return tx.PutConfigurationFiles(news) })
}

// steering returns globs of the project's files that steer agents, including the agent's own
// program.
func (p *Project) steering() []string {
	list := slices.Clone(kinds.Steering)
	for _, path := range p.programs(p.Config.Agent.Command) {
		list = append(list, p.named(path))
	}
	return list
}

// steers reports whether a watched path is a file of the project that steers agents.
func (p *Project) steers(path string) bool {
	rel, err := filepath.Rel(p.Root, path)
	if rel = filepath.ToSlash(rel); err != nil || !filepath.IsLocal(rel) || place.Matches(kinds.Own, rel) {
		return false
	}
	return place.Matches(p.steering(), rel) || !worktree.IsSettings(path) &&
		filepath.Base(path) != state.ConfigName && !slices.Contains(p.configurationFiles(), path)
}

// withSteering adds the known files that steer agents and, while a session may be changing some,
// all existing ones.
func (p *Project) withSteering(files []string, rows map[string]store.ConfigurationFile, working bool) []string {
	files = slices.Clone(files)
	for path := range rows {
		if p.steers(path) {
			files = append(files, path)
		}
	}
	if working {
		there, _ := place.Steering(p.Root, p.steering(), kinds.Own...)
		for name := range there {
			files = append(files, p.Path(filepath.FromSlash(name)))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// named returns a path for people.
func (p *Project) named(path string) string {
	if rel, err := filepath.Rel(p.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// WaitsForApproval says in one sentence what is not approved; "" if everything is.
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

// HowToApprove says what people can do about it.
func (p *Project) HowToApprove() string {
	var back []string
	for _, u := range p.unapproved {
		how := []string{"git checkout"}
		if worktree.IsSettings(u.Path) {
			_, how = worktree.ChangedSettings(u.name, u.Approved, u.now)
		} else if u.Approved == "" {
			how = []string{"rm " + u.name}
		}
		back = append(back, how...)
	}
	slices.Sort(back)
	return "`ralph approve config` approves it; with the file put back as it was (" +
		strings.Join(slices.Compact(back), "; ") + ") runs start as well"
}

// RefuseUnapproved keeps a run from starting with files that a session changed, unless the approved
// versions can be used, as configured.
func (p *Project) RefuseUnapproved(db *store.DB) error {
	if !slices.ContainsFunc(p.unapproved, func(u unapproved) bool {
		return !u.Aside && (db.Instead == nil || !db.Instead(u.Path))
	}) {
		return nil
	}
	return &ralph.ExitError{Status: ralph.ExitWaiting, Err: fmt.Errorf("waiting for people: %s\n%s%s",
		p.WaitsForApproval(), p.Differences(), p.HowToApprove())}
}

// Differences shows the sessions' changes in the files that wait for approval.
func (p *Project) Differences() string {
	var b strings.Builder
	for _, u := range p.unapproved {
		b.WriteString(p.difference(u))
	}
	return b.String()
}

// difference shows a session's changes in a file.
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
	approved := text(u.Approved, was, p.approvedCopies().Copy(u.Approved))
	for _, line := range ralph.LineDiff(approved, text(u.now, is, u.at)) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if u.now == "" {
		b.WriteString("  (the file is gone)\n")
	}
	return b.String()
}

// kindOf describes the file that a digest is of; "" for a plain one.
func kindOf(digest string) string {
	if target, ok := place.LinkTarget(digest); ok {
		if strings.HasSuffix(target, "------") { // the mode of something that is not a link; see place.Digest
			return "(no plain file)"
		}
		return fmt.Sprintf("(a link to %s)", target)
	}
	if strings.HasPrefix(digest, "true ") {
		return "(executable)"
	}
	return ""
}

// maxShown is the maximum size of a file whose content is shown, in bytes.
const maxShown = 8 << 20

// contentOf reads a file. It does not block on a pipe in the file's place.
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

// Approvable refuses to approve a configuration that no run can start with.
func (p *Project) Approvable() error {
	if _, err := p.load(nil); err != nil {
		return ralph.Usage(fmt.Errorf("not approved, and nothing was changed: no run can begin with what is there:\n%w", err))
	}
	return nil
}

// Approve approves on behalf of a person what waits for approval, as it was when the project was
// opened, and returns the names of the files.
func (p *Project) Approve(ctx context.Context, db *store.DB, person string) (names []string, err error) {
	var files []store.ConfigurationFile
	for _, u := range p.unapproved {
		if u.Aside {
			if err := p.approvedCopies().Restore(p.Root, u.name, u.now); err != nil {
				return nil, fmt.Errorf("%s: %w", u.name, err)
			}
		}
		now, err := place.Digest(u.Path)
		if err != nil {
			return nil, err
		}
		if now != u.now {
			return nil, ralph.Usage(ralph.Conflict("%s has changed since it was shown; look again", u.name))
		}
		files = append(files, store.ConfigurationFile{Path: u.Path, Approved: now, Seen: now})
		names = append(names, u.name)
	}
	return names, db.Tx(ctx, func(tx *store.Tx) error { return tx.ApproveConfiguration(files, person) })
}

// salvage loads the approved configuration if the current one cannot be read because of a session's
// changes; why is the error of reading it.
func (p *Project) salvage(ctx context.Context, why error) error {
	if !state.Exists(p.File(state.Database)) {
		return why
	}
	db, err := store.Open(ctx, p.File(state.Database), store.Options{})
	if err != nil {
		return why
	}
	defer db.Close()
	list, err := p.unapprovedFiles(ctx, db, p.configurationFiles(), true)
	if err != nil || len(list) == 0 {
		return why
	}
	if p.Config, err = p.load(p.copies(list)); err != nil {
		return why
	}
	return nil
}

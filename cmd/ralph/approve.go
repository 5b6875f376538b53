package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
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
func (p *project) kept() check.Kept { return check.Kept(filepath.Join(p.state, "kept")) }

// configurationFiles are the files by which runs are configured: ralph.yaml, the
// user's own configuration, and what they name.
func (p *project) configurationFiles() []string {
	files := []string{filepath.Join(p.root, configName)}
	if p.userFile != "" {
		files = append(files, p.userFile)
	}
	add := func(name string) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.root, name)
		}
		if !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	if file := templateFile(p); file != "" {
		add(file)
	}
	// Programs of the project's own that run outside of any sandbox.
	words := slices.Clone(p.config.Agent.Command)
	for _, r := range p.config.Notify.Receivers {
		words = append(words, r.Command...)
	}
	for _, word := range words {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.root, path)
		}
		rel, err := filepath.Rel(p.root, path)
		if info, serr := os.Stat(path); err == nil && filepath.IsLocal(rel) && serr == nil && info.Mode().IsRegular() {
			add(path)
		}
	}
	if p.git {
		files = append(files, worktree.Settings(p.top, p.common)...)
	}
	return files
}

// judgeConfiguration finds what sessions left of the files that configure runs and
// nobody approved. Where there is some, the approved versions are used instead. What
// people changed between sessions is theirs, and needs no word.
func (p *project) judgeConfiguration(ctx context.Context, db *store.DB) error {
	// First the configuration itself, then what the approved one names.
	for range 2 {
		list, err := p.unapprovedFiles(ctx, db, p.configurationFiles())
		if err != nil {
			return err
		}
		if len(list) == len(p.unapproved) {
			break
		}
		p.unapproved, p.instead = list, map[string]string{}
		for _, u := range list {
			p.instead[u.Path] = p.kept().Copy(u.Approved)
		}
		if p.config, err = p.load(p.instead); err != nil {
			return err
		}
	}
	if p.config.Configuration == "approved" {
		db.Instead = slices.DeleteFunc(p.replaceable(), func(path string) bool {
			i := slices.IndexFunc(p.unapproved, func(u unapproved) bool { return u.Path == path })
			return i >= 0 && p.unapproved[i].Approved != "" && p.instead[path] == ""
		})
	}
	return nil
}

// replaceable are the files that a run can read in another version: programs it cannot.
func (p *project) replaceable() []string {
	return []string{filepath.Join(p.root, configName), p.userFile, filepath.Join(p.root, templateFile(p))}
}

// unapprovedFiles are those of the files, and of what is known from before, that are as
// a session left them.
func (p *project) unapprovedFiles(ctx context.Context, db *store.DB, files []string) (list []unapproved, err error) {
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
func (p *project) named(path string) string {
	if rel, err := filepath.Rel(p.root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// waitsForApproval says in a sentence what is not approved; "" if all is.
func (p *project) waitsForApproval() string {
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
	return fmt.Sprintf("%s %s as %s left it, and no person has approved that", strings.Join(names, ", "), verb, strings.Join(by, ", "))
}

// howToApprove is what people do about it.
func (p *project) howToApprove() string {
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

// refuseUnapproved keeps a run from starting with what a session left, unless the
// approved version is to be used, which files can be replaced by and programs not.
func (p *project) refuseUnapproved(db *store.DB) error {
	if !slices.ContainsFunc(p.unapproved, func(u unapproved) bool { return !slices.Contains(db.Instead, u.Path) }) {
		return nil
	}
	var diffs strings.Builder
	for _, u := range p.unapproved {
		diffs.WriteString(p.difference(u))
	}
	return &statusError{ralph.ExitWaiting, fmt.Errorf("waiting for people: %s\n%s%s", p.waitsForApproval(), diffs.String(), p.howToApprove())}
}

// difference shows what a session changed in a file.
func (p *project) difference(u unapproved) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s\n", u.name)
	if worktree.IsSettings(u.Path) {
		names, _ := worktree.ChangedSettings(u.name, u.Approved, u.now)
		for _, line := range worktree.ShowSettings(u.Path, names) {
			fmt.Fprintf(&b, "  + %s\n", printable(line))
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
		return append(lines, strings.Split(strings.TrimRight(printable(content), "\n"), "\n")...)
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

func newApprove(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "config", Short: "Approve ralph.yaml and what it names as a session left them",
		Long: `Approve the files by which runs are configured as they are now: ralph.yaml, the
user's own configuration, the template of prompts, and programs of the project that
they name. It is needed only for what a session left; what people change counts at once.`,
		Example: "  ralph approve config\n  ralph approve config --yes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.approveConfig(cmd.Context(), yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return noun("approve", "Approve what a session left and only people may", cmd)
}

func (a *app) approveConfig(ctx context.Context, yes bool) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if len(p.unapproved) == 0 {
		return a.print(map[string]any{"approved": []string{}}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "nothing waits for approval: what configures runs is as people left it")
			return err
		})
	}
	if !a.json {
		fmt.Fprintf(a.out, "%s:\n", p.waitsForApproval())
		for _, u := range p.unapproved {
			fmt.Fprint(a.out, p.difference(u))
		}
	}
	if _, err := p.load(nil); err != nil {
		return usage(fmt.Errorf("not approved, and nothing was changed: no run can begin with what is there:\n%w", err))
	}
	if !yes {
		in, ok := a.in.(*os.File)
		if !ok || !onTerminal(in) {
			return usage(errors.New("there is no terminal to ask on; look at what changed, then `ralph approve config --yes`"))
		}
		fmt.Fprint(a.out, "Approve? [y/N] ")
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			return usage(errors.New("not approved; nothing was changed"))
		}
	}
	var files []store.ConfigurationFile
	names := []string{}
	for _, u := range p.unapproved {
		now, err := place.Digest(u.Path)
		if err != nil {
			return err
		}
		if now != u.now {
			return usage(fmt.Errorf("%s has changed since it was shown; look again: %w", u.name, ralph.ErrConflict))
		}
		files = append(files, store.ConfigurationFile{Path: u.Path, Approved: now, Seen: now})
		names = append(names, u.name)
	}
	if err := db.Tx(ctx, func(tx *store.Tx) error { return tx.ApproveConfiguration(files, a.person()) }); err != nil {
		return err
	}
	return a.print(map[string]any{"approved": names}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "approved:", strings.Join(names, ", "))
		return err
	})
}

// salvage loads the approved configuration where what is there cannot be read because
// of what a session left; the error is why it cannot be read.
func (p *project) salvage(ctx context.Context, why error) error {
	if !exists(filepath.Join(p.state, databaseName)) {
		return why
	}
	db, err := store.Open(ctx, filepath.Join(p.state, databaseName), store.Options{})
	if err != nil {
		return why
	}
	defer db.Close()
	list, err := p.unapprovedFiles(ctx, db, p.configurationFiles())
	if err != nil || len(list) == 0 {
		return why
	}
	instead := map[string]string{}
	for _, u := range list {
		instead[u.Path] = p.kept().Copy(u.Approved)
	}
	if p.config, err = p.load(instead); err != nil {
		return why
	}
	return nil
}

package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ralph/internal/files"
)

// unusable explains why git cannot use the .git of a clone; "" if it can. Git itself reports faults
// in its files.
func (t *Tree) unusable() string {
	if info, err := os.Lstat(t.theirs); err != nil || !info.IsDir() {
		return "was removed, or something else put in its place"
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(t.theirs, name)); err != nil || !info.IsDir() {
			return "has no folder " + name
		}
	}
	text, err := readSmall(filepath.Join(t.theirs, "HEAD"), maxHead)
	at := strings.TrimSpace(string(text))
	branch, is := strings.CutPrefix(at, "ref: ")
	if err != nil || !isID(at) && (!is || plumbing.ReferenceName(branch).Validate() != nil) {
		return "has no valid HEAD"
	}
	return ""
}

// Renew recreates the .git of a clone at the commit that was checked out. The files stay as they are.
func (t *Tree) Renew(ctx context.Context) error {
	if t.at == "" {
		return fmt.Errorf("%s cannot be used, and it is not known which commit it was made for", t.theirs)
	}
	ignored, err := os.ReadFile(filepath.Join(t.git, "info", "exclude"))
	if err != nil {
		return err
	}
	if err := t.renew(ctx, t.at, string(ignored), t.lender.User(ctx)); err != nil {
		return err
	}
	return t.giveIndex()
}

// renew recreates both git directories of a clone with HEAD at a commit. ignored has further patterns that git ignores,
// a line each.
func (t *Tree) renew(ctx context.Context, commit, ignored string, user [2]string) error {
	theirs, scratch := t.theirs, filepath.Join(t.git, "scratch", "objects")
	if err := errors.Join(files.RemoveAll(theirs), os.MkdirAll(scratch, 0o700)); err != nil {
		return err
	}
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "logs"} {
		if err := os.MkdirAll(filepath.Join(theirs, filepath.FromSlash(dir)), 0o755); err != nil {
			return err
		}
	}
	settings, err := t.settings(ctx)
	if err != nil {
		return err
	}
	refs, err := t.lender.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	// The project's branches appear as those of a remote.
	packed := "# pack-refs with:\n"
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		branch, is := strings.CutPrefix(name, "refs/heads/")
		if is {
			packed += refs[name] + " refs/remotes/origin/" + branch + "\n"
		} else if strings.HasPrefix(name, "refs/tags/") {
			packed += refs[name] + " " + name + "\n"
		}
	}
	person := filepath.Join(t.lender.common, "objects")
	var who string
	if user[0] != "" {
		who = fmt.Sprintf("[user]\n\tname = %s\n\temail = %s\n", value(user[0]), value(user[1]))
	}
	who += "[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n[gc]\n\tauto = 0\n"
	for _, s := range t.lfs(ctx) {
		if key, is := strings.CutPrefix(s.key, "filter.lfs."); is {
			who += fmt.Sprintf("[filter \"lfs\"]\n\t%s = %s\n", key, value(s.value))
		}
	}
	patterns := t.sparse()
	if patterns != "" {
		settings += sparseSettings
	}
	mine := "\tbare = false\n\tcommitGraph = false\n\tmultiPackIndex = false\n\tsplitIndex = false\n" +
		"\tuntrackedCache = false\n[uploadpack]\n\tallowAnySHA1InWant = true\n"
	alternates := []string{quoted(person), quoted(filepath.Join(theirs, "objects")), quoted(scratch)}
	texts := map[string]string{
		filepath.Join(t.git, "HEAD"):                          commit + "\n",
		filepath.Join(theirs, "HEAD"):                         commit + "\n",
		filepath.Join(theirs, "packed-refs"):                  packed,
		filepath.Join(theirs, "config"):                       settings + who,
		filepath.Join(theirs, "info", "exclude"):              ignored,
		filepath.Join(theirs, "objects/info/alternates"):      person + "\n",
		filepath.Join(t.git, "config"):                        settings + mine,
		filepath.Join(t.git, sparseFile):                      patterns,
		filepath.Join(theirs, sparseFile):                     patterns,
		filepath.Join(t.git, "info", "exclude"):               ignored,
		filepath.Join(t.git, "objects", "info", "alternates"): strings.Join(alternates, "\n") + "\n",
	}
	if shallow, err := os.ReadFile(filepath.Join(t.lender.common, "shallow")); err == nil {
		texts[filepath.Join(theirs, "shallow")], texts[filepath.Join(t.git, "shallow")] = string(shallow), string(shallow)
	} else if err := os.Remove(filepath.Join(t.git, "shallow")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for path, text := range texts {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the repository's settings that affect how files are written.
func (t *Tree) settings(ctx context.Context) (string, error) {
	format := "[core]\n\trepositoryformatversion = 0\n"
	if t.longIDs {
		format = "[extensions]\n\tobjectformat = sha256\n[core]\n\trepositoryformatversion = 1\n"
	}
	list, err := t.lender.configured(ctx, borrowed())
	if err != nil && (!complains(err) || ctx.Err() != nil) {
		return "", err
	}
	for _, s := range list {
		format += "\t" + strings.TrimPrefix(s.key, "core.") + " = " + value(s.value) + "\n"
	}
	return format, nil
}

// giveIndex copies ralph's index of a clone into its .git.
func (t *Tree) giveIndex() error {
	from, to := filepath.Join(t.git, "index"), filepath.Join(t.theirs, "index")
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the commit has no files
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	info, serr := os.Stat(from)
	if err = errors.Join(err, serr); err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err
}

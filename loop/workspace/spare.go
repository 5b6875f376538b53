package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"ralph"
	"ralph/internal/files"
	"ralph/internal/lazy"
)

// A spare is a folder of installed packages that a copy of the person's own can replace.
type spare struct {
	command func() *regexp.Regexp // it installs; groups: a folder below the root, and the folder of the packages
	folders []string              // the first has the packages; "" is the command's second group
	mark    string                // a glob in it of files that the end of an installation writes
	locks   []string              // files that list the packages
}

// installer matches a command that does nothing but install packages.
func installer(command string) func() *regexp.Regexp {
	return lazy.Regexp(`^(?:cd ([\w./-]+) && )?(?:` + command + ")(?: [^&|;<>$`()]*)?$")
}

var spares = []spare{
	{
		installer(`npm (?:ci|install|i)`),
		[]string{"node_modules"},
		".package-lock.json",
		[]string{"package.json", "package-lock.json"},
	},
	{
		installer(`pnpm (?:install|i)`),
		[]string{"node_modules"},
		".modules.yaml",
		[]string{"package.json", "pnpm-lock.yaml"},
	},
	{installer(`yarn(?: install)?`), []string{"node_modules"}, ".yarn-*", []string{"package.json", "yarn.lock"}},
	{installer(`bun (?:install|i)`), []string{"node_modules"}, ".", []string{"package.json", "bun.lock", "bun.lockb"}},
	{installer(`uv sync`), []string{".venv"}, "lib/python*/site-packages", []string{"pyproject.toml", "uv.lock"}},
	{
		installer(`python3? -m venv ([\w.-]+) && \S*(?:python3? -m pip|pip3?) install`),
		[]string{""},
		"lib/python*/site-packages",
		[]string{"pyproject.toml", "requirements.txt", "requirements-dev.txt"},
	},
	{
		installer(`bundle install`),
		[]string{"vendor/bundle", ".bundle"},
		"ruby/*/specifications",
		[]string{"Gemfile", "Gemfile.lock"},
	},
	{
		installer(`composer install`),
		[]string{"vendor"},
		"composer/installed.json",
		[]string{"composer.json", "composer.lock"},
	},
}

// borrow copies the person's own packages into the workspace in place of a failed command that installs packages. It
// returns the command's error if the copy is not possible.
func (w *Workspace) borrow(ctx context.Context, failed *SetupError) error {
	if failed.Cause == "" {
		return failed
	}
	for _, s := range spares {
		m := s.command().FindStringSubmatch(failed.Command)
		if m == nil {
			continue
		}
		var folders []string
		for _, f := range s.folders {
			if f == "" {
				f = m[2]
			}
			folders = append(folders, filepath.Join(m[1], f))
		}
		if failed.Spare = w.unfit(ctx, s, m[1], folders); failed.Spare != "" {
			return failed
		}
		for _, folder := range folders {
			if err := w.command(ctx, copying(folder)); err != nil {
				return errors.Join(failed, ctx.Err())
			}
		}
		w.Clone.pool.Log.Warn("set-up failed: the workspace has a copy of your folder", "command", failed.Command,
			"folder", folders[0], "cause", failed.Cause.Said())
		copied := ralph.Copied{Command: failed.Command, Folder: folders[0], Cause: failed.Cause}
		return w.Clone.pool.copied(failed.Command, &copied)
	}
	return failed
}

// unfit returns a reason against copying the person's folders; "" for none. The workspace must have the same lock files
// in the folder in, and the packages must be newer than these.
func (w *Workspace) unfit(ctx context.Context, s spare, in string, folders []string) (why string) {
	here, name := w.Here(), folders[0]
	for _, folder := range folders {
		if !filepath.IsLocal(folder) || folder == "." {
			return folder + " is not a folder below the project"
		}
	}
	if strings.ContainsAny(here.Dir, `|&\[]*^$"`) {
		return "a copy of your " + name + " would not work: the path of your folder has special characters"
	}
	marks, err := filepath.Glob(filepath.Join(here.Path(name), s.mark))
	if err != nil || len(marks) == 0 {
		return "your folder has no complete " + name + " to copy"
	}
	var installed time.Time
	for _, mark := range marks {
		if info, err := os.Stat(mark); err == nil && info.ModTime().After(installed) {
			installed = info.ModTime()
		}
	}
	ignored, err := here.Tree.IgnoredOf(ctx, folders)
	if err != nil || len(ignored) == 0 {
		return "git does not ignore your " + name
	}
	for _, lock := range s.locks {
		lock = filepath.Join(in, lock)
		own, err := os.ReadFile(here.Path(lock))
		wanted, other := files.Read(w.Path(lock))
		if errors.Is(err, fs.ErrNotExist) && errors.Is(other, fs.ErrNotExist) {
			continue
		}
		if err != nil || other != nil || !bytes.Equal(own, wanted) {
			return fmt.Sprintf("your %s is for another %s", name, lock)
		}
		if info, err := os.Stat(here.Path(lock)); err != nil || info.ModTime().After(installed) {
			return fmt.Sprintf("your %s is older than your %s", name, lock)
		}
	}
	for _, folder := range folders {
		if link := leading(here.Path(folder), here.Dir); link != "" {
			return fmt.Sprintf("%s in your %s leads to your own files", link, folder)
		}
	}
	return ""
}

// leading returns an absolute link in a folder that leads into root: with it, checks would test the person's files.
func leading(folder, root string) (found string) {
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return err
		}
		to, err := os.Readlink(path)
		if err == nil && filepath.IsAbs(to) && within(to, root) {
			found = below(folder, path)
			return fs.SkipAll
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return reason(err)
	}
	return found
}

// copying returns the command that copies a folder of the person's into the workspace. Scripts, and the records of
// packages that are developed in the project, then name the workspace.
func copying(folder string) string {
	return fmt.Sprintf(`f=%q; test -e "$RALPH_ROOT/$f" || exit 0
rm -rf "$f" && mkdir -p "$(dirname "$f")" && cp -pR "$RALPH_ROOT/$f" "$f" || exit
here=$(pwd -P); export here
find "$f" -type f \( -path '*bin/*' -o -name '*.pth' -o -name '__editable__*' -o -name '*.egg-link' \
  -o -name direct_url.json \) -exec grep -qI -- "$RALPH_ROOT" {} \; -exec sh -c \
  'sed "s|$RALPH_ROOT|$here|g" "$1" >"$1.new" && cat "$1.new" >"$1" && rm "$1.new"' sh {} \;`,
		folder)
}

// copyOf returns the file, beside the workspaces, that records the copy which replaces a command.
func (p *Pool) copyOf(command string) string {
	sum := sha256.Sum256([]byte(command))
	return filepath.Join(p.Dir, "copied", hex.EncodeToString(sum[:16]))
}

// copied records the copy that replaces a command; nil if the command succeeded.
func (p *Pool) copied(command string, c *ralph.Copied) error {
	path := p.copyOf(command)
	if c == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	return files.Write(path, text, 0o600)
}

// Again has set-up commands run again that copies replace.
func (p *Pool) Again() error { return files.RemoveAll(filepath.Dir(p.copyOf(""))) }

// Copied returns the copies of the person's folders that replace the results of failed set-up commands.
func (p *Pool) Copied() (list []ralph.Copied, err error) {
	for _, command := range p.Setup {
		var c ralph.Copied
		switch err := readJSON(p.copyOf(command), &c); {
		case err == nil:
			list = append(list, c)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return list, nil
}

// Copied is [Pool.Copied]; none in a person's folder.
func (w *Workspace) Copied() ([]ralph.Copied, error) {
	if w.Clone == nil {
		return nil, nil
	}
	return w.Clone.pool.Copied()
}

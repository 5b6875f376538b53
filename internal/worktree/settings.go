package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// A repository's settings tell git where to look and what to run: parts of its configuration, its
// hooks, and its excludes. They belong to people (trust, 5).

// settingsNames are the files and folders in a git directory that hold settings.
var settingsNames = []string{"config", "config.worktree", "hooks", "info"}

// Settings lists the files and folders with the settings of the repository whose work tree is at
// top.
func Settings(top, common string) (list []string) {
	own, err := gitDirOf(filepath.Join(top, ".git"))
	if err != nil {
		own = common
	}
	for _, name := range settingsNames {
		list = append(list, filepath.Join(common, name))
	}
	if own != common {
		list = append(list, filepath.Join(own, "config.worktree"))
	}
	return list
}

// infoNames are the settings in the folder info; its other files are not settings.
var infoNames = []string{"attributes", "exclude", "grafts", "sparse-checkout"}

// IsSettings reports whether a path is one of [Settings].
func IsSettings(name string) bool {
	dir := filepath.Dir(name)
	return slices.Contains(settingsNames, filepath.Base(name)) &&
		(exists(filepath.Join(dir, "objects")) || exists(filepath.Join(dir, "commondir")))
}

// steering are the configuration keys, without subsection, that redirect git or make it run
// something.
var steering = []string{
	"alias.*", "core.alternaterefscommand", "core.askpass", "core.attributesfile", "core.bare", "core.editor",
	"core.excludesfile", "core.fsmonitor", "core.gitproxy", "core.hookspath", "core.pager",
	"core.sparsecheckout", "core.sshcommand", "core.worktree",
	"credential.*", "diff.command", "diff.external", "diff.textconv", "difftool.*", "extensions.*",
	"filter.*", "gpg.*", "hook.*",
	"include.*", "includeif.*", "interactive.difffilter", "merge.driver", "mergetool.*", "pager.*", "remote.receivepack",
	"remote.uploadpack", "remote.vcs", "sequence.editor", "submodule.update", "trailer.*", "uploadpack.*", "url.*",
}

// unreadableConfig stands for the whole content of a configuration that cannot be parsed.
const unreadableConfig = "(unreadable)"

// settingsMark starts a digest of settings. Each setting follows on a line: its name and the start
// of a digest of its value.
const settingsMark = "git-settings\n"

// SettingsDigest returns a digest of a file or folder of settings that names each of them; "" if
// there are none.
func SettingsDigest(name string) (string, error) {
	values, err := settings(name)
	if err != nil || len(values) == 0 {
		return "", err
	}
	text := settingsMark
	for _, key := range slices.Sorted(maps.Keys(values)) {
		sum := sha256.Sum256([]byte(values[key]))
		text += url.PathEscape(key) + "\t" + hex.EncodeToString(sum[:8]) + "\n"
	}
	return text, nil
}

// settings returns the effective settings of a file or folder.
func settings(name string) (map[string]string, error) {
	if base := filepath.Base(name); base == "config" || base == "config.worktree" {
		return steeringOf(name)
	}
	entries, err := os.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	values := map[string]string{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sample") ||
			filepath.Base(name) == "info" && !slices.Contains(infoNames, e.Name()) {
			continue
		}
		info, err := os.Stat(filepath.Join(name, e.Name()))
		if err != nil || !info.Mode().IsRegular() {
			continue // git ignores it
		}
		text, err := os.ReadFile(filepath.Join(name, e.Name()))
		if err != nil {
			return nil, err
		}
		values[e.Name()] = string(text)
		if filepath.Base(name) == "hooks" && info.Mode()&0o111 == 0 {
			delete(values, e.Name()) // git does not run it
		}
	}
	return values, err
}

// steeringOf returns the steering keys of a configuration. The content of an included file counts
// as part of the key that includes it.
func steeringOf(name string) (map[string]string, error) {
	parsed, text, err := readConfig(name)
	if errors.Is(err, errConfig) {
		return map[string]string{unreadableConfig: text}, nil // the whole file counts
	}
	if err != nil || parsed == nil {
		return nil, err
	}
	values := map[string]string{}
	add := func(section, sub string, options config.Options) {
		for _, o := range options {
			key, value := strings.ToLower(section)+"."+strings.ToLower(o.Key), o.Value
			if !slices.ContainsFunc(steering, func(pattern string) bool { ok, _ := path.Match(pattern, key); return ok }) {
				continue
			}
			if strings.HasPrefix(key, "include") {
				included := inside(filepath.Dir(name), value)
				more, err := os.ReadFile(included)
				value += fmt.Sprintf("\n%t %s", err == nil, more)
			}
			full := strings.ToLower(section) + "." + sub + strings.Repeat(".", min(len(sub), 1)) + strings.ToLower(o.Key)
			values[full] += value + "\x00"
		}
	}
	for _, section := range parsed.Sections {
		add(section.Name, "", section.Options)
		for _, sub := range section.Subsections {
			add(section.Name, sub.Name, sub.Options)
		}
	}
	if strings.Trim(strings.ToLower(values["core.bare"]), "\x00") == "false" {
		delete(values, "core.bare") // the default
	}
	return values, nil
}

// errConfig says that a file is not a git configuration file.
var errConfig = errors.New("not a git configuration file")

// readConfig reads a git configuration; it returns nil if the file does not exist.
func readConfig(name string) (parsed *config.Config, text string, err error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return nil, "", nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, info.Mode().String(), errConfig
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	parsed = config.New()
	if err := config.NewDecoder(bytes.NewReader(b)).Decode(parsed); err != nil {
		return nil, string(b), fmt.Errorf("%s: %w: %w", name, errConfig, err)
	}
	return parsed, string(b), nil
}

// isNotDir reports whether an error says that a part of a path is a file.
func isNotDir(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "not a directory")
}

// isBare reports whether core.bare is set.
func isBare(common string) bool {
	parsed, _, err := readConfig(filepath.Join(common, "config"))
	if err != nil || parsed == nil {
		return false
	}
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(parsed.Section("core").Options.Get("bare")))
}

// ChangedSettings returns the names of the settings that differ between two digests of a file or
// folder, and the commands that revert them.
func ChangedSettings(name, was, is string) (names, undo []string) {
	before, now := settingsOf(was), settingsOf(is)
	for _, key := range slices.Sorted(maps.Keys(merged(before, now))) {
		if before[key] == now[key] {
			continue
		}
		names = append(names, key)
		_, changed := before[key]
		switch base := filepath.Base(name); {
		case key == unreadableConfig:
			undo = append(undo, "mend "+name)
		case changed:
			undo = append(undo, fmt.Sprintf("put %s back in %s", key, name))
		case base == "config" || base == "config.worktree":
			command := "git config --unset-all "
			if key == "core.worktree" { // git would enter that work tree first
				command = "git --work-tree=. config --unset "
			}
			if base != "config" {
				command = strings.Replace(command, "config", "config --worktree", 1)
			}
			undo = append(undo, command+shellWord(key))
		default:
			undo = append(undo, "rm "+shellWord(filepath.Join(name, key)))
		}
	}
	return names, undo
}

// StillLeft reports whether any of a session's changes of settings is still in place, from the
// digests approved by people, left by the session, and current.
func StillLeft(approved, left, now string) bool {
	before, after, is := settingsOf(approved), settingsOf(left), settingsOf(now)
	for key := range merged(before, after) {
		if after[key] != before[key] && is[key] == after[key] {
			return strings.HasPrefix(approved+left, settingsMark)
		}
	}
	return false
}

// merged returns a map with the keys of both.
func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// ShowSettings shows the current values of some settings of a file or folder.
func ShowSettings(name string, keys []string) (lines []string) {
	values, err := settings(name)
	for _, key := range keys {
		value, there := values[key]
		switch {
		case err != nil:
			lines = append(lines, fmt.Sprintf("%s (%v)", key, err))
		case !there:
			lines = append(lines, key+" is gone")
		default:
			for line := range strings.Lines(strings.TrimSuffix(strings.ReplaceAll(value, "\x00", "\n"), "\n")) {
				lines = append(lines, key+" = "+strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return lines
}

// settingsOf parses a digest into names and digests of values.
func settingsOf(digest string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(digest, settingsMark)) {
		key, sum, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if name, err := url.PathUnescape(key); err == nil && name != "" {
			values[name] = sum
		}
	}
	return values
}

// shellWord quotes a text as one word for a shell.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+@=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

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

// A repository's settings are what tells git where to look and what to run: parts of
// its configuration, its hooks, and what it leaves out. They are people's (trust, 5).

// settingsNames are the files and folders in a git directory that hold them.
var settingsNames = []string{"config", "config.worktree", "hooks", "info"}

// Settings are the files and folders of the settings of the repository whose work tree
// is at top.
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

// infoNames are those in the folder info; what else is there others write.
var infoNames = []string{"attributes", "exclude", "grafts", "sparse-checkout"}

// IsSettings tells whether a path is one of [Settings].
func IsSettings(name string) bool {
	dir := filepath.Dir(name)
	return slices.Contains(settingsNames, filepath.Base(name)) &&
		(exists(filepath.Join(dir, "objects")) || exists(filepath.Join(dir, "commondir")))
}

// steering are the keys, without what names one of several, that lead git elsewhere or
// have it run something.
var steering = []string{
	"alias.*", "core.alternaterefscommand", "core.askpass", "core.attributesfile", "core.bare", "core.editor",
	"core.excludesfile", "core.fsmonitor", "core.gitproxy", "core.hookspath", "core.pager",
	"core.sparsecheckout", "core.sshcommand", "core.worktree",
	"credential.*", "diff.command", "diff.external", "diff.textconv", "difftool.*", "extensions.*",
	"filter.*", "gpg.*", "hook.*",
	"include.*", "includeif.*", "interactive.difffilter", "merge.driver", "mergetool.*", "pager.*", "remote.receivepack",
	"remote.uploadpack", "remote.vcs", "sequence.editor", "submodule.update", "trailer.*", "uploadpack.*", "url.*",
}

// unreadableConfig is the name of all that a configuration has that cannot be read.
const unreadableConfig = "(unreadable)"

// settingsMark is what a digest of settings begins with. A line follows for each of
// them: its name, and the beginning of a digest of its value.
const settingsMark = "git-settings\n"

// SettingsDigest is a digest of settings, that names each of them; "" if there are none.
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

// settings are the values that count of a file or folder of the settings.
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
			continue // git does nothing with it
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

// steeringOf are the keys of a configuration that steer git. What a file has that is
// included counts with the key that names it.
func steeringOf(name string) (map[string]string, error) {
	parsed, text, err := readConfig(name)
	if errors.Is(err, errConfig) {
		return map[string]string{unreadableConfig: text}, nil // it counts as a whole
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
		delete(values, "core.bare") // as it is without
	}
	return values, nil
}

// errConfig says that a file is no configuration of git's.
var errConfig = errors.New("it is no configuration of git's")

// readConfig reads a configuration of git's; nil where there is none.
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

// isNotDir tells that a part of a path is a file, so that nothing is below it.
func isNotDir(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "not a directory")
}

// isBare tells whether a repository is said to have no work tree.
func isBare(common string) bool {
	parsed, _, err := readConfig(filepath.Join(common, "config"))
	if err != nil || parsed == nil {
		return false
	}
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(parsed.Section("core").Options.Get("bare")))
}

// ChangedSettings are the names of those of a file or folder that differ between two
// digests of it, and the commands that take them back.
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
			if key == "core.worktree" { // git would go there first
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

// StillLeft tells whether people have taken back but a part of what a session left of
// settings, by the digests of what people left, of what it left, and of what is there.
func StillLeft(approved, left, now string) bool {
	before, after, is := settingsOf(approved), settingsOf(left), settingsOf(now)
	for key := range merged(before, after) {
		if after[key] != before[key] && is[key] == after[key] {
			return strings.HasPrefix(approved+left, settingsMark)
		}
	}
	return false
}

// merged has the keys of both.
func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// ShowSettings shows what some of the settings of a file or folder are now.
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

// settingsOf are the names in a digest, and the digests of their values.
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

// shellWord is a text as a shell reads it as one word.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+@=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

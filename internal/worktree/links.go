package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/lazy"
)

// A Link is a nested repository, such as a submodule, at the commit that a commit of the outer repository names.
type Link struct {
	Path   string // relative to the top
	Commit string
	URL    string // its public address; "" if unknown
	Known  bool   // URL was there before the commit, so that the author has not chosen it
}

// Links returns the nested repositories whose commits differ between two commits.
func (t *Tree) Links(ctx context.Context, from, to string) (list []Link, err error) {
	if from == to {
		return nil, nil
	}
	list, err = t.movedLinks(ctx, from, to)
	for i := range list {
		l := &list[i]
		for _, commit := range []string{from, to} {
			if l.URL == "" && err == nil {
				l.URL, err = t.moduleURL(ctx, commit, l.Path)
				l.Known = l.URL != "" && commit == from
			}
		}
		if l.URL != "" && !l.Known && err == nil { // it may have moved
			l.Known, err = t.knows(ctx, from, l.URL)
		}
	}
	return list, err
}

// knows reports whether a submodule of a commit has an address.
func (t *Tree) knows(ctx context.Context, commit, url string) (bool, error) {
	modules, err := t.modules(ctx, commit)
	for _, m := range modules {
		known, err := t.moduleURL(ctx, commit, m["path"])
		if err != nil || known == url {
			return known == url, err
		}
	}
	return false, err
}

// Leading returns the symbolic links that a commit adds or changes, compared with another, and that lead out of the
// repository's files. They would not work elsewhere, and a check would see files outside of the change.
func (t *Tree) Leading(ctx context.Context, from, to string) (list []ralph.Untaken, err error) {
	if from == to {
		return nil, nil
	}
	links, err := t.moved(ctx, from, to, linkMode)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		target, err := t.run(ctx, nil, "cat-file", "blob", l.Commit)
		if err != nil {
			return nil, err
		}
		if why := leaves(l.Path, string(target)); why != "" {
			list = append(list, ralph.Untaken{Path: l.Path, Why: fmt.Sprintf(
				"is a symbolic link to %q, %s: have it lead to a file of the project by a relative path, or remove it",
				target, why)})
		}
	}
	return list, nil
}

// linkMode is git's mode of symbolic links.
const linkMode = "120000"

// leaves explains why a symbolic link leads out of the repository's files; "" if it does not. If each link of
// a repository passes, no chain of them leads out either.
func leaves(name, target string) string {
	if path.IsAbs(target) {
		return "an absolute path"
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == ".." && down:
			return `which goes up by ".." after a folder that may be a link` // after which it may lead anywhere
		case part == "..":
			if depth--; depth < 0 {
				return "which is outside of the project"
			}
		case strings.EqualFold(part, ".git"):
			return "which is in git's own folder"
		default:
			down = true
		}
	}
	return ""
}

// movedLinks returns the nested repositories that differ between two commits, without addresses.
func (t *Tree) movedLinks(ctx context.Context, from, to string) ([]Link, error) {
	return t.moved(ctx, from, to, moduleMode)
}

// moved returns the paths that differ between two commits and have the mode in the second one, with their ids.
func (t *Tree) moved(ctx context.Context, from, to, mode string) (list []Link, err error) {
	changes, err := t.raw(ctx, from, to)
	for _, c := range changes {
		if c.modes[1] == mode {
			list = append(list, Link{Path: c.path, Commit: c.is})
		}
	}
	return list, err
}

// A rawChange is a file that differs between two trees; the mode is "000000" and the id "" where it does not exist.
type rawChange struct {
	path    string // from the top
	modes   [2]string
	was, is string
}

// raw returns the files that differ between two trees. A renamed file is removed and added.
func (t *Tree) raw(ctx context.Context, from, to string) ([]rawChange, error) {
	out, err := t.run(ctx, nil, "diff-tree", "-r", "--raw", "-z", "--no-abbrev", "--no-renames", from, to)
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

// parseRaw parses git's output with --raw and -z.
func parseRaw(out []byte) (list []rawChange, err error) {
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) < 4 {
			return nil, fmt.Errorf("git lists a changed file as %q", fields[i])
		}
		c := rawChange{path: fields[i+1], modes: [2]string{f[0], f[1]}, was: f[2], is: f[3]}
		for _, id := range []*string{&c.was, &c.is} {
			if strings.Trim(*id, "0") == "" {
				*id = ""
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// moduleURL returns the address of a submodule, from people's configuration or else from a commit's
// .gitmodules; "" if there is none.
func (t *Tree) moduleURL(ctx context.Context, commit, name string) (string, error) {
	section, said, err := t.moduleSaid(ctx, commit, name)
	if err != nil || section == "" {
		return "", err
	}
	if own, err := t.run(ctx, nil, "config", "--get", section+".url"); err == nil {
		return strings.TrimSpace(string(own)), nil
	} else if !complains(err) {
		return "", err
	}
	if !relativeURL(said) {
		return said, nil
	}
	base := t.Top()
	if out, err := t.run(ctx, nil, "remote", "get-url", "origin"); err == nil {
		base = strings.TrimSuffix(strings.TrimSpace(string(out)), "/")
	}
	for url := said; ; {
		if rest, here := strings.CutPrefix(url, "./"); here {
			url = rest
			continue
		}
		rest, up := strings.CutPrefix(url, "../")
		at := strings.LastIndexAny(base, "/:")
		if !up || at < 0 {
			return base + "/" + url, nil
		}
		base, url = base[:at], rest
	}
}

// relativeURL reports whether a submodule's address is relative to that of the repository.
func relativeURL(url string) bool {
	return strings.HasPrefix(url, "./") || strings.HasPrefix(url, "../")
}

// moduleSaid returns a submodule's section and address in a commit's .gitmodules; both are "" if
// there is none.
func (t *Tree) moduleSaid(ctx context.Context, commit, name string) (section, url string, err error) {
	modules, err := t.modules(ctx, commit)
	for _, s := range slices.Sorted(maps.Keys(modules)) {
		if modules[s]["path"] == name {
			section, url = s, modules[s]["url"]
		}
	}
	return section, url, err
}

// modules returns "path" and "url" of each section of a commit's .gitmodules.
func (t *Tree) modules(ctx context.Context, commit string) (map[string]map[string]string, error) {
	out, err := t.run(ctx, nil, "config", "--blob", commit+":.gitmodules", "-z",
		"--get-regexp", `^submodule\..*\.(path|url)$`)
	if err != nil {
		if complains(err) && ctx.Err() == nil { // the file or the keys in it do not exist
			err = nil
		}
		return nil, err
	}
	modules := map[string]map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		section, what := strings.TrimSuffix(key, filepath.Ext(key)), filepath.Ext(key)
		if modules[section] == nil {
			modules[section] = map[string]string{}
		}
		modules[section][strings.TrimPrefix(what, ".")] = value
	}
	return modules, nil
}

// withoutUser returns an address without credentials; "" if it cannot be parsed. The user name of
// an SSH address is kept.
func withoutUser(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if name := u.User.Username(); name != "" && strings.HasSuffix(u.Scheme, "ssh") {
		u.User = url.User(name)
	} else {
		u.User = nil
	}
	return u.String()
}

// unoffered matches a server's answer if it does not have a commit.
var unoffered = lazy.Regexp(`not our ref|no such remote ref|[Cc]ould ?n[o']t find remote ref`)

// Offers reports whether a nested repository's commit can be fetched from its address. dir is one of ralph's own bare
// repositories; env is git's environment. Call it only with known addresses: a session could choose an address to send
// data to a host.
func Offers(ctx context.Context, dir string, l Link, env []string) (bool, error) {
	var given []string
	for _, entry := range env {
		if key, _, _ := strings.Cut(entry, "="); !slices.Contains(repositoryEnv, key) {
			given = append(given, entry)
		}
	}
	given = append(given, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_DIR="+dir)
	given = append(given, sshQuiet(env)...)
	if !exists(filepath.Join(dir, "HEAD")) {
		if _, err := runWithin(ctx, gitLimit, filepath.Dir(dir), nil, "", "init", "--quiet", "--bare", dir); err != nil {
			return false, err
		}
	}
	_, err := runExactly(ctx, remoteLimit, dir, given, "", []string{
		"-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0",
		"fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--", l.URL, l.Commit,
	})
	var exit *exitError
	if errors.As(err, &exit) && unoffered().MatchString(err.Error()) {
		return false, nil
	}
	return err == nil, err
}

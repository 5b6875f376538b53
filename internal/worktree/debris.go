package worktree

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A litter is a kind of file that tools leave behind and that belongs in no commit.
type litter struct {
	folder  string         // the name of a folder with nothing but such files; "" for none
	beside  []string       // names of files, one of them required beside the folder; empty: none required
	file    *regexp.Regexp // matches the names of such files; nil for none
	remains bool           // nothing makes it again, so a person's own is never removed
}

// litters are the kinds that are known.
var litters = slices.Concat(
	folders(nil, "__pycache__", "node_modules", "bower_components", "htmlcov", ".pytest_cache", ".mypy_cache",
		".ruff_cache", ".hypothesis", ".tox", ".nox", ".ipynb_checkpoints", ".nyc_output", ".gradle", ".parcel-cache",
		".turbo", ".sass-cache", ".eggs", ".dart_tool", ".stack-work", "elm-stuff", ".terraform", ".phpunit.cache",
		".next", ".nuxt", ".svelte-kit", ".vite", ".zig-cache", ".direnv", "__pypackages__"),
	folders([]string{"pyvenv.cfg"}, ".venv", "venv", "env"),
	folders([]string{"Cargo.toml", "pom.xml", "build.sbt"}, "target"),
	folders([]string{"build.gradle", "build.gradle.kts"}, "build"),
	folders([]string{"package.json"}, "coverage"),
	folders([]string{"mix.exs"}, "_build", "deps"),
	folders([]string{"Package.swift"}, ".build"),
	folders([]string{"dune-project"}, "_build"),
	[]litter{
		{file: regexp.MustCompile(`\.py[co]$|\.class$|^\.coverage(\..+)?$|\.tsbuildinfo$|^\.eslintcache$`)},
		{file: regexp.MustCompile(`^\.DS_Store$|^Thumbs\.db$`)},
		{file: regexp.MustCompile(`^core\.\d+$|^vgcore\.\d+$|^hs_err_pid\d+\.log$`), remains: true},
		{file: regexp.MustCompile(`\.bak$|~$|\.orig$|\.rej$|^\..+\.sw[a-p]$|^#.+#$`), remains: true},
		{file: regexp.MustCompile(`\.log$|^(npm|yarn)-(debug|error)\.log.*$|^nohup\.out$`), remains: true},
	},
)

// folders returns the kinds of some names of folders.
func folders(beside []string, names ...string) (list []litter) {
	for _, name := range names {
		list = append(list, litter{folder: name, beside: beside})
	}
	return list
}

// exampleFolders are folders in which a file that looks like debris is an input of tests or an example.
var exampleFolders = regexp.MustCompile(
	`(?i)(^|/)(testdata|_*fixtures?_*|__snapshots__|tests?|specs?|examples?|samples?|docs?|data)/`)

// in returns the part of a path that is debris of the kind: the file, or the folder with a slash at its end; "" for
// none. A file is in all if its path is there.
func (l litter) in(name string, all map[string]bool) string {
	if l.file != nil {
		if l.file.MatchString(path.Base(name)) && !(l.remains && exampleFolders.MatchString(name)) {
			return name
		}
		return ""
	}
	at := strings.Index("/"+name, "/"+l.folder+"/")
	if at < 0 {
		return ""
	}
	parent, folder := name[:at], name[:at+len(l.folder)+1]
	if len(l.beside) == 0 || slices.ContainsFunc(l.beside, func(f string) bool { return all[parent+f] || all[folder+f] }) {
		return folder
	}
	return ""
}

// Debris returns the added files that tools left behind: bytecode, dependency folders, caches, coverage, core dumps,
// backups of editors, logs. A kind that the base has is none: that project keeps such files. roots names the files
// shortly: a folder with a slash at its end stands for all its files.
func Debris(added, base []string) (files, roots []string) {
	all := map[string]bool{}
	for _, name := range slices.Concat(added, base) {
		all[name] = true
	}
	for _, l := range litters {
		var found, short []string
		for _, name := range added {
			if root := l.in(name, all); root != "" {
				found, short = append(found, name), append(short, root)
			}
		}
		if len(found) > 0 && !slices.ContainsFunc(base, func(name string) bool { return l.in(name, all) != "" }) {
			files, roots = append(files, found...), append(roots, short...)
		}
	}
	for _, list := range []*[]string{&files, &roots} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return files, slices.DeleteFunc(roots, func(root string) bool {
		return slices.ContainsFunc(roots, func(r string) bool {
			return r != root && strings.HasSuffix(r, "/") && strings.HasPrefix(root, r)
		})
	})
}

// Remade reports whether a file is debris that its tool makes again, by its name alone.
func Remade(name string) bool {
	return slices.ContainsFunc(litters, func(l litter) bool {
		return !l.remains && len(l.beside) == 0 && l.in(name, nil) != ""
	})
}

// WithoutDebris removes [Debris] that none of the bases has from a tree of the whole repository. It returns the new
// tree and the roots of the removed files. Files named in keep stay. State is a folder for the temporary index.
func (t *Tree) WithoutDebris(
	ctx context.Context, tree, state string, keep []string, bases ...string,
) (_ string, roots []string, err error) {
	var added []string
	for i, base := range bases {
		out, err := t.run(ctx, nil, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff",
			"--diff-filter=A", base, tree)
		if err != nil {
			return "", nil, err
		}
		names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
		added = slices.DeleteFunc(names, func(n string) bool {
			return slices.Contains(keep, n) || i > 0 && !slices.Contains(added, n)
		})
	}
	if files, _ := Debris(added, nil); len(files) == 0 {
		return tree, nil, nil
	}
	there, err := t.Names(ctx, bases[0])
	if err != nil {
		return "", nil, err
	}
	files, roots := Debris(added, there)
	if len(files) == 0 {
		return tree, nil, nil
	}
	var gone []Exchange
	for _, name := range files {
		gone = append(gone, Exchange{Path: name})
	}
	tree, err = t.Exchanged(ctx, tree, bases[0], gone, state)
	return tree, roots, err
}

// removeDebris removes the untracked files of a person that keep their checkout from moving from head to a commit
// that changes files, if their tools make all of them again. any reports that some were removed.
func (t *Tree) removeDebris(ctx context.Context, head string, files []string) (any bool, err error) {
	there, err := t.Names(ctx, head)
	if err != nil {
		return false, err
	}
	root, err := os.OpenRoot(t.Top())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var inTheWay []string
	for _, name := range files {
		if _, err := root.Lstat(filepath.FromSlash(name)); err != nil || slices.Contains(there, name) {
			continue
		}
		if !Remade(name) {
			return false, nil
		}
		inTheWay = append(inTheWay, name)
	}
	for _, name := range inTheWay {
		if err := root.Remove(filepath.FromSlash(name)); err != nil {
			return any, err
		}
		any = true
	}
	return any, nil
}

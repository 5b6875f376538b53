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

	"ralph/internal/lazy"
)

// A litter is a kind of file that tools leave behind, and that should not be committed.
type litter struct {
	folder  string                // the name of a folder with only such files, or "*" and the end of its name; "" for none
	beside  []string              // names of files; one must be beside or in the folder; empty for no condition
	file    func() *regexp.Regexp // matches the names of such files; nil for none
	remains bool                  // no tool makes it again, so a person's own file is never removed
}

// litters are the known kinds.
var litters = slices.Concat(
	folders(nil, "__pycache__", "node_modules", "bower_components", "htmlcov", ".pytest_cache", ".mypy_cache",
		".ruff_cache", ".hypothesis", ".tox", ".nox", ".ipynb_checkpoints", ".nyc_output", ".gradle", ".parcel-cache",
		".turbo", ".sass-cache", ".eggs", ".dart_tool", ".stack-work", "elm-stuff", ".terraform", ".phpunit.cache",
		".next", ".nuxt", ".svelte-kit", ".vite", ".zig-cache", ".direnv", "__pypackages__", "*.egg-info", ".cache",
		".pytype", ".pyre", ".pnpm-store", ".angular", ".expo", ".serverless", ".aws-sam", ".docusaurus", ".bloop",
		".metals", ".bsp", ".scannerwork", "CMakeFiles", "dist-newstyle", "DerivedData", "xcuserdata"),
	folders([]string{"pyvenv.cfg"}, ".venv", "venv", "env"),
	folders([]string{"Cargo.toml", "pom.xml", "build.sbt"}, "target"),
	folders([]string{"build.gradle", "build.gradle.kts"}, "build"),
	folders([]string{"package.json", "Gemfile", "composer.json", "pubspec.yaml"}, "coverage"),
	folders([]string{"playwright.config.ts", "playwright.config.js"}, "test-results", "playwright-report"),
	folders([]string{"*.csproj", "*.fsproj", "*.vbproj"}, "bin", "obj", "TestResults"),
	folders([]string{"CMakeCache.txt"}, "build", "*-build", "cmake-build-debug", "cmake-build-release"),
	folders([]string{"mix.exs"}, "_build", "deps"),
	folders([]string{"rebar.config"}, "_build"),
	folders([]string{"Package.swift"}, ".build"),
	folders([]string{"dune-project"}, "_build"),
	[]litter{
		{file: lazy.Regexp(`\.py[co]$|\.class$|\.tsbuildinfo$|\.gc(da|no)$|\.prof(raw|data)$|^jacoco\.exec$`)},
		{file: lazy.Regexp(`^\.coverage(\..+)?$|^cover(age)?\.out$|^lcov\.info$`)},
		{file: lazy.Regexp(`^\.(eslint|stylelint|prettier)cache$|^\.(phpunit\.result|php-cs-fixer)\.cache$|` +
			`^\.rspec_status$`)},
		{file: lazy.Regexp(`^\.DS_Store$|^\._.+|^(eh)?[Tt]humbs\.db$|^desktop\.ini$`)},
		{file: lazy.Regexp(`^core\.\d+$|^vgcore\.\d+$|^hs_err_pid\d+\.log$|\.hprof$|\.stackdump$|` +
			`^__debug_bin\w*$`), remains: true},
		{file: lazy.Regexp(`\.bak$|~$|\.orig$|\.rej$|^\..+\.sw[a-p]$|^#.+#$|^\.#.+|^~\$.+|` +
			`\.kate-swp$`), remains: true},
		{file: lazy.Regexp(`\.log(\.\d+)?$|^(npm|yarn)-(debug|error)\.log.*$|^nohup\.out$|` +
			`^\.(fuse_hidden|nfs)[0-9a-f]+$`), remains: true},
		{file: lazy.Regexp(`^\.aider\.(chat\.history\.md|input\.history)$`), remains: true},
	},
)

// folders returns the kinds for names of folders.
func folders(beside []string, names ...string) (list []litter) {
	for _, name := range names {
		list = append(list, litter{folder: name, beside: beside})
	}
	return list
}

// exampleFolders are folders in which a file that looks like debris is a test's input or an
// example.
var exampleFolders = lazy.Regexp(
	`(?i)(^|/)(testdata|_*fixtures?_*|__snapshots__|tests?|specs?|examples?|samples?|docs?|data)/`)

// in returns the part of a path that is debris of the kind: the file, or the folder with a final slash; "" for none.
// all has the paths of all files.
func (l litter) in(name string, all map[string]bool) string {
	if l.file != nil {
		if l.file().MatchString(path.Base(name)) && !(l.remains && exampleFolders().MatchString(name)) {
			return name
		}
		return ""
	}
	parent := ""
	for rest := name; ; {
		part, after, ok := strings.Cut(rest, "/")
		if !ok {
			return ""
		}
		folder := parent + part + "/"
		if named(l.folder, part) && (len(l.beside) == 0 || l.stands(all, parent, folder)) {
			return folder
		}
		parent, rest = folder, after
	}
}

// named reports whether a name equals want, or ends with the rest of want after a "*".
func named(want, name string) bool {
	end, open := strings.CutPrefix(want, "*")
	return name == want || open && len(name) > len(end) && strings.HasSuffix(name, end)
}

// stands reports whether one of the folders has a required file.
func (l litter) stands(all map[string]bool, folders ...string) bool {
	for _, want := range l.beside {
		for _, folder := range folders {
			if all[folder+want] {
				return true
			}
			for name := range all {
				if want[0] == '*' && path.Dir(name) == path.Clean(folder) && named(want, path.Base(name)) {
					return true
				}
			}
		}
	}
	return false
}

// Debris returns the added files that tools left behind: bytecode, dependency folders, caches, coverage, core dumps,
// backups of editors, logs. If base has files of a kind, the project keeps such files, and the kind does not count.
// roots is a shorter list: a folder with a final slash stands for all its files.
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

// Remade reports whether a file is debris that its tool recreates, judging by its name.
func Remade(name string) bool {
	return slices.ContainsFunc(litters, func(l litter) bool {
		return !l.remains && len(l.beside) == 0 && l.in(name, nil) != ""
	})
}

// WithoutDebris removes [Debris] from a tree of the whole repository, except for kinds in the bases. It returns the new
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

// removeDebris removes a person's untracked files that prevent their checkout from moving from head to a commit, if
// tools recreate all of them. any reports whether it removed some.
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

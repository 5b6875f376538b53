package store_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers lists the files of this package from the bottom to the top: each uses only those before it. It is policy, as
// the imports of packages are; a new file has its place here.
var layers = strings.Fields(`
	turn.go store.go query.go faults.go dialect.go intact.go mark.go postgres.go changed.go transact.go
	event.go trouble.go run.go filter.go feature.go learning.go
	openchange.go task.go session.go comment.go lost.go change.go mergequeue.go verification.go dependency.go queue.go
	person.go machine.go state.go project.go split.go human.go amendment.go prompt.go elsewhere.go totals.go permission.go
	legacy.go open.go move.go import.go maintenance.go lease.go undo.go inbox.go plan.go usage.go
	decide.go review.go facts.go search.go forge.go
`)

// TestFilesUseOnlyThoseBelow: files use only declarations of files that come earlier in this order.
func TestFilesUseOnlyThoseBelow(t *testing.T) {
	level := map[string]int{}
	for i, name := range layers {
		level[name] = i
	}
	var found []string
	for from, to := range arrows(t) {
		for name := range to {
			if level[name] > level[from] {
				found = append(found, from+" → "+name)
			}
		}
	}
	slices.Sort(found)
	if len(found) > 0 {
		t.Errorf("files use files above them: %q", found)
	}
}

// arrows returns which files of this package use which others: their types, functions, methods and variables.
func arrows(t *testing.T) map[string]map[string]bool {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "_test.go") })
	if known := slices.Sorted(slices.Values(layers)); !slices.Equal(names, known) {
		t.Fatalf("the files are %q, and the layers have %q", names, known)
	}
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	exports := compiled(t)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	pkg, err := conf.Check("ralph/store", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]map[string]bool{}
	for use, of := range info.Uses {
		f, method := of.(*types.Func)
		method = method && f.Signature().Recv() != nil
		from, to := fset.Position(use.Pos()).Filename, fset.Position(of.Pos()).Filename
		if of.Pkg() != pkg || of.Parent() != pkg.Scope() && !method || from == to {
			continue
		}
		if list[from] == nil {
			list[from] = map[string]bool{}
		}
		list[from][to] = true
	}
	if len(list) < len(names)/2 {
		t.Fatalf("only %d files use others", len(slices.Collect(maps.Keys(list))))
	}
	return list
}

// compiled returns the compiled form of each package that this one imports.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
}

package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// placeholder matches a placeholder of SQL.
var placeholder = regexp.MustCompile(`\$(\d+)`)

// literals calls f with every string literal in the package's Go files.
func literals(t *testing.T, f func(at token.Position, text string)) {
	t.Helper()
	inspect(t, func(set *token.FileSet, n ast.Node) {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			f(set.Position(literal.Pos()), literal.Value)
		}
	})
}

// inspect calls f with every node of the syntax of the package's Go files.
func inspect(t *testing.T, f func(set *token.FileSet, n ast.Node)) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool { f(set, n); return true })
	}
}

// TestPlaceholdersAreNumberedAsTheyAppear: SQLite numbers $n by first appearance, PostgreSQL by the
// digits. A query whose numbers do not increase would mean two things. A query with many
// placeholders is unreadable: it should use cells.
func TestPlaceholdersAreNumberedAsTheyAppear(t *testing.T) {
	seen := 0
	literals(t, func(at token.Position, text string) {
		highest := 0
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			number, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			if number > highest+1 {
				t.Errorf("%s: $%d comes before $%d", at, number, highest+1)
			}
			if number > 9 {
				t.Errorf("%s: $%d: write by name, with cells", at, number)
			}
			highest = max(highest, number)
			seen++
		}
	})
	if seen < 100 {
		t.Errorf("only %d placeholders were looked at", seen)
	}
}

// foreign matches SQL that the two databases do not share, or interpret differently.
var foreign = regexp.MustCompile(`(?i)\bjson_\w*\(|\bjson_each\b|->>?|\bgroup_concat\b|\browid\b|\bglob\b|\bstrftime\(|\bpragma_\w+`)

// derived matches a subquery in FROM; a name must follow its end.
var derived = regexp.MustCompile(`(?i)\bFROM \(`)

// sqliteOnly are the files with SQL only for SQLite: differences between the databases, and older versions of files.
var sqliteOnly = []string{"dialect.go", "legacy.go"}

// TestQueriesReadColumnsThatBothDatabasesHave: queries use generated columns for parts of JSON
// texts, and nothing that only SQLite supports.
func TestQueriesReadColumnsThatBothDatabasesHave(t *testing.T) {
	for text, wrong := range map[string]bool{
		"SELECT json_extract(p, '$.a') FROM t": true, "SELECT p ->> 'a' FROM t": true, "ORDER BY t.rowid": true, "FROM json_each(t.p) j": true,
		"SELECT group_concat(a) FROM t": true, "SELECT 1 FROM (SELECT 2)": true, "FROM (SELECT (1)) WHERE a = 1": true,
		"SELECT 1 FROM (SELECT (2)) d": false, "SELECT string_agg(a, ',') FROM t": false, "SELECT a FROM t": false,
	} {
		if (notShared(text) != "") != wrong {
			t.Errorf("%s: got %q", text, notShared(text))
		}
	}
	literals(t, func(at token.Position, text string) {
		if found := notShared(text); found != "" && !slices.Contains(sqliteOnly, at.Filename) {
			t.Errorf("%s: %s is not for both databases", at, found)
		}
	})
}

// notShared returns the part of a query that not both databases accept; "" for none.
func notShared(query string) string {
	if found := foreign.FindString(query); found != "" {
		return found
	}
	for _, at := range derived.FindAllStringIndex(query, -1) {
		depth, rest := 1, query[at[1]:]
		for i, c := range rest {
			switch c {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth == 0 {
				rest = strings.TrimSpace(rest[i+1:])
				break
			}
		}
		if depth == 0 && !regexp.MustCompile(`^(?:AS )?[a-z]\w*\b`).MatchString(rest) {
			return "a subquery without a name"
		}
	}
	return ""
}

// TestErrorsNameNoCommand: an error of the store names the failure, and its [ralph.Remedy]; each surface knows whether
// that is a command, a button or a tool.
func TestErrorsNameNoCommand(t *testing.T) {
	makers := []string{"Conflict", "NotFound", "Errorf", "New", "refused", "missing"}
	seen := 0
	calls(t, func(at token.Position, name string, text string) {
		if !slices.Contains(makers, name) {
			return
		}
		if seen++; strings.Contains(text, "`ralph ") || strings.Contains(text, "--") {
			t.Errorf("%s: %s", at, text)
		}
	})
	if seen < 50 {
		t.Errorf("only %d errors were looked at", seen)
	}
}

// calls calls f with every string literal that is an argument of a function, and the function's name.
func calls(t *testing.T, f func(at token.Position, name, text string)) {
	t.Helper()
	inspect(t, func(set *token.FileSet, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		name := ""
		switch fun := call.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		for _, arg := range call.Args {
			ast.Inspect(arg, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					f(set.Position(literal.Pos()), name, text)
				}
				return true
			})
		}
	})
}

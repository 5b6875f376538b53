package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// placeholder is one of SQL's.
var placeholder = regexp.MustCompile(`\$(\d+)`)

// TestPlaceholdersAreNumberedAsTheyAppear: SQLite numbers $n by first appearance,
// PostgreSQL by the digits. A query whose numbers do not rise means two things.
func TestPlaceholdersAreNumberedAsTheyAppear(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			highest := 0
			for _, m := range placeholder.FindAllStringSubmatch(literal.Value, -1) {
				number, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				if number > highest+1 {
					t.Errorf("%s: $%d comes before $%d", set.Position(literal.Pos()), number, highest+1)
				}
				highest = max(highest, number)
				seen++
			}
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d placeholders were looked at", seen)
	}
}

package lazy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ralph/internal/lazy"
)

func TestAlternatives(t *testing.T) {
	either := lazy.Regexp(`^a$`, `^b$`)
	if !either().MatchString("b") || either().MatchString("ab") {
		t.Error("alternatives do not match")
	}
}

// TestEveryExpression compiles the expressions that ralph compiles only when it needs them.
func TestEveryExpression(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Regexp" {
				return true
			}
			for _, argument := range call.Args {
				expression, ok := literal(argument)
				if !ok {
					continue // made of constants: its package's tests use it
				}
				count++
				if _, err := regexp.Compile(expression); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || count < 200 {
		t.Errorf("%d expressions, %v", count, err)
	}
}

// literal returns the value of concatenated literals.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil
	case *ast.BinaryExpr:
		left, ok1 := literal(e.X)
		right, ok2 := literal(e.Y)
		return left + right, ok1 && ok2
	}
	return "", false
}

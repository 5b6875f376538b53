package advice_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/advice"
)

// TestEveryRemedyIsSaid: the command line has words for each remedy, after what happened.
func TestEveryRemedyIsSaid(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../remedy.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok {
			return true
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		what := &ralph.RemedyError{Err: ralph.Conflict("it is so"), Do: ralph.Remedy(name), ID: 7}
		said := advice.Explain(fmt.Errorf("line 2: %w", what))
		command, ok := strings.CutPrefix(said, "line 2: it is so; ")
		if !ok || strings.ContainsAny(command, "{}") || !strings.Contains(command, "ralph ") {
			t.Errorf("%s: %q", name, said)
		}
		if what.Error() != "it is so" || !errors.Is(what, ralph.ErrConflict) {
			t.Errorf("%s: %v is not what happened", name, what)
		}
		return true
	})
	if seen < 15 {
		t.Errorf("only %d remedies were looked at", seen)
	}
	if got := advice.Explain(errors.New("plain")); got != "plain" {
		t.Errorf("an error without a remedy: %q", got)
	}
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMessagesAreTheProducts: what docs/messages.md says that ralph says, its code has,
// letter by letter; "…" is what differs from one time to the next.
func TestMessagesAreTheProducts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	said := literals(t, "../..")
	known := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), " | ")
		message := strings.Trim(strings.TrimPrefix(cells[0], "| "), " `")
		if message == "message" {
			continue
		}
		if len(cells) != 2 || known[message] {
			t.Errorf("not a message and when it comes, once: %s", line)
		}
		known[message] = true
		if !strings.Contains(said, message) {
			t.Errorf("no code says: %s", message)
		}
	}
	if len(known) != 53 {
		t.Errorf("there are %d messages, and 53 are expected: say here if that is meant", len(known))
	}
}

// verb is what fmt puts a value for.
var verb = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-zA-Z]`)

// literals are the texts in the code of a folder, with "…" for values, one after the other.
func literals(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if ok {
				all.WriteString(strings.ReplaceAll(verb.ReplaceAllString(text, "…"), "`", "'") + "\n")
			}
			return !ok
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// literal is the text of an expression; "…" stands for what of it is none.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, l := literal(e.X)
		right, r := literal(e.Y)
		if e.Op != token.ADD || !l && !r {
			return "", false
		}
		if !l {
			left = "…"
		}
		if !r {
			right = "…"
		}
		return left + right, true
	}
	return "", false
}

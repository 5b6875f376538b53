package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"ralph/internal/state"
)

// documents returns all pages that people read, by their paths from here.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	read := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[path] = string(text)
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			read(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "AGENTS.md", "ARCHITECTURE.md", "SECURITY.md", "store/schema.md",
		"internal/tools/bench/README.md",
	} {
		read(filepath.Join(root, name))
	}
	return pages
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor    = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)

	conflictMark = regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>)( .*)?$`)
)

// TestLinksLeadSomewhere: every link between pages names a page that is there, and
// a heading of it. Every page can be reached from the index, and no page has a
// conflict left in it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	reached := []string{"../../README.md"}
	for path, text := range pages {
		if mark := conflictMark.FindString(text); mark != "" {
			t.Errorf("%s: a merge left %q in it", path, mark)
		}
	}
	for i := 0; i < len(reached); i++ {
		path := reached[i]
		for _, m := range pageLink.FindAllStringSubmatch(fencedBlock.ReplaceAllString(pages[path], ""), -1) {
			link, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(link, ":") {
				continue // another site's
			}
			target := path
			if link != "" {
				target = filepath.Join(filepath.Dir(path), link)
			}
			if !state.Exists(target) {
				t.Errorf("%s: the link %s leads nowhere", path, m[1])
			}
			if anchor != "" && !slices.Contains(anchors(pages[target]), anchor) {
				t.Errorf("%s: %s has no heading for the link %s (it has %s)", path, target, m[1], anchors(pages[target]))
			}
			if pages[target] != "" && !slices.Contains(reached, target) {
				reached = append(reached, target)
			}
		}
	}
	for path := range pages {
		if strings.Contains(path, "docs") && !strings.Contains(path, "decisions") && !slices.Contains(reached, path) {
			t.Errorf("no link leads to %s; docs/README.md is the index", path)
		}
	}
}

// anchors returns the names by which the headings of a page can be linked to.
func anchors(text string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(fencedBlock.ReplaceAllString(text, ""), -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(strings.TrimSpace(name), " ", "-"))
	}
	return list
}

var (
	shellBlock  = regexp.MustCompile("(?ms)^ *```(?:sh|console)\n(.*?)^ *```$")
	indented    = regexp.MustCompile(`(?m)^ {4,}((?:[A-Z_]+=\S+ )?ralph .+)$`)
	inlineRalph = regexp.MustCompile("`(ralph [^`\n]+)`")
)

// TestCommandsOnPagesExist: every command of ralph that a page names is one, with
// flags that it has. Where a page is followed it is run as well
// (TestPagesShowRealOutput).
func TestCommandsOnPagesExist(t *testing.T) {
	t.Parallel()
	for path, text := range documents(t) {
		var scripts []string
		for _, m := range shellBlock.FindAllStringSubmatch(text, -1) {
			script := m[1]
			if strings.Contains(script, "$ ") {
				script = commandsOnly(script)
			}
			scripts = append(scripts, script)
		}
		prose := fencedBlock.ReplaceAllString(text, "")
		for _, found := range [][][]string{indented.FindAllStringSubmatch(prose, -1), inlineRalph.FindAllStringSubmatch(prose, -1)} {
			for _, m := range found {
				scripts = append(scripts, strings.ReplaceAll(m[1], `\|`, "|"))
			}
		}
		for _, script := range scripts {
			for _, args := range ralphCalls(t, path, script) {
				if err := acceptable(args); err != nil {
					t.Errorf("%s: ralph %s: %v", path, strings.Join(args, " "), err)
				}
			}
		}
	}
}

// commandsOnly returns a terminal's block without the output.
func commandsOnly(block string) string {
	var b strings.Builder
	for l := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(strings.TrimLeft(l, " "), "$ "); ok {
			b.WriteString(command)
		}
	}
	return b.String()
}

// ralphCalls returns the arguments of the calls of ralph in a script. A placeholder, such as an ellipsis, ends a call.
func ralphCalls(t *testing.T, path, script string) (calls [][]string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		t.Errorf("%s: %v in\n%s", path, err, script)
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "ralph" {
			return true
		}
		var args []string
		for _, w := range call.Args[1:] {
			var b strings.Builder
			if err := syntax.NewPrinter().Print(&b, w); err != nil {
				t.Error(err)
			}
			word := strings.Trim(b.String(), `'"`)
			if word == "…" || word == "..." || word[0] == '[' {
				break
			}
			args = append(args, word)
		}
		calls = append(calls, args)
		return true
	})
	return calls
}

// acceptable tells whether ralph has the command, and the command the flags.
func acceptable(args []string) error {
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.DisableFlagParsing {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	for c := cmd; c.HasParent(); c = c.Parent() {
		if c.Hidden && c.Name() != "man" && c.Name() != "signal" {
			return fmt.Errorf("%s is a former name, which the next release lacks", c.CommandPath())
		}
	}
	var hidden error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Hidden {
			hidden = fmt.Errorf("--%s is a former name, which the next release lacks", f.Name)
		}
	})
	if hidden != nil {
		return hidden
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 && !strings.Contains(cmd.Use, " ") {
		return fmt.Errorf("%s has no command %s", cmd.CommandPath(), cmd.Flags().Arg(0))
	}
	if cmd.Flags().NArg() == 0 {
		return nil // the name of a command
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

var (
	printedCommand = regexp.MustCompile("`(ralph [a-z-][^`\n]*)`")
	advised        = regexp.MustCompile(`^ralph [a-z][^"]*$`) // a whole text, in the packages that advise
	advises        = regexp.MustCompile(`internal/(advice|words|inbox)/`)
	verb           = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0-9.]*([a-zA-Z])|\{[a-z_]+\}`)
	eitherOr       = regexp.MustCompile(`, or (?:by )?| · `)
)

// TestPrintedCommandsExist: every command of ralph that the program prints is one, with flags and as many arguments as
// it takes.
func TestPrintedCommandsExist(t *testing.T) {
	t.Parallel()
	found := 0
	for path, texts := range textsOfTheProgram(t) {
		for _, text := range texts {
			var commands []string
			for _, m := range printedCommand.FindAllStringSubmatch(text, -1) {
				if !strings.HasPrefix(m[1], "ralph x") { // a command that is chosen at run time
					commands = append(commands, m[1])
				}
			}
			if advises.MatchString(filepath.ToSlash(path)) && advised.MatchString(text) {
				commands = append(commands, eitherOr.Split(text, -1)...)
			}
			for _, command := range commands {
				for _, args := range ralphCalls(t, path, printed(command)) {
					found++
					if err := acceptable(args); err != nil {
						t.Errorf("%s prints `%s`: %v", path, command, err)
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d commands", found)
	}
}

// printed returns a command as it is printed: its verbs have values.
func printed(command string) string {
	return verb.ReplaceAllStringFunc(command, func(v string) string {
		if v[len(v)-1] == 'q' {
			return `"x"`
		}
		return "1"
	})
}

// textsOfTheProgram returns the constant texts of all packages that are part of ralph, by file. Parts added at run time
// are "x".
func textsOfTheProgram(t *testing.T) map[string][]string {
	t.Helper()
	texts := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := textOf(e)
			if ok {
				texts[path] = append(texts[path], text)
			}
			return !ok
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// textOf returns the text of a literal, or of a sum with a literal in it.
func textOf(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		if !isLeft {
			left = "x"
		}
		if !isRight {
			right = "x"
		}
		return left + right, true
	}
	return "", false
}

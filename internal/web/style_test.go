package web_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTheStyleHasAScale: four sizes of text, distances on a grid of 4 px, lines of 1 or 2 px, colours by their names
// alone, and no rule for a class that nothing has.
func TestTheStyleHasAScale(t *testing.T) {
	t.Parallel()
	style := source(t, "static/style.css")
	_, rules, _ := strings.Cut(regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(style, ""), "}") // the first has the names
	sizes := []string{"var(--small)", "var(--size)", "var(--large)", "var(--figure)", "inherit"}
	lengths := regexp.MustCompile(`(?:^|[\s(,-])(\d*\.?\d+)(rem|px)\b`)
	exempt := []string{"line-height", "letter-spacing"} // of the typeface
	for _, rule := range regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`).FindAllStringSubmatch(rules, -1) {
		selector := strings.TrimSpace(rule[1])
		drawn := strings.HasPrefix(selector, ".chart svg") // in units of the drawing, which is as wide as its place
		for declaration := range strings.SplitSeq(rule[2], ";") {
			name, value, ok := strings.Cut(declaration, ":")
			if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || slices.Contains(exempt, name) {
				continue
			}
			if name == "font-size" && !drawn && !slices.Contains(sizes, value) {
				t.Errorf("%s: the size %s is none of %q", selector, value, sizes)
			}
			if strings.Contains(value, "#") || strings.Contains(value, "rgb") {
				t.Errorf("%s: the colour %s has no name", selector, value)
			}
			if name == "font-size" || strings.HasPrefix(name, "stroke") || strings.HasPrefix(name, "--") {
				continue
			}
			for _, length := range lengths.FindAllStringSubmatch(value, -1) {
				n, err := strconv.ParseFloat(length[1], 64)
				onGrid := length[2] == "rem" && n*4 == float64(int(n*4)) || length[2] == "px" && (n == 1 || n == 2)
				if err != nil || !onGrid {
					t.Errorf("%s: %s is not on the grid: %s", selector, name, value)
				}
			}
		}
	}
	words := map[string]bool{}
	for pattern, names := range map[string]*regexp.Regexp{
		"templates/*.html": regexp.MustCompile(`(?:class|id)="((?:\{\{.*?\}\}|[^"])*)"`),
		"static/*.js":      quoted, "*.go": quoted, "../../*.go": quoted, "../patch/*.go": quoted,
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			for _, m := range names.FindAllString(source(t, f), -1) {
				for _, w := range regexp.MustCompile(`[\w-]+`).FindAllString(m, -1) {
					words[w] = true
				}
			}
		}
	}
	made := regexp.MustCompile(`^(page-|e-|d\d$)`) // before the name of a page or of a kind of entry; its depth
	for _, rule := range regexp.MustCompile(`([^{}]+)\{`).FindAllStringSubmatch(rules, -1) {
		for _, name := range regexp.MustCompile(`[.#]([a-z][\w-]*)`).FindAllStringSubmatch(rule[1], -1) {
			if !words[name[1]] && !made.MatchString(name[1]) {
				t.Errorf("nothing has %s", name[0])
			}
		}
	}
}

// quoted is a text in quotes, of one line.
var quoted = regexp.MustCompile("\"[^\"\\n]*\"|`[^`]*`|'[^'\\n]*'")

func source(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNoTemplateHasAReadyMadeQuery: behind a question mark a template has the values of parameters alone. A query that
// is ready is escaped there once more: make the whole address in Go.
func TestNoTemplateHasAReadyMadeQuery(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	address := regexp.MustCompile(`(?:href|action)="[^"{]*\?((?:\{\{.*?\}\}|[^"])*)"`)
	for _, file := range files {
		for _, a := range address.FindAllStringSubmatch(source(t, file), -1) {
			if rest := regexp.MustCompile(`=\{\{\.?[^}]*\}\}`).ReplaceAllString(a[1], "="); strings.Contains(rest, "{{") {
				t.Errorf("%s: %s", file, a[0])
			}
		}
	}
}

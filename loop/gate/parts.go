package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// A part is the deciding content of a file that has other content, too.
type part struct {
	// decides returns the deciding content, "" for none; it omits layout and comments where that is easy.
	decides func(text []byte) string
	// with returns a text with the deciding parts of another; nil if only the whole file can be
	// restored.
	with func(text, parts []byte) []byte
	test bool // the parts are tests
}

// partsOf returns the function that separates the parts of a file; nil if all of it decides or
// nothing.
func partsOf(name string) func(name string, commands []string) part {
	switch base := path.Base(name); {
	case base == "package.json":
		return keys("scripts", "jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "babel", "wireit", "nx", "workspaces",
			"config", "lint-staged", "pre-commit", "husky", "eslintConfig", "stylelint", "xo",
			"overrides", "resolutions", "pnpm")
	case base == "composer.json":
		return keys("scripts", "autoload-dev", "config")
	case base == "deno.json" || base == "deno.jsonc":
		return keys("tasks", "test", "exclude", "workspace")
	case base == "pyproject.toml":
		return sections(`^tool\.(pytest|tox|coverage|nox|hatch\.envs?|poe|taskipy|(pdm|rye)\.scripts|`+
			`pixi\.tasks|mypy|ruff|pylint|flake8|(based)?pyright|bandit|pyrefly|ty)\b`, "")
	case base == "setup.cfg":
		return sections(`^(tool:.*|pytest|aliases|coverage.*|flake8.*|mypy.*|pylint.*|pycodestyle|`+
			`options\.entry_points)$`, "")
	case base == "Cargo.toml":
		return sections(`^(test|lib|bin|bench|example|workspace|profile\.(test|dev).*|patch.*|replace|lints.*)$`,
			`^\s*(autotests|autobins|build|workspace)\b`)
	case base == "go.mod":
		return module
	case slices.Contains([]string{"Makefile", "makefile", "GNUmakefile"}, base):
		return targets
	case strings.HasPrefix(base, "build.gradle"):
		const line = `[ \t]*(?:[A-Za-z]+(?:[ (:][^=\n]*)?)?`
		return without(`(?m)^[ \t]*(?:dependencies|plugins|repositories)\s*\{(?:` + line + `\n)*?` + line + `\}|` +
			`^(?:version|group|description)\s*=\s*['"][^'"$]*['"]\s*$`)
	case base == "pom.xml":
		return without(`(?s)<dependenc(y|ies|yManagement)>.*?</dependenc(ies|yManagement)>|<version>[^<]*</version>`)
	case slices.Contains(strings.Fields("mix.exs Package.swift CMakeLists.txt meson.build BUILD BUILD.bazel"), base),
		path.Ext(base) == ".csproj":
		return mentions(`(?i)test|spec|check|exclude|filter|skip|NDEBUG|_FLAGS|execute_process|^\s*include\s*\(|` +
			`\bRemove=|<Using|DefineConstants`)
	case path.Ext(base) == ".rs" && base != "build.rs":
		return rust
	}
	return nil
}

// keys separates a JSON object's keys.
func keys(names ...string) func(string, []string) part {
	read := func(text []byte) map[string]json.RawMessage {
		var all map[string]json.RawMessage
		if json.Unmarshal(text, &all) != nil {
			return nil
		}
		return all
	}
	return func(string, []string) part {
		return part{
			decides: func(text []byte) string {
				all := read(text)
				if all == nil {
					return string(text)
				}
				var b strings.Builder
				for _, n := range names {
					var value any // in one layout
					if json.Unmarshal(all[n], &value) == nil && value != nil {
						plain, err := json.Marshal(value)
						if err == nil {
							b.WriteString(n + string(plain) + "\n")
						}
					}
				}
				return b.String()
			},
			with: func(text, parts []byte) []byte {
				all, other := read(text), read(parts)
				if all == nil || other == nil {
					return nil
				}
				for _, n := range names {
					delete(all, n)
					if v, ok := other[n]; ok {
						all[n] = v
					}
				}
				out, err := json.MarshalIndent(all, "", "  ")
				if err != nil {
					return nil
				}
				return append(out, '\n')
			},
		}
	}
}

// parted separates the lines of a text.
func parted(text []byte, decides func(line string) bool) (deciding, rest string) {
	var yes, no strings.Builder
	for line := range strings.Lines(string(text)) {
		if decides(line) {
			yes.WriteString(line)
		} else {
			no.WriteString(line)
		}
	}
	return yes.String(), no.String()
}

// section matches the heading of a section in TOML and in files of settings.
var section = lazy.Regexp(`^\s*\[+\s*([^\[\]]+?)\s*\]+\s*(#.*)?$`)

// sections separates sections by their names, and keys in all other sections.
func sections(names, keys string) func(string, []string) part {
	name := regexp.MustCompile(names)
	key := regexp.MustCompile(`^\b$`)
	if keys != "" {
		key = regexp.MustCompile(keys)
	}
	split := func(text []byte) (decides, rest string) {
		in := false
		return parted(text, func(line string) bool {
			if m := section().FindStringSubmatch(line); m != nil {
				in = name.MatchString(strings.ReplaceAll(m[1], `"`, ""))
			}
			return in || key.MatchString(line)
		})
	}
	return func(string, []string) part {
		return part{
			decides: func(text []byte) string { d, _ := split(text); return squeezed(d, "#") },
			with: func(text, parts []byte) []byte {
				if keys != "" { // keys stand within other sections
					return nil
				}
				d, _ := split(parts)
				_, rest := split(text)
				return []byte(strings.TrimRight(rest, "\n") + "\n\n" + d)
			},
		}
	}
}

// module separates the parts of a go.mod that decide which tests exist, and which code they import: its existence,
// which takes its folder out of the module above, and its replace and ignore directives.
func module(string, []string) part {
	split := func(text []byte) (decides, rest string) {
		in, whole := false, false // in a directive that decides, and in a block of it
		return parted(text, func(line string) bool {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !whole {
				in = slices.Contains([]string{"replace", "ignore", "replace(", "ignore("}, word)
				whole = in && strings.HasSuffix(strings.TrimSpace(line), "(")
			} else if word == ")" {
				whole = false
			}
			return in
		})
	}
	return part{
		decides: func(text []byte) string {
			if text == nil {
				return ""
			}
			d, _ := split(text)
			return "a module\n" + squeezed(d, "//")
		},
		with: func(text, parts []byte) []byte {
			d, _ := split(parts)
			_, rest := split(text)
			return []byte(strings.TrimRight(rest, "\n") + "\n\n" + d)
		},
	}
}

// squeezed leaves out empty lines, comments and the space at the ends of lines.
func squeezed(text, comment string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, comment) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// without separates the text that a pattern does not match.
func without(pattern string) func(string, []string) part {
	out := regexp.MustCompile(pattern)
	return func(string, []string) part {
		return part{decides: func(text []byte) string { return squeezed(string(out.ReplaceAll(text, nil)), "//") }}
	}
}

// mentions separates the lines that a pattern matches.
func mentions(pattern string) func(string, []string) part {
	word := regexp.MustCompile(pattern)
	return func(string, []string) part {
		return part{decides: func(text []byte) string {
			var b strings.Builder
			for line := range strings.Lines(string(text)) {
				if word.MatchString(line) {
					b.WriteString(strings.TrimSpace(line) + "\n")
				}
			}
			return b.String()
		}}
	}
}

// testOnly matches an attribute of items compiled only for tests, with the rest of its line.
var testOnly = lazy.Regexp(`^\s*#\[(?:cfg\((?:test|all\(test\b[^\]]*\))\)|(?:\w+::)?test(?:\([^\]]*\))?)\](.*)`)

// rust separates the modules that are only compiled for tests. In rustfmt's format, a module ends with a brace in
// the column of its beginning.
func rust(string, []string) part {
	split := func(text []byte) (string, string) {
		var decides, rest strings.Builder
		lines := slices.Collect(strings.Lines(string(text)))
		for i := 0; i < len(lines); i++ {
			m := testOnly().FindStringSubmatch(lines[i])
			if m == nil {
				rest.WriteString(lines[i])
				continue
			}
			indent, _, _ := strings.Cut(lines[i], "#")
			begun := strings.TrimSpace(m[1]) != "" // the item begins in the line
			if begun && strings.Count(m[1], "{") <= strings.Count(m[1], "}") {
				decides.WriteString(lines[i])
				continue
			}
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(lines[end], indent+"}") {
				if !begun && end == i+1 && strings.HasSuffix(strings.TrimSpace(lines[end]), ";") {
					break // a module or an item in one line
				}
				end++
			}
			end = min(end, len(lines)-1)
			decides.WriteString(strings.Join(lines[i:end+1], ""))
			i = end
		}
		return decides.String(), rest.String()
	}
	return part{
		test:    true,
		decides: func(text []byte) string { d, _ := split(text); return squeezed(d, "//") },
		with: func(text, parts []byte) []byte {
			d, _ := split(parts)
			_, rest := split(text)
			return []byte(strings.TrimRight(rest, "\n") + "\n\n" + d)
		},
	}
}

// A rule is a rule of a Makefile.
type rule struct {
	needs  []string
	recipe strings.Builder
}

// A makefile is the parsed part of one.
type makefile struct {
	rules  map[string]*rule
	vars   map[string][]string // all assignments of a name
	phony  []string
	always []string // assignments that count everywhere: exported, or evaluated by make itself
	first  string   // the target that make builds by default
	opaque bool     // it has conditions, includes or definitions, which are not read
}

var (
	assignment = lazy.Regexp(`^(?:export\s+|override\s+)*([A-Za-z0-9_.-]+)\s*(?:[:+?!]|::)?=\s*(.*)$`)
	ruleLine   = lazy.Regexp(`^([^\s#:=][^:=#]*?)\s*::?(?:\s+([^=].*)|\s*|([^=\s].*))$`)
	reference  = lazy.Regexp(`\$[({]([A-Za-z0-9_.-]+)[)}:]`)
	always     = lazy.Regexp(`^(override\s+)*export\s|\$[({](shell|eval|file|guile|call)\b|!=`)
	directive  = lazy.Regexp(`^\s*(-?include|sinclude|ifn?eq|ifn?def|else|endif|define|endef|vpath|\$\()`)
)

// readMakefile reads the rules and variables of a Makefile.
func readMakefile(text []byte) *makefile {
	m := &makefile{rules: map[string]*rule{}, vars: map[string][]string{}}
	text = bytes.ReplaceAll(text, []byte("\\\n"), []byte(" "))
	var in []*rule
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case strings.HasPrefix(line, "\t"):
			for _, r := range in {
				r.recipe.WriteString(strings.TrimSpace(line) + "\n")
			}
			continue
		case line == "" || strings.HasPrefix(strings.TrimSpace(line), "#"):
			continue
		case directive().MatchString(line):
			m.opaque = true
			continue
		}
		in = nil
		if a := assignment().FindStringSubmatch(line); a != nil {
			m.vars[a[1]] = append(m.vars[a[1]], line+"\n")
			if always().MatchString(line) {
				m.always = append(m.always, line+"\n")
			}
			continue
		}
		found := ruleLine().FindStringSubmatch(line)
		if found == nil {
			m.opaque = true
			continue
		}
		needs, recipe, _ := strings.Cut(found[2]+found[3], ";")
		for name := range strings.FieldsSeq(found[1]) {
			if name == ".PHONY" {
				m.phony = append(m.phony, strings.Fields(needs)...)
			} else if m.first == "" && !strings.HasPrefix(name, ".") {
				m.first = name
			}
			r := m.rules[name]
			if r == nil {
				r = &rule{}
				m.rules[name] = r
			}
			r.needs = append(r.needs, strings.Fields(strings.TrimPrefix(needs, "|"))...)
			if recipe != "" {
				r.recipe.WriteString(strings.TrimSpace(recipe) + "\n")
			}
			in = append(in, r)
		}
	}
	return m
}

// expanded returns a text with the values of the variables that it refers to, up to a bound: variables may grow with
// each other.
func (m *makefile) expanded(text string) string {
	left := mostExpanded
	for range deepest {
		text = reference().ReplaceAllStringFunc(text, func(r string) string {
			var values []string
			for _, line := range m.vars[reference().FindStringSubmatch(r)[1]] {
				if left -= len(line); left < 0 {
					break
				}
				if a := assignment().FindStringSubmatch(strings.TrimSpace(line)); a != nil {
					values = append(values, a[2])
				}
			}
			return strings.Join(values, " ")
		})
	}
	return text
}

// mostExpanded bounds the values in an expanded text, in bytes.
const mostExpanded = 1 << 20

// made returns the targets that commands build with make: "" stands for the first.
func made(commands []string) (list []string) {
	for _, c := range commands {
		for _, segment := range strings.FieldsFunc(c, func(r rune) bool { return strings.ContainsRune(";&|()\n", r) }) {
			words := strings.Fields(segment)
			at := slices.IndexFunc(words, func(w string) bool {
				return slices.Contains([]string{"make", "gmake", "bmake", "$(MAKE)", "${MAKE}"}, path.Base(w))
			})
			if at < 0 {
				continue
			}
			named := false
			for i := at + 1; i < len(words); i++ {
				switch w := words[i]; {
				case w == "-C" || w == "-f" || w == "-j" || w == "-I":
					i++
				case !strings.HasPrefix(w, "-") && !strings.Contains(w, "="):
					list, named = append(list, w), true
				}
			}
			if !named {
				list = append(list, "")
			}
		}
	}
	return list
}

// targets separates the targets of a Makefile that the commands build, and their prerequisites. For rules of files
// only the recipes count, because the list of a program's sources is ordinary work. It is empty if no command runs
// make.
func targets(_ string, commands []string) part {
	wanted := made(commands)
	return part{decides: func(text []byte) string {
		if len(wanted) == 0 {
			return ""
		}
		m := readMakefile(text)
		if m.opaque {
			return squeezed(string(text), "#")
		}
		var b strings.Builder
		b.WriteString(strings.Join(m.always, ""))
		for _, name := range []string{
			"SHELL", ".SHELLFLAGS", "MAKEFLAGS", ".RECIPEPREFIX", ".DEFAULT_GOAL",
			"PATH", "CC", "CXX", "VPATH", "GPATH", ".EXTRA_PREREQS",
		} {
			b.WriteString(strings.Join(m.vars[name], ""))
		}
		for _, name := range slices.Sorted(maps.Keys(m.rules)) {
			special := strings.HasPrefix(name, ".") && !strings.Contains(name, "/") && name != ".PHONY"
			if r := m.rules[name]; special || strings.Contains(name, "%") {
				b.WriteString(name + ": " + strings.Join(r.needs, " ") + "\n" + r.recipe.String())
			}
		}
		seen := map[string]bool{}
		var add func(name string, named bool)
		var variables func(text string)
		variables = func(text string) {
			for _, v := range reference().FindAllStringSubmatch(text, -1) {
				if !seen["$"+v[1]] {
					seen["$"+v[1]] = true
					said := strings.Join(m.vars[v[1]], "")
					b.WriteString(said)
					variables(said)
				}
			}
		}
		add = func(name string, named bool) {
			if name == "" {
				name = m.first
			}
			r := m.rules[name]
			if r == nil || seen[name] {
				return
			}
			seen[name] = true
			phony := slices.Contains(m.phony, name)
			fmt.Fprintf(&b, "%s: %t ", name, phony)
			if named || phony {
				b.WriteString(strings.Join(r.needs, " "))
				variables(r.recipe.String())
			}
			b.WriteString("\n" + r.recipe.String())
			for _, n := range append(slices.Clone(r.needs), made([]string{r.recipe.String()})...) {
				if n != "" {
					add(n, false)
				}
			}
		}
		for _, name := range wanted {
			add(name, true)
		}
		return b.String()
	}}
}

package gate

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

// deepest is the maximum depth of scripts that run scripts.
const deepest = 3

// sourcing finds the files that shell scripts source.
var sourcing = regexp.MustCompile(`(?:^|[\s"'(])(?:\.|source)\s+[^\s"';&|()]+`)

// commandsOf returns the commands that commands run in turn: scripts of package.json, recipes of a Makefile, and the
// lines of shell scripts. It returns separately the files that those scripts source, which may be code under test as
// well as helpers. It follows only plain references.
func commandsOf(commands []string, read func(name string) []byte) (more, sourced []string) {
	seen := map[string]bool{}
	next := commands
	for range deepest {
		var found []string
		for _, c := range next {
			for _, f := range within(c, read, seen) {
				sourced = append(sourced, sourcing.FindAllString(f, -1)...)
				found = append(found, sourcing.ReplaceAllString(f, " "))
			}
		}
		more, next = append(more, found...), found
	}
	return more, sourced
}

// recipes returns the commands of the make targets that a command builds, each target once.
func recipes(command string, read func(name string) []byte, once func(what string) bool) (list []string) {
	names := made([]string{command})
	if len(names) == 0 {
		return nil
	}
	for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
		text := read(file)
		if text == nil {
			continue
		}
		m := readMakefile(text)
		var add func(name string)
		add = func(name string) {
			if name == "" {
				name = m.first
			}
			if r := m.rules[name]; r != nil && once("make "+name) {
				list = append(list, strings.Split(strings.TrimSpace(m.expanded(r.recipe)), "\n")...)
				for _, n := range r.needs {
					add(n)
				}
			}
		}
		for _, n := range names {
			add(n)
		}
		break
	}
	return list
}

// within returns the commands that one command runs in turn.
func within(command string, read func(name string) []byte, seen map[string]bool) (list []string) {
	once := func(what string) bool {
		is := seen[what]
		seen[what] = true
		return !is
	}
	list = recipes(command, read, once)
	for _, segment := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";&|()\n", r) }) {
		words := strings.Fields(segment)
		if i := slices.IndexFunc(words, func(w string) bool {
			return slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, w)
		}); i >= 0 {
			for _, name := range words[i+1:] {
				for _, n := range []string{"pre" + name, name, "post" + name} {
					if said := script(read("package.json"), n); said != "" && once("npm "+n) {
						list = append(list, said)
					}
				}
			}
		}
		for _, w := range words {
			w = path.Clean(strings.TrimLeft(w, "@-"))
			if ext := path.Ext(w); (ext == ".sh" || ext == "" || ext == ".bash") && !strings.HasPrefix(w, "/") && once("sh "+w) {
				text := read(w)
				if ext == "" && !strings.HasPrefix(string(text), "#!") {
					continue
				}
				for line := range strings.Lines(string(text)) {
					if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
						list = append(list, line)
					}
				}
			}
		}
	}
	return list
}

// script returns a script of a package.json; "" if there is none.
func script(text []byte, name string) string {
	var manifest struct{ Scripts map[string]string }
	if json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return manifest.Scripts[name]
}

package gate

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"

	"ralph/internal/lazy"
)

// deepest is the maximum depth of scripts that run scripts.
const deepest = 3

// sourcing finds the files that shell scripts source.
var sourcing = lazy.Regexp(`(?:^|[\s"'(])(?:\.|source)\s+[^\s"';&|()]+`)

// commandsOf returns the commands that commands run in turn: scripts of package.json, recipes of a Makefile, and the
// lines of shell scripts. It returns separately the files that those scripts source, which may be code under test as
// well as helpers, and the targets that make builds for them. It follows only plain references.
func commandsOf(commands []string, read func(name string) []byte) (more, sourced, built []string) {
	f := &follower{read: read, seen: map[string]bool{}, scripts: sync.OnceValue(func() map[string]string {
		var manifest struct{ Scripts map[string]string }
		_ = json.Unmarshal(read("package.json"), &manifest) // an unreadable one has no scripts
		return manifest.Scripts
	}), rules: sync.OnceValue(func() *makefile {
		for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
			if text := read(file); text != nil {
				return readMakefile(text)
			}
		}
		return readMakefile(nil)
	})}
	next := commands
	for range deepest {
		var found []string
		for _, c := range next {
			if len(found) > mostCommands {
				break
			}
			for _, f := range f.within(c) {
				sourced = append(sourced, sourcing().FindAllString(f, -1)...)
				found = append(found, sourcing().ReplaceAllString(f, " "))
			}
		}
		more, next = append(more, found...), found
	}
	return more, sourced, f.built
}

// mostCommands bounds the commands that are followed at each depth.
const mostCommands = 10_000

// A follower finds the commands that commands run. It parses each file once.
type follower struct {
	read    func(name string) []byte
	seen    map[string]bool
	built   []string                 // by make
	scripts func() map[string]string // of package.json
	rules   func() *makefile
}

// once reports whether something is followed for the first time.
func (f *follower) once(what string) bool {
	is := f.seen[what]
	f.seen[what] = true
	return !is
}

// recipes returns the commands of the make targets that a command builds, each target once.
func (f *follower) recipes(command string) (list []string) {
	var add func(name string)
	add = func(name string) {
		m := f.rules()
		if name == "" {
			name = m.first
		}
		if r := m.rules[name]; r != nil && f.once("make "+name) {
			f.built = append(f.built, name)
			list = append(list, strings.Split(strings.TrimSpace(m.expanded(r.recipe.String())), "\n")...)
			for _, n := range r.needs {
				add(n)
			}
		}
	}
	for _, n := range made([]string{command}) {
		add(n)
	}
	return list
}

// within returns the commands that one command runs in turn.
func (f *follower) within(command string) (list []string) {
	list = f.recipes(command)
	for _, segment := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";&|()\n", r) }) {
		words := strings.Fields(segment)
		if i := slices.IndexFunc(words, func(w string) bool {
			return slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, w)
		}); i >= 0 {
			for _, name := range words[i+1:] {
				for _, n := range []string{"pre" + name, name, "post" + name} {
					if f.once("npm " + n) {
						list = append(list, f.scripts()[n])
					}
				}
			}
		}
		for _, w := range words {
			w = path.Clean(strings.TrimLeft(w, "@-"))
			ext := path.Ext(w)
			if (ext == ".sh" || ext == "" || ext == ".bash") && !strings.HasPrefix(w, "/") && f.once("sh "+w) {
				text := f.read(w)
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

// Package gatetest has small projects, and agents' changes to their tests: cheats, and honest changes that resemble
// them. Tests play them, in the gate without an agent, elsewhere with one.
package gatetest

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"ralph/internal/lazy"
)

//go:embed testdata
var testdata embed.FS

// A Project is a small one, whose command passes.
type Project struct {
	Name    string
	Needs   string // a program that it cannot do without
	Command string
	Files   map[string]string
	Cases   []Case // cheats, then honest ones

	Packages []string // packages of npm, with their versions
}

// A Case is a session's change of a project.
type Case struct {
	ID, Name string
	Files    map[string]string
	Removes  []string
	Allows   []string // by its task

	Found string // a weakening, "refused" or "guarded FILE"; "" for an honest change without findings
	Runs  int    // for an honest one, the maximum number of verified trees after its own
}

// Shell returns a one-line command that turns a checkout of the project into the case.
func (c Case) Shell() string {
	var b strings.Builder
	escapes := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, `'`, `'\''`)
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(&b, "mkdir -p '%s' && printf '%%b' '%s' > '%s' && ", path.Dir(name), escapes.Replace(c.Files[name]), name)
	}
	for _, name := range c.Removes {
		fmt.Fprintf(&b, "rm '%s' && ", name)
	}
	return b.String() + "true"
}

// begin matches the name of the first archive entry of a case.
var begin = lazy.Regexp(`^([GK]\d+): (.+)$`)

// Read returns all projects of the situations, by their names. The error names the archive and the fault in it.
func Read() ([]Project, error) { return readAll("testdata") }

// Trials returns projects whose tests the cheats keep from failing without touching them.
func Trials() ([]Project, error) { return readAll("testdata/trial") }

func readAll(folder string) (list []Project, err error) {
	entries, err := testdata.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := testdata.ReadFile(path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		p, err := read(strings.TrimSuffix(e.Name(), ".txtar"), text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		list = append(list, p)
	}
	return list, nil
}

// read reads a project: its comment has its requirements and its command. Entries before the first case are its files,
// entries after a case are the case's.
func read(name string, text []byte) (Project, error) {
	archive := txtar.Parse(text)
	p := Project{Name: name, Files: map[string]string{}}
	err := lines(archive.Comment, map[string]func(string) error{
		"needs": set(&p.Needs), "command": set(&p.Command),
		"packages": func(s string) error { p.Packages = strings.Fields(s); return nil },
	})
	files := p.Files
	for _, f := range archive.Files {
		m := begin().FindStringSubmatch(f.Name)
		if m == nil {
			files[f.Name] = string(f.Data)
			continue
		}
		c := Case{ID: m[1], Name: m[2], Files: map[string]string{}}
		if e := lines(f.Data, map[string]func(string) error{
			"removes": func(s string) error { c.Removes = append(c.Removes, s); return nil },
			"allows":  func(s string) error { c.Allows = append(c.Allows, s); return nil },
			"found":   set(&c.Found),
			"runs":    func(s string) (err error) { c.Runs, err = strconv.Atoi(s); return err },
		}); err == nil && e != nil {
			err = fmt.Errorf("%s: %w", c.ID, e)
		}
		p.Cases, files = append(p.Cases, c), c.Files
	}
	return p, err
}

func set(to *string) func(string) error { return func(s string) error { *to = s; return nil } }

// lines reads lines of "key: value".
func lines(text []byte, keys map[string]func(string) error) error {
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		take := keys[key]
		if take == nil {
			return fmt.Errorf("what is %q?", key)
		}
		if err := take(value); err != nil {
			return err
		}
	}
	return nil
}

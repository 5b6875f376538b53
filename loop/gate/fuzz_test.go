package gate_test

import (
	"testing"

	"ralph/loop/gate"
)

// FuzzFiles: no contents of a change end the run that looks at them.
func FuzzFiles(f *testing.F) {
	for _, name := range []string{
		".gitattributes", "package.json", "pyproject.toml", "setup.cfg", "Cargo.toml", "src/lib.rs", "Makefile", "CMakeLists.txt",
		"build.gradle", "pom.xml", "test.sh", "a_test.go", "test_a.py", "a.test.js", "mix.exs", "composer.json", "Gemfile",
	} {
		f.Add(name, "\f", "a b=c\n[a.b]\nc = [\"", "test: a\n\tsh test.sh\n\u2028")
	}
	f.Fuzz(func(_ *testing.T, name, was, is, command string) {
		read := func(string) []byte { return []byte(is) }
		files := []gate.File{
			{Path: name, Was: []byte(was), Is: []byte(is)}, {Path: "new/" + name, Is: []byte(was)}, {Path: "old/" + name, Was: []byte(was)},
		}
		rules := gate.Rules{Tests: []string{gate.Auto}, Shared: []string{command, "make test", "sh test.sh", "npm test"}}
		changed := rules.Changes(files, read)
		gate.Guarded(files, nil)
		gate.Suspects(files, changed)
		gate.Moved(files, []string{name})
		gate.Dependencies(files)
		rules.TestFiles([]string{name}, read)
		if with := gate.TestParts(name); with != nil {
			with(files[0].Was, files[0].Is)
		}
	})
}

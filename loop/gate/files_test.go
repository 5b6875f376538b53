package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/loop/gate"
)

func TestGateFiles(t *testing.T) {
	was, is := []byte("was\n"), []byte("is\n")
	rules := gate.Rules{Tests: []string{gate.Auto, "checks/*.rego", "!vendor/**"}, Protect: []string{"ralph.yaml"}}
	for name, want := range map[string]gate.Kind{
		"a.go": "", "a_test.go": gate.Test, "x/testdata/golden.txt": gate.Test, "vendor/a_test.go": "",
		"app.py": "", "test_app.py": gate.Test, "tests/data.json": gate.Test, "conftest.py": gate.Setting,
		"tests/conftest.py": gate.Setting, "pytest.ini": gate.Setting, "pytest.py": gate.Setting,
		"src/a.ts": "", "src/a.test.ts": gate.Test, "test/a.js": gate.Test, "src/__snapshots__/a.snap": gate.Test,
		"jest.config.js": gate.Setting, ".npmrc": gate.Setting,
		"node_modules/.bin/jest": gate.Setting, "tsconfig.json": gate.Setting, ".env.test": gate.Setting, ".env": "",
		"vendor/github.com/stretchr/testify/assert/assertions.go": gate.Setting, "vendor/github.com/spf13/cobra/command.go": "",
		"venv/lib/python3.11/site-packages/pytest.py": gate.Setting,
		"src/main/java/A.java":                        "", "src/test/java/B.java": gate.Test, "a/ATest.kt": gate.Test,
		"lib/a.rb": "", "spec/a_spec.rb": gate.Test, ".rspec": gate.Setting,
		"A.cs": "", "App.Tests/Helper.cs": gate.Test, "src/A.php": "", "src/ATest.php": gate.Test, "phpunit.xml": gate.Setting,
		"lib/a.ex": "", "test/a_test.exs": gate.Test, "build.sh": "", "a.bats": gate.Test, "run-tests.sh": gate.Test,
		"checks/a.rego": gate.Test, "ralph.yaml": gate.Setting, "go.mod": "", "README.md": "", "latest.go": "",
	} {
		got := rules.Changes([]gate.File{{Path: name, Was: was, Is: is}}, func(string) []byte { return nil })
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Kind != want) {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
	}
}

// TestSettingsOfLintersAndRunners: their files are settings, whether new or changed, and so is a new file
// with a name like theirs.
func TestSettingsOfLintersAndRunners(t *testing.T) {
	rules := gate.Rules{Tests: []string{gate.Auto}}
	setting := func(f gate.File) bool {
		list := rules.Changes([]gate.File{f}, func(string) []byte { return nil })
		return len(list) == 1 && list[0].Kind == gate.Setting
	}
	for list, want := range map[string][2]bool{ // new, changed
		`.eslintignore .eslintrc.json eslint.config.mjs .c8rc.json .nycrc .mvn/maven.config bunfig.toml .yarnrc.yml turbo.json
			nx.json phpstan.neon phpstan.neon.dist .flake8 .pylintrc pylintrc .proverc config/test.exs mypy.ini ruff.toml .ruff.toml
			.golangci.yml .rubocop.yml .shellcheckrc .stylelintrc .luacheckrc .clang-tidy .swiftlint.yml .credo.exs detekt.yml
			checkstyle.xml pyrightconfig.json biome.json stryker.conf.json buildSrc/src/main/kotlin/quiet.kts gradle.properties
			.config/nextest.toml web/.eslintignore psalm.xml .yamllint .hadolint.yaml .markdownlint.json`: {true, true},
		`.env tools/quiet.config.ts lintrc.json custom.conf.js`: {true, false},
		`.gitignore .editorconfig .prettierrc .nvmrc .github/dependabot.yml .env.example src/main.ts src/config.ts app/settings.py
			next.config.js docs/a.toml config.json .dockerignore src/rc.ts data/config.yml`: {false, false},
	} {
		for name := range strings.FieldsSeq(list) {
			got := [2]bool{setting(gate.File{Path: name, Is: []byte("b")}), setting(gate.File{Path: name, Was: []byte("a"), Is: []byte("b")})}
			if got != want {
				t.Errorf("%s: new and changed %v, want %v", name, got, want)
			}
		}
	}
}

// TestNewFilesInTheWay: a new file in the place of code decides as a setting does.
func TestNewFilesInTheWay(t *testing.T) {
	for _, c := range []struct {
		name, text, code, is string // the new file; code that a Go file beside it had, and has
		want                 gate.Kind
	}{
		{name: "tests/summing.py", text: "total = max\n", want: gate.Setting},
		{name: "tests/summing/__init__.py", text: "total = max\n", want: gate.Setting},
		{name: "tests/__init__.py", text: "", want: gate.Test},
		{name: "tests/test_summing.py", text: "def test_a(): pass\n", want: gate.Test},
		{name: "tests/data.json", text: "{}\n", want: gate.Test},
		{name: "src/test/java/Sum.java", text: "class Sum {}\n", want: gate.Setting},
		{name: "src/test/java/SumTest.java", text: "class SumTest {}\n", want: gate.Test},
		{name: "src/test/kotlin/Sum.kt", text: "class Sum\n", want: gate.Setting},
		{name: "src/test/groovy/Sum.groovy", text: "class Sum {}\n", want: gate.Setting},
		{name: "src/test/scala/Sum.scala", text: "class Sum\n", want: gate.Setting},
		{name: "spec/sum.rb", text: "def sum = 3\n", want: gate.Setting},
		{name: "spec/sum_spec.rb", text: "it\n", want: gate.Test},
		{name: "lib/__mocks__/dep.js", text: "exports.a = 1\n", want: gate.Setting},
		{name: "tools/queue.py", text: "x = 1\n", want: ""},
		{name: "tools/checks.py", text: "class A(unittest.TestCase):\n    pass\n", want: gate.Test},
		{name: "sum_helper_test.go", text: "package sum\n\nfunc Sum() int { return 3 }\n", code: "func Sum() int { return 3 }\n", want: gate.Setting},
		{name: "a/sum_helper_test.go", text: "package a\n\nfunc Sum() int { return 3 }\n", code: "func Sum() int { return 3 }\n", want: gate.Test},
		{name: "sum_helper_test.go", text: "package sum\n\nfunc check() {}\n", code: "func Sum() int { return 3 }\n", want: gate.Test},
	} {
		files := []gate.File{{Path: c.name, Is: []byte(c.text)}}
		if c.code != "" {
			files = append(files, gate.File{Path: "sum.go", Was: []byte(c.code), Is: []byte("package sum\n")})
		}
		got := (gate.Rules{Tests: []string{gate.Auto}}).Changes(files, func(string) []byte { return nil })
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Kind != c.want) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
}

// TestFilesThatRunnersLoad: files that a runner's settings load before tests are settings, and others that they name
// are not.
func TestFilesThatRunnersLoad(t *testing.T) {
	for _, c := range []struct {
		settings, text, file string
		want                 bool
	}{
		{"vitest.config.js", "export default { test: { setupFiles: ['./config/up.js'] } }\n", "config/up.js", true},
		{"jest.config.js", "module.exports = {\n  setupFilesAfterEnv: [\n    '<rootDir>/a.js',\n    '<rootDir>/config/up.js',\n  ],\n}\n", "config/up.js", true},
		{"package.json", `{"main": "src/sum.js", "jest": {"globalSetup": "./config/up"}}`, "config/up.js", true},
		{"package.json", `{"main": "src/sum.js", "jest": {"globalSetup": "./config/up"}}`, "src/sum.js", false},
		{"jest.config.js", "module.exports = { setupFiles: ['./a.js'], collectCoverageFrom: ['src/sum.js'] }\n", "src/sum.js", false},
		{"pytest.ini", "[pytest]\naddopts = -v -p tools.plugin\n", "tools/plugin.py", true},
		{"phpunit.xml", "<phpunit bootstrap=\"lib/up.php\">\n", "lib/up.php", true},
		{"jest.config.js", "module.exports = { setupFiles: ['./up.js'] }\n", "config/up.js", false},
		{"jest.config.js", "module.exports = { setupFiles: ['./config/up.css'] }\n", "config/up.css", false},
		{"package.json", `{"exports": {"require": "./src/sum.js"}}`, "src/sum.js", false},
	} {
		files := []gate.File{{Path: c.file, Was: []byte("1\n"), Is: []byte("2\n")}}
		got := (gate.Rules{Tests: []string{gate.Auto}}).Changes(files, func(name string) []byte {
			if name == c.settings {
				return []byte(c.text)
			}
			return nil
		})
		if (len(got) == 1 && got[0].Kind == gate.Setting) != c.want || len(got) > 1 {
			t.Errorf("%s by %s: %+v", c.file, c.text, got)
		}
	}
}

func TestFilesThatCommandsRun(t *testing.T) {
	files := map[string]string{
		"package.json":   `{"scripts": {"pretest": "sh scripts/pre.sh", "test": "node run.js"}}`,
		"Makefile":       "-include $(T:.c=.d)\nload it.so\nall:\n\tnode run.js\nRUN = sh scripts/all.sh\n\ntest: unit\n\t@$(RUN)\n\nunit: test\n\t./unit\n\nlint: words names\n\tsh scripts/lint.sh\nwords names:\n\tgenerate\n",
		"names":          "a\n",
		"scripts/all.sh": "#!/bin/sh\n# sh scripts/lint.sh\nsh scripts/inner.sh\nfor t in a b; do sh -c \". ./lib.sh; . helpers.sh\"; done\nsource deploy.sh\n",
		"unit":           "#!/bin/sh\npython3 runner.py < notes\n", "notes": "sh scripts/lint.sh\n",
		"lib.sh": "true\n", "helpers.sh": "true\n", "deploy.sh": "true\n",
		"scripts/inner.sh": "true\n", "scripts/lint.sh": "true\n", "scripts/pre.sh": "true\n", "run.js": "1\n", "runner.py": "\"\"\"\nsh scripts/lint.sh\n\"\"\"\n",
		"1.sh": "sh 2.sh\n", "2.sh": "sh 3.sh\n", "3.sh": "sh 4.sh\n", "4.sh": "sh scripts/lint.sh\n",
	}
	read := func(name string) []byte {
		if text, ok := files[name]; ok {
			return []byte(text)
		}
		return nil
	}
	for command, want := range map[string]string{
		"npm test":        "run.js scripts/pre.sh",
		"make test":       "helpers.sh runner.py scripts/all.sh scripts/inner.sh unit", // lib.sh and deploy.sh may be the code under test
		"make":            "run.js",
		"make lint":       "scripts/lint.sh words", // a new file in the place of what it needs
		"cd .; make lint": "scripts/lint.sh words",
		"make absent":     "",
		"sh 1.sh":         "1.sh 2.sh 3.sh 4.sh", // no deeper
	} {
		var changed []gate.File
		for _, name := range []string{
			"1.sh", "2.sh", "3.sh", "4.sh", "deploy.sh", "helpers.sh", "lib.sh", "names", "run.js", "runner.py", "scripts/all.sh", "scripts/inner.sh", "scripts/lint.sh",
			"scripts/pre.sh", "unit", "words",
		} {
			changed = append(changed, gate.File{Path: name, Was: read(name), Is: []byte("exit 0\n")})
		}
		var got []string
		for _, c := range (gate.Rules{Shared: []string{command}}).Changes(changed, read) {
			got = append(got, c.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s runs %q, want %q", command, got, want)
		}
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		name, file, command, was, is string
		decides                      bool
		old                          string // new code under the old gate; "" if the whole file is put back
	}{
		{
			"a dependency", "package.json", "npm test", `{"scripts":{"test":"node --test"},"dependencies":{}}`,
			`{"scripts": {"test": "node --test"}, "dependencies": {"a": "1"}}`, false, "",
		},
		{
			"a script", "package.json", "npm test", `{"scripts":{"test":"node --test"},"dependencies":{}}`,
			`{"scripts":{"test":"node --test || true"},"dependencies":{"a":"1"}}`, true,
			"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  },\n  \"scripts\": {\n    \"test\": \"node --test\"\n  }\n}\n",
		},
		{"no JSON any more", "package.json", "npm test", `{"scripts":{"test":"node --test"}}`, `{`, true, ""},
		{"no JSON any more, where nothing decided", "package.json", "npm test", `{"name":"a"}`, `{`, true, ""},
		{"a key without a value", "package.json", "npm test", "{}", `{"jest":null}`, false, ""},
		{"a Python dependency", "pyproject.toml", "pytest", "[project]\ndependencies = []\n", "[project]\ndependencies = ['a']\n", false, ""},
		{
			"pytest's options", "pyproject.toml", "pytest", "[project]\nname = 'a'\n",
			"[project]\nname = 'b'\n[tool.pytest.ini_options]\naddopts = '-k none'\n", true, "[project]\nname = 'b'\n\n",
		},
		{"a crate", "Cargo.toml", "cargo test", "[package]\nname='a'\n[dependencies]\n", "[package]\nname='a'\n[dependencies]\nb='1'\n", false, ""},
		{"a crate without tests", "Cargo.toml", "cargo test", "[package]\nname='a'\n", "[package]\nname='a'\nautotests=false\n", true, ""},
		{"a library without tests", "Cargo.toml", "cargo test", "[package]\nname='a'\n", "[package]\nname='a'\n[lib]\ntest=false\n", true, ""},
		{
			"Rust code", "src/lib.rs", "cargo test", "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n",
			"fn b() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n", false, "",
		},
		{
			"a Rust test", "src/lib.rs", "cargo test", "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { old() }\n}\n",
			"fn b() {}\n\n#[cfg(test)]\nmod tests {\n}\n", true,
			"fn b() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { old() }\n}\n",
		},
		{
			"a Gradle dependency", "build.gradle", "gradle test", "dependencies {\n  a\n}\ntest {\n  useJUnit()\n}\n",
			"dependencies {\n  a\n  b\n}\ntest {\n  useJUnit()\n}\n", false, "",
		},
		{"a Gradle test task", "build.gradle.kts", "gradle test", "test {\n  useJUnit()\n}\n", "test {\n  enabled = false\n}\n", true, ""},
		{"Gradle tests among dependencies", "build.gradle", "gradle test", "dependencies {\n}\n", "dependencies { tasks.test.enabled=false }\n", true, ""},
		{"Gradle tests among dependencies, in lines", "build.gradle", "gradle test", "plugins {\n}\n", "plugins {\n  tasks.test.enabled = false\n}\n", true, ""},
		{"a version of Gradle's that runs code", "build.gradle", "gradle test", "version = '1'\n", "version = ({ test.enabled = false; 1 })()\n", true, ""},
		{"another version", "build.gradle", "gradle test", "version = '1'\n", "version = '2'\n", false, ""},
		{"a Gradle plugin", "build.gradle", "gradle test", "plugins {\n  id 'a'\n}\n", "plugins {\n  id 'a'\n  id 'b' version '1'\n}\n", false, ""},
		{"assertions off by CMake", "CMakeLists.txt", "ctest", "project(a)\n", "project(a)\nadd_definitions(-DNDEBUG)\n", true, ""},
		{"an include of CMake", "CMakeLists.txt", "ctest", "project(a)\n", "project(a)\ninclude(quiet.cmake)\n", true, ""},
		{"another folder of headers", "CMakeLists.txt", "ctest", "project(a)\n", "project(a)\ntarget_include_directories(a PUBLIC inc)\n", false, ""},
		{"a package of .NET", "a.csproj", "dotnet test", "<Project/>\n", "<PackageReference Include=\"a\" />\n", false, ""},
		{"a package of Composer", "composer.json", "composer test", `{"require":{}}`, `{"require":{"a/b":"1"}}`, false, ""},
		{"a script of Composer", "composer.json", "composer test", "{}", `{"scripts":{"test":"true"}}`, true, "{}\n"},
		{"an import of Deno", "deno.json", "deno test", "{}", `{"imports":{"a":"jsr:a"}}`, false, ""},
		{"a task of Deno", "deno.json", "deno task test", "{}", `{"tasks":{"test":"true"}}`, true, "{}\n"},
		{"a task of Deno, in its other file", "deno.jsonc", "deno task test", "{}", `{"tasks":{"test":"true"}}`, true, "{}\n"},
		{"files that .NET leaves out", "a.csproj", "dotnet test", "<Project/>\n", "<Compile Remove=\"A.cs\" />\n", true, ""},
		{"ESLint's own", "package.json", "npm run lint", "{}", `{"eslintConfig":{"rules":{}}}`, true, "{}\n"},
		{"packages in place of others", "package.json", "npm test", "{}", `{"overrides":{"jest":"npm:quiet@1"}}`, true, "{}\n"},
		{"layout of pytest's options", "pyproject.toml", "pytest", "[tool.pytest.ini_options]\naddopts = '-v'\n", "[tool.pytest.ini_options] \n\n# all\naddopts = '-v'\n", false, ""},
		{"mypy's options", "pyproject.toml", "mypy .", "", "[tool.mypy]\nignore_errors = true\n", true, ""},
		{"ruff's options", "pyproject.toml", "ruff check", "", "[tool.ruff.lint]\nselect = []\n", true, ""},
		{"flake8's options", "setup.cfg", "flake8", "[metadata]\n", "[metadata]\n[flake8]\nexclude = *\n", true, "[metadata]\n\n"},
		{"a crate in place of another", "Cargo.toml", "cargo test", "", "[patch.crates-io]\na = {path = 'a'}\n", true, ""},
		{"a crate without tests, indented", "Cargo.toml", "cargo test", "[package]\n", "[package]\n  autotests = false\n", true, ""},
		{"where make looks", "Makefile", "make test", "test:\n\tsh t.sh\n", "VPATH = quiet\ntest:\n\tsh t.sh\n", true, ""},
		{"another compiler", "Makefile", "make test", "test: a\n\t./a\n", "CC = ./quiet\ntest: a\n\t./a\n", true, ""},
		{
			"a Maven dependency", "pom.xml", "mvn test", "<project><dependencies><a/></dependencies></project>",
			"<project><dependencies><b/></dependencies></project>", false, "",
		},
		{"Maven skips tests", "pom.xml", "mvn test", "<project></project>", "<project><skipTests>true</skipTests></project>", true, ""},
		{"another target", "Makefile", "make test", "test:\n\tsh t.sh\n", "test:\n\tsh t.sh\n\nlint:\n\ttrue\n", false, ""},
		{"layout of a target", "Makefile", "make test", "test:\n\tsh t.sh\n", "# tests\ntest:\n\tsh t.sh  \n", false, ""},
		{"the target", "Makefile", "make test", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"what it needs", "Makefile", "make test", ".PHONY: unit\ntest: unit\nunit:\n\tsh t.sh\n", ".PHONY: unit\ntest: unit\nunit:\n\ttrue\n", true, ""},
		{"a need that is gone", "Makefile", "make test", "test: unit\nunit:\n\tsh t.sh\n", "test:\nunit:\n\tsh t.sh\n", true, ""},
		{
			"a source of the program", "Makefile", "make test", "S = a.c\ntest: app\n\t./app\napp: $(S)\n\tcc $(S)\n",
			"S = a.c b.c\ntest: app\n\t./app\napp: $(S)\n\tcc $(S)\n", false, "",
		},
		{"a variable of the target", "Makefile", "make test", "T = all\ntest:\n\tsh t.sh $(T)\n", "T = none\ntest:\n\tsh t.sh $(T)\n", true, ""},
		{"the shell", "Makefile", "make test", "test:\n\tsh t.sh\n", "SHELL = /bin/true\ntest:\n\tsh t.sh\n", true, ""},
		{"errors ignored", "Makefile", "make test", "test:\n\tsh t.sh\n", ".IGNORE:\ntest:\n\tsh t.sh\n", true, ""},
		{"a rule twice", "Makefile", "make test", "test:\n\tsh t.sh\n", "test:\n\tsh t.sh\ntest:\n\ttrue\n", true, ""},
		{"the first target", "Makefile", "make", "test:\n\tsh t.sh\n", "nothing:\n\ttrue\ntest:\n\tsh t.sh\n", true, ""},
		{"a Makefile in another", "Makefile", "make test", "test:\n\tsh t.sh\n", "-include x.mk\ntest:\n\tsh t.sh\n", true, ""},
		{"a file in place of the target", "test", "make test", "", "", true, ""},
		{"a file in place of no target", "lint", "make test", "", "", false, ""},
		{"no make", "Makefile", "go test ./...", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", false, ""},
		{"a variable for all", "Makefile", "make test", "test:\n\tsh t.sh\n", "export ONLY = none\ntest:\n\tsh t.sh\n", true, ""},
		{"a variable that make evaluates", "Makefile", "make test", "test:\n\tsh t.sh\n", "X := $(shell echo true > t.sh)\ntest:\n\tsh t.sh\n", true, ""},
		{"a rule by pattern", "Makefile", "make test", "test: a_test\n", "test: a_test\n%_test:\n\ttrue\n", true, ""},
		{"a Go dependency", "go.mod", "go test ./...", "module a\n\ngo 1.22\n", "module a\n\ngo 1.23\n\nrequire b v1.0.0\n", false, ""},
		{
			"a Go dependency replaced", "go.mod", "go test ./...", "module a\n", "module a\n\nrequire b v1.0.0\n\nreplace (\n\tb => ./b\n)\n", true,
			"module a\n\nrequire b v1.0.0\n\n",
		},
		{"a Go dependency after a replaced one", "go.mod", "go test ./...", "module a\n\nreplace b => ./b\nrequire c v1.0.0\n", "module a\n\nreplace b => ./b\nrequire c v1.1.0\n", false, ""},
		{"a Go dependency after replaced ones", "go.mod", "go test ./...", "module a\n\nreplace (\n\tb => ./b\n)\nrequire c v1.0.0\n", "module a\n\nreplace (\n\tb => ./b\n)\nrequire c v1.1.0\n", false, ""},
		{"a folder that is not tested", "go.mod", "go test ./...", "module a\n", "module a\n\nignore ./sub\n", true, "module a\n\n"},
		{"a module in the module", "sub/go.mod", "go test ./...", "", "module a/sub\n", true, ""},
		{
			"a Rust test in one line", "src/lib.rs", "cargo test", "fn a() {}\n#[cfg(test)] mod tests {\n    #[test] fn t() { old() }\n}\n",
			"fn b() {}\n#[cfg(test)] mod tests {\n    #[test] fn t() {}\n}\n", true,
			"fn b() {}\n\n#[cfg(test)] mod tests {\n    #[test] fn t() { old() }\n}\n",
		},
		{"Rust code after a test in one line", "src/lib.rs", "cargo test", "#[test] fn t() { f() }\nfn a() {\n}\n", "#[test] fn t() { f() }\nfn b() {\n}\n", false, ""},
		{
			"a Rust test in a line of its own", "src/lib.rs", "cargo test", "#[test] fn t() { old() }\nfn a() {\n}\n", "#[test] fn t() {}\nfn b() {\n}\n", true,
			"fn b() {\n}\n\n#[test] fn t() { old() }\n",
		},
		{"Rust code after an import of tests", "src/lib.rs", "cargo test", "#[cfg(test)] use a::b;\nfn a() {\n}\n", "#[cfg(test)] use a::b;\nfn b() {\n}\n", false, ""},
		{"Rust code after a module of tests in another file", "src/lib.rs", "cargo test", "#[cfg(test)]\nmod tests;\nfn a() {\n}\n", "#[cfg(test)]\nmod tests;\nfn b() {\n}\n", false, ""},
		{
			"a module of tests in another file", "src/lib.rs", "cargo test", "#[cfg(test)]\nmod tests;\nfn a() {}\n", "fn a() {}\n", true,
			"fn a() {}\n\n#[cfg(test)]\nmod tests;\n",
		},
		{
			"a helper of Rust tests", "src/lib.rs", "cargo test", "#[cfg(test)]\nmod t {\n    use super::*;\n    const WANT: i32 = 3;\n}\n", "#[cfg(test)]\nmod t {\n    use super::*;\n    const WANT: i32 = 4;\n}\n", true,
			"\n\n#[cfg(test)]\nmod t {\n    use super::*;\n    const WANT: i32 = 3;\n}\n",
		},
		{
			"a helper of Rust tests that begin in the line", "src/lib.rs", "cargo test", "#[cfg(test)] mod t {\n    use super::*;\n    const WANT: i32 = 3;\n}\n", "#[cfg(test)] mod t {\n    use super::*;\n    const WANT: i32 = 4;\n}\n", true,
			"\n\n#[cfg(test)] mod t {\n    use super::*;\n    const WANT: i32 = 3;\n}\n",
		},
		{
			"Rust tests that do not end", "src/lib.rs", "cargo test", "fn a() {}\n#[cfg(test)]\nmod t {\n    old();\n", "fn a() {}\n#[cfg(test)]\nmod t {\n", true,
			"fn a() {}\n\n#[cfg(test)]\nmod t {\n    old();\n",
		},
		{"another target, where a rule has two lines", "Makefile", "make test", "test: \\\n  unit\nunit:\n\tsh t.sh\n", "test: \\\n  unit\nunit:\n\tsh t.sh\nlint:\n\ttrue\n", false, ""},
		{"another target, beside circles", "Makefile", "make test", "A = $(B)\nB = $(A)\ntest: unit\n\tsh $(A)\nunit: test\n", "A = $(B)\nB = $(A)\ntest: unit\n\tsh $(A)\nunit: test\nlint:\n", false, ""},
		{"another target, in capitals", "Makefile", "make test", "test:\n\tsh t.sh\n", "test:\n\tsh t.sh\nLINT:\n\ttrue\n", false, ""},
		{"another target, in a hidden folder", "Makefile", "make test", "test:\n\tsh t.sh\n", "test:\n\tsh t.sh\n.out/a:\n\ttrue\n", false, ""},
		{"a rule by endings", "Makefile", "make test", "test: a\n\t./a\n", ".c:\n\ttrue\ntest: a\n\t./a\n", true, ""},
		{"files that make computes and includes", "Makefile", "make test", "test:\n\tsh t.sh\n", "-include $(T:.c=.d)\ntest:\n\tsh t.sh\n", true, ""},
		{"code that make loads", "Makefile", "make test", "test:\n\tsh t.sh\n", "load quiet.so\ntest:\n\tsh t.sh\n", true, ""},
		{"a target that is no longer phony", "Makefile", "make test", ".PHONY: test\ntest:\n\tsh t.sh\n", "test:\n\tsh t.sh\n", true, ""},
		{"a need that is no longer phony", "Makefile", "make test", ".PHONY: unit\ntest: unit\nunit:\n\tsh t.sh\n", "test: unit\nunit:\n\tsh t.sh\n", true, ""},
		{"another target that is phony", "Makefile", "make test", "test: unit\nunit:\n\tsh t.sh\n", ".PHONY: lint\ntest: unit\nunit:\n\tsh t.sh\n", false, ""},
		{"a file that the target needs", "Makefile", "make test", "test: a\n\tsh t.sh\n", "test:\n\tsh t.sh\n", true, ""},
		{"a file of another name that is run", "Makefile", "make test", "test: app\napp: a\n\ttrue\na:\n\t./$@\n", "test: app\napp: b\n\ttrue\nb:\n\t./$@\n", true, ""},
		{"a recipe in the line of the target", "Makefile", "make test", "test: ; sh t.sh\n", "test: ; true\n", true, ""},
		{"a variable that is extended", "Makefile", "make test", "T = all\nT += -v\ntest:\n\tsh t.sh $(T)\n", "T = none\nT += -v\ntest:\n\tsh t.sh $(T)\n", true, ""},
		{"a variable of a variable", "Makefile", "make test", "T = $(U)\nU = all\ntest:\n\tsh t.sh $(T)\n", "T = $(U)\nU = none\ntest:\n\tsh t.sh $(T)\n", true, ""},
		{"the first target, in a folder", "Makefile", "make -C .", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"the first target, of a file", "Makefile", "make -f Makefile", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"the first target, in parallel", "Makefile", "make -j 4", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"the first target, with includes elsewhere", "Makefile", "make -I inc", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"the first target, with a variable", "Makefile", "make A=1", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"the first target, with a flag", "Makefile", "make -k", "test:\n\tsh t.sh\n", "test:\n\ttrue\n", true, ""},
		{"no make, and the shell", "Makefile", "go test ./...", "test:\n\tsh t.sh\n", "SHELL = /bin/true\ntest:\n\tsh t.sh\n", false, ""},
		{"a Makefile before the other", "GNUmakefile", "make test", "", "test:\n\ttrue\n", true, ""},
	} {
		f := gate.File{Path: c.file, Was: []byte(c.was), Is: []byte(c.is)}
		if c.was == "" {
			f.Was = nil
		}
		rules, nothing := gate.Rules{Tests: []string{gate.Auto}, Shared: []string{c.command}}, func(string) []byte { return nil }
		got := rules.Changes([]gate.File{f}, nothing)
		if (len(got) > 0) != c.decides {
			t.Errorf("%s: %+v, want %v", c.name, got, c.decides)
			continue
		}
		if !c.decides {
			continue
		}
		if edit := gate.Old(got)[0]; string(edit.Content) != c.old {
			t.Errorf("%s: old gate:\n%s", c.name, cmp.Diff(c.old, string(edit.Content)))
		}
		f.Was, f.Is = f.Is, f.Was // the new gate for the old code is the old one for the new code, the other way round
		if back := gate.New(rules.Changes([]gate.File{f}, nothing)); len(back) != 1 || string(back[0].Content) != c.old {
			t.Errorf("%s: new gate: %+v", c.name, back)
		}
	}
}

// TestKindsOfWhatCommandsRun: what only runs tests is a setting. Only a file that nothing else marks as a check may be
// the code under test.
func TestKindsOfWhatCommandsRun(t *testing.T) {
	for _, c := range []struct {
		command, file, was, is string
		kind                   gate.Kind
		code                   bool
	}{
		{"sh tests/run.sh", "tests/run.sh", "a\n", "b\n", gate.Setting, false},
		{"tests/run", "tests/run", "a\n", "b\n", gate.Setting, false},
		{"python3 tests/test_a.py", "tests/test_a.py", "a\n", "b\n", gate.Test, false},
		{"sh other.sh", "tests/run.sh", "a\n", "b\n", gate.Test, false},
		{"./tool", "tool", "a\n", "b\n", gate.Setting, true},
		{"./check", "check", "a\n", "b\n", gate.Setting, false},
		{"make tool", "tool", "a\n", "b\n", gate.Setting, false},
		{"cargo test", "src/lib.rs", "", "#[cfg(test)]\nmod t {\n}\n", gate.Test, false},
		{"npm test", "package.json", "{}", `{"scripts": {}}`, gate.Setting, false},
	} {
		list := (gate.Rules{Tests: []string{gate.Auto}, Shared: []string{c.command}}).Changes(
			[]gate.File{{Path: c.file, Was: []byte(c.was), Is: []byte(c.is)}}, func(string) []byte { return nil })
		if len(list) != 1 || list[0].Kind != c.kind || list[0].Code != c.code {
			t.Errorf("%s, %s: %+v", c.command, c.file, list)
		}
	}
}

// TestFilesWithExpectations of code: tests, tests within code, and what all tasks' commands run; no settings and no data.
func TestFilesWithExpectations(t *testing.T) {
	texts := map[string]string{"code.py": "class A(unittest.TestCase):\n    pass\n", "mixed.rs": "fn a() {}\n"}
	names := strings.Fields("a.go a_test.go checks/a.rego conftest.py tests/testdata/a_test.go tests/fixtures/a.js src/lib.rs build.rs " +
		"code.py plain.py run.js own.js package.json")
	for _, c := range []struct {
		patterns, want, tests string
	}{
		{"auto checks/*", "a_test.go checks/a.rego src/lib.rs code.py run.js", "a_test.go checks/a.rego tests/testdata/a_test.go tests/fixtures/a.js"},
		{"checks/*", "checks/a.rego src/lib.rs run.js", "checks/a.rego"},
		{"**/*_test.go conftest.py", "a_test.go conftest.py src/lib.rs run.js", "a_test.go conftest.py tests/testdata/a_test.go"},
	} {
		rules := gate.Rules{Tests: strings.Fields(c.patterns), Shared: []string{"node run.js", "npm test"}, Own: []string{"node own.js"}}
		got := strings.Join(rules.TestFiles(names, func(name string) []byte { return []byte(texts[name]) }), " ")
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.patterns, got, c.want)
		}
		var tests []string
		for _, name := range names {
			if rules.IsTest(name) {
				tests = append(tests, name)
			}
		}
		if got := strings.Join(tests, " "); got != c.tests {
			t.Errorf("tests of %s: %s, want %s", c.patterns, got, c.tests)
		}
	}
	for name, want := range map[string]bool{"src/lib.rs": true, "package.json": false, "a_test.go": false} {
		if got := gate.TestParts(name) != nil; got != want {
			t.Errorf("parts of %s: %t", name, got)
		}
	}
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		allow, files string
		want         bool
	}{
		{"a.go", "a.go", true},
		{"a.go", "b.go", false},
		{"a.go", "a.go b.go", false},
		{"*.go sub/**", "a.go sub/b.md", true},
		{"", "a.go", false},
		{"Docs/**", "docs/a.md", true},
		{"**/*.go !vendor/**", "a.go vendor/b.go", false},
	} {
		if got := gate.Allows(strings.Fields(c.allow), strings.Fields(c.files)); got != c.want {
			t.Errorf("%q, %q: %t", c.allow, c.files, got)
		}
	}
}

func TestAlters(t *testing.T) {
	go1, init1 := "package a\nfunc TestB(t *testing.T) {}\n", "package a\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"
	for _, c := range []struct {
		name, file, was, is string
		want                bool
	}{
		{"a test that is added", "b_test.go", "", go1, false},
		{"a test that takes over", "b_test.go", "", init1, true},
		{"a Go test that replaces code as it is loaded", "b_test.go", "", "package a\nvar _ = func() int { F = G; return 1 }()\n", true},
		{"a Go test with a pattern", "b_test.go", "", "package a\nvar re = regexp.MustCompile(`a`)\n", false},
		{"a Python test that replaces code", "test_b.py", "", "import code\ncode.f = lambda: 3\n", true},
		{"a Python test that loads no others", "tests/__init__.py", "", "def load_tests(*args): return None\n", true},
		{"a Python package of tests", "tests/__init__.py", "", "", false},
		{"a Python package of tests that does anything", "tests/__init__.py", "", "import sum\n", true},
		{"a Python test that imports in an expression", "tests/test_b.py", "", "__import__('sum').total = max\n", true},
		{"a Python test with a mock", "test_b.py", "", "from unittest import mock\n\n\ndef test_a():\n    m = mock.Mock()\n    m.x = 3\n", false},
		{"a JavaScript test that replaces code", "b.test.js", "", "const s = require('./s')\ns.f = () => 3\n", true},
		{"a JavaScript test", "b.test.js", "", "const s = require('./s')\ntest('a', () => { expect(s.f()).toBe(3) })\n", false},
		{"a test that is changed", "b_test.go", go1, init1, true},
		{"a test that is removed", "b_test.go", go1, "", true},
		{"a fixture that is added", "testdata/a", "", "x", false},
		{"a runner's setting that is added", "conftest.py", "", "x", true},
		{"a Makefile that is added", "GNUmakefile", "", "test:\n\ttrue\n", true},
		{"code", "a.go", go1, "", false},
	} {
		f := gate.File{Path: c.file}
		if c.was != "" {
			f.Was = []byte(c.was)
		}
		if c.is != "" {
			f.Is = []byte(c.is)
		}
		list := (gate.Rules{Tests: []string{gate.Auto}, Shared: []string{"make test"}}).Changes(
			[]gate.File{f}, func(string) []byte { return nil })
		if got := gate.Alters(list); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestGuarded(t *testing.T) {
	for _, c := range []struct {
		file, was, is string
		want          bool
	}{
		{".github/workflows/ci.yml", "a", "b", true},
		{".GitHub/Workflows/ci.yml", "", "b", true},
		{"Claude.md", "a", "b", true},
		{"sub/AGENTS.MD", "a", "b", true},
		{".Claude/settings.json", "", "b", true},
		{".envrc", "", "b", true},
		{".vscode/tasks.json", "", "b", true},
		{".vscode/extensions.json", "", "b", false},
		{"ralph.yaml", "a", "b", true},
		{".husky/pre-commit", "a", "", true},
		{"src/a.go", "a", "b", false},
		{".gitattributes", "*.go text\n", "*.go text\n*.txt filter=evil\n", true},
		{".gitattributes", "", "*.go text\n", false},
		{".gitattributes", "", "* text=auto eol=lf\n*.sh -text\n*.lock linguist-generated=true\ndocs export-ignore\n", false},
		{".gitattributes", "", "# *.yml -diff\n\n", false},
		{"package.json", "{}", `{"simple-git-hooks": {"pre-push": "sh a.sh"}}`, true},
		{"package.json", "{}", `{"packageManager": "yarn@https://example.com/y.tgz"}`, true},
		{"package.json", "{}", `{"packageManager": "yarn@4.1.0"}`, false},
		{"composer.json", "{}", `{"scripts": {"post-install-cmd": ["sh a.sh"]}}`, true},
		{"composer.json", "{}", `{"scripts": {"test": "phpunit"}}`, false},
		{"sub/binding.gyp", "", "{}", true},
		{".bsp/a.json", "", "{}", true},
		{"hooks/pre-commit", "", "exit", true},
		{"src/hooks/use-push.ts", "", "a", false},
		{".azuredevops/a.yml", "", "a", true},
		{".gitattributes", "", "\f\n\u00a0\n", false},
		{".gitattributes", "", "\f -diff\n", true},
		{".gitattributes", "", "*.yml -diff\n", true},
		{".gitattributes", "", "# generated\n\n*.yml -diff\n", true},
		{".gitattributes", "", "*.yml\t-diff", true},
		{".gitattributes", "", "*.yml text diff=html\r\n", true},
		{".gitattributes", "", "*.yml diff\n", true},
		{".gitattributes", "", "*.yml !diff\n", true},
		{".gitattributes", "*.yml -diff\n", "", true},
		{".gitattributes", "", "*.js binary\n", true},
		{".gitattributes", "", "a#b filter=x\n", true},
		{".gitattributes", "", "  \"a b.yml\" -diff\n", true},
		{".gitattributes", "", "\"a -diff\" text\n", false},
		{".gitattributes", "", "[attr]quiet -diff\n", true},
		{".gitattributes", "[attr]quiet -diff\n", "[attr]quiet -diff\n*.yml quiet\n", true},
		{".gitattributes", "", "\ufeff*.yml -diff\n", true},
		{".gitattributes", "", strings.Repeat("a", 40), true}, // no text, or large
		{"sub/.gitattributes", "", "*.sh -diff\n", true},
		{"sub/.GitAttributes", "", "*.sh merge=ours\n", true},
		{"package.json", `{"scripts":{}}`, `{"scripts":{"postinstall":"sh x"}}`, true},
		{"package.json", `{"scripts":{}}`, `{"scripts":{"test":"x"},"dependencies":{"a":"1"}}`, false},
		{"lib/repo.git/HEAD", "", "ref: refs/heads/main\n", true},
		{"lib/repo.git/head", "", "refs/heads/main", true}, // a link
		{"lib/repo.git/HEAD", "", strings.Repeat("a", 40) + "\n", true},
		{"lib/HEAD", "", "<head>\n", false},
		{"lib/repo.git/config", "[core]\n", "[core]\n\tfsmonitor = evil\n", true},
		{"lib/repo.git/config", "[core]\n\tfsmonitor = good\n", "", true},
		{"lib/config", "", "[server]\nport = 1\n", false},
		{"docs/secret.md", "a", "b", true},
		{"tools/.envrc", "a", "b", false},
	} {
		f := gate.File{Path: c.file, Was: []byte(c.was), Is: []byte(c.is)}
		got := gate.Guarded([]gate.File{f}, []string{"**/CLAUDE.md", "**/AGENTS.md", ".claude/**", "docs/Secret.md", "!tools/**"})
		if (len(got) == 1) != c.want {
			t.Errorf("%s: %v", c.file, got)
		}
	}
	more := []string{"", "**"} // only what stands after "!" is taken out
	if got := gate.Guarded([]gate.File{{Path: ".gitattributes", Is: []byte("*.yml -diff\n")}}, more); len(got) != 1 {
		t.Errorf("with more patterns: %v", got)
	}
}

// TestFilesThatOthersRunAreGuarded wherever the program that reads them finds them.
func TestFilesThatOthersRunAreGuarded(t *testing.T) {
	for list, want := range map[string]bool{
		`.github/agents/a.md .github/hooks/h.json .github/prompts/p.prompt.md .github/skills/s/run.sh .github/chatmodes/c.md`: true,
		`.travis.yml .forgejo/workflows/ci.yml .gitea/workflows/ci.yml .drone.yml .woodpecker.yml .woodpecker/build.yaml
			bitbucket-pipelines.yml .gitlab/ci/build.yml .gitlab-ci/x.yml ci/Jenkinsfile Jenkinsfile.release appveyor.yml
			.cirrus.yml cloudbuild.yaml buildspec.yml azure-pipelines-nightly.yml netlify.toml .semaphore/semaphore.yml`: true,
		`.yarnrc.yml sub/.yarnrc .yarn/releases/yarn-4.cjs .pnpmfile.cjs pnpmfile.js .cargo/config.toml sub/.cargo/config
			.mvn/extensions.xml .mvn/maven.config gradle/wrapper/gradle-wrapper.properties bunfig.toml .bazelrc .gdbinit`: true,
		`.vscode/mcp.json sub/.vscode/tasks.json a.code-workspace .zed/tasks.json .idea/runConfigurations/a.xml .exrc .nvim.lua
			.dir-locals.el .gitpod.yml mise.toml .mise.toml .config/mise.toml .mise/tasks/build .lefthook.yml lefthook.yml
			lefthook-local.toml .lintstagedrc.json .simple-git-hooks.cjs .lfsconfig`: true,
		`.roo/rules/a.md .roomodes .kiro/hooks/h.kiro.hook .junie/guidelines.md .goosehints .aider.conf.yml .continue/config.yaml
			.clinerules .clinerules/a.md .windsurfrules .augment-guidelines .trae/rules/r.md .amazonq/rules/a.md WARP.md .mcp.json`: true,
		`.github/CODEOWNERS docs/CODEOWNERS .mergify.yml .github/settings.yml bors.toml .pnp.cjs rust-toolchain.toml rust-toolchain
			gradlew sub/mvnw.cmd NuGet.config .Rprofile .ghci .iex.exs .pdbrc .dir-locals.el .gitlab/ci/a.yml .goosehints`: true,
		`src/mise/a.go docs/travis.yml.md .github/ISSUE_TEMPLATE/bug.md .github/dependabot.yml .vscode/extensions.json .idea/misc.xml
			src/gradle/build.kt cargo/config.toml agents/a.go drone.yml app.json hooks/use_state.js .gitignore .editorconfig
			.prettierrc prompts/p.md README.md`: false,
	} {
		for _, name := range strings.Fields(list) {
			if got := len(gate.Guarded([]gate.File{{Path: name, Is: []byte("x")}}, nil)) > 0; got != want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// TestTargetsOfGuardedLinks are guarded, over further links and through linked folders, within the repository only.
func TestTargetsOfGuardedLinks(t *testing.T) {
	links := map[string]string{
		".husky/pre-push": "../scripts/push.sh", "scripts/push.sh": "../real/push.sh", "real": "deep/er", ".github/workflows": "../ci",
		".envrc": "/etc/passwd", ".npmrc": "../../outside", "plain": "free", ".circleci": ".", ".gitmodules": "again", "again": ".gitmodules",
	}
	guarded := func(name string) bool { return len(gate.Guarded([]gate.File{{Path: name}}, nil)) > 0 }
	patterns := gate.Linked(links, guarded)
	for name, want := range map[string]bool{
		"scripts/push.sh": true, "real/push.sh": true, "deep/er/push.sh": true, "ci/test.yml": true, "ci/sub/a": true,
		"scripts/other.sh": false, "deep/er/other": false, "free": false, "etc/passwd": false, "outside": false, "src/a.go": false,
	} {
		if got := len(gate.Guarded([]gate.File{{Path: name}}, patterns)) > 0; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := gate.Guarded([]gate.File{{Path: "ci/test.yml"}}, append(patterns, "!ci/**")); len(got) > 0 {
		t.Error("what people take out is guarded")
	}
	if i := slices.IndexFunc(patterns, func(p string) bool { return p == "." || strings.HasPrefix(p, "../") }); i >= 0 {
		t.Errorf("%s is not within the repository", patterns[i])
	}
	links = map[string]string{".gitlab-ci.yml": "loop/a", "loop": "loop/x"} // a circle that grows
	if got := gate.Linked(links, guarded); len(got) != 2*1000 || got[0] != "loop/a" || got[2] != "loop/x/a" {
		t.Errorf("%d targets of a circle", len(got)/2)
	}
}

// TestCodeThatCommandsRun: in the target's version it would pass the old tests in any case, so old tests also run with
// the candidate's version.
func TestCodeThatCommandsRun(t *testing.T) {
	rules := gate.Rules{Shared: []string{"sh run_tests.sh", "./tool --self-test"}, Tests: []string{gate.Auto}}
	for _, c := range []struct{ changed, want string }{
		{"tool", ""}, {"run_tests.sh", ""}, {"tool run_tests.sh", "run_tests.sh"}, {"tool a_test.go", "a_test.go"}, {"main.go tool", ""},
	} {
		var files []gate.File
		for name := range strings.FieldsSeq(c.changed) {
			files = append(files, gate.File{Path: name, Was: []byte("was"), Is: []byte("is")})
		}
		var got []string
		for _, e := range gate.OldButCode(rules.Changes(files, func(string) []byte { return nil })) {
			got = append(got, e.Path)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.changed, got, c.want)
		}
	}
}

// TestManyCommands: of very many commands, those of the files after the first ones are not followed.
func TestManyCommands(t *testing.T) {
	for lines, want := range map[int]int{10_000: 1, 10_001: 0} {
		read := func(name string) []byte {
			return []byte(map[string]string{"a.sh": strings.Repeat("true\n", lines), "b.sh": "node run.js\n"}[name])
		}
		rules := gate.Rules{Shared: []string{"sh a.sh", "sh b.sh"}}
		if list := rules.Changes([]gate.File{{Path: "run.js", Was: []byte("1"), Is: []byte("2")}}, read); len(list) != want {
			t.Errorf("after %d commands: %+v", lines, list)
		}
	}
}

// TestVariablesThatGrow: the commands of a Makefile are bounded, whatever its variables.
func TestVariablesThatGrow(t *testing.T) {
	text := "a = " + strings.Repeat("$(a) ", 2000) + "\ntest:\n\t$(a)\n"
	rules := gate.Rules{Tests: []string{gate.Auto}, Shared: []string{"make test"}}
	read := func(name string) []byte {
		if name == "Makefile" {
			return []byte(text)
		}
		return nil
	}
	if list := rules.Changes([]gate.File{{Path: "a.c", Is: []byte("x")}}, read); len(list) > 0 {
		t.Error(list)
	}
}

package signals

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"ralph"
)

// Drives returns the changed files that a verification command runs or reads: files that it names, and files that its
// programs are known to look for. A file named by a task's own command is usually the subject of the task, and counts
// only if it looks like a check.
func Drives(shared, own, changed []string) []ralph.Touch {
	var list []ralph.Touch
	for _, c := range slices.Concat(shared, own) {
		named, known := readBy(c)
		for _, f := range changed {
			drives := func(pattern string) bool { return drivenBy(pattern, f) }
			if slices.ContainsFunc(known, drives) ||
				slices.ContainsFunc(named, drives) && (slices.Contains(shared, c) || IsCheck(f)) {
				list = append(list, ralph.Touch{File: f, Command: c})
			}
		}
	}
	return list
}

// IsCheck reports whether a file's name suggests that it is a check.
func IsCheck(file string) bool {
	words := strings.FieldsFunc(strings.ToLower(file), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{
			"test", "tests", "check", "checks", "spec", "specs", "verify", "lint", "ci", "e2e", "conftest", "testdata",
			"helper", "helpers",
		}, w)
	})
}

// anywhere is the pattern prefix for a file that counts in every folder.
const anywhere = "**/"

// drivers maps programs to the files that configure them, as patterns relative to the folder
// they run in. Files that ordinary work changes all the time, such as go.mod, are left out.
var drivers = map[string][]string{
	"make":           {"Makefile", "makefile", "GNUmakefile", "**/*.mk"},
	"just":           {"justfile", "Justfile", ".justfile"},
	"task":           {"Taskfile.y*ml"},
	"npm":            {"package.json", ".npmrc"},
	"jest":           {"package.json", "jest.config.*", "jest.setup.*", "babel.config.*"},
	"vitest":         {"vitest.config.*", "vite.config.*", "vitest.workspace.*"},
	"mocha":          {"package.json", ".mocharc*"},
	"playwright":     {"playwright.config.*"},
	"cypress":        {"cypress.config.*"},
	"eslint":         {".eslintrc*", "eslint.config.*"},
	"tsc":            {"tsconfig*.json"},
	"deno":           {"deno.json*"},
	"pytest":         {"pytest.ini", "**/conftest.py", "pyproject.toml", "setup.cfg", "tox.ini"},
	"tox":            {"tox.ini", "pyproject.toml", "setup.cfg", "pytest.ini", "**/conftest.py"},
	"nox":            {"noxfile.py"},
	"ruff":           {"ruff.toml", ".ruff.toml", "pyproject.toml"},
	"mypy":           {"mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"},
	"pre-commit":     {".pre-commit-config.yaml"},
	"golangci-lint":  {".golangci.*"},
	"cargo":          {"**/Cargo.toml", "**/build.rs", ".cargo/config*"},
	"rake":           {"Rakefile", "rakefile", "**/*.rake"},
	"rspec":          {".rspec", "**/spec_helper.rb", "**/rails_helper.rb"},
	"mvn":            {"**/pom.xml"},
	"gradle":         {"**/build.gradle*", "settings.gradle*", "gradle.properties"},
	"cmake":          {"**/CMakeLists.txt", "**/*.cmake"},
	"ant":            {"build.xml"},
	"invoke":         {"tasks.py"},
	"dart":           {"dart_test.yaml"},
	"codecept":       {"codeception*.yml"},
	"behat":          {"behat.y*ml"},
	"cucumber":       {"cucumber.y*ml"},
	"robot":          {"robot.toml"},
	"dotnet":         {"**/*.csproj", "**/*.sln", "Directory.Build.*"},
	"mix":            {"mix.exs"},
	"composer":       {"composer.json"},
	"phpunit":        {"phpunit.xml*"},
	"swift":          {"Package.swift"},
	"bazel":          {"**/BUILD", "**/BUILD.bazel", "WORKSPACE*", "MODULE.bazel", ".bazelrc"},
	"docker":         {"Dockerfile", "docker-compose.y*ml", "compose.y*ml"},
	"docker-compose": {"docker-compose.y*ml", "compose.y*ml"},
}

// sameAs maps other names of programs to their keys in drivers.
var sameAs = map[string]string{
	"gmake": "make", "bmake": "make",
	"pnpm": "npm", "yarn": "npm", "bun": "npm", "npx": "npm", "bunx": "npm", "pnpx": "npm",
	"py.test": "pytest", "gradlew": "gradle", "mvnw": "mvn", "ctest": "cmake", "bundle": "rake", "bazelisk": "bazel",
	"inv": "invoke", "flutter": "dart",
}

// prefixes are programs that run the program named after them.
var prefixes = []string{
	"sh", "bash", "dash", "zsh",
	"env", "time", "timeout", "nice", "nohup", "exec", "command", "sudo", "xargs", "xvfb-run",
	"if", "then", "!", "while", "do", "else",
	"python", "python3", "coverage", "uv", "uvx", "poetry", "pdm", "hatch", "pipenv", "pipx",
	"npx", "pnpx", "bunx", "bundle", "run", "node", "ruby",
}

// examiners are programs that inspect files, as a check of results does, and are not
// configured by them.
var examiners = []string{
	"test", "[", "[[", "grep", "egrep", "fgrep", "rg", "ls", "stat", "wc", "file", "find",
	"echo", "printf", "cat", "head", "tail", "jq", "git",
}

// readBy returns patterns, relative to the project's root, for the files that a command names and for the files that
// its programs look for.
func readBy(command string) (named, known []string) {
	dir := ""
	for _, segment := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";&|()\n`", r) }) {
		words := strings.FieldsFunc(segment, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(`"'<>={},`, r)
		})
		if len(words) == 2 && words[0] == "cd" {
			dir = path.Join(dir, words[1])
			continue
		}
		if i := slices.IndexFunc(words, isProgram); i >= 0 && slices.Contains(examiners, words[i]) {
			continue
		}
		folder, program := dir, true
		for i, w := range words {
			named = append(named, literal(path.Clean(w)), literal(path.Join(dir, w)))
			if i > 0 && slices.Contains([]string{"-C", "--directory", "--prefix", "--cwd"}, words[i-1]) {
				folder = path.Join(dir, w)
			}
		}
		for _, w := range words {
			name := path.Base(w)
			if other, ok := sameAs[name]; ok {
				name = other
			}
			for _, file := range drivers[name] {
				if !strings.HasPrefix(file, anywhere) {
					file = path.Join(literal(folder), file)
				}
				if program {
					known = append(known, file)
				}
			}
			program = program && !isProgram(w)
		}
	}
	return named, known
}

// isProgram reports whether a word can be a command's program, rather than something
// before it: an option, a number, a variable, or a program that runs another one.
func isProgram(word string) bool {
	if slices.Contains(prefixes, path.Base(word)) {
		return false
	}
	return unicode.IsLetter(rune(word[0])) && strings.ToUpper(word) != word || strings.ContainsAny(word[:1], "./[")
}

// literal escapes a path for use as a pattern.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

func drivenBy(pattern, file string) bool {
	if rest, ok := strings.CutPrefix(pattern, anywhere); ok {
		pattern, file = rest, path.Base(file)
	}
	match, err := path.Match(pattern, file)
	return err == nil && match
}

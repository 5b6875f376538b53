package project

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/lazy"
	"ralph/internal/proc"
	"ralph/internal/state"
)

// A Likely check is a command that suits the files in a directory. It reports its tests by name
// where possible, so that tests that fail already can be excused.
type Likely struct {
	File    string // it was derived from
	Command string
	JUnit   []string // its test reports, unless it prints `go test -json`
	fits    func(text []byte) bool
	folder  string // folder of the project, in which it is run; "" for its root
}

// within returns the check of a folder, as a command that starts in the project's root.
func (l Likely) within(folder string) Likely {
	l.File, l.folder = folder+"/"+l.File, folder
	l.Command = "cd " + folder + " && " + l.Command
	l.JUnit = slices.Clone(l.JUnit)
	for i, glob := range l.JUnit {
		l.JUnit[i] = folder + "/" + glob
	}
	return l
}

// MakeRoom creates the folder for the command's test reports, ignored by git.
func (l Likely) MakeRoom(root string) error {
	if len(l.JUnit) == 0 || filepath.Base(filepath.Dir(l.JUnit[0])) != state.PlainName {
		return nil
	}
	dir := filepath.Join(root, filepath.Dir(l.JUnit[0]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644)
}

// maxPackages is the maximum number of folders whose tests are taken for the project's.
const maxPackages = 20

// LikelyChecks returns a verification for a project: that of its root, or else those of the packages one or two levels
// below, each in its folder; none if nothing fits. others are further candidates: for the root, and of packages of
// another kind.
func LikelyChecks(root string) (list, others []Likely) {
	if l := candidates(root); len(l) > 0 {
		list, others = l[:1], l[1:]
		for _, p := range below(root, packages(root)) {
			if !slices.ContainsFunc(l, func(c Likely) bool { return filepath.Base(c.File) == filepath.Base(p.File) }) {
				others = append(others, p)
			}
		}
		return list, others
	}
	folders := packages(root)
	if list = below(root, folders); len(list) > 0 {
		return list, nil
	}
	var deeper []string
	for _, folder := range folders {
		for _, inner := range packages(filepath.Join(root, folder)) {
			deeper = append(deeper, folder+"/"+inner)
		}
	}
	return below(root, deeper), nil
}

// below returns the best checks of folders of a project.
func below(root string, folders []string) (list []Likely) {
	for _, folder := range folders {
		if l := candidates(filepath.Join(root, folder)); len(l) > 0 && len(list) < maxPackages {
			list = append(list, l[0].within(folder))
		}
	}
	return list
}

// packageName matches a folder that may be a package of a monorepo and needs no quotes in a shell.
var packageName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// notPackages are folders with other people's packages, or with fixtures of tests.
var notPackages = []string{
	"node_modules", "vendor", "third_party", "testdata", "examples", "venv",
	"target", "dist", "build", "fixtures",
}

// packages returns the folders one level below a project's root that may be packages, by name.
func packages(root string) (folders []string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil // nothing can be found, and people name their command
	}
	for _, e := range entries {
		if e.IsDir() && packageName().MatchString(e.Name()) && !slices.Contains(notPackages, e.Name()) {
			folders = append(folders, e.Name())
		}
	}
	return folders
}

// candidates returns the verifications that suit a directory, the best one first. Commands that would fail in any
// case, such as the placeholder of npm init, are left out.
func candidates(root string) (list []Likely) {
	for _, l := range slices.Concat(languages(root), pythons(root), runners, plainPython(root), scripts(root)) {
		files, err := filepath.Glob(filepath.Join(root, l.File))
		if err != nil || len(files) == 0 {
			continue
		}
		text, err := os.ReadFile(files[0])
		if err != nil || l.fits != nil && !l.fits(text) ||
			slices.ContainsFunc(list, func(c Likely) bool { return c.Command == l.Command }) {
			continue
		}
		l.File = filepath.Base(files[0])
		if rel, err := filepath.Rel(root, files[0]); err == nil {
			l.File = rel
		}
		list = append(list, l)
	}
	return list
}

// report is the file for tests' reports.
const report = state.PlainName + "/tests.xml"

// languages returns the checks by the files of a language or of its package manager.
func languages(root string) []Likely {
	js := manager(root)
	has := func(pattern string) func([]byte) bool {
		return func([]byte) bool { return exists(root, pattern) }
	}
	bun := func(text []byte) bool { return js == "bun run" && !testScript(text) && jsTests(root) }
	gradle, maven, bundle := "gradle", "mvn", ""
	if exists(root, "Gemfile") {
		bundle = "bundle exec "
	}
	if exists(root, "gradlew") {
		gradle = "./gradlew"
	}
	if exists(root, "mvnw") {
		maven = "./mvnw"
	}
	gradleReports := []string{"**/build/test-results/test/*.xml"}
	mavenReports := []string{"**/target/surefire-reports/*.xml"}
	return append(cmakePresets(root), []Likely{
		{"go.work", "go list -f '{{.Dir}}/...' -m | xargs go test -json", nil, nil, ""},
		{"go.mod", "go test -json ./...", nil, nil, ""},
		{"Cargo.toml", "cargo test", nil, nil, ""},
		{"package.json", js + " test", nil, testScript, ""},
		{"package.json", "bun test --reporter=junit --reporter-outfile=" + report, []string{report}, bun, ""},
		{"pnpm-workspace.yaml", "pnpm -r test", nil, nil, ""},
		{"package.json", "npm test --workspaces --if-present", nil, workspaces().Match, ""},
		{"deno.json*", "deno task test", nil, denoTask().Match, ""},
		{"deno.json*", "deno test", nil, nil, ""},
		{"build.gradle*", gradle + " test", gradleReports, nil, ""},
		{"gradlew", "./gradlew test", gradleReports, nil, ""},
		{"pom.xml", maven + " -q test", mavenReports, nil, ""},
		{"build.sbt", "sbt test", nil, nil, ""},
		{"mix.exs", "mix test", nil, nil, ""},
		{".rspec", bundle + "rspec", nil, nil, ""},
		{"spec/*_helper.rb", bundle + "rspec", nil, nil, ""},
		{"bin/rails", "bin/rails test", nil, has("test"), ""},
		{"Rakefile", bundle + "rake test", nil, rakeTest().Match, ""},
		{"composer.json", "composer test", nil, composerTest().Match, ""},
		{"phpunit.xml*", "vendor/bin/phpunit --log-junit " + report, []string{report}, nil, ""},
		{"*.sln*", "dotnet test", nil, nil, ""},
		{"*.??proj", "dotnet test", nil, nil, ""},
		{"Package.swift", "swift test", nil, has("Tests"), ""},
		{"pubspec.yaml", "flutter test", nil, flutter().Match, ""},
		{"pubspec.yaml", "dart test", nil, has("test"), ""},
		{"build.zig", "zig build test", nil, zigTest().Match, ""},
		{
			"CMakeLists.txt", "cmake -B build && cmake --build build && " +
				"ctest --test-dir build --output-on-failure --no-tests=error",
			nil, ctest().Match, "",
		},
		{"meson.build", "(test -d build || meson setup build) && meson test -C build", nil, mesonTest().Match, ""},
		{"stack.yaml", "stack test", nil, nil, ""},
		{"*.cabal", "cabal test", nil, has("test*"), ""},
		{"dune-project", "dune test", nil, nil, ""},
		{"project.clj", "lein test", nil, nil, ""},
		{"rebar.config", "rebar3 eunit", nil, nil, ""},
		{"MODULE.bazel", "bazel test //...", nil, nil, ""},
		{"WORKSPACE*", "bazel test //...", nil, nil, ""},
	}...)
}

// cmakePresets returns the check by the presets of a CMake project: the first test preset, with the presets it needs.
func cmakePresets(root string) []Likely {
	type preset struct {
		Name, ConfigurePreset string
		Hidden                bool
	}
	var presets struct {
		Test  []preset `json:"testPresets"`
		Build []preset `json:"buildPresets"`
	}
	text, err := os.ReadFile(filepath.Join(root, "CMakePresets.json"))
	if err != nil || json.Unmarshal(text, &presets) != nil {
		return nil
	}
	for _, t := range presets.Test {
		for _, b := range presets.Build {
			names := []string{t.Name, b.Name, t.ConfigurePreset}
			if t.Hidden || b.Hidden || b.ConfigurePreset != t.ConfigurePreset ||
				slices.ContainsFunc(names, func(n string) bool { return !packageName().MatchString(n) }) {
				continue
			}
			return []Likely{{
				"CMakePresets.json", "cmake --preset " + t.ConfigurePreset + " && cmake --build --preset " + b.Name +
					" && ctest --preset " + t.Name + " --output-on-failure --no-tests=error", nil, nil, "",
			}}
		}
	}
	return nil
}

// pythons returns the checks of a Python project: by its own environment, its package manager, or the machine's Python.
func pythons(root string) []Likely {
	run, pytest := python(root), python(root)+" -m pytest"
	for _, m := range pythonManagers {
		if exists(root, m.lock) && virtual(root) == "" {
			run, pytest = m.program+" run python", m.program+" run pytest"
		}
	}
	unittest := unittests(root)
	is := func([]byte) bool { return unittest != "" }
	no := func([]byte) bool { return !namesPytest(root) }
	tests := hasTests(root)
	with := func(file string, fits func([]byte) bool) Likely {
		return Likely{file, pytest + " -q --junitxml=" + report, []string{report}, fits, ""}
	}
	return []Likely{
		{"manage.py", run + " manage.py test", nil, no, ""},
		{"pyproject.toml", run + " -m " + unittest, nil, is, ""},
		{"requirements.txt", run + " -m " + unittest, nil, is, ""},
		{"tox.ini", "tox -q", nil, nil, ""},
		{"tox.toml", "tox -q", nil, nil, ""},
		{"pyproject.toml", "hatch run test", nil, hatchScript().Match, ""},
		{"pyproject.toml", "hatch test", nil, hatch().Match, ""},
		{"noxfile.py", "nox", nil, nil, ""},
		with("pyproject.toml", nil),
		with("requirements.txt", tests),
		with("setup.py", tests),
		with("Pipfile", tests),
		with("pytest.ini", nil),
	}
}

// plainPython returns the checks of Python files without a list of requirements.
func plainPython(root string) (list []Likely) {
	for _, file := range []string{"test*.py", "tests/test*.py", "test/test*.py"} {
		if unittest := unittests(root); unittest != "" {
			list = append(list, Likely{file, python(root) + " -m " + unittest, nil, nil, ""})
		} else {
			pytest := python(root) + " -m pytest -q --junitxml=" + report
			list = append(list, Likely{file, pytest, []string{report}, hasTests(root), ""})
		}
	}
	return list
}

// pythonManagers are the package managers of Python by their lock files.
var pythonManagers = []struct{ lock, program, setup string }{
	{"uv.lock", "uv", "uv sync --frozen"},
	{"poetry.lock", "poetry", "poetry install --no-interaction"},
	{"pdm.lock", "pdm", "pdm sync"},
	{"Pipfile.lock", "pipenv", "pipenv sync --dev"},
}

// runners are the checks by files with commands of all kinds of projects.
var runners = []Likely{
	{"mise.toml", "mise run test", nil, miseTest().Match, ""},
	{".mise.toml", "mise run test", nil, miseTest().Match, ""},
	{".config/mise.toml", "mise run test", nil, miseTest().Match, ""},
	{".mise/config.toml", "mise run test", nil, miseTest().Match, ""},
	{"[tT]askfile*.y*ml", "task test", nil, taskTest().Match, ""},
	{"[jJ][uU][sS][tT][fF][iI][lL][eE]", "just test", nil, testTarget().Match, ""},
	{".justfile", "just test", nil, testTarget().Match, ""},
	{"[mM]akefile", "make test", nil, testTarget().Match, ""},
	{"GNUmakefile", "make test", nil, testTarget().Match, ""},
	{"[mM]akefile", "make check", nil, checkTarget().Match, ""},
	{"t/*.t", "prove -lr t", nil, nil, ""},
	{"tests/*.bats", "bats tests", nil, nil, ""},
	{"test/*.bats", "bats test", nil, nil, ""},
}

// scripts returns the checks by the usual names of a script that runs all tests, each started by the shell it names.
func scripts(root string) (list []Likely) {
	for _, file := range []string{
		"test.sh", "tests.sh", "run_tests.sh", "run-tests.sh", "runtests.sh", "bin/test", "script/test", "scripts/test",
		"scripts/test.sh", "tests/run.sh", "tests/run_tests.sh", "tests/run-tests.sh", "test/run.sh",
	} {
		path := filepath.Join(root, file)
		text, err := os.ReadFile(path)
		info, ierr := os.Stat(path)
		first, _, _ := bytes.Cut(text, []byte("\n"))
		shebang := bytes.HasPrefix(first, []byte("#!"))
		command := "sh " + file
		switch {
		case err != nil || ierr != nil || !shebang && !strings.HasSuffix(file, ".sh"):
			continue
		case shebang && info.Mode()&0o111 != 0:
			command = "./" + file
		case bytes.Contains(first, []byte("bash")):
			command = "bash " + file
		}
		list = append(list, Likely{file, command, nil, nil, ""})
	}
	return list
}

// exists reports whether a folder has a file that matches a pattern.
func exists(root, pattern string) bool {
	found, err := filepath.Glob(filepath.Join(root, pattern))
	return err == nil && len(found) > 0
}

// jsTests reports whether a folder or one below it has tests that bun finds.
func jsTests(root string) bool {
	for _, name := range []string{"*.test.*s*", "*_test.*s*", "*.spec.*s*", "*_spec.*s*"} {
		for _, folder := range []string{"", "*/", "*/*/"} {
			found, err := filepath.Glob(filepath.Join(root, folder+name))
			if err == nil && slices.ContainsFunc(found, func(p string) bool { return !strings.Contains(p, "node_modules") }) {
				return true
			}
		}
	}
	return false
}

var (
	hatch       = lazy.Regexp(`(?m)^\[tool\.hatch\.envs\.(hatch-test|default)\b`)
	hatchScript = lazy.Regexp(`(?m)^\[tool\.hatch\.envs\.default\.scripts\]\n(?:[^\[\n].*\n|\n)*?test\s*=`)
	denoTask    = lazy.Regexp(`"tasks"\s*:\s*\{[^}]*"test"\s*:`)
	rakeTest    = lazy.Regexp(`TestTask|task\s+:?["']?test\b`)
	flutter     = lazy.Regexp(`(?m)^\s+sdk:\s*flutter`)
	zigTest     = lazy.Regexp(`step\("test"`)
	ctest       = lazy.Regexp(`(?im)^\s*(enable_testing\s*\(|include\s*\(\s*CTest)`)
	mesonTest   = lazy.Regexp(`(?m)^\s*test\s*\(`)
	miseTest    = lazy.Regexp(`(?m)^\[tasks\.["']?test["']?\]|^\[tasks\](.*\n)*?test\s*=`)
	taskTest    = lazy.Regexp(`(?m)^tasks:(.*\n)*?\s+["']?test["']?:`)
	checkTarget = lazy.Regexp(`(?m)^check([ \t][^:=#\n]*)?:([^=]|$)`)
)

// workspaces matches a package.json whose packages have their own tests.
var workspaces = lazy.Regexp(`"workspaces"\s*:`)

// composerTest matches a composer.json with a test script.
var composerTest = lazy.Regexp(`"scripts"\s*:[^}]*"test"\s*:`)

// manager returns the program that runs the scripts of package.json, according to that file, or to its lock file.
func manager(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "package.json"))
	var manifest struct{ PackageManager string }
	if err == nil && json.Unmarshal(text, &manifest) == nil {
		switch name, _, _ := strings.Cut(manifest.PackageManager, "@"); name {
		case "npm", "pnpm", "yarn":
			return name
		case "bun":
			return "bun run"
		}
	}
	for _, m := range [][2]string{
		{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun run"}, {"bun.lockb", "bun run"},
	} {
		if state.Exists(filepath.Join(root, m[0])) {
			return m[1]
		}
	}
	return "npm"
}

// testTarget matches a target or recipe "test" of make or just, possibly with parameters, but not a
// variable.
var testTarget = lazy.Regexp(`(?m)^@?test([ \t][^:=#\n]*)?:([^=]|$)`)

// testScript reports whether a package.json has a test script.
func testScript(text []byte) bool {
	var manifest struct{ Scripts struct{ Test string } }
	if json.Unmarshal(text, &manifest) != nil {
		return false
	}
	script := strings.TrimSpace(manifest.Scripts.Test)
	return script != "" && !strings.Contains(script, "no test specified")
}

// virtual returns the virtual environment of a Python project, by its usual names; "" if there is
// none.
func virtual(root string) string {
	for _, name := range []string{".venv", "venv"} {
		if state.Exists(filepath.Join(root, name, "bin", "python")) {
			return name
		}
	}
	return ""
}

// python returns the command that starts Python: from the project's own environment, or else
// python. On some machines that is not a Python 3.
func python(root string) string {
	if own := virtual(root); own != "" {
		return own + "/bin/python"
	}
	if _, err := exec.LookPath("python"); err == nil {
		return "python"
	}
	return "python3"
}

// hasTests reports whether a folder has tests that pytest finds.
func hasTests(root string) func([]byte) bool {
	return func([]byte) bool {
		for _, pattern := range []string{"test_*.py", "*_test.py", "tests/test_*.py", "test/test_*.py"} {
			if found, err := filepath.Glob(filepath.Join(root, pattern)); err == nil && len(found) > 0 {
				return true
			}
		}
		return false
	}
}

// manifests are the files that list the dependencies of a Python project.
var manifests = []string{"requirements.txt", "requirements-dev.txt", "pyproject.toml", "setup.cfg", "tox.ini"}

// namesPytest reports whether a project mentions pytest, or has it installed.
func namesPytest(root string) bool {
	for _, name := range manifests {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && bytes.Contains(text, []byte("pytest")) {
			return true
		}
	}
	has, err := filepath.Glob(filepath.Join(root, virtual(root), "lib/python*/site-packages/pytest"))
	return virtual(root) != "" && err == nil && len(has) > 0
}

// unittests returns the module that runs a folder's tests, with its arguments, if they use Python's
// unittest and the project does not use pytest; else "".
func unittests(root string) string {
	if namesPytest(root) {
		return ""
	}
	for _, folder := range []string{".", "tests", "test"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "test*.py"))
		if err != nil || len(found) == 0 {
			continue
		}
		if slices.ContainsFunc(found, func(path string) bool {
			text, err := os.ReadFile(path)
			return err != nil || !bytes.Contains(text, []byte("unittest"))
		}) {
			return ""
		}
		if folder == "." || state.Exists(filepath.Join(root, folder, "__init__.py")) {
			return "unittest" // it finds them from the root
		}
		return "unittest discover -s " + folder
	}
	return ""
}

// likelySetup returns the commands that prepare a fresh clone of a project for verification: the root's, and those
// of packages that [LikelyChecks] finds.
func likelySetup(root string) []string {
	commands := setupOf(root)
	checks, _ := LikelyChecks(root)
	for _, l := range checks {
		if l.folder == "" {
			continue
		}
		folder := l.folder
		for _, c := range setupOf(filepath.Join(root, folder)) {
			commands = append(commands, "cd "+folder+" && "+c)
		}
	}
	return commands
}

// setupOf is [likelySetup] for one folder.
func setupOf(root string) (commands []string) {
	has := func(name string) bool { return state.Exists(filepath.Join(root, name)) }
	switch js := manager(root); {
	case js == "pnpm" && has("pnpm-lock.yaml"):
		commands = append(commands, "pnpm install --frozen-lockfile")
	case js == "bun run" && (has("bun.lock") || has("bun.lockb")):
		commands = append(commands, "bun install --frozen-lockfile")
	case js == "yarn" && has("yarn.lock"):
		commands = append(commands, "yarn install --frozen-lockfile")
	case has("package-lock.json"):
		commands = append(commands, "npm ci --no-audit --no-fund")
	case has("package.json") && has("node_modules"):
		commands = append(commands, "npm install --no-audit --no-fund --no-package-lock")
	}
	if has("go.sum") {
		commands = append(commands, "go mod download")
	}
	if has("Cargo.lock") {
		commands = append(commands, "cargo fetch --locked")
	}
	for _, other := range [][2]string{
		{"Gemfile.lock", "bundle install"},
		{"composer.lock", "composer install --no-interaction"},
		{"mix.lock", "mix deps.get"},
	} {
		if has(other[0]) {
			commands = append(commands, other[1])
		}
	}
	for _, m := range pythonManagers {
		if has(m.lock) && (m.lock == "uv.lock" || virtual(root) == "") {
			return append(commands, m.setup)
		}
	}
	if own := virtual(root); own != "" {
		commands = append(commands, virtualSetup(root, own))
	}
	return commands
}

// virtualSetup creates a virtual environment with the project's dependencies.
func virtualSetup(root, name string) string {
	install := ""
	if unittests(root) == "" {
		install = " pytest"
	}
	for _, list := range []string{"requirements.txt", "requirements-dev.txt"} {
		if state.Exists(filepath.Join(root, list)) {
			install += " -r " + list
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "pyproject.toml")); err == nil && buildable().Match(text) {
		install += " -e ."
	}
	command := "python3 -m venv " + name
	if install != "" {
		command += " && " + name + "/bin/python -m pip install -q" + install
	}
	return command
}

// buildable matches a pyproject.toml of an installable project.
var buildable = lazy.Regexp(`(?m)^\[(project|build-system|tool\.poetry)\]`)

// programName matches a word that a shell would look up in PATH, unless it is one of shellWords.
var programName = lazy.Regexp(`^[a-z][a-z0-9.+_-]*$`)

var shellWords = []string{
	"case", "cd", "command", "eval", "exec", "export", "for", "if", "set", "source", "time", "trap", "type", "ulimit",
	"umask", "unset", "until", "wait", "while",
}

// pythonModule matches a command that runs a Python module.
var pythonModule = lazy.Regexp(`^(python3?) -m ([a-zA-Z0-9_]+)`)

// MissingProgram returns a program that a command needs and that is not installed, judged by the command's
// beginning; "" if none seems to be missing.
func MissingProgram(ctx context.Context, command string) string {
	command = strings.TrimSpace(command)
	if folder, rest, ok := strings.Cut(command, " && "); ok && strings.HasPrefix(folder, "cd ") {
		command = rest
	}
	program, _, _ := strings.Cut(command, " ")
	if !programName().MatchString(program) || slices.Contains(shellWords, program) {
		return ""
	}
	if _, err := exec.LookPath(program); err != nil {
		return program
	}
	if m := pythonModule().FindStringSubmatch(command); m != nil {
		const find = "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec(sys.argv[1]) is None else 0)"
		look := proc.Spec{Args: []string{m[1], "-c", find, m[2]}, Dir: "/", Env: os.Environ()}
		r, err := proc.Run(ctx, look, 1000, nil)
		if err == nil && r.Exit.Code == 3 {
			return m[2]
		}
	}
	return ""
}

// Ignored returns the lines of a .gitignore for the kinds of projects in a folder and the packages one level below it.
func Ignored(root string) []string {
	lines := []string{".env", ".env.*", "!.env.example", ".DS_Store"}
	for _, kind := range []struct{ file, lines string }{
		{"package.json", "node_modules/ coverage/"},
		{"requirements.txt", "__pycache__/ *.pyc .venv/ venv/ .pytest_cache/"},
		{"pyproject.toml", "__pycache__/ *.pyc .venv/ venv/ .pytest_cache/ *.egg-info/"},
		{"setup.py", "__pycache__/ *.pyc .venv/ venv/ .pytest_cache/ *.egg-info/"},
		{"Cargo.toml", "target/"},
		{"pom.xml", "target/"},
		{"build.gradle", "build/ .gradle/"},
		{"build.gradle.kts", "build/ .gradle/"},
		{"mix.exs", "_build/ deps/"},
		{"Gemfile", ".bundle/ vendor/bundle/"},
		{"composer.json", "vendor/"},
	} {
		has := func(folder string) bool { return state.Exists(filepath.Join(root, folder, kind.file)) }
		if !has(".") && !slices.ContainsFunc(packages(root), has) {
			continue
		}
		for _, line := range strings.Fields(kind.lines) {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return append(lines, state.PlainName+"/")
}

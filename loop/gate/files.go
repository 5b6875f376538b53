// Package gate tells whether a change weakens the tests and files that decide on it (docs/gate.md).
//
// It is pure: it knows the gate files ([Rules.Changes]), the contents of the trees for the two trials ([Old], [New]),
// and the meaning of the results by name ([Judge], [Prove]).
package gate

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/internal/lazy"
	"ralph/signals"
)

// Auto is the pattern that stands for the conventions of the languages that ralph knows.
const Auto = "auto"

// Rules define which files of a project are gate files. Patterns are globs relative to the project.
type Rules struct {
	Tests   []string // test files; [Auto] among them adds the conventions
	Protect []string
	Shared  []string // the commands of the project and the feature
	Own     []string // the task's
}

// tests are the conventions for tests, their fixtures and their snapshots.
var tests = []string{
	"**/*_test.go", "**/testdata/**", // Go
	"**/test_*.py", "**/*_test.py", "**/tests.py", // Python
	"**/*.{test,spec,e2e,cy}.{js,jsx,ts,tsx,mjs,cjs,mts,cts,vue,svelte}", // JavaScript and TypeScript
	"**/*[-_]{test,spec}.{js,jsx,ts,tsx,mjs,cjs,mts,cts}", "**/test[-_]*.{js,ts,mjs,cjs,mts,cts}",
	"**/test.{js,ts,mjs,cjs,mts,cts}", "**/__{tests,mocks,snapshots,fixtures}__/**", "**/*.snap", "**/{cypress,e2e}/**",
	"**/src/{test,*Test}/**", "**/*{Test,Tests,IT,Spec}.{java,kt,kts,groovy,scala}", // Java and Kotlin
	"**/*_{spec,test}.rb", "**/spec/**", "**/features/**/*.feature", // Ruby
	"**/*{Test,Tests}.cs", "**/*.{Tests,Test,UnitTests,IntegrationTests}/**/*.cs", // C#
	"**/*Test.php", "**/*.phpt", // PHP
	"**/*_test.exs",                                                                                  // Elixir
	"**/*.bats", "**/*[-_.]{test,tests}.sh", "**/{test,tests}[-_.]*.{sh,bash}", "**/{test,tests}.sh", // shell
	"**/t/**/*.{t,sh,bash,pl,pm}",
	"**/*_test.{c,cc,cpp,cxx}", "**/test_*.{c,cc,cpp,cxx}", "**/*Tests.swift",
	"**/{test,tests,Tests}/**", "**/{fixtures,snapshots,golden}/**", "**/*.golden", // all
}

// settings are the configuration files of test runners, and files that runners load by themselves.
var settings = []string{
	"**/conftest.py", "**/{,.}pytest.ini", "**/tox.ini", "**/noxfile.py", "**/.coveragerc",
	"**/{site,user}customize.py", "**/*.pth", "**/{,.}pytest.toml",
	// Test frameworks and helpers of the project itself.
	"**/{node_modules,site-packages,.venv,venv}/**", "**/vendor/{github.com/{stretchr/testify,onsi,google/go-cmp}," +
		"github.com/{frankban/quicktest,matryer/is},gopkg.in/check.v1,gotest.tools}/**",
	"**/.env.{test,ci}*", "**/tsconfig*.json",
	"**/{pytest,unittest,_pytest,pluggy}.py", "**/{pytest,_pytest,unittest,pluggy}/**",
	"**/{jest,vitest,vite,playwright,cypress,ava,karma,web-test-runner,wdio}.{config,conf,setup,workspace}.*",
	"**/.mocharc*", "**/mocha.opts", "**/.taprc", "**/babel.config.*", "**/.babelrc*", "**/.nycrc*", "**/.npmrc",
	"**/{setupTests,setup-tests,test-setup}.*",
	"**/.cargo/config*", "**/.config/nextest.toml", "**/go.work",
	"**/.rspec", "**/{spec,rails,test}_helper.{rb,exs}", "**/phpunit*.xml*", "**/*.runsettings",
	"**/junit-platform.properties", "**/testng.xml",
	// Linters, type checkers and build tools.
	"**/{eslint,stylelint,commitlint,stryker}.{config,conf}.*", "**/{biome,turbo,nx,lerna,pyrightconfig}.json{,c}",
	"**/{mypy,pylint,checkmake}.ini", "**/{pylintrc,bunfig.toml,ruff.toml,clippy.toml,deny.toml,gradle.properties}",
	"**/{phpstan,phpcs,psalm,checkstyle,detekt,pmd}*.{neon,neon.dist,xml,xml.dist,yml}", "**/config/test.exs",
	"**/{buildSrc,.mvn,.config}/**",
}

// ordinary files begin with a dot or have a setting's name, and decide on no test.
var ordinary = []string{
	"**/.{git*,mailmap,editorconfig,prettier*,dockerignore,npmignore,keep,nojekyll,DS_Store,browserslistrc,vscodeignore}",
	"**/.{env.example,env.sample,nvmrc,node-version,python-version,ruby-version,tool-versions,mcp.json,swcrc,htaccess}",
	"**/.{github,gitlab,vscode,idea,husky,devcontainer}/**", "**/{tailwind,postcss,next,nuxt,svelte,astro}.config.*",
}

// likeSetting matches the names of settings. Those with a known reader are in [settings].
var likeSetting = lazy.Regexp(`(?i)(?:^|/)(?:\.[^/]+|[\w-]+(?:rc|\.config|\.conf)\.(?:[cm]?[jt]s|json5?|ya?ml|toml))$`)

// seemsSetting reports whether a file that is new, or that begins with a dot, has a setting's name.
func seemsSetting(f File) bool {
	dot := strings.HasPrefix(path.Base(f.Path), ".") && path.Base(f.Path) != ".env"
	return (f.Was == nil || dot) && likeSetting().MatchString(f.Path) && !Matches(ordinary, f.Path)
}

// A Kind is the way in which a gate file decides.
type Kind string

// The kinds of gate files.
const (
	Test    Kind = "test"    // a test, a fixture or a snapshot: adding one weakens nothing
	Setting Kind = "setting" // it runs tests, or commands run it: adding one may change their effect
)

// matches reports whether one of the patterns fits a file. A pattern after "!" takes files out again.
func matches(patterns []string, file string) (fits bool) {
	for _, p := range patterns {
		not := strings.HasPrefix(p, "!")
		if ok, err := doublestar.Match(strings.TrimPrefix(p, "!"), file); err == nil && ok {
			fits = !not
		}
	}
	return fits
}

// Matches reports whether one of the patterns fits a file, ignoring case, as some file systems do.
func Matches(patterns []string, file string) bool {
	folded := make([]string, len(patterns))
	for i, p := range patterns {
		folded[i] = fold(p)
	}
	return matches(folded, fold(file))
}

// fold returns a text without a difference of case.
func fold(text string) string { return strings.ToLower(text) }

// A File is a file that differs between the target and the candidate. Its contents are nil if it
// does not exist.
type File struct {
	Path    string // relative to the project
	Was, Is []byte // on the target, in the candidate
}

// A Changed is a gate file that differs between the target and the candidate.
type Changed struct {
	File
	Kind Kind
	Code bool // a command runs it, but nothing else marks it as a check: it may be the code under test
	// For a file that decides only in parts: the candidate's with the target's parts, and the target's with the
	// candidate's. Nil means that the whole file decides.
	Old, New []byte
}

// Added reports whether the target has no such file.
func (c Changed) Added() bool { return c.Was == nil }

// Removed reports whether the candidate has no such file.
func (c Changed) Removed() bool { return c.Is == nil }

// Changes returns the gate files among the differing ones. read returns a file of the target, nil if there is none.
func (r Rules) Changes(files []File, read func(name string) []byte) (list []Changed) {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	run, more, built := r.run(paths, read)
	patterns, auto := slices.Clone(r.Tests), slices.Contains(r.Tests, Auto)
	if auto {
		patterns = slices.Concat(tests, patterns)
	}
	loading := sync.OnceValue(func() [][]byte { return loadingFiles(read) })
	for _, f := range files {
		c := Changed{File: f}
		switch {
		case auto && (matches(settings, f.Path) || seemsSetting(f) && !matches(patterns, f.Path)),
			matches(r.Protect, f.Path):
			c.Kind = Setting
		case matches(patterns, f.Path):
			c.Kind = Test
			if f.Was == nil && (takesOver(f) || shadows(f, files)) || run[f.Path] && isScript(f.Path) {
				c.Kind = Setting
			}
		case auto && setUp(f.Path, loading):
			c.Kind = Setting
		case partsOf(f.Path) != nil:
			var decides bool
			if c, decides = inParts(f, slices.Concat(r.Shared, more, r.Own)); !decides {
				continue
			}
		case inPlace(f, slices.Concat(r.Shared, more, r.Own), built):
			c.Kind = Setting
		case auto && (hasTests(f.Path, f.Was) || f.Was == nil && hasTests(f.Path, f.Is)):
			c.Kind = Test
		case run[f.Path]:
			c.Kind, c.Code = Setting, !signals.IsCheck(f.Path)
		default:
			continue
		}
		list = append(list, c)
	}
	return list
}

// testing matches definitions of tests, by the ending of the file.
var testing = map[string]func() *regexp.Regexp{
	".py": lazy.Regexp(`(?m)^(?:async )?def test_|^class \w+\(.*\bTestCase\):`),
	".js": lazy.Regexp(`(?m)^import .*['"](?:node:test|vitest|@jest/globals|bun:test)['"]`,
		`require\(['"]node:test['"]\)`),
	".rb": lazy.Regexp(`(?m)^class \w+ < (?:Minitest::Test|Test::Unit::TestCase)`, `(?m)^RSpec\.`),
}

// hasTests reports whether a file defines tests, with any name.
func hasTests(name string, content []byte) bool {
	re := testing[language(name)]
	return re != nil && re().Match(content)
}

// IsTest reports whether a file is a test by its name.
func (r Rules) IsTest(name string) bool {
	patterns := slices.Clone(r.Tests)
	if slices.Contains(patterns, Auto) {
		patterns = slices.Concat(tests, patterns)
	}
	return matches(patterns, name)
}

// TestFiles returns the files that may hold expectations of code: tests, and files that commands run. read returns the
// contents of a file.
func (r Rules) TestFiles(names []string, read func(name string) []byte) (list []string) {
	r.Own = nil // the same files for every task
	run, _, _ := r.run(names, read)
	auto := slices.Contains(r.Tests, Auto)
	for _, name := range names {
		switch {
		case auto && matches(settings, name) || matches([]string{"**/testdata/**", "**/fixtures/**"}, name):
		case TestParts(name) != nil:
			list = append(list, name)
		case r.IsTest(name), run[name] && partsOf(name) == nil:
			list = append(list, name)
		case auto && testing[language(name)] != nil && hasTests(name, read(name)):
			list = append(list, name)
		}
	}
	return list
}

// TestParts returns a function that puts one text's tests into another, for a file that also has code; nil for others.
func TestParts(name string) func(text, parts []byte) []byte {
	if of := partsOf(name); of != nil {
		if p := of(name, nil); p.test {
			return p.with
		}
	}
	return nil
}

// inParts returns the change of a file that decides in parts and that commands run; decides is false if these parts
// are equal.
func inParts(f File, commands []string) (c Changed, decides bool) {
	p := partsOf(f.Path)(f.Path, commands)
	if p.decides(f.Was) == p.decides(f.Is) {
		return c, false
	}
	c = Changed{File: f, Kind: Setting}
	if f.Was != nil && f.Is != nil && p.with != nil {
		c.Old, c.New = p.with(f.Is, f.Was), p.with(f.Was, f.Is)
	}
	if p.test {
		c.Kind = Test
	}
	return c, true
}

// run returns those of the files that the commands run, the commands that these run in turn, and the targets that make
// builds for them.
func (r Rules) run(files []string, read func(name string) []byte) (run map[string]bool, more, built []string) {
	more, sourced, built := commandsOf(slices.Concat(r.Shared, r.Own), read)
	run = map[string]bool{}
	for _, t := range signals.Drives(slices.Concat(r.Shared, more), slices.Concat(r.Own, sourced), files) {
		run[t.File] = true
	}
	return run, more, built
}

// inPlace reports whether a file has the name of a target of the commands, or is new and has the name of one that make
// builds for them: make treats it as up to date.
func inPlace(f File, commands, built []string) bool {
	return slices.Contains(made(commands), f.Path) || f.Was == nil && slices.Contains(built, f.Path)
}

// isScript reports whether a file is a script that runs tests rather than a test.
func isScript(name string) bool {
	return slices.Contains([]string{"", ".sh", ".bash", ".mk"}, path.Ext(name))
}

// takesOver reports whether a new test file may change how other tests run: Go and unittest run such functions by
// themselves, and patches of the code stay in place.
func takesOver(f File) bool {
	switch language(f.Path) {
	case ".go":
		return takingGo().Match(f.Is)
	case ".py":
		return takingPython().Match(f.Is) || replaces(f.Is, importedPython())
	case ".js":
		return takingJS().Match(f.Is) || replaces(f.Is, importedJS())
	}
	return false
}

// runnersSettings are files that name others which runners load.
var runnersSettings = slices.Concat(
	[]string{"pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "phpunit.xml", ".rspec", "package.json"},
	variants(".mocharc", "js", "cjs", "json", "yml", "yaml"), variants("jest.config", "js", "ts", "mjs", "cjs", "json"),
	variants("vitest.config", "js", "ts", "mjs", "mts"), variants("vite.config", "js", "ts", "mjs", "mts"),
	variants("playwright.config", "js", "ts"))

// loadingFiles returns the parts of [runnersSettings] texts that decide on tests.
func loadingFiles(read func(name string) []byte) (texts [][]byte) {
	for _, name := range runnersSettings {
		text := read(name)
		if name == "package.json" {
			text = []byte(partsOf(name)(name, nil).decides(text))
		}
		texts = append(texts, text)
	}
	return texts
}

func variants(base string, endings ...string) (names []string) {
	for _, e := range endings {
		names = append(names, base+"."+e)
	}
	return names
}

// setUp reports whether a runner's settings make it load a file before tests, or make it read or
// report tests.
func setUp(name string, settings func() [][]byte) bool {
	ext := path.Ext(name)
	if language(name) != ".js" && ext != ".py" && ext != ".rb" && ext != ".php" {
		return false
	}
	base := regexp.QuoteMeta(strings.TrimSuffix(name, ext))
	loads := regexp.MustCompile(`(?i)(?:setup\w*|global(?:setup|teardown)|environment|runner|reporters?|serializers?|` +
		`resolver|transform|require|bootstrap)["']?\s*[:=]?\s*[\[{(]?[^\]})]{0,300}` +
		`["'\s](?:<rootDir>/|\./)?` + base + `(?:` + regexp.QuoteMeta(ext) + `)?["'\s]`)
	module := regexp.MustCompile(`-p[ =]?` + strings.ReplaceAll(base, "/", `\.`) + `\b`)
	return slices.ContainsFunc(settings(), func(text []byte) bool {
		return loads.Match(text) || ext == ".py" && module.Match(text)
	})
}

// shadows reports whether a new file among the tests may be taken for code of the same name: a module or a class that
// is found first where tests run, a mock, or in Go a function that the change takes out of the code.
func shadows(f File, files []File) bool {
	switch base := path.Base(f.Path); language(f.Path) {
	case ".py", ".rb", ".java", ".kt", ".groovy", ".scala":
		return !testName().MatchString(base) && len(bytes.TrimSpace(f.Is)) > 0
	case ".js":
		return strings.Contains("/"+f.Path, "/__mocks__/")
	case ".go":
		has := map[string]bool{}
		for _, m := range function().FindAllSubmatch(f.Is, -1) {
			has[string(m[1])] = true
		}
		return slices.ContainsFunc(files, func(other File) bool {
			return path.Dir(other.Path) == path.Dir(f.Path) && path.Ext(other.Path) == ".go" &&
				!strings.HasSuffix(other.Path, "_test.go") &&
				slices.ContainsFunc(function().FindAllSubmatch(other.Was, -1), func(m [][]byte) bool { return has[string(m[1])] })
		})
	}
	return false
}

var (
	// testName matches the names of files that runners take for tests.
	testName = lazy.Regexp(`^(test[-_.]|tests?\.)|[-_.](test|spec|tests)\.\w+$|(Test|Tests|IT|Spec)\.\w+$`)
	function = lazy.Regexp(`(?m)^func (?:\([^)]*\) )?(\w+)[\[(]`)

	takingGo = lazy.Regexp(`func TestMain\(|func init\(\)`,
		`(?m)^var [^=\n]*=\s*func\(`, `(?m)^\s+[A-Za-z_]\w*\s*=\s*func\(`)
	takingPython = lazy.Regexp(`(?m)^\s*(def (load_tests|setUpModule|pytest_\w+)\b|sys\.exit|os\._exit)`,
		`\b(setattr|vars|globals|__import__)\(|\b(atexit|builtins)\b|sys\.modules|__dict__|importlib\.reload`,
		`\.start\(\)|pytest_plugins|autouse\s*=\s*True`)
	takingJS = lazy.Regexp(`\bprocess\.(exit|on|reallyExit)\b|require\.cache`,
		`\bglobal(This)?\.\w+\s*=[^=]|Object\.(assign|defineProperty)\(`)
	// The names that a file imports, and assignments to their members.
	importedPython = lazy.Regexp(`(?m)^\s*(?:import|from\s+\S+\s+import)\s+(.+)$`)
	importedJS     = lazy.Regexp(`(?m)^\s*(?:import|const|let|var)\s+([^=;]+?)\s*` +
		`(?:from|=\s*(?:await\s+import|require)\()`)
	wordsOf   = lazy.Regexp(`[A-Za-z_$][\w$]*`)
	assigning = lazy.Regexp(`(?m)^\s*([A-Za-z_$][\w$]*)(?:\.[\w$]+|\[[^\]\n]+\])+\s*=[^=>]`)
)

// replaces reports whether a text assigns to members of a name that it imports.
func replaces(text []byte, imported *regexp.Regexp) bool {
	names := map[string]bool{}
	for _, m := range imported.FindAllSubmatch(text, -1) {
		for _, name := range wordsOf().FindAll(m[1], -1) {
			names[string(name)] = true
		}
	}
	return slices.ContainsFunc(assigning().FindAllSubmatch(text, -1), func(m [][]byte) bool { return names[string(m[1])] })
}

// Alters reports whether a change touches gate files of the target: then new code also has to pass the old gate.
// Added tests alone alter nothing.
func Alters(list []Changed) bool {
	return slices.ContainsFunc(list, func(c Changed) bool { return !c.Added() || c.Kind == Setting })
}

// An Edit is the difference of a file in the tree of a trial: the other side's version, or removed
// if that side has none.
type Edit struct {
	Path    string
	Content []byte // the file's content in place of the other side's; nil for the other side's
}

// Old returns how the candidate's tree becomes new code under the old gate. The other side is the target.
func Old(list []Changed) (edits []Edit) {
	for _, c := range list {
		edits = append(edits, Edit{c.Path, c.Old})
	}
	return edits
}

// OldButCode is like [Old], but keeps the candidate's files that may be the code under test: the target's versions
// would pass old tests for any candidate. It is nil if the tree is the same.
func OldButCode(list []Changed) []Edit {
	sure := slices.DeleteFunc(slices.Clone(list), func(c Changed) bool { return c.Code })
	if len(sure) == len(list) || !Alters(sure) {
		return nil
	}
	return Old(sure)
}

// New returns how the target's tree becomes old code under the new gate. The other side is the candidate.
func New(list []Changed) (edits []Edit) {
	for _, c := range list {
		edits = append(edits, Edit{c.Path, c.New})
	}
	return edits
}

// AllowTests is the word in a task's allow list for weakened tests.
const AllowTests = "tests"

// Allows reports whether a task's allow list covers all files.
func Allows(allow, files []string) bool {
	return !slices.ContainsFunc(files, func(f string) bool { return !Matches(allow, f) })
}

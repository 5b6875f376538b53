package check

import (
	"cmp"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ralph/internal/files"
	"ralph/internal/lazy"
)

// npmTest matches the test command that `ralph init` finds for a package: its test script, run by a package manager, in
// the root or in a folder.
var npmTest = lazy.Regexp(`^(?:cd ([\w.-]+) && )?(npm|pnpm|yarn|bun)(?: run)? test$`)

// reporters are options for test scripts that make them report tests by name, in addition to their usual output. A
// node script that names files gets none, because node accepts options only before the files. Other scripts must be a
// single command.
var reporters = []reporter{
	{
		script: lazy.Regexp(`^node(?: --[\w=.-]+)* --test(?: --[\w=.-]+)*$`),
		options: "--test-reporter=spec --test-reporter-destination=stdout " +
			"--test-reporter=junit --test-reporter-destination=" + npmReport,
		report: npmReport,
	},
	{
		script:  lazy.Regexp(`^vitest run(?: --[\w=.-]+)*$`),
		options: "--reporter=default --reporter=junit --outputFile.junit=" + npmReport,
		report:  npmReport,
	},
	{
		script:  lazy.Regexp(`^(?:\w+=\S+ )*jest(?: [^;&|<>$\x60\n]+)?$`),
		options: "--json --outputFile=" + jestReport,
		report:  jestReport,
	},
	{
		script:  lazy.Regexp(`^(?:\w+=\S+ )*mocha(?: [^;&|<>$\x60\n]+)?$`),
		before:  "printf %s '" + mochaReporter + "' > .ralph/mocha.cjs && ",
		options: "--reporter ./.ralph/mocha.cjs",
		report:  npmReport,
	},
}

// A reporter is the option of a form of test scripts.
type reporter struct {
	script  func() *regexp.Regexp
	before  string // command to run first
	options string
	report  string // the file with the report, relative to the package
}

// The files with those reports, relative to the package.
const (
	npmReport  = ".ralph/tests.xml" // JUnit XML
	jestReport = ".ralph/jest.json"
)

// mochaReporter makes mocha, which accepts one reporter, print as usual and write JUnit XML.
const mochaReporter = `const {Spec, XUnit} = require("mocha").reporters;
module.exports = class extends Spec {
  constructor(runner, options) {
    super(runner, options);
    this.xml = new XUnit(runner, {reporterOptions: {output: "` + npmReport + `"}});
  }
  done(failures, end) { this.xml.done(failures, end); }
};
`

// own matches test scripts with their own reporter.
var own = lazy.Regexp(`reporter| -R\b|--json|--outputFile|--watch`)

// maxManifest is the maximum size of a package.json that is read, in bytes.
const maxManifest = 1 << 20

// named returns a command that runs like the given one in dir and also reports its tests by name, and the report's file
// relative to dir. People read and write `npm test`, and named adds the script's options; other commands run unchanged,
// and report is "".
func named(command, dir string) (run, report string) {
	m := npmTest().FindStringSubmatch(command)
	if m == nil {
		return command, ""
	}
	script := testScript(filepath.Join(dir, m[1], "package.json"))
	i := slices.IndexFunc(reporters, func(r reporter) bool { return r.script().MatchString(script) })
	if i < 0 || own().MatchString(script) {
		return command, "" // it has its own options, or ralph does not know it
	}
	folder := cmp.Or(m[1], ".")
	run = "cd " + folder + " && mkdir -p .ralph && " + reporters[i].before + m[2] + " run test "
	if m[2] == "npm" {
		run += "-- " // the others pass on options after the script's name
	}
	return run + reporters[i].options, filepath.Join(folder, reporters[i].report)
}

// testScript returns the test script of a package.json; "" if it cannot be told.
func testScript(path string) string {
	f, err := files.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	var manifest struct{ Scripts struct{ Test string } }
	if err != nil || len(text) > maxManifest || json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return strings.TrimSpace(manifest.Scripts.Test)
}

package gate

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
)

// guarded are the files that run on people's machines or in their CI. Those that steer agents are the agents' to name.
var guarded = []string{
	".github/workflows/**", ".github/actions/**", ".gitlab-ci.yml", ".circleci/**", "jenkinsfile", "azure-pipelines.yml",
	".buildkite/**", ".husky/**", ".githooks/**", "**/.pre-commit-config.yaml", "**/lefthook.y*ml", "**/.envrc",
	"**/.vscode/{tasks,launch,settings}.json", "**/.idea/runconfigurations/**",
	"**/.devcontainer/**", "**/.devcontainer.json",
	"**/.npmrc", "**/.gitmodules", "**/ralph.yaml",
}

// filter matches a line of .gitattributes by which git runs a program.
var filter = regexp.MustCompile(`(?m)^[^#\n]*\s(filter|diff|merge)=`)

// installs are the scripts of package.json that run when it is installed.
var installs = []string{"preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "postprepare"}

// Guarded returns the files that a person has to approve before they are merged: those that the conventions or more
// patterns name, whatever their case. A pattern after "!" takes files out.
func Guarded(files []File, more []string) (list []File) {
	patterns := append(append([]string{}, guarded...), more...)
	for _, f := range files {
		switch folded := fold(path.Base(f.Path)); {
		case folded == ".gitattributes" && string(filters(f.Was)) != string(filters(f.Is)),
			folded == "package.json" && installed(f.Was) != installed(f.Is):
			if !Matches(taken(more), f.Path) {
				list = append(list, f)
			}
		case Matches(patterns, f.Path):
			list = append(list, f)
		}
	}
	return list
}

// Literal escapes a path for use as a pattern.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(name)
}

// taken returns the patterns that take files out, without their sign.
func taken(patterns []string) (list []string) {
	for _, p := range patterns {
		if p != "" && p[0] == '!' {
			list = append(list, p[1:])
		}
	}
	return list
}

// filters returns the lines of .gitattributes that name a program.
func filters(text []byte) (lines []byte) {
	for _, m := range regexp.MustCompile(`(?m)^.*$`).FindAll(text, -1) {
		if filter.Match(m) {
			lines = append(append(lines, m...), '\n')
		}
	}
	return lines
}

// installed returns the scripts of a package.json that run when it is installed.
func installed(text []byte) (scripts string) {
	var manifest struct{ Scripts map[string]string }
	if text != nil && json.Unmarshal(text, &manifest) != nil {
		return string(text)
	}
	for _, name := range installs {
		scripts += manifest.Scripts[name] + "\n"
	}
	return scripts
}

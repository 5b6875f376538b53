package gate

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
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

// harmless are the attributes of a file by which git runs no program and hides no difference.
var harmless = regexp.MustCompile(`^[-!]?(text|eol|crlf|whitespace|ident|encoding|working-tree-encoding|` +
	`export-ignore|export-subst|delta|conflict-marker-size|(linguist|gitlab)-[a-z-]+)(=.*)?$`)

// unread matches what stands for contents that are no text or large.
var unread = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// installs are the scripts of package.json that run when it is installed.
var installs = []string{"preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "postprepare"}

// Guarded returns the files that a person has to approve before they are merged: those that the conventions or more
// patterns name, whatever their case. A pattern after "!" takes files out.
func Guarded(files []File, more []string) (list []File) {
	patterns := append(append([]string{}, guarded...), more...)
	for _, f := range files {
		switch folded := fold(path.Base(f.Path)); {
		case folded == ".gitattributes" && attributes(f.Was) != attributes(f.Is),
			folded == "package.json" && installed(f.Was) != installed(f.Is), risky(f):
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

// attributes returns the lines of .gitattributes that have attributes not known to be harmless: one may name a program
// or hide a difference, or be a macro that does.
func attributes(text []byte) (lines string) {
	if unread.Match(text) {
		return string(text)
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		rest := strings.Trim(line, " \t\r\n")
		if rest == "" || rest[0] == '#' {
			continue
		}
		if rest[0] == '"' { // a pattern in quotes
			if quoted, err := strconv.QuotedPrefix(rest); err == nil {
				rest = "quoted" + rest[len(quoted):]
			}
		}
		if slices.ContainsFunc(strings.Fields(rest)[1:], func(a string) bool { return !harmless.MatchString(a) }) {
			lines += line
		}
	}
	return lines
}

// Linked returns the patterns of what guarded links lead to, over further links. links are all links of a commit with
// where they lead.
func Linked(links map[string]string, guarded func(name string) bool) (patterns []string) {
	var queue []string
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if guarded(name) {
			queue = append(queue, name)
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 && len(seen) < mostLinked {
		name := queue[0]
		queue = queue[1:]
		for at := name; at != "." && at != "/"; at = path.Dir(at) { // the file itself, or a folder in which it is, is a link
			to, ok := links[at]
			target := path.Join(path.Dir(at), to, strings.TrimPrefix(name, at))
			if !ok || path.IsAbs(to) || target == "." || strings.HasPrefix(target, "../") || seen[target] {
				continue
			}
			seen[target] = true
			queue = append(queue, target)
			patterns = append(patterns, Literal(target), Literal(target)+"/**")
		}
	}
	return patterns
}

// mostLinked bounds what links lead to: they may lead around in circles that grow.
const mostLinked = 1000

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

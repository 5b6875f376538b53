package gate

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/lazy"
)

// Lines of a Gemfile: a name and its version or source.
const (
	gems       = `(?m)^\s*gem[\s(]+['"]([^'"]+)['"],?(.*)$`
	gemSources = `(?m)^\s*(source|git|path|git_source)[\s(]+(.*)$`
)

// continued matches the end of a line that the next one continues.
var continued = lazy.Regexp(`,[ \t]*(?:#.*)?\n\s*`)

// npmKeys are the objects of a package.json that have dependencies.
var npmKeys = []string{
	"dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides", "resolutions",
}

// manifests return the direct dependencies of a manifest, with their versions or sources, by its name in lower case.
var manifests = map[string]func(text string) map[string]string{
	"package.json":     npmDependencies,
	"composer.json":    jsonDependencies("require", "require-dev", "repositories"),
	"go.mod":           goDependencies,
	"cargo.toml":       tomlDependencies(cargoSection()),
	"pyproject.toml":   pyDependencies,
	"gemfile":          lineDependencies(gems, gemSources),
	"pom.xml":          pomDependencies,
	"build.gradle":     gradleDependencies,
	"build.gradle.kts": gradleDependencies,

	"go.work":             goDependencies,
	"gems.rb":             lineDependencies(gems, gemSources),
	"extensions.xml":      pomDependencies,
	"settings.gradle":     gradleDependencies,
	"settings.gradle.kts": gradleDependencies,
	"libs.versions.toml":  tomlDependencies(catalog()),
}

// requirements matches the names of pip's files.
var requirements = lazy.Regexp(`(^|/)[\w.-]*(requirements|constraints)[\w.-]*\.(txt|in)$|` +
	`(^|/)requirements/[\w.-]+\.(txt|in)$`)

// reader returns the function that reads the dependencies of a file; nil if it is not a manifest.
func reader(name string) func(text string) map[string]string {
	if requirements().MatchString(fold(name)) {
		return pipDependencies
	}
	return manifests[fold(path.Base(name))]
}

// Dependencies returns the direct dependencies that changed files add, remove or change, and the packages to which lock
// files newly allow an install script or give another source than a registry.
func Dependencies(files []File) (list []ralph.Dependency) {
	for _, f := range files {
		read := reader(f.Path)
		if read == nil {
			list = append(list, locked(f)...)
			continue
		}
		was, is := read(string(f.Was)), read(string(f.Is))
		all := maps.Clone(was)
		maps.Copy(all, is)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			before, had := was[name]
			now, has := is[name]
			if had != has || before != now {
				list = append(list, ralph.Dependency{
					Name: name, File: f.Path, Was: before, Is: now, Added: !had, Removed: !has,
					Foreign: has && foreign(path.Dir(f.Path), now),
				})
			}
		}
		if fold(path.Base(f.Path)) == "package.json" {
			list = append(list, allowed(f)...)
		}
	}
	return list
}

// risky reports whether a file adds or changes a dependency that a person has to approve.
func risky(f File) bool {
	return slices.ContainsFunc(Dependencies([]File{f}), func(d ralph.Dependency) bool { return d.Foreign || d.Installs })
}

// address matches a source that is not a registry: a URL, a repository, a host. It may be one of several, or in JSON.
var address = lazy.Regexp(`(?i)://|(?:^|, )\s*['"]?(git@|github:|gitlab:|bitbucket:|gist:)` +
	`|\b(git|github|gitlab|bitbucket|gist|hg|svn)\b['"]?\s*(=>|=|:)` +
	`|\b(registry|index|source|url)\b['"]?\s*(=>|=|:)\s*['"]` +
	`|(?:^|, )[\w.-]+/[\w.-]+(#.*)?(?:$|, )|"\s*:\s*"[\w.-]+/[\w.-]+(#[^"]*)?"`)

// local matches the path of a source.
var local = lazy.Regexp(`(?i)(?:(?:^|, )\s*(?:file|link|portal):|\bpath['"]?\s*(?:=>|=|:)\s*['"]` +
	`|^(?:-[ercf]|--(?:editable|requirement|constraint|find-links))[\s=]\s*|^=>\s*|files\(['"])([^'"\s,}]+)` +
	`|(?:^|, )['"]?((?:\.\.?/|/|~/)[^\s'"]*)`)

// foreign reports whether a source, in a file of a folder of the project, is not a registry: an address, or a path
// outside of the project.
func foreign(folder, source string) bool {
	if address().MatchString(source) {
		return true
	}
	for _, m := range local().FindAllStringSubmatch(source, -1) {
		said := m[1] + m[2]
		to := path.Join(folder, said)
		if path.IsAbs(said) || strings.HasPrefix(said, "~") || to == ".." || strings.HasPrefix(to, "../") {
			return true
		}
	}
	return false
}

// npmDependencies reads a package.json.
func npmDependencies(text string) map[string]string {
	all := jsonDependencies(npmKeys...)(text)
	var manifest struct{ Pnpm json.RawMessage }
	if json.Unmarshal([]byte(text), &manifest) == nil {
		maps.Copy(all, jsonDependencies("overrides")(string(manifest.Pnpm)))
	}
	return all
}

// allowed returns the packages that a package.json newly allows to run scripts when they are installed.
func allowed(f File) (list []ralph.Dependency) {
	read := func(text []byte) []string {
		var manifest struct {
			Trusted []string `json:"trustedDependencies"`
			Pnpm    struct {
				Built []string `json:"onlyBuiltDependencies"`
			}
		}
		if json.Unmarshal(text, &manifest) != nil {
			return nil
		}
		return append(manifest.Trusted, manifest.Pnpm.Built...)
	}
	was := read(f.Was)
	for _, name := range read(f.Is) {
		if !slices.Contains(was, name) {
			list = append(list, ralph.Dependency{Name: name, File: f.Path, Added: true, Installs: true})
		}
	}
	return list
}

// jsonDependencies reads the objects of a JSON manifest.
func jsonDependencies(keys ...string) func(string) map[string]string {
	return func(text string) map[string]string {
		all := map[string]string{}
		var manifest map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &manifest) != nil {
			return all
		}
		for _, key := range keys {
			var of map[string]json.RawMessage
			if json.Unmarshal(manifest[key], &of) != nil {
				if key == "repositories" && len(manifest[key]) > 2 {
					all[key] = string(manifest[key])
				}
				continue
			}
			for name, raw := range of {
				var version string
				if json.Unmarshal(raw, &version) != nil {
					version = string(raw)
				}
				if strings.HasPrefix(version, "npm:") {
					version = "npm: " + strings.TrimPrefix(version, "npm:")
				}
				if before := all[name]; before != "" {
					version = before + ", " + version
				}
				all[name] = strings.TrimSpace(version)
			}
		}
		return all
	}
}

var (
	goRequire = lazy.Regexp(`(?m)^\s*(?:require\s+)?([\w.~-]+\.[\w.~/-]+)\s+(v\S+)[ \t]*(//[ \t]*indirect)?`)
	goReplace = lazy.Regexp(`(?m)^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+(=>\s*.+?)[ \t]*$`)
)

func goDependencies(text string) map[string]string {
	all := map[string]string{}
	for _, m := range goRequire().FindAllStringSubmatch(text, -1) {
		if m[3] == "" {
			all[m[1]] = m[2]
		}
	}
	for _, m := range goReplace().FindAllStringSubmatch(text, -1) {
		all[m[1]+" (replaced)"] = m[2]
	}
	return all
}

var (
	tomlHeader   = lazy.Regexp(`^\s*\[+\s*([^\]]+?)\s*\]+`)
	tomlLine     = lazy.Regexp(`^\s*["']?([\w.-]+?)["']?\s*=\s*(.+?)\s*$`)
	cargoSection = lazy.Regexp(`^(?:.*\.)?(?:(?:dev-|build-)?dependencies|` +
		`patch\.(?:"[^"]*"|'[^']*'|[^.]+)|replace)(?:\.(.+))?$`)
	catalog = lazy.Regexp(`^(?:libraries|plugins)(?:\.(.+))?$`)
	poetry  = lazy.Regexp(`^tool\.(?:poetry\.(?:group\.[^.]+\.)?(?:dev-)?dependencies` +
		`|uv\.sources|poetry\.source|uv\.index|pdm\.source)(?:\.(.+))?$`)
)

// tomlDependencies reads the tables of a TOML file whose names match; the group is that of the dependency.
func tomlDependencies(section *regexp.Regexp) func(string) map[string]string {
	return func(text string) map[string]string {
		all := map[string]string{}
		name, within := "", false
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, " #")
			if m := tomlHeader().FindStringSubmatch(line); m != nil {
				of := section.FindStringSubmatch(m[1])
				if name, within = "", of != nil; within {
					name = strings.Trim(of[1], `"'`)
				}
				continue
			}
			m := tomlLine().FindStringSubmatch(line)
			switch {
			case !within || m == nil:
			case name != "":
				all[name] = strings.TrimSpace(all[name] + " " + m[1] + " = " + m[2])
			default:
				all[m[1]] = strings.Trim(m[2], `"'`)
			}
		}
		return all
	}
}

var (
	pyList   = lazy.Regexp(`(?ms)^\s*["']?([\w.-]+)["']?\s*=\s*\[(.*?)^?\s*\]\s*(?:#.*)?$`)
	pyString = lazy.Regexp(`"([^"\n]*)"|'([^'\n]*)'`)
	pyName   = lazy.Regexp(`^\s*([A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*(.*)$`)
	pyTables = lazy.Regexp(`^(project\.optional-dependencies|dependency-groups|tool\.pdm\.dev-dependencies)$`)
	// pyKeys are lists in tables that have other ones, too.
	pyKeys = lazy.Regexp(`^(project dependencies|build-system requires|` +
		`tool\.uv (dev|override|constraint|build-constraint)-dependencies|` +
		`tool\.hatch\.envs\.[\w.-]+ (extra-)?dependencies)$`)
)

// pyDependencies reads pyproject.toml: lists of PEP 508, and the tables of Poetry and uv.
func pyDependencies(text string) map[string]string {
	all := tomlDependencies(poetry())(text)
	delete(all, "python")
	table, parts := "", map[string][]string{}
	for line := range strings.Lines(text) {
		if m := tomlHeader().FindStringSubmatch(line); m != nil && !strings.ContainsAny(line, `="`) {
			table = m[1]
			continue
		}
		parts[table] = append(parts[table], line)
	}
	for name, part := range parts {
		for _, m := range pyList().FindAllStringSubmatch(strings.Join(part, ""), -1) {
			if !pyTables().MatchString(name) && !pyKeys().MatchString(name+" "+m[1]) {
				continue
			}
			for _, s := range pyString().FindAllStringSubmatch(m[2], -1) {
				pep508(all, s[1]+s[2])
			}
		}
	}
	return all
}

// pep508 adds a dependency in pip's form.
func pep508(all map[string]string, line string) {
	m := pyName().FindStringSubmatch(line)
	if m != nil && !strings.HasPrefix(m[3], "+") && !strings.HasPrefix(m[3], ":") {
		all[m[1]] = strings.TrimSpace(m[3])
	} else {
		all[line] = line
	}
}

func pipDependencies(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case line == "" || line[0] == '#', strings.HasPrefix(line, "--hash"):
		default:
			pep508(all, line)
		}
	}
	return all
}

// lineDependencies reads lines with a name and a version or source each.
func lineDependencies(patterns ...string) func(string) map[string]string {
	var compiled []*regexp.Regexp
	for _, p := range patterns {
		compiled = append(compiled, regexp.MustCompile(p))
	}
	return func(text string) map[string]string {
		all := map[string]string{}
		text = continued().ReplaceAllString(text, ", ")
		for _, p := range compiled {
			for _, m := range p.FindAllStringSubmatch(text, -1) {
				said := strings.TrimSpace(m[2])
				if said == `'https://rubygems.org'` || said == `"https://rubygems.org"` {
					said = "rubygems"
				}
				all[m[1]] = strings.TrimSpace(all[m[1]] + " " + said)
			}
		}
		return all
	}
}

var (
	pomDependency = lazy.Regexp(`(?s)<(?:dependency|plugin|extension)>(.*?)</(?:dependency|plugin|extension)>`)
	pomFolder     = lazy.Regexp(`^\$\{(?:project\.)?basedir\}`)
	pomURL        = lazy.Regexp(`(?s)<(?:repository|pluginRepository)>.*?<url>\s*(.*?)\s*</url>`)
	pomTag        = lazy.Regexp(`(?s)<(groupId|artifactId|version|systemPath)>\s*(.*?)\s*</`)
)

func pomDependencies(text string) map[string]string {
	all := map[string]string{}
	for _, m := range pomDependency().FindAllStringSubmatch(text, -1) {
		tags := map[string]string{}
		for _, t := range pomTag().FindAllStringSubmatch(m[1], -1) {
			if tags[t[1]] == "" {
				tags[t[1]] = t[2]
			}
		}
		said := tags["version"]
		if at := tags["systemPath"]; at != "" {
			said += fmt.Sprintf(" path = '%s'", pomFolder().ReplaceAllString(at, "."))
		}
		all[tags["groupId"]+":"+tags["artifactId"]] = strings.TrimSpace(said)
	}
	for _, m := range pomURL().FindAllStringSubmatch(text, -1) {
		all["repository "+m[1]] = m[1]
	}
	return all
}

var (
	gradleName = lazy.Regexp(`(?m)^\s*\w*` +
		`(?i:implementation|api|compileOnly|runtimeOnly|compile|processor|kapt|ksp|classpath)[\s(]+` +
		`(?:platform\()?['"]([\w.-]+:[\w.-]+):?([^'"]*)['"]`)
	gradleURL  = lazy.Regexp(`(?m)\burl\b[\s=(]*(?:uri\()?['"]([^'"]+)['"]|\bmaven\(\s*['"]([^'"]+)['"]`)
	gradleFile = lazy.Regexp(`files\(['"][^'"]+|(?:fileTree\((?:dir\s*[:=]\s*)?|includeBuild[\s(]+)['"][^'"]+`)
	// gradleNamed is a dependency in parts: "group: 'g', name: 'a', version: '1'".
	gradleNamed = lazy.Regexp(`\bgroup\s*[:=]\s*['"]([^'"]+)['"],\s*name\s*[:=]\s*['"]([^'"]+)['"]` +
		`(?:,\s*version\s*[:=]\s*['"]([^'"]+)['"])?`)
	gradlePlugin = lazy.Regexp(`\bid[\s(]+['"]([\w.-]+)['"]\)?\s+version\s*\(?['"]([^'"]+)['"]`)
)

func gradleDependencies(text string) map[string]string {
	all := map[string]string{}
	for _, m := range gradleName().FindAllStringSubmatch(text, -1) {
		all[m[1]] = m[2]
	}
	for _, m := range gradleNamed().FindAllStringSubmatch(text, -1) {
		all[m[1]+":"+m[2]] = m[3]
	}
	for _, m := range gradlePlugin().FindAllStringSubmatch(text, -1) {
		all["plugin "+m[1]] = m[2]
	}
	for _, m := range gradleURL().FindAllStringSubmatch(text, -1) {
		all["repository "+m[1]+m[2]] = m[1] + m[2]
	}
	for _, m := range gradleFile().FindAllString(text, -1) {
		all[m+"')"] = "files(" + m[strings.IndexAny(m, `'"`):]
	}
	return all
}

// A lockEntry is a package in a lock file of npm.
type lockEntry struct {
	Resolved string `json:"resolved"`
	Link     bool   `json:"link"`
	Script   bool   `json:"hasInstallScript"`
}

// registry matches the addresses of npm's public registries.
var registry = lazy.Regexp(`^https://registry\.(npmjs\.org|yarnpkg\.com)/`)

// locked returns the packages that an npm lock file newly allows a script, or takes from a host that neither is a
// registry nor was in the file before. For other lock files it returns such sources.
func locked(f File) (list []ralph.Dependency) {
	switch fold(path.Base(f.Path)) {
	case "package-lock.json", "npm-shrinkwrap.json":
	case "composer.lock":
		return scripted(f, pluginsOf(f.Was), pluginsOf(f.Is))
	case "pnpm-lock.yaml":
		return append(scripted(f, buildsOf(f.Was), buildsOf(f.Is)), lockedSources(f)...)
	case "yarn.lock", "bun.lock", "poetry.lock", "uv.lock", "pipfile.lock", "cargo.lock", "gemfile.lock",
		"deno.lock":
		return lockedSources(f)
	default:
		return nil
	}
	read := func(text []byte) map[string]lockEntry {
		var lock struct{ Packages, Dependencies map[string]lockEntry }
		if json.Unmarshal(text, &lock) != nil {
			return nil
		}
		if lock.Packages == nil {
			return lock.Dependencies
		}
		return lock.Packages
	}
	was, is := read(f.Was), read(f.Is)
	hosts := map[string]bool{}
	for _, e := range was {
		hosts[host(e.Resolved)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		e, before := is[key], was[key]
		d := ralph.Dependency{
			Name: strings.TrimPrefix(key, "node_modules/"), File: f.Path, Was: before.Resolved, Is: e.Resolved,
			Installs: e.Script && (!before.Script || before.Resolved != e.Resolved),
			Foreign: !e.Link && e.Resolved != before.Resolved && !registry().MatchString(e.Resolved) &&
				!hosts[host(e.Resolved)],
		}
		if d.Added = before == (lockEntry{}); d.Installs || d.Foreign {
			list = append(list, d)
		}
	}
	return list
}

// scripted returns the packages of a lock file that newly run code when they are installed.
func scripted(f File, was, is map[string]bool) (list []ralph.Dependency) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if !was[name] {
			list = append(list, ralph.Dependency{Name: name, File: f.Path, Added: true, Installs: true})
		}
	}
	return list
}

// pluginsOf returns the plugins of Composer in its lock file.
func pluginsOf(text []byte) map[string]bool {
	type pack struct{ Name, Type string }
	var lock struct {
		Packages []pack
		Dev      []pack `json:"packages-dev"`
	}
	all := map[string]bool{}
	if json.Unmarshal(text, &lock) == nil {
		for _, p := range append(lock.Packages, lock.Dev...) {
			if p.Type == "composer-plugin" {
				all[p.Name] = true
			}
		}
	}
	return all
}

var pnpmKey = lazy.Regexp(`^  '?/?((?:@[^/]+/)?[^@/'():]+)\S*:\s*$`)

// buildsOf returns the packages that run scripts when pnpm installs them.
func buildsOf(text []byte) map[string]bool {
	all, name := map[string]bool{}, ""
	for line := range strings.Lines(string(text)) {
		if m := pnpmKey().FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if strings.TrimSpace(line) == "requiresBuild: true" {
			all[name] = true
		}
	}
	return all
}

var (
	// lockSource matches a source in a lock file; index matches the public registries.
	lockSource = lazy.Regexp(`(?i)(?:[a-z+]+://|\bgit@|\b(?:github|gitlab|bitbucket|gist):)[^\s"'<>,{}()#?]+`)
	index      = lazy.Regexp(`^(?:[a-z]+\+)?https://(?:registry\.(?:npmjs\.org|yarnpkg\.com)|pypi\.org|` +
		`files\.pythonhosted\.org|(?:index\.|static\.)?crates\.io|github\.com/rust-lang/crates\.io-index|rubygems\.org|` +
		`jsr\.io|npm\.jsr\.io)(?:/|$)`)
	// shared matches a host of repositories by anybody: there a source is a repository.
	shared = lazy.Regexp(`^(?:(?:[a-z+]+://(?:[^/@]*@)?|git@)(?:[\w-]+\.)*(?:github|gitlab|bitbucket|codeberg|sr)` +
		`\.(?:com|org|ht)[/:]|(?:github|gitlab|bitbucket|gist):)[^/]+(?:/[^/@]+)?`)
)

// lockedSources returns the sources of a lock file that neither are a registry nor were in the file before.
func lockedSources(f File) (list []ralph.Dependency) {
	read := func(text []byte) map[string]bool {
		all := map[string]bool{}
		for _, address := range lockSource().FindAllString(string(text), -1) {
			switch {
			case index().MatchString(address):
			case shared().MatchString(address):
				all[strings.TrimSuffix(shared().FindString(address), ".git")] = true
			default:
				all[host(address)] = true
			}
		}
		return all
	}
	was := read(f.Was)
	for _, source := range slices.Sorted(maps.Keys(read(f.Is))) {
		if !was[source] {
			list = append(list, ralph.Dependency{Name: source, File: f.Path, Is: source, Added: true, Foreign: true})
		}
	}
	return list
}

// host returns the scheme and host of an address.
func host(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	of, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + of
}

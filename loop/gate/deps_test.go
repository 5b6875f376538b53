package gate_test

import (
	"strings"
	"testing"

	"ralph/loop/gate"
)

func TestDependencies(t *testing.T) {
	for _, c := range []struct {
		name, file, was, is string
		want                string // in words, separated by ";"
		guarded             bool
	}{
		{"npm", "package.json", `{"dependencies": {"a": "^1", "b": "1"}}`, `{"dependencies": {"a": "^2"}, "devDependencies": {"c": "~3"}}`, "dependency a from ^1 to ^2;removed dependency b;new dependency c ~3", false},
		{"npm, by git", "web/package.json", `{}`, `{"dependencies": {"a": "git+https://evil.example/a"}}`, "new dependency a git+https://evil.example/a (no registry)", true},
		{"npm, of GitHub", "package.json", `{}`, `{"dependencies": {"a": "evil/a#main"}}`, "new dependency a evil/a#main (no registry)", true},
		{"npm, a scope", "package.json", `{}`, `{"dependencies": {"@a/b": "npm:@c/d@1", "e": "workspace:*", "f": "file:./f"}}`, "new dependency @a/b npm: @c/d@1;new dependency e workspace:*;new dependency f file:./f", false},
		{"npm, a path outside", "package.json", `{}`, `{"dependencies": {"a": "file:../a"}}`, "new dependency a file:../a (no registry)", true},
		{"npm, a path inside", "web/package.json", `{}`, `{"dependencies": {"a": "file:../a"}}`, "new dependency a file:../a", false},
		{"npm, nothing", "package.json", `{"name": "a"}`, `{"name": "b"}`, "", false},
		{"npm's lock file", "package-lock.json", `{"packages": {}}`, `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a/-/a-1.tgz"}}}`, "", false},
		{"with a script", "package-lock.json", `{"packages": {}}`, `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz", "hasInstallScript": true}}}`, "new dependency a https://registry.npmjs.org/a.tgz (runs a script when installed)", true},
		{"with another host", "package-lock.json", `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz"}}}`, `{"packages": {"node_modules/a": {"resolved": "https://evil.example/a.tgz"}}}`, "dependency a from https://registry.npmjs.org/a.tgz to https://evil.example/a.tgz (no registry)", true},
		{"with the host that it had", "package-lock.json", `{"packages": {"node_modules/a": {"resolved": "https://npm.corp/a.tgz"}}}`, `{"packages": {"node_modules/a": {"resolved": "https://npm.corp/a-2.tgz"}}}`, "", false},
		{"yarn's lock file", "yarn.lock", "", "a@^1:\n  resolved \"https://registry.yarnpkg.com/a/-/a-1.tgz#x\"\n", "", false},
		{"yarn, by git", "yarn.lock", "", "a@evil/a:\n  resolved \"https://codeload.github.com/evil/a/tar.gz/0a1b\"\n", "new dependency https://codeload.github.com/evil/a https://codeload.github.com/evil/a (no registry)", true},
		{"yarn, a newer commit", "yarn.lock", "resolved \"git+ssh://git@github.com/us/a.git#1\"", "resolved \"git+ssh://git@github.com/us/a.git#2\"", "", false},
		{"pnpm, a tarball", "web/pnpm-lock.yaml", "lockfileVersion: '9.0'\n", "  a@https://evil.example/a.tgz:\n    resolution: {tarball: https://evil.example/a.tgz}\n", "new dependency https://evil.example https://evil.example (no registry)", true},
		{"pnpm, the company's registry", "pnpm-lock.yaml", "tarball: https://npm.corp/a/a-1.tgz", "tarball: https://npm.corp/a/a-1.tgz\ntarball: https://npm.corp/b/b-1.tgz", "", false},
		{"bun, of GitHub", "bun.lock", "{}", `{"packages": {"a": ["a@github:evil/a#0a1b", {}]}}`, "new dependency github:evil/a github:evil/a (no registry)", true},
		{"Poetry, by git", "poetry.lock", "", "[package.source]\ntype = \"git\"\nurl = \"https://github.com/evil/a.git\"\n", "new dependency https://github.com/evil/a https://github.com/evil/a (no registry)", true},
		{"uv's registry", "uv.lock", "", "source = { registry = \"https://pypi.org/simple\" }\nurl = \"https://files.pythonhosted.org/packages/a.whl\"\n", "", false},
		{"uv, another index", "uv.lock", "", "source = { registry = \"https://evil.example/simple\" }\n", "new dependency https://evil.example https://evil.example (no registry)", true},
		{"Pipenv, by ssh", "Pipfile.lock", "{}", `{"a": {"git": "git@github.com:evil/a.git"}}`, "new dependency git@github.com:evil/a git@github.com:evil/a (no registry)", true},
		{"Cargo's registry", "Cargo.lock", "", "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n", "", false},
		{"Cargo's lock file, by git", "Cargo.lock", "", "source = \"git+https://github.com/evil/a?branch=main#0a1b\"\n", "new dependency git+https://github.com/evil/a git+https://github.com/evil/a (no registry)", true},
		{"Bundler's registry", "Gemfile.lock", "", "GEM\n  remote: https://rubygems.org/\n", "", false},
		{"Bundler, by git", "Gemfile.lock", "", "GIT\n  remote: https://gitlab.com/evil/a.git\n", "new dependency https://gitlab.com/evil/a https://gitlab.com/evil/a (no registry)", true},
		{"a lookalike of a registry", "uv.lock", "", "url = \"https://pypi.org.evil.example/a\"\n", "new dependency https://pypi.org.evil.example https://pypi.org.evil.example (no registry)", true},
		{"Go", "go.mod", "module m\n\nrequire a.com/b v1.0.0\n", "module m\n\nrequire (\n\ta.com/b v1.1.0\n\tc.com/d v1.0.0\n\te.com/f v1.0.0 // indirect\n)\n", "dependency a.com/b from v1.0.0 to v1.1.0;new dependency c.com/d v1.0.0", false},
		{"Go, a path outside", "go.mod", "module m\n", "module m\nreplace a.com/b => ../b\n", "new dependency a.com/b (replaced) => ../b (no registry)", true},
		{"Cargo", "Cargo.toml", "[package]\nname = \"m\"\n[dependencies]\na = \"1\"\n", "[package]\nname = \"n\"\n[dependencies]\na = \"2\"\n[dev-dependencies]\nb = { version = \"1\" }\n", "dependency a from 1 to 2;new dependency b { version = \"1\" }", false},
		{"Cargo, by git", "Cargo.toml", "", "[dependencies.a]\ngit = \"https://evil.example/a\"\n", `new dependency a git = "https://evil.example/a" (no registry)`, true},
		{"Cargo, a path outside", "Cargo.toml", "", "[dependencies]\na = { path = \"../a\" }\n", `new dependency a { path = "../a" } (no registry)`, true},
		{"Cargo, a path inside", "x/Cargo.toml", "", "[dependencies]\na = { path = \"../a\" }\n", `new dependency a { path = "../a" }`, false},
		{"pyproject", "pyproject.toml", "[project]\nname = \"m\"\ndependencies = [\"a>=1\"]\n", "[project]\nname = \"m\"\ndependencies = [\n  \"a>=2\",\n  \"b[x]\",\n]\n", "dependency a from >=1 to >=2;new dependency b", false},
		{"pyproject, by git", "pyproject.toml", "[project]\n", "[project]\ndependencies = [\"a @ git+https://evil.example/a\"]\n", "new dependency a @ git+https://evil.example/a (no registry)", true},
		{"pyproject, of Poetry", "pyproject.toml", "", "[tool.poetry.dependencies]\npython = \"^3\"\na = \"^1\"\nb = {git = \"https://evil.example/b\"}\n", `new dependency a ^1;new dependency b {git = "https://evil.example/b"} (no registry)`, true},
		{"pip", "requirements-dev.txt", "a==1\n", "a==2\n# x\nb\n", "dependency a from ==1 to ==2;new dependency b", false},
		{"pip, by git", "requirements.txt", "", "git+https://evil.example/a\n", "new dependency git+https://evil.example/a git+https://evil.example/a (no registry)", true},
		{"pip, another index", "requirements.txt", "", "--extra-index-url https://evil.example\n", "new dependency --extra-index-url https://evil.example --extra-index-url https://evil.example (no registry)", true},
		{"pip, a path outside", "requirements.txt", "", "-e ../a\n", "new dependency -e ../a -e ../a (no registry)", true},
		{"Gemfile", "Gemfile", "source 'https://rubygems.org'\ngem 'a'\n", "source 'https://rubygems.org'\ngem 'a', '~> 1'\ngem \"b\"\n", "dependency a from  to '~> 1';new dependency b", false},
		{"Gemfile, by git", "Gemfile", "", "gem 'a', git: 'https://evil.example/a'\n", "new dependency a git: 'https://evil.example/a' (no registry)", true},
		{"Gemfile, of GitHub", "Gemfile", "", "gem 'a', github: 'evil/a'\n", "new dependency a github: 'evil/a' (no registry)", true},
		{"composer", "composer.json", `{"require": {"php": "8"}}`, `{"require": {"php": "8", "a/b": "^1"}}`, "new dependency a/b ^1", false},
		{"composer, a repository", "composer.json", `{}`, `{"repositories": [{"type": "vcs", "url": "https://evil.example"}]}`, `new dependency repositories [{"type": "vcs", "url": "https://evil.example"}] (no registry)`, true},
		{"Maven", "pom.xml", "<dependencies></dependencies>", "<dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId><version>1</version></dependency></dependencies>", "new dependency g:a 1", false},
		{"Maven, without another one", "pom.xml", "", "<dependency><groupId>g</groupId><artifactId>a</artifactId><version>1</version><exclusions><exclusion><groupId>x</groupId><artifactId>y</artifactId></exclusion></exclusions></dependency>", "new dependency g:a 1", false},
		{"Maven, a repository", "pom.xml", "", "<repositories><repository><id>x</id><url>https://evil.example</url></repository></repositories>", "new dependency repository https://evil.example https://evil.example (no registry)", true},
		{"Gradle", "app/build.gradle.kts", "", "dependencies {\n  implementation(\"g:a:1.0\")\n  testImplementation 'g:b:2'\n}\n", "new dependency g:a 1.0;new dependency g:b 2", false},
		{"Gradle, a repository", "build.gradle", "", "repositories { maven { url 'https://evil.example' } }\n", "new dependency repository https://evil.example https://evil.example (no registry)", true},
		{"npm, by git and ssh", "package.json", `{}`, `{"devDependencies": {"a": "git+ssh://git@git.example:x/a.git#v1"}}`, "new dependency a git+ssh://git@git.example:x/a.git#v1 (no registry)", true},
		{"pnpm, an override", "package.json", `{}`, `{"pnpm": {"overrides": {"a": "git@github.com:evil/a.git"}}}`, "new dependency a git@github.com:evil/a.git (no registry)", true},
		{"scripts that may run", "package.json", `{"trustedDependencies": ["a"]}`, `{"trustedDependencies": ["a", "b"], "pnpm": {"onlyBuiltDependencies": ["c"]}}`, "new dependency b (runs a script when installed);new dependency c (runs a script when installed)", true},
		{"pnpm, with a script", "pnpm-lock.yaml", "packages:\n  /a@1.0.0:\n    requiresBuild: true\n", "packages:\n  /a@1.0.1:\n    requiresBuild: true\n\n  '@b/c@2.0.0(d@1)':\n    resolution: {integrity: x}\n    requiresBuild: true\n", "new dependency @b/c (runs a script when installed)", true},
		{"a plugin of Composer", "composer.lock", `{"packages": [{"name": "a/b", "type": "library"}]}`, `{"packages": [{"name": "a/b", "type": "library"}], "packages-dev": [{"name": "c/d", "type": "composer-plugin"}]}`, "new dependency c/d (runs a script when installed)", true},
		{"Go, a block of replacements", "go.mod", "module m\n", "module m\nreplace (\n\ta.com/b v1.0.0 => /srv/b\n\tc.com/d => ./d\n)\n", "new dependency a.com/b v1.0.0;new dependency a.com/b (replaced) => /srv/b (no registry);new dependency c.com/d (replaced) => ./d", true},
		{"pip, in a folder", "requirements/dev.txt", "", "-e git+ssh://git@evil.example/a.git#egg=a\n-r base.txt\n-r ../../x.txt\n", "new dependency -e git+ssh://git@evil.example/a.git#egg=a -e git+ssh://git@evil.example/a.git#egg=a (no registry);new dependency -r ../../x.txt -r ../../x.txt (no registry);new dependency -r base.txt -r base.txt", true},
		{"pip, another name", "dev-requirements.txt", "a==1\n", "a==2\n", "dependency a from ==1 to ==2", false},
		{"pyproject, groups of tools", "pyproject.toml", "", "[tool.uv]\ndev-dependencies = [\"a @ git+https://evil.example/a\"]\n[tool.hatch.envs.default]\ndependencies = [\"b\"]\nfeatures = [\"no\"]\n", "new dependency a @ git+https://evil.example/a (no registry);new dependency b", true},
		{"Cargo, a patch of a repository", "Cargo.toml", "", "[patch.\"https://github.com/o/r\"]\na = { path = \"/srv/a\" }\n", `new dependency a { path = "/srv/a" } (no registry)`, true},
		{"Gemfile, over two lines", "Gemfile", "", "gem 'a', # why\n  git: 'https://evil.example/a',\n  branch: 'x'\ngem 'b'\n", "new dependency a git: 'https://evil.example/a', branch: 'x' (no registry);new dependency b", true},
		{"Maven, a file of the machine", "pom.xml", "", "<dependency><groupId>g</groupId><artifactId>a</artifactId><version>1</version><scope>system</scope><systemPath>/opt/a.jar</systemPath></dependency>", "new dependency g:a 1 path = '/opt/a.jar' (no registry)", true},
		{"Maven, a file of the project", "pom.xml", "", "<dependency><groupId>g</groupId><artifactId>a</artifactId><version>1</version><systemPath>${project.basedir}/lib/a.jar</systemPath></dependency>", "new dependency g:a 1 path = './lib/a.jar'", false},
		{"Maven, an extension", ".mvn/extensions.xml", "", "<extension><groupId>g</groupId><artifactId>x</artifactId><version>1</version></extension>", "new dependency g:x 1", true},
		{"Gradle, files", "build.gradle", "", "implementation files('../a.jar')\nimplementation fileTree(dir: 'libs', include: ['*.jar'])\n", "new dependency fileTree(dir: 'libs') files('libs;new dependency files('../a.jar') files('../a.jar (no registry)", true},
		{"Gradle, in parts, and plugins", "build.gradle", "", "plugins { id 'p.q' version '1' }\nimplementation group: 'g', name: 'a', version: '2'\n", "new dependency g:a 2;new dependency plugin p.q 1", false},
		{"Gradle's catalog", "gradle/libs.versions.toml", "[versions]\nk = \"1\"\n", "[libraries]\na = { module = \"g:a\", version.ref = \"k\" }\n", "new dependency a { module = \"g:a\", version.ref = \"k\" }", false},
		{"npm, a path that leads outside", "package.json", `{}`, `{"dependencies": {"a": "file:b/../../a"}}`, "new dependency a file:b/../../a (no registry)", true},
		{"npm, the folder around", "package.json", `{}`, `{"dependencies": {"a": "link:.."}}`, "new dependency a link:.. (no registry)", true},
		{"npm, somebody's home", "package.json", `{}`, `{"dependencies": {"a": "file:~/a"}}`, "new dependency a file:~/a (no registry)", true},
		{"npm, two sources of one", "package.json", `{"dependencies": {"a": "^1"}}`, `{"dependencies": {"a": "^1"}, "resolutions": {"a": "evil/a#x"}}`, "dependency a from ^1 to ^1, evil/a#x (no registry)", true},
		{"npm, an override within another", "package.json", `{}`, `{"overrides": {"a": {"b": "evil/b"}}}`, `new dependency a {"b": "evil/b"} (no registry)`, true},
		{"npm's lock file, an older one", "package-lock.json", `{}`, `{"dependencies": {"a": {"resolved": "https://evil.example/a.tgz"}}}`, "new dependency a https://evil.example/a.tgz (no registry)", true},
		{"npm's other lock file", "npm-shrinkwrap.json", `{}`, `{"packages": {"node_modules/a": {"resolved": "https://evil.example/a.tgz"}}}`, "new dependency a https://evil.example/a.tgz (no registry)", true},
		{"with the script that it had", "package-lock.json", `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz", "hasInstallScript": true}}}`, `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz", "hasInstallScript": true}}, "name": "b"}`, "", false},
		{"with a newer script", "package-lock.json", `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz", "hasInstallScript": true}}}`, `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a-2.tgz", "hasInstallScript": true}}}`, "dependency a from https://registry.npmjs.org/a.tgz to https://registry.npmjs.org/a-2.tgz (runs a script when installed)", true},
		{"with a script, and the same source", "package-lock.json", `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz"}}}`, `{"packages": {"node_modules/a": {"resolved": "https://registry.npmjs.org/a.tgz", "hasInstallScript": true}}}`, "dependency a (runs a script when installed)", true},
		{"Deno, another host", "deno.lock", "{}", `{"remote": {"https://evil.example/a.ts": "0a1b"}}`, "new dependency https://evil.example https://evil.example (no registry)", true},
		{"Cargo, a comment", "Cargo.toml", "[dependencies]\na = \"1\" # why\n", "[dependencies]\na = \"1\" # because\n", "", false},
		{"pyproject, after another list", "pyproject.toml", "", "[project]\nclassifiers = [\"x\"]\ndependencies = [\"a\"]\n", "new dependency a", false},
		{"pip, another hash", "requirements.txt", "a==1 \\\n  --hash=sha256:0\n", "a==1 \\\n  --hash=sha256:1\n", "", false},
		{"pip, a folder outside", "requirements.txt", "", "../a\n", "new dependency ../a ../a (no registry)", true},
		{"Gemfile, of the registry", "Gemfile", "", "source \"https://rubygems.org\"\ngem \"a\"\n", "new dependency a;new dependency source rubygems", false},
		{"Gemfile, two sources", "Gemfile", "", "source 'https://evil.example'\nsource 'https://rubygems.org'\n", "new dependency source 'https://evil.example' rubygems (no registry)", true},
		{"Gemfile, a block of a path outside", "Gemfile", "", "path '../x' do\n  gem 'a'\nend\n", "new dependency a;new dependency path '../x' do (no registry)", true},
		{"composer, no repositories", "composer.json", `{}`, `{"repositories": []}`, "", false},
		{"a file of no package manager", "a.txt", "a\n", "b\n", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := gate.File{Path: c.file, Was: []byte(c.was), Is: []byte(c.is)}
			var said []string
			for _, d := range gate.Dependencies([]gate.File{f}) {
				said = append(said, d.String())
			}
			if got := strings.Join(said, ";"); got != c.want {
				t.Errorf("\n%s, want\n%s", got, c.want)
			}
			if got := len(gate.Guarded([]gate.File{f}, nil)) > 0; got != c.guarded {
				t.Errorf("guarded: %t", got)
			}
			if len(gate.Guarded([]gate.File{f}, []string{"!" + c.file})) > 0 {
				t.Error("merge.guard does not take it out")
			}
		})
	}
}

// TestDependenciesOfSeveralFiles: a lock file does not hide a manifest.
func TestDependenciesOfSeveralFiles(t *testing.T) {
	list := gate.Dependencies([]gate.File{
		{Path: "yarn.lock", Is: []byte("a@^1\n")}, {Path: "package.json", Is: []byte(`{"dependencies": {"a": "^1"}}`)},
	})
	if len(list) != 1 || list[0].Name != "a" || list[0].File != "package.json" {
		t.Errorf("%+v", list)
	}
}

func FuzzDependencies(f *testing.F) {
	f.Add("[a]\nb = [\"", "{")
	f.Fuzz(func(_ *testing.T, was, is string) {
		for _, name := range []string{
			"package.json", "package-lock.json", "go.mod", "Cargo.toml", "pyproject.toml", "requirements.txt",
			"Gemfile", "composer.json", "pom.xml", "build.gradle", "yarn.lock",
		} {
			gate.Dependencies([]gate.File{{Path: name, Was: []byte(was), Is: []byte(is)}})
		}
	})
}

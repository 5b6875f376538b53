package gate

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"ralph/internal/lazy"
)

// A guard is a kind of file that runs on people's machines or in their CI, or steers an agent there.
type guard struct {
	patterns string // separated by spaces
	why      string // the program that reads it, and when
}

// guards lists the guarded files. The files that steer the configured agents are the agents' to name.
var guards = []guard{
	{".github/workflows/** .github/actions/**", "GitHub Actions, at each push"},
	{
		".github/{agents,hooks,prompts,skills,instructions,chatmodes}/** **/copilot-instructions.md",
		"Copilot, at its start",
	},
	{".gitlab-ci.yml .gitlab-ci/** .gitlab/ci/** .gitlab/agents/**", "GitLab CI, at each push"},
	{".gitea/** .forgejo/**", "Gitea and Forgejo Actions, at each push"},
	{
		".circleci/** .buildkite/** .teamcity/** .semaphore/** .tekton/** .builds/** .drone/** .woodpecker/**",
		"CI services, at each push",
	},
	{".travis.yml .appveyor.yml appveyor.yml .cirrus.yml .cirrus.star .drone.y*ml .drone.star .drone.jsonnet " +
		".woodpecker.y*ml .build.yml .scrutinizer.yml codefresh.yml wercker.yml", "CI services, at each push"},
	{
		"azure-pipelines*.yml .azure-pipelines/** bitbucket-pipelines.yml cloudbuild.y*ml buildspec.y*ml",
		"CI of Azure, Bitbucket, Google and AWS, at each push",
	},
	{
		".harness/** {.,}bitrise.yml codemagic.y*ml {.,}zuul.y*ml {.,}zuul.d/** .packit.y*ml .copr/** .pipelines/** " +
			".azuredevops/** amplify.yml screwdriver.y*ml .cnb.yml .workflow/** .codecatalyst/** ci_scripts/** " +
			".taskcluster.yml .buildkite.y*ml .semaphore.yml .concourse/** .gocd.y*ml {.,}cirun.yml {.,}cloudbuild.{y*ml,json}",
		"further CI services, at each push",
	},
	{"**/jenkinsfile **/jenkinsfile.* **/*.jenkinsfile", "Jenkins, at each push"},
	{
		".netlify/** netlify.toml vercel.json render.yaml",
		"hosting services, which build and deploy each push",
	},
	{
		".husky/** .githooks/** .git-hooks/** **/.pre-commit-config.yaml **/{.,}lefthook{,-local}.{y*ml,toml,json,jsonc} " +
			"**/.overcommit.yml **/.huskyrc* **/.simple-git-hooks.* **/.lintstagedrc* **/.captain*.json " +
			".hooks/** **/prek.toml {.,}hooks/{pre,post,commit,prepare}-{commit,push,checkout,merge,rewrite,msg,commit-msg}",
		"git hooks, at each commit and push",
	},
	{"**/.envrc **/{.,}mise.toml **/{.,}mise.*.toml **/.mise/** **/mise/config*.toml **/.rtx.toml **/.autoenv* " +
		"**/devenv.nix **/devenv.y*ml **/.config/mise{,.*}.toml **/.config/mise/**", "direnv and mise, on entering a folder"},
	{"**/.vscode/{tasks,launch,settings,mcp}.json **/*.code-workspace", "VS Code, when it opens the folder"},
	{
		"**/.idea/{runconfigurations/**,watchertasks.xml,tools/**} **/.run/*.run.xml **/.fleet/{run,settings}.json",
		"JetBrains' editors, when they open the project",
	},
	{
		"**/.zed/{tasks,settings,debug}.json **/.nova/** **/*.sublime-project **/.theia/** **/.bsp/** " +
			"**/.externaltoolbuilders/** **/.project",
		"Zed, Nova, Sublime Text, Theia, Metals and Eclipse, when they open the folder",
	},
	{
		"**/.exrc **/.nvimrc **/.nvim.lua **/.vimrc **/.lvimrc **/.local.vimrc **/.vim/** **/.helix/** " +
			"**/.nvim/** **/.vimspector.json **/.ycm_extra_conf.py **/.kakrc",
		"vim, neovim and helix, when they open a file",
	},
	{"**/.dir-locals.el **/.dir-locals-2.el", "emacs, when it opens a file"},
	{
		"**/.devcontainer/** **/.devcontainer.json **/.gitpod.yml **/.gitpod.dockerfile **/.ona/** **/.idx/** " +
			"**/.replit **/.codesandbox/** **/.stackblitzrc",
		"development containers, when they are made",
	},
	{
		"**/.npmrc **/.yarnrc **/.yarnrc.yml **/.yarn/{plugins,releases}/** **/{.,}pnpmfile.{c,m,}js **/bunfig.toml " +
			"**/.pnp.{cjs,loader.mjs} **/.corepack.env **/binding.gyp",
		"npm, yarn, pnpm, bun and corepack, at each install and command",
	},
	{"**/.cargo/config **/.cargo/config.toml **/rust-toolchain{,.toml}", "cargo and rustup, at each command"},
	{"**/.mvn/**", "Maven, at each command"},
	{
		"**/gradle/wrapper/** **/init.gradle{,.kts} **/{gradlew,mvnw}{,.bat,.cmd}",
		"wrappers of Gradle and Maven, at each command",
	},
	{"**/nuget.config", "NuGet, at each restore"},
	{
		"**/{uv,pdm}.toml **/{.,}ansible.cfg **/.{jvmopts,sbtopts} **/.bazeliskrc tools/bazel",
		"uv, pdm, Ansible, programs on the JVM and bazelisk, at each command",
	},
	{
		"**/codeowners .github/{settings,mergify}.yml .mergify.yml .mergify/** .kodiak.toml bors.toml",
		"forges and their bots, at each pull request: who approves, and what is merged",
	},
	{
		"**/.bundle/config **/.bazelrc **/pip.conf **/.condarc **/.irbrc **/.pryrc **/.gdbinit **/.lldbinit " +
			"**/.rprofile **/.ghci **/.iex.exs **/.pdbrc{,.py} **/.byebugrc **/.octaverc " +
			"**/.{rdbgrc,perldb,ocamlinit,erlang}",
		"bundler, bazel, pip, conda, debuggers and interactive shells of languages, when they start in the folder",
	},
	{"**/.gitmodules **/.gitconfig **/.lfsconfig", "git, at fetches and updates"},
	{
		".roo/** .roorules* .roomodes .kiro/** .junie/** .goosehints .goose/** .aider* .continue/** .continuerc.json",
		"Roo, Kiro, Junie, goose, aider and Continue, at their start",
	},
	{
		".windsurf/** .windsurfrules .clinerules .clinerules/** .cline/** .kilocode/** .kilocodemodes .augment/** " +
			".augment-guidelines .trae/** .zencoder/** .tabnine/** .qodo/** .crush/** crush.json .crush.json",
		"Windsurf, Cline, Kilo Code, Augment, Trae and others, at their start",
	},
	{
		".amazonq/** .amp/** .factory/** .openhands/** .rules **/warp.md **/crush.md **/.mcp.json",
		"Amazon Q, Amp, Factory, OpenHands, Zed, Warp and others, at their start",
	},
	{
		".agent/** .rovodev/** .devin/** .warp/** .antigravity/** .jules/** .conductor/** conductor.json .superset/** " +
			".vibe/** .kimi/** .iflow/** **/iflow.md .codebuddy/** **/codebuddy.md {.,}forge.yaml {.,}firebender.json " +
			".firebender/** .pi/** gptme.toml codemcp.toml .serena/** .{claude,cursor}-plugin/** agent.md {.,}mcp.json .mcp/**",
		"Antigravity, Rovo Dev, Devin, Conductor, Mistral Vibe, iFlow, CodeBuddy and others, at their start",
	},
	{
		".coderabbit.y*ml .pr_agent.toml greptile.json {.,}sweep.yaml ellipsis.yaml",
		"agents that review pull requests",
	},
	{"**/ralph.yaml", "ralph, at each run"},
}

// harmless are the attributes of a file that make git run no program and hide no difference.
var harmless = lazy.Regexp(`^[-!]?(text|eol|crlf|whitespace|ident|encoding|working-tree-encoding|` +
	`export-ignore|export-subst|delta|conflict-marker-size|(linguist|gitlab)-[a-z-]+)(=.*)?$`)

// unread matches placeholders for contents that are large or no text.
var unread = lazy.Regexp(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// installs are the scripts of package.json and composer.json that run when it is installed.
var installs = []string{
	"preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "postprepare",
	"pre-install-cmd", "post-install-cmd", "pre-update-cmd", "post-update-cmd", "pre-autoload-dump", "post-autoload-dump",
}

// hookKeys are the keys of package.json that define git hooks.
var hookKeys = []string{"husky", "simple-git-hooks", "lint-staged", "pre-commit", "pre-push", "gitHooks", "gypfile"}

// Guarded returns the files that a person has to approve before they are merged, by the conventions and by more
// patterns, ignoring case. A pattern after "!" excludes files.
func Guarded(files []File, more []string) (list []File) {
	var patterns []string
	for _, g := range guards {
		patterns = append(patterns, strings.Fields(g.patterns)...)
	}
	patterns = append(patterns, more...)
	for _, f := range files {
		switch folded := fold(path.Base(f.Path)); {
		case folded == ".gitattributes" && attributes(f.Was) != attributes(f.Is),
			repository(folded, f.Was) || repository(folded, f.Is),
			slices.Contains([]string{"package.json", "composer.json"}, folded) && installed(f.Was) != installed(f.Is), risky(f):
			if !Matches(taken(more), f.Path) {
				list = append(list, f)
			}
		case Matches(patterns, f.Path):
			list = append(list, f)
		}
	}
	return list
}

// Git takes a folder with a HEAD, objects and refs for a repository, and runs the programs of its config and hooks when
// people use git there.
var (
	heads   = lazy.Regexp(`^(ref:\s*)?refs/|^[0-9a-f]{40}`)
	gitKeys = lazy.Regexp(`(?im)^\s*\[\s*(core|include|includeif|alias|filter|diff|merge|credential|gpg|pager)\b`)
)

// repository reports whether a file, by its name in lower case, makes a folder a repository or is the settings of one.
func repository(folded string, text []byte) bool {
	switch folded {
	case "head":
		return heads().Match(text)
	case "config", "config.worktree":
		return gitKeys().Match(text) || unread().Match(text)
	}
	return false
}

// Literal escapes a path for use as a pattern.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(name)
}

// taken returns the patterns that take files out, without their sign.
func taken(patterns []string) (list []string) {
	for _, p := range patterns {
		if out, ok := strings.CutPrefix(p, "!"); ok {
			list = append(list, out)
		}
	}
	return list
}

// attributes returns the lines of .gitattributes that have attributes not known to be harmless: one may name a program
// or hide a difference, or be a macro that does.
func attributes(text []byte) string {
	if unread().Match(text) {
		return string(text)
	}
	var lines strings.Builder
	blank := func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) } // git's, which has fewer than Unicode
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		rest := strings.TrimFunc(line, blank)
		if rest == "" || rest[0] == '#' {
			continue
		}
		if rest[0] == '"' { // a pattern in quotes
			if quoted, err := strconv.QuotedPrefix(rest); err == nil {
				rest = "quoted" + rest[len(quoted):]
			}
		}
		attributes := strings.FieldsFunc(rest, blank)[1:]
		if slices.ContainsFunc(attributes, func(a string) bool { return !harmless().MatchString(a) }) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// Linked returns patterns for the targets of guarded links, over further links. links are all links of a commit with
// their targets.
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
		for at := name; at != "." && at != "/"; at = path.Dir(at) { // the file itself, or a folder around it, is a link
			to, ok := links[at]
			if !ok || path.IsAbs(to) {
				continue
			}
			target := path.Join(path.Dir(at), to, strings.TrimPrefix(name, at))
			if target != "." && !strings.HasPrefix(target, "../") && !seen[target] {
				seen[target] = true
				queue = append(queue, target)
				patterns = append(patterns, Literal(target), Literal(target)+"/**")
			}
		}
	}
	return patterns
}

// mostLinked bounds the number of link targets: links may form circles that grow.
const mostLinked = 1000

// installed returns the parts of a package.json or composer.json that run when it is installed, or at commits: scripts,
// git hooks, and a package manager from an address.
func installed(text []byte) string {
	var manifest map[string]json.RawMessage
	var scripts map[string]json.RawMessage
	if text != nil && json.Unmarshal(text, &manifest) != nil {
		return string(text)
	}
	if said := manifest["scripts"]; said != nil && json.Unmarshal(said, &scripts) != nil {
		return string(text)
	}
	var b strings.Builder
	for _, name := range installs {
		b.WriteString(string(scripts[name]) + "\n")
	}
	for _, name := range hookKeys {
		b.WriteString(string(manifest[name]) + "\n")
	}
	if manager := string(manifest["packageManager"]); strings.Contains(manager, "://") {
		b.WriteString(manager)
	}
	return b.String()
}

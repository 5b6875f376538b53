package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/sandbox"
	"ralph/loop/workspace"
)

// A cache is a folder that a program uses to be faster, or for its downloads.
type cache struct {
	variable string // names it; "" if no variable does
	name     string // name of its stand-in folder
	theirs   string // the user's own, in the home directory
	only     bool   // there is none if the user has none
}

// cacheTable lists the caches. Each workspace has its own.
var cacheTable = []cache{
	{"XDG_CACHE_HOME", "xdg", ".cache", false},
	{"GOCACHE", workspace.GoBuild, ".cache/go-build", false},
	{"GOMODCACHE", "go-mod", "go/pkg/mod", false},
	{"npm_config_cache", "npm", ".npm", false},
	{"npm_config_store_dir", "pnpm", ".local/share/pnpm/store", false},
	{"YARN_CACHE_FOLDER", "yarn", ".cache/yarn", false},
	{"YARN_GLOBAL_FOLDER", "berry", ".yarn/berry", false},
	{"BUN_INSTALL_CACHE_DIR", "bun", ".bun/install/cache", false},
	{"CARGO_HOME", "cargo", ".cargo", false},
	{"GRADLE_USER_HOME", "gradle", ".gradle", false},
	{"NUGET_PACKAGES", "nuget", ".nuget/packages", false},
	{"", "maven", ".m2", true},
	{"CCACHE_DIR", "ccache", ".cache/ccache", true},
	{"CCACHE_DIR", "ccache-old", ".ccache", true},
	{"SCCACHE_DIR", "sccache", ".cache/sccache", true},
	{"PLAYWRIGHT_BROWSERS_PATH", "playwright", ".cache/ms-playwright", true},
	{"CYPRESS_CACHE_FOLDER", "cypress", ".cache/Cypress", true},
	{"HF_HOME", "huggingface", ".cache/huggingface", true},
}

// homeTable lists folders that programs look for in the home directory, which is empty for checks, and the variables
// that name them.
var homeTable = []struct{ variable, theirs string }{
	{"RUSTUP_HOME", ".rustup"},
	{"GOENV", ".config/go/env"},
	{"GIT_CONFIG_GLOBAL", ".gitconfig"},
	{"NPM_CONFIG_USERCONFIG", ".npmrc"},
	{"PIP_CONFIG_FILE", ".config/pip/pip.conf"},
	{"PYTHONUSERBASE", ".local"},
	{"PYENV_ROOT", ".pyenv"},
	{"RBENV_ROOT", ".rbenv"},
	{"NODENV_ROOT", ".nodenv"},
	{"NVM_DIR", ".nvm"},
	{"VOLTA_HOME", ".volta"},
	{"ASDF_DATA_DIR", ".asdf"},
	{"SDKMAN_DIR", ".sdkman"},
	{"DENO_DIR", ".cache/deno"},
}

// A cached is a cache in its location for this user.
type cached struct {
	cache
	dir    string // the user's folder for it
	exists bool
}

// cached lists the caches with the user's folders. If the agent's environment moves a cache, ralph leaves it alone.
func (p *Project) cached() (list []cached) {
	home := p.Getenv("HOME")
	for _, c := range cacheTable {
		has := cached{cache: c, dir: filepath.Join(home, c.theirs)}
		if path := filepath.SplitList(p.Getenv("GOPATH")); c.variable == "GOMODCACHE" && len(path) > 0 {
			has.dir = filepath.Join(path[0], "pkg", "mod")
		}
		if dir := p.agentEnv(c.variable); c.variable != "" && filepath.IsAbs(dir) {
			has.dir = dir
		}
		if real, err := filepath.EvalSymlinks(has.dir); err == nil {
			has.dir, has.exists = real, true
		}
		list = append(list, has)
	}
	return list
}

// A layering puts the layers of caches together.
type layering struct {
	p      *Project
	lower  func(name string) []string // layers between the user's own and the writes
	upper  string                     // folder of the writes, by name
	mounts string                     // folder of mount points for caches that the user does not have
	empty  string                     // an empty folder
	theirs func(cached) bool          // leaves a cache unchanged
	view   sandbox.View
	env    []string
}

// caches adds the layers of all caches, and the variables that lead to them.
func (l *layering) caches() {
	for _, c := range l.p.cached() {
		if c.only && !c.exists || l.theirs(c) {
			continue
		}
		dir := c.dir
		inside := slices.ContainsFunc(l.view.Layers, func(layer sandbox.Layer) bool { return within(c.dir, layer.At) })
		switch {
		case inside && c.exists: // it is seen there
		case !c.exists || within(l.upper, c.dir): // one cannot lie below the other
			dir = filepath.Join(l.mounts, c.name) // in the layer of all that the user does not have
		default:
			l.add(dir, c.name, append(l.lower(c.name), c.dir))
		}
		if c.variable != "" {
			l.env = append(l.env, c.variable+"="+dir)
		}
	}
	l.add(l.mounts, "caches", append(l.lower("caches"), l.empty)) // each layer takes its time: these have one
}

func (l *layering) add(at, name string, lower []string) {
	l.view.Layers = append(l.view.Layers, sandbox.Layer{At: at, Lower: lower, Upper: filepath.Join(l.upper, name)})
}

// within reports whether a path is a folder or in it.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// workspaceCaches has an agent in a workspace see the user's caches, and write to the workspace's.
func (p *Project) workspaceCaches(ws string) *layering {
	own := p.workspaceFolder(ws, "caches", "agent")
	l := &layering{
		p: p, upper: own, mounts: p.workspaceFolder(ws, "caches", "none"),
		lower: p.ground(ws), empty: p.workspaceFolder(workspace.Seen, "empty"),
		theirs: func(c cached) bool {
			for _, dir := range p.paths(p.Config.Permissions.Writable, p.agentEnv("HOME")) {
				if within(c.dir, dir) {
					return true
				}
			}
			return c.variable != "" && p.Config.Agent.Env[c.variable] != ""
		},
	}
	l.caches()
	return l
}

// checkView shows a command in a check workspace exactly the commit to check. Its writes go to a folder that is
// dropped. All workspaces have the same path inside, so that one can use another's build output.
func (p *Project) checkView(ws, dir string) *layering {
	seen := p.workspaceFolder(workspace.Seen)
	tree, home, empty := filepath.Join(seen, "tree"), filepath.Join(seen, "home"), filepath.Join(seen, "empty")
	between := p.ground(ws)
	l := &layering{
		p: p, upper: p.workspaceFolder(ws, workspace.Dropped), mounts: filepath.Join(seen, "caches"), lower: between,
		theirs: func(cached) bool { return false }, empty: empty,
	}
	own := p.workspaceFolder(ws, "tree")
	l.add(tree, "tree", append([]string{own}, between("tree")...))
	l.add(home, "home", append(between("home"), empty))
	l.caches()
	if rel, err := filepath.Rel(own, dir); err == nil && filepath.IsLocal(rel) {
		l.view.Dir = filepath.Join(tree, rel)
	}
	l.view.Shm = true
	l.env = append(l.env, p.homeless(home)...)
	return l
}

// homeless returns the environment of a command with its own home directory.
func (p *Project) homeless(home string) []string {
	env := []string{"HOME=" + home}
	for _, h := range homeTable {
		dir := filepath.Join(p.Getenv("HOME"), h.theirs)
		if _, err := os.Stat(dir); err == nil && p.agentEnv(h.variable) == "" {
			env = append(env, h.variable+"="+dir)
		}
	}
	return env
}

// workspaceFolder returns a path in the folder of the workspaces.
func (p *Project) workspaceFolder(names ...string) string {
	return filepath.Join(p.File("workspaces"), filepath.Join(names...))
}

// ground returns the layers below a workspace's writes: the result of set-up on merged work, and the verification's
// build output of people's commits.
func (p *Project) ground(ws string) func(name string) []string {
	return func(name string) (list []string) {
		for _, dir := range []string{p.workspaceFolder(ws, workspace.Ground), p.workspaceFolder(workspace.Warm)} {
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
				list = append(list, real)
			}
		}
		return list
	}
}

// caches returns the folders for programs' caches without layers, and the variables that point to them. Each
// workspace and each role has its own: an agent must not be able to change the tools that check its work.
func (p *Project) caches(ws, role string) (env, folders []string) {
	own := p.File(filepath.Join("caches", role))
	if ws != "" {
		own = p.workspaceFolder(ws, "caches", role) // removed with the workspace
	}
	for _, c := range p.cached() {
		switch {
		case c.variable == "" || role == "agent" && p.Config.Agent.Env[c.variable] != "":
		case !c.only:
			env = append(env, c.variable+"="+filepath.Join(own, c.name))
		case c.exists:
			env = append(env, c.variable+"="+c.dir)
		}
	}
	if proxy := p.goProxy(p.Getenv("HOME")); proxy != "" {
		env = append(env, "GOPROXY="+proxy)
	}
	return env, []string{own}
}

// goProxy makes Go read its modules from the user's own cache first; "" if there is none.
func (p *Project) goProxy(home string) string {
	modules := p.Getenv("GOMODCACHE")
	if modules == "" {
		path := append(filepath.SplitList(p.Getenv("GOPATH")), filepath.Join(home, "go"))
		modules = filepath.Join(path[0], "pkg", "mod")
	}
	download := filepath.Join(modules, "cache", "download")
	if _, err := os.Stat(download); err != nil {
		return ""
	}
	then := p.Getenv("GOPROXY")
	if dir, err := os.UserConfigDir(); then == "" && err == nil {
		// The variable would hide the value set by `go env -w`.
		text, err := os.ReadFile(filepath.Join(dir, "go", "env"))
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "GOPROXY="); ok && err == nil {
				then = value
			}
		}
	}
	if then == "" {
		then = "https://proxy.golang.org,direct"
	}
	return "file://" + download + "," + then
}

package project

import (
	"os"
	"path/filepath"
	"strings"
)

// A cache is a folder that a program uses to be faster.
type cache struct {
	variable string
	folder   string // in the folder of a place and role; "" if only below is set

	// below is the variable for the user's own cache, which is read if the program's own cache
	// lacks something; theirs is its path in the home directory.
	below, theirs string
}

// cacheTable lists the caches that are moved where the user's own cannot be written to. For Go's
// modules see also goProxy.
var cacheTable = []cache{
	{variable: "XDG_CACHE_HOME", folder: "xdg"},
	{variable: "GOCACHE", folder: "go-build"},
	{variable: "npm_config_cache", folder: "npm"},
	{variable: "npm_config_store_dir", folder: "pnpm"},
	{variable: "YARN_CACHE_FOLDER", folder: "yarn"},
	{variable: "YARN_GLOBAL_FOLDER", folder: "berry"},
	{variable: "BUN_INSTALL_CACHE_DIR", folder: "bun"},
	{variable: "CARGO_HOME", folder: "cargo"},
	{variable: "GRADLE_USER_HOME", folder: "gradle", below: "GRADLE_RO_DEP_CACHE", theirs: ".gradle/caches"},
	{variable: "NUGET_PACKAGES", folder: "nuget", below: "NUGET_FALLBACK_PACKAGES", theirs: ".nuget/packages"},
	{below: "PLAYWRIGHT_BROWSERS_PATH", theirs: ".cache/ms-playwright"},
	{below: "CYPRESS_CACHE_FOLDER", theirs: ".cache/Cypress"},
	{below: "HF_HOME", theirs: ".cache/huggingface"},
}

// caches returns the folders for programs' caches, and the variables that point to them. Each place
// and each role has its own and keeps it between sessions: an agent must not be able to change what
// its work is checked with. The user's own caches are read in addition if a program supports that.
func (p *Project) caches(slot, role string) (env, folders []string) {
	home := p.Getenv("HOME")
	own := p.File(filepath.Join("caches", role))
	if slot != "" {
		own = p.File(filepath.Join("places", slot, "caches", role)) // removed with the slot
	}
	set := func(variable, value string) {
		if p.Config.Agent.Env[variable] == "" {
			env = append(env, variable+"="+value)
		}
	}
	for _, c := range cacheTable {
		theirs := filepath.Join(home, c.theirs)
		if _, err := os.Stat(theirs); c.below != "" && err == nil {
			set(c.below, theirs)
		}
		if c.folder != "" {
			set(c.variable, filepath.Join(own, c.folder))
		}
	}
	set("GOMODCACHE", filepath.Join(own, "go-mod"))
	if proxy := p.goProxy(home); proxy != "" {
		set("GOPROXY", proxy)
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
		// The variable would hide what `go env -w` has set.
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

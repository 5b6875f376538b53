package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/sandbox"
	"ralph/internal/state"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/kinds"
	"ralph/loop/workspace"
)

// A Confinement confines the agent and the commands that check its work.
type Confinement struct {
	Sandbox   sandbox.Mechanism
	Cannot    []string // limits that the sandbox does not enforce, in words
	Unlayered string   // why commands cannot have layers; "" if they can

	project *Project
	temps   *sync.Map // the workspaces of the commands that run, by the folders with their temporary files
}

// Temps returns the folders with the temporary files of the commands that run in a workspace, by its name.
func (c Confinement) Temps(ws string) (dirs []string) {
	if c.temps != nil {
		c.temps.Range(func(dir, of any) bool {
			if of == ws {
				dirs = append(dirs, dir.(string)) //nolint:forcetypeassert // as they are stored
			}
			return true
		})
	}
	return dirs
}

// Confine finds out how the configured confinement can be had on this machine. If a required
// sandbox is not available, it returns an error.
func (p *Project) Confine(ctx context.Context) (c Confinement, err error) {
	c.project, c.temps = p, &sync.Map{}
	if at := p.hiddenFiles(); at != "" && within(at, p.Root) {
		return c, ralph.Usage(fmt.Errorf("verify.hidden_files is %s, where every session sees it: "+
			"move it out of the project", at))
	}
	mode := p.Config.Sandbox.Mode
	if mode == "off" {
		c.Sandbox.Name = sandbox.None
		return c, nil
	}
	if err := p.prepare(false); err != nil {
		return c, err
	}
	policy := p.policy(p.Root, false, false)
	c.Sandbox = sandbox.Find(ctx, p.Getenv("PATH"), policy)
	if c.Sandbox.Name == sandbox.Landlock {
		if err := p.prepare(true); err != nil {
			return c, err
		}
		policy = p.policy(p.Root, true, false)
	}
	c.Cannot = c.Sandbox.Cannot(policy)
	if p.Git {
		c.Unlayered = c.Sandbox.TryLayers(ctx, p.File("workspaces"))
	}
	if p.Config.Verify.Network {
		c.Cannot = append(c.Cannot, "checks reach the network and this machine's ports (verify.network: true)")
	}
	if c.Unlayered != "" {
		c.Cannot = append(c.Cannot,
			"checks have no layers to write to ("+c.Unlayered+"): each starts cold, and workspace.setup runs again")
		if c.Sandbox.Name != sandbox.Bubblewrap && !p.Config.Verify.Network {
			c.Cannot = append(c.Cannot, "checks share the network and /dev/shm with sessions")
		}
	}
	if mode != "auto" && !c.Sandbox.RefusesSockets() {
		return c, ralph.Usage(fmt.Errorf("sandbox: %s; or set sandbox: auto, which takes the best there is (%s), or off",
			strings.Join(c.Sandbox.Why, "; "), c.Sandbox.Name))
	}
	return c, nil
}

// withheld lists the folders that the sandbox keeps from the commands that check work.
func (p *Project) withheld() (list []ralph.Cause) {
	if name := p.Confinement.Sandbox.Name; name == "" || name == sandbox.None {
		return nil
	}
	if p.Confinement.Sandbox.Name == sandbox.Bubblewrap && !p.Config.Verify.Network {
		list = append(list, ralph.NoNetwork, ralph.NoService)
	}
	if !slices.ContainsFunc(p.Config.Sandbox.Show, func(path string) bool {
		return filepath.Base(path) == "docker.sock"
	}) {
		list = append(list, ralph.NoDocker)
	}
	return list
}

// Said describes the sandbox and its unenforced limits.
func (c Confinement) Said() string {
	said := c.Sandbox.Name
	if said == "" { // not examined
		return ""
	}
	if c.project != nil && c.project.Config.Sandbox.Mode == "off" {
		said += " (sandbox: off)"
		if os.Geteuid() == 0 {
			said += " (you are root: nothing is kept from agents, ralph's own tokens included)"
		}
		return said
	}
	if len(c.Cannot) > 0 {
		said += ": " + strings.Join(c.Cannot, "; ")
	}
	if len(c.Sandbox.Why) > 0 {
		said += " (" + strings.Join(c.Sandbox.Why, "; ") + ")"
	}
	if os.Geteuid() == 0 {
		said += " (weaker: you are root)"
	}
	return said
}

// Contains reports whether a process in a workspace can write none of the given files.
func (c Confinement) Contains(files []string) bool {
	if c.project == nil || !c.Sandbox.RefusesSockets() {
		return false
	}
	policy := c.project.policy(
		c.project.File(filepath.Join("workspaces", "1", "tree")), c.Sandbox.Name == sandbox.Landlock, false)
	for _, file := range files {
		for _, path := range []string{file, filepath.Dir(file)} {
			if real, err := filepath.EvalSymlinks(path); err == nil && policy.Of(real) == sandbox.Writable {
				return false
			}
		}
	}
	return true
}

// Roles of commands.
const (
	agentRole = "agent"
	checkRole = "check"
	setupRole = "setup" // like an agent in the workspace, with the network and the person's folder
	probeRole = ""      // leaves nothing behind
)

// Enter returns a function that puts a command into the sandbox of its workspace: here, or another one. The
// commands of a role have their own caches there; in a workspace even without a sandbox.
func (c Confinement) Enter(role string) proc.Enter {
	if c.project == nil {
		return nil
	}
	return func(spec *proc.Spec) (leave func(), err error) {
		p, ws := c.project, c.project.workspaceOf(spec.Dir)
		p.withoutKeyAgent(spec)
		if folder, own, _, _ := claude.Folder(p.agentEnv, spec.Dir); role == agentRole && state.Exists(folder) {
			if err := os.MkdirAll(own[0], 0o700); err != nil {
				return nil, err
			}
		}
		box, err := c.view(role, ws, spec.Dir)
		if err != nil {
			return nil, err
		}
		for _, name := range spec.Fixed {
			if box.View.Dir != "" {
				box.View.Fixed = append(box.View.Fixed, filepath.Join(box.View.Dir, name))
			} else if c.Sandbox.Name != sandbox.None {
				box.Policy.Add(sandbox.ReadOnly, filepath.Join(spec.Dir, name))
			}
		}
		if role == checkRole && ws != "" && !p.Config.Verify.Network {
			if c.Sandbox.Name == sandbox.Bubblewrap {
				box.Policy.Network = false
			} else {
				box.View.Network = true
			}
		}
		dir, credentials, variable := claude.Locks(p.agentEnv)
		if role == agentRole && dir != "" && c.Sandbox.Name == sandbox.Bubblewrap {
			box.Env, box.Folders = append(box.Env, variable+"="+dir), append(box.Folders, dir)
			box.Policy.Into = map[string]string{credentials: dir}
		}
		if c.temps == nil {
			return box.Enter(spec)
		}
		var own string
		box.Own = func(dir string) { own = dir; c.temps.Store(own, ws) }
		out, err := box.Enter(spec)
		if err != nil {
			c.temps.Delete(own)
			return nil, err
		}
		return func() { out(); c.temps.Delete(own) }, nil
	}
}

// view returns the box of a command: the layers or folders of its role, and its reach. Ws is its workspace; "" is the
// person's folder.
func (c Confinement) view(role, ws, dir string) (sandbox.Box, error) {
	p, checks := c.project, role == checkRole || role == setupRole && strings.HasPrefix(ws, workspace.CheckPrefix)
	box := sandbox.Box{Mechanism: c.Sandbox}
	var l *layering
	switch {
	case role == probeRole:
	case ws != "" && c.Sandbox.Layers && checks:
		l = p.checkView(ws, dir)
	case ws != "" && c.Sandbox.Layers:
		l = p.workspaceCaches(ws)
	case ws != "" && checks:
		home := p.workspaceFolder(ws, "home")
		box.Env, box.Folders = p.caches(ws, checkRole)
		box.Env, box.Folders = append(box.Env, p.homeless(home)...), append(box.Folders, home)
	case ws != "" || c.Sandbox.Name != sandbox.None:
		box.Env, box.Folders = p.caches(ws, strings.Replace(role, setupRole, agentRole, 1))
	}
	if l != nil {
		if err := os.MkdirAll(l.empty, 0o700); err != nil {
			return box, err
		}
		box.View, box.Env = l.view, l.env
		box.View.Shm = l.view.Shm && c.Sandbox.Name != sandbox.Bubblewrap // Bubblewrap has one
		for _, layer := range l.view.Layers {
			box.Folders = append(box.Folders, layer.At)
		}
	}
	if c.Sandbox.Name != sandbox.None {
		// Computed for each command: only then are the paths to hide known.
		box.Policy = p.policy(dir, c.Sandbox.Name == sandbox.Landlock, checks && ws != "")
		if ws != "" && (role == checkRole || role == agentRole) {
			p.withhold(&box.Policy, ws, checks)
		}
	}
	if l != nil && checks { // it is seen as a layer
		box.Policy.Add(sandbox.ReadOnly, p.workspaceFolder(ws, "tree"))
	}
	return box, nil
}

// sockets belong to daemons that would do things for a command that the sandbox denies it.
var sockets = []string{
	"/run/user", "/run/docker.sock", "/run/containerd", "/run/podman", "/run/crio", "/run/dbus", "/run/systemd/private",
}

// devices are the parts of the machine's /dev that programs need.
var devices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm",
}

// workspace returns the name of the workspace that contains a folder; "" for none.
func (p *Project) workspaceOf(dir string) string {
	rel, err := filepath.Rel(p.File("workspaces"), dir)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return ""
	}
	name, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return name
}

// policy returns the reach of the sandbox of a session's folder. With plain, a folder can only be writable as a
// whole or not at all. With checks, agents' own folders are out of reach.
func (p *Project) policy(dir string, plain, checks bool) sandbox.Policy {
	env := p.agentEnv
	home := env("HOME")
	policy := sandbox.Policy{Network: p.Config.Sandbox.Network}
	policy.Add(sandbox.ReadOnly, "/", home)

	policy.Add(sandbox.Hidden, "/dev")
	policy.Add(sandbox.Writable, devices...)
	policy.Add(sandbox.Hidden, sockets...)
	policy.Add(sandbox.Hidden, env("XDG_RUNTIME_DIR"))
	if u, err := url.Parse(env("DOCKER_HOST")); err == nil && u.Scheme == "unix" {
		policy.Add(sandbox.Hidden, u.Path)
	}
	policy.Add(sandbox.Hidden, credentials(home, env)...)
	if !p.keyAgentShown() {
		policy.Add(sandbox.Hidden, env(keyAgent))
	}
	policy.Add(sandbox.Hidden, p.paths(p.Config.Sandbox.Hide, home)...)
	if file := p.Config.Forge.TokenFile; file != "" {
		policy.Add(sandbox.Hidden, p.paths([]string{file}, p.Getenv("HOME"))...)
	}

	policy.Add(sandbox.Hidden, p.hiddenFiles())
	if len(p.Config.Verify.Hidden) > 0 || p.Server != "" {
		policy.Add(sandbox.Hidden, p.userFile)
	}
	policy.Add(sandbox.Hidden, p.Guarded())
	if all := filepath.Dir(p.Guarded()); filepath.Base(all) == "ralph" {
		policy.Add(sandbox.Hidden, all) // includes the states of other projects
	}
	if ws := p.workspaceOf(dir); ws != "" {
		policy.Add(sandbox.ReadOnly, p.Root, p.Common, p.File(filepath.Join("workspaces", ws)))
		policy.Add(sandbox.Writable, p.File(filepath.Join("workspaces", ws, "tree")))
	} else {
		policy.Add(sandbox.ReadOnly, p.Root) // nobody works here
	}

	folder, writable, memory, refreshes := claude.Folder(env, dir)
	others := filepath.Dir(writable[0]) // transcripts of other conversations with Claude
	switch {
	case checks:
		policy.Add(sandbox.Hidden, folder)
	case plain && refreshes:
		policy.Add(sandbox.Writable, folder)
		policy.Add(sandbox.Hidden, others)
	default:
		policy.Add(sandbox.Hidden, others)
		policy.Add(sandbox.Scratch, folder)
		policy.Add(sandbox.Writable, writable...)
		policy.Add(sandbox.ReadOnly, memory...)
	}
	for _, own := range p.agentHomes() {
		if checks {
			policy.Add(sandbox.Hidden, own.dir)
		} else if plain || len(own.data) == 0 {
			policy.Add(sandbox.Writable, own.dir)
		} else {
			policy.Add(sandbox.Scratch, own.dir)
			policy.Add(sandbox.Writable, own.data...)
			policy.Add(sandbox.Scratch, own.replaced...)
		}
	}
	policy.Add(sandbox.Writable, p.paths(p.Config.Permissions.Writable, home)...)
	policy.Add(sandbox.ReadOnly, p.paths(p.Config.Sandbox.Show, home)...)
	if p.keyAgentShown() {
		policy.Add(sandbox.Writable, env(keyAgent)) // needed for connecting
	}

	policy.Replace("/tmp", "/var/tmp", os.TempDir())
	policy.Show(filepath.SplitList(env("PATH"))...)
	policy.Show(p.agentPrograms()...)
	if self, err := os.Executable(); err == nil {
		policy.Show(self)
	}
	return policy
}

// An agentHome is a folder of an agent's own. It lists the paths in it that its sessions may change permanently (all if
// none is listed), the ones among them that ralph creates, and the paths that each session has a copy of.
type agentHome struct {
	dir                  string
	data, kept, replaced []string
}

// agentHomes lists the folders of the configured agents, except Claude's.
func (p *Project) agentHomes() (list []agentHome) {
	for name, c := range p.Config.Agents {
		profile, err := kinds.ProfileOf(name, c)
		if err != nil || profile.Kind == claude.Profile.Kind {
			continue // reported when the loop is set up
		}
		env := func(name string) string { return cmp.Or(c.Env[name], p.agentEnv(name)) }
		folders := func(names []string) (list []string) {
			for _, name := range names {
				list = append(list, profile.Own(name, env))
			}
			return p.paths(list, env("HOME"))
		}
		for _, dir := range folders(profile.Settings) {
			list = append(list, agentHome{dir: dir, data: []string{dir + "/none"}})
		}
		for _, dir := range folders(profile.Home) {
			own := agentHome{dir: dir}
			for _, name := range profile.Replaced {
				own.replaced = append(own.replaced, filepath.Join(dir, name))
			}
			for _, glob := range profile.Data {
				if strings.HasSuffix(glob, "/") {
					own.kept = append(own.kept, filepath.Join(dir, glob))
					own.data = append(own.data, filepath.Join(dir, glob))
					continue
				}
				found, err := filepath.Glob(filepath.Join(dir, glob))
				if err != nil {
					continue // the folder's name is not a valid glob, so nothing in it is writable
				}
				own.data = append(own.data, found...)
			}
			if profile.Data != nil && own.data == nil {
				own.data = []string{filepath.Join(dir, profile.Data[0])} // does not exist yet
			}
			list = append(list, own)
		}
	}
	return list
}

// agentPrograms returns the programs of the configured agents.
func (p *Project) agentPrograms() []string {
	list := []string{p.Config.Agent.Command[0]}
	for _, a := range p.Config.Agents {
		if len(a.Command) > 0 {
			list = append(list, a.Command[0])
		}
	}
	return list
}

// agentEnv returns a variable of the agent's environment.
func (p *Project) agentEnv(name string) string {
	if v := p.Config.Agent.Env[name]; v != "" {
		return v
	}
	return p.Getenv(name)
}

// paths resolves paths of the configuration.
func (p *Project) paths(names []string, home string) (list []string) {
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
			name = home + rest
		}
		list = append(list, p.Path(name))
	}
	return list
}

// makeHome creates an agent's own folder. If the home folder is not writable there is none, and the agent reports
// missing files.
func makeHome(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// prepare creates the folders that the sandbox treats differently from their parents. With plain,
// also folders that the agent could not create in its own folder.
func (p *Project) prepare(plain bool) error {
	var errs []error
	if folder, own, _, _ := claude.Folder(p.agentEnv, p.Root); filepath.IsAbs(folder) {
		for i, path := range own {
			if i == 0 || plain && filepath.Ext(path) == "" {
				errs = append(errs, makeHome(path))
			}
		}
	}
	for _, own := range p.agentHomes() {
		for _, dir := range append([]string{own.dir}, own.kept...) {
			errs = append(errs, makeHome(dir))
		}
	}
	if p.Git {
		for _, name := range []string{"hooks", "info"} {
			errs = append(errs, os.MkdirAll(filepath.Join(p.Common, name), 0o755))
		}
	}
	return errors.Join(errs...)
}

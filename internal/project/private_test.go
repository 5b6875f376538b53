package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph/internal/config"
	"ralph/internal/proc"
	"ralph/internal/sandbox"
	"ralph/internal/state"
)

// usual are places of credentials and the files in them that count.
var usual = strings.Fields(`.ssh/id_ed25519 .gnupg/private-keys-v1.d/k.key .aws/credentials .config/gh/hosts.yml .netrc
	.docker/config.json .kube/config .git-credentials .config/git/credentials .npmrc .pypirc .cargo/credentials
	.cargo/credentials.toml .config/gcloud/credentials.db .azure/msal_token_cache.json .pgpass .password-store/mail.gpg
	.local/share/keyrings/login.keyring .mozilla/firefox/p/logins.json .config/google-chrome/Default/Cookies
	.config/chromium/Default/Cookies .vault-token .config/op/config .config/rclone/rclone.conf
	.config/sops/age/keys.txt .config/glab-cli/config.yml .config/containers/auth.json .config/hub .m2/settings.xml
	.gradle/gradle.properties .composer/auth.json .config/composer/auth.json .terraform.d/credentials.tfrc.json
	.bash_history .zsh_history .local/share/fish/fish_history .python_history .psql_history .mysql_history
	.node_repl_history .thunderbird/p/logins.json .gem/credentials .my.cnf .config/BraveSoftware/x`)

// home makes a person's home directory with credentials, and a project with an own folder for its state.
func home(t *testing.T, show ...string) (*Project, string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, root := filepath.Join(base, "home"), filepath.Join(base, "project")
	for _, name := range append([]string{".gitconfig", ".config/git/config", ".cargo/config.toml"}, usual...) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{root, filepath.Join(root, ".git"), filepath.Join(base, "state")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := &Project{
		Home:    &state.Home{Root: root, Common: filepath.Join(root, ".git"), State: filepath.Join(base, "state")},
		Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), keyAgent + "=" + filepath.Join(home, "agent.sock")},
		Config:  config.Loaded{},
	}
	p.Config.Agent.Command = []string{"sh"}
	p.Config.Sandbox.Network, p.Config.Sandbox.Show = true, show
	return p, home
}

func TestUsualPlacesOfCredentialsAreHidden(t *testing.T) {
	p, dir := home(t, "~/.npmrc", "~/.config/gcloud")
	for _, checks := range []bool{false, true} {
		policy := p.policy(p.Root, false, checks)
		for _, name := range usual {
			want := sandbox.Hidden
			if name == ".npmrc" || strings.HasPrefix(name, ".config/gcloud/") {
				want = sandbox.ReadOnly // it is shown by name
			}
			if got := policy.Of(filepath.Join(dir, name)); got != want {
				t.Errorf("checks %v: %s: %v", checks, name, got)
			}
		}
		for _, name := range []string{".gitconfig", ".config/git/config", ".cargo/config.toml"} {
			if got := policy.Of(filepath.Join(dir, name)); got != sandbox.ReadOnly {
				t.Errorf("checks %v: %s, which holds no secret: %v", checks, name, got)
			}
		}
	}
}

func TestMovedCredentialsAreHidden(t *testing.T) {
	env := map[string]string{
		"XDG_CONFIG_HOME": "/conf", "CARGO_HOME": "/cargo", "KUBECONFIG": "/k/a:/k/b", "NPM_CONFIG_USERCONFIG": "/n/rc",
		"DOCKER_CONFIG": "relative",
	}
	got := credentials("/home/me", func(name string) string { return env[name] })
	for path, want := range map[string]bool{
		"/home/me/.npmrc": true, "/n/rc": true, "/conf/gcloud": true, "/conf/git/credentials": true, "/k/a": true, "/k/b": true,
		"/cargo/credentials.toml": true, "/cargo": false, "/conf": false, "relative": false,
	} {
		if slices.Contains(got, path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	for _, c := range privates {
		if c.why == "" {
			t.Errorf("%s has no reason", c.path)
		}
	}
}

func TestTheKeyAgentIsPassedOnlyWhereItsKeyIsShown(t *testing.T) {
	for _, c := range []struct {
		show string
		want bool
	}{
		{"~/.ssh/known_hosts", false},
		{"~/.ssh/config", false},
		{"~/.ssh/id_ed25519.pub", false},
		{"~/.sshx/id_a", false},
		{"~/agent", false},
		{"~/.ssh/id_ed25519", true},
		{"~/.ssh", true},
		{"~/agent.sock", true},
	} {
		p, dir := home(t, c.show)
		socket := filepath.Join(dir, "agent.sock")
		if err := os.WriteFile(socket, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		spec := proc.Spec{Env: []string{"A=b", keyAgent + "=" + socket}}
		p.withoutKeyAgent(&spec)
		access := p.policy(p.Root, false, true).Of(socket)
		if len(spec.Env) == 2 != c.want || access != map[bool]sandbox.Access{true: sandbox.Writable}[c.want] {
			t.Errorf("%s: %q, %v", c.show, spec.Env, access)
		}
	}
	p, _ := home(t)
	p.Config.Agent.Env = map[string]string{keyAgent: "/s"}
	spec := proc.Spec{Env: []string{keyAgent + "=/s"}}
	if p.withoutKeyAgent(&spec); len(spec.Env) != 1 {
		t.Error("what agent.env names is not passed")
	}
}

// TestCredentialsCannotBeReadInTheSandbox reads each in the best sandbox of this machine.
func TestCredentialsCannotBeReadInTheSandbox(t *testing.T) {
	p, dir := home(t, "~/.npmrc")
	m := sandbox.Find(t.Context(), os.Getenv("PATH"), p.policy(p.Root, false, false))
	if m.Name == sandbox.None {
		t.Skip("skipped without a sandbox: ", m.Why)
	}
	spec := proc.Spec{
		Args: append([]string{"sh", "-c", `for f; do grep -q content "$f" 2>/dev/null && echo "${f#"$HOME"/}"; done; true`, "sh"},
			func() (paths []string) {
				for _, name := range append([]string{".gitconfig"}, usual...) {
					paths = append(paths, filepath.Join(dir, name))
				}
				return paths
			}()...),
		Dir: p.Root, Env: p.Environ,
	}
	leave, err := Confinement{Sandbox: m, project: p}.Enter(probeRole)(&spec)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	r, err := proc.Run(t.Context(), spec, 10_000, nil)
	if err != nil || r.Output != ".gitconfig\n.npmrc\n" {
		t.Errorf("got %+v, %v", r, err)
	}
}

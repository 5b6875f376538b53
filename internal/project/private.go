package project

import (
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/proc"
)

// A private is a usual place of credentials, which the sandbox hides unless sandbox.show names it.
type private struct {
	path string // in the home directory
	why  string // the program that reads it, and its contents
}

// privates lists the usual places of credentials.
var privates = []private{
	{".ssh", "ssh: keys"},
	{".gnupg", "gpg: keys"},
	{".password-store", "pass: passwords"},
	{".local/share/keyrings", "GNOME's keyring: passwords"},
	{".local/share/kwalletd", "KDE's wallet: passwords"},
	{".pki", "NSS: keys and certificates"},
	{".netrc", "curl, git, ftp: passwords"},
	{"_netrc", "curl, git: passwords"},
	{".git-credentials", "git's credential store: tokens"},
	{".config/git/credentials", "git's credential store: tokens"},
	{".config/gh", "gh: GitHub's token"},
	{".config/hub", "hub: GitHub's token"},
	{".config/glab-cli", "glab: GitLab's token"},
	{".config/tea", "tea: Gitea's token"},
	{".npmrc", "npm, pnpm: registry tokens"},
	{".yarnrc", "yarn: registry tokens"},
	{".yarnrc.yml", "yarn: registry tokens"},
	{".pypirc", "twine: PyPI's token"},
	{".config/pypoetry/auth.toml", "poetry: registry passwords"},
	{".cargo/credentials", "cargo: registry tokens"},
	{".cargo/credentials.toml", "cargo: registry tokens"},
	{".gem/credentials", "gem: RubyGems' token"},
	{".local/share/gem/credentials", "gem: RubyGems' token"},
	{".bundle/config", "bundler: registry passwords"},
	{".composer/auth.json", "composer: registry tokens"},
	{".config/composer/auth.json", "composer: registry tokens"},
	{".m2/settings.xml", "maven: passwords of repositories"},
	{".m2/settings-security.xml", "maven: the master password"},
	{".gradle/gradle.properties", "gradle: passwords and signing keys"},
	{".nuget/NuGet/NuGet.Config", "nuget: registry passwords"},
	{".hex", "hex: registry tokens"},
	{".aws", "aws: keys"},
	{".azure", "az: tokens"},
	{".config/gcloud", "gcloud: tokens"},
	{".boto", "gsutil: keys"},
	{".config/doctl", "doctl: DigitalOcean's token"},
	{".config/hcloud", "hcloud: Hetzner's token"},
	{".config/heroku", "heroku: tokens"},
	{".fly", "flyctl: tokens"},
	{".oci", "oci: keys"},
	{".s3cfg", "s3cmd: keys"},
	{".mc", "MinIO's mc: keys"},
	{".terraform.d/credentials.tfrc.json", "terraform: tokens"},
	{".terraformrc", "terraform: tokens"},
	{".pulumi/credentials.json", "pulumi: tokens"},
	{".config/sops", "sops: keys of age"},
	{".config/age", "age: keys"},
	{".config/linode-cli", "linode-cli: Linode's token"},
	{".config/scw", "scw: Scaleway's keys"},
	{".b2_account_info", "b2: Backblaze's keys"},
	{".cloudflared", "cloudflared: certificates and keys of tunnels"},
	{".wrangler", "wrangler: Cloudflare's token"},
	{".config/.wrangler", "wrangler: Cloudflare's token"},
	{".vercel", "vercel: the token"},
	{".local/share/com.vercel.cli", "vercel: the token"},
	{".netlify", "netlify: the token"},
	{".config/netlify", "netlify: the token"},
	{".railway", "railway: the token"},
	{".supabase", "supabase: the token"},
	{".expo", "expo: the session"},
	{".ngrok2", "ngrok: the token"},
	{".config/ngrok", "ngrok: the token"},
	{".config/stripe", "stripe: keys"},
	{".sentryclirc", "sentry-cli: the token"},
	{".circleci", "circleci: the token"},
	{".snowflake", "snow: passwords and keys"},
	{".snowsql", "snowsql: passwords"},
	{".databrickscfg", "databricks: tokens"},
	{".kaggle", "kaggle: the key"},
	{".huggingface", "Hugging Face: the token"},
	{".cache/huggingface/token", "Hugging Face: the token"},
	{".cache/huggingface/stored_tokens", "Hugging Face: tokens"},
	{".subversion/auth", "svn: passwords"},
	{".chef", "knife: keys"},
	{".step", "step: keys of a certificate authority"},
	{".acme.sh", "acme.sh: keys of certificates"},
	{".doppler", "doppler: tokens"},
	{".lpass", "LastPass: sessions"},
	{".local/share/lpass", "LastPass: sessions"},
	{".config/argocd", "argocd: tokens"},
	{".config/filezilla", "FileZilla: passwords"},
	{".config/remmina", "Remmina: passwords"},
	{".local/share/remmina", "Remmina: passwords"},
	{".putty", "PuTTY: keys"},
	{".config/syncthing", "Syncthing: keys"},
	{".local/state/syncthing", "Syncthing: keys"},
	{".authinfo", "emacs: passwords"},
	{".authinfo.gpg", "emacs: passwords"},
	{".mbsyncrc", "mbsync: passwords"},
	{".irssi", "irssi: passwords"},
	{".purple", "Pidgin: passwords"},
	{".bitcoin", "Bitcoin: wallets"},
	{".ethereum", "Ethereum: keys"},
	{".electrum", "Electrum: wallets"},
	{".config/solana", "Solana: keys"},
	{".vault-token", "vault: the token"},
	{".docker", "docker: registry passwords"},
	{".config/containers", "podman, skopeo: registry passwords"},
	{".kube", "kubectl: keys of clusters"},
	{".config/helm", "helm: registry passwords"},
	{".config/op", "1Password: sessions"},
	{".config/1Password", "1Password: vaults"},
	{".config/Bitwarden", "Bitwarden: vaults"},
	{".config/Bitwarden CLI", "Bitwarden: vaults"},
	{".config/keepassxc", "KeePassXC: settings and keys"},
	{".config/rclone", "rclone: passwords of remotes"},
	{".config/rbw", "rbw: settings of the vault"},
	{".pgpass", "psql: passwords"},
	{".pg_service.conf", "psql: passwords"},
	{".my.cnf", "mysql: passwords"},
	{".mylogin.cnf", "mysql: passwords"},
	{".config/msmtp", "msmtp: passwords"},
	{".msmtprc", "msmtp: passwords"},
	{".mozilla", "Firefox: cookies and passwords"},
	{".thunderbird", "Thunderbird: mail and passwords"},
	{".config/google-chrome", "Chrome: cookies and passwords"},
	{".config/google-chrome-beta", "Chrome: cookies and passwords"},
	{".config/chromium", "Chromium: cookies and passwords"},
	{".config/BraveSoftware", "Brave: cookies and passwords"},
	{".config/microsoft-edge", "Edge: cookies and passwords"},
	{".config/opera", "Opera: cookies and passwords"},
	{".config/vivaldi", "Vivaldi: cookies and passwords"},
	{".config/Slack", "Slack: sessions"},
	{".config/discord", "Discord: sessions"},
	{".config/Signal", "Signal: messages and keys"},
	{".local/share/TelegramDesktop", "Telegram: sessions"},
	{"snap/firefox", "Firefox: cookies and passwords"},
	{"snap/chromium", "Chromium: cookies and passwords"},
	{".var/app/org.mozilla.firefox", "Firefox: cookies and passwords"},
	{".var/app/com.google.Chrome", "Chrome: cookies and passwords"},
	{".var/app/org.chromium.Chromium", "Chromium: cookies and passwords"},
	{"Library/Keychains", "macOS: passwords"},
	{".bash_history", "bash: commands with passwords in them"},
	{".zsh_history", "zsh: commands with passwords in them"},
	{".zhistory", "zsh: commands with passwords in them"},
	{".histfile", "zsh: commands with passwords in them"},
	{".history", "shells: commands with passwords in them"},
	{".sh_history", "ksh: commands with passwords in them"},
	{".ash_history", "ash: commands with passwords in them"},
	{".local/share/fish/fish_history", "fish: commands with passwords in them"},
	{".local/share/atuin", "atuin: commands with passwords in them"},
	{".python_history", "python: statements with passwords in them"},
	{".node_repl_history", "node: statements with passwords in them"},
	{".psql_history", "psql: statements with passwords in them"},
	{".mysql_history", "mysql: statements with passwords in them"},
	{".rediscli_history", "redis-cli: statements with passwords in them"},
	{".dbshell", "mongo: statements with passwords in them"},
	{".mongodb", "mongosh: statements with passwords in them"},
}

// moves lists the variables that move a file or folder of the home directory elsewhere.
var moves = []struct{ variable, of string }{
	{"XDG_CONFIG_HOME", ".config"},
	{"XDG_DATA_HOME", ".local/share"},
	{"GNUPGHOME", ".gnupg"},
	{"PASSWORD_STORE_DIR", ".password-store"},
	{"NETRC", ".netrc"},
	{"GH_CONFIG_DIR", ".config/gh"},
	{"NPM_CONFIG_USERCONFIG", ".npmrc"},
	{"npm_config_userconfig", ".npmrc"},
	{"CARGO_HOME", ".cargo"},
	{"COMPOSER_HOME", ".composer"},
	{"GRADLE_USER_HOME", ".gradle"},
	{"HEX_HOME", ".hex"},
	{"AWS_SHARED_CREDENTIALS_FILE", ".aws"},
	{"AWS_CONFIG_FILE", ".aws"},
	{"AZURE_CONFIG_DIR", ".azure"},
	{"CLOUDSDK_CONFIG", ".config/gcloud"},
	{"TF_CLI_CONFIG_FILE", ".terraformrc"},
	{"DOCKER_CONFIG", ".docker"},
	{"REGISTRY_AUTH_FILE", ".config/containers"},
	{"KUBECONFIG", ".kube"},
	{"RCLONE_CONFIG", ".config/rclone"},
	{"SOPS_AGE_KEY_FILE", ".config/sops"},
	{"PGPASSFILE", ".pgpass"},
	{"PGSERVICEFILE", ".pg_service.conf"},
	{"HISTFILE", ".bash_history"},
}

// credentials returns the usual places of credentials, and the places that variables name.
func credentials(home string, env func(string) string) (paths []string) {
	for _, c := range privates {
		paths = append(paths, filepath.Join(home, c.path))
		for _, m := range moves {
			rest, ok := strings.CutPrefix(c.path, m.of)
			if !ok || rest != "" && rest[0] != '/' {
				continue
			}
			for _, at := range filepath.SplitList(env(m.variable)) { // KUBECONFIG is a list
				if at = filepath.Join(at, rest); filepath.IsAbs(at) {
					paths = append(paths, at)
				}
			}
		}
	}
	return paths
}

// keyAgent is the variable that names the socket of ssh's agent, which signs with the person's keys.
const keyAgent = "SSH_AUTH_SOCK"

// showsKeys reports whether people show the socket of ssh's agent to commands: through its path, a folder around it,
// the folder of its keys, or a key in there. shown are absolute paths.
func showsKeys(shown []string, socket, home string) bool {
	keys := filepath.Join(home, ".ssh")
	return slices.ContainsFunc(shown, func(path string) bool {
		name := filepath.Base(path)
		return within(socket, path) || within(keys, path) ||
			within(path, keys) && strings.HasPrefix(name, "id_") && filepath.Ext(name) != ".pub"
	})
}

// keyAgentShown reports whether commands may talk to ssh's agent.
func (p *Project) keyAgentShown() bool {
	home := p.agentEnv("HOME")
	return showsKeys(p.paths(p.Config.Sandbox.Show, home), p.agentEnv(keyAgent), home)
}

// withoutKeyAgent takes ssh's agent out of a command's environment, unless people show it or agent.env names it.
func (p *Project) withoutKeyAgent(spec *proc.Spec) {
	if p.Config.Agent.Env[keyAgent] == "" && !p.keyAgentShown() {
		spec.Env = slices.DeleteFunc(slices.Clone(spec.Env), func(entry string) bool {
			return strings.HasPrefix(entry, keyAgent+"=")
		})
	}
}

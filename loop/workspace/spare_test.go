package workspace

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// offline fails as installers without a network do.
const offline = "echo 'getaddrinfo EAI_AGAIN registry.npmjs.org' >&2; exit 1"

// TestACopyReplacesSetUpWithoutANetwork: the person's own packages do if they are for the same lock file.
func TestACopyReplacesSetUpWithoutANetwork(t *testing.T) {
	const ready = "echo node_modules > .gitignore; echo 1 > package-lock.json; git add -A; git commit -qm lock; " +
		"mkdir -p node_modules/a; echo a > node_modules/a/a; ln -s a node_modules/b; touch node_modules/.package-lock.json; "
	for _, tt := range []struct{ name, script, npm, setup, refused string }{
		{"complete", "", offline, "npm ci --no-audit", ""},
		{"below the root", "mkdir -p web; git mv package-lock.json web; mv node_modules web; git commit -qm web; touch web/node_modules/.package-lock.json", offline, "cd web && npm ci", ""},
		{"none", "rm -r node_modules", offline, "npm ci", "your folder has no complete node_modules"},
		{"not installed to the end", "rm node_modules/.package-lock.json", offline, "npm ci", "your folder has no complete node_modules"},
		{"another lock file", "echo 2 > package-lock.json; touch node_modules/.package-lock.json", offline, "npm ci", "your node_modules is for another package-lock.json"},
		{"an older one", "touch -d '2 hours ago' node_modules/.package-lock.json", offline, "npm ci", "your node_modules is older than your package-lock.json"},
		{"not ignored", "echo x > .gitignore; git commit -qam x", offline, "npm ci", "git does not ignore your node_modules"},
		{"a link to the person's files", `ln -s "$PWD/sub" node_modules/own`, offline, "npm ci", "own in your node_modules leads to your own files"},
		{"outside of the project", "", offline, "cd .. && npm ci", "../node_modules is not a folder below the project"},
		{"a failure with the network", "", "echo out of sync >&2; exit 1", "npm ci", "out of sync"},
		{"a command that does more", "", offline, "npm ci && npm run build", "no network;"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := withWorkspaces(t, ready+tt.script)
			bin := t.TempDir()
			sh(t, bin, "printf '#!/bin/sh\n%s\n' \""+tt.npm+"\" > npm; chmod +x npm")
			p.Env, p.Setup = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), []string{tt.setup}
			at, err := p.Take(t.Context(), 1, false)
			if err != nil {
				t.Fatal(err)
			}
			_, err = at.Begin(t.Context(), tip(t, p), "")
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("got %v, want %q", err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			in := "."
			if strings.HasPrefix(tt.setup, "cd web") {
				in = "web"
			}
			if got := sh(t, at.Path(in), "cat node_modules/b/a"); got != "a\n" {
				t.Errorf("the copy has %q", got)
			}
			if list, err := p.Copied(); err != nil || len(list) != 1 || list[0].Command != tt.setup {
				t.Errorf("recorded: %v, %v", list, err)
			}
			if err := p.Again(); err != nil {
				t.Fatal(err)
			}
			if list, err := p.Copied(); err != nil || len(list) != 0 {
				t.Errorf("recorded after that: %v, %v", list, err)
			}
		})
	}
}

// TestACopiedEnvironmentNamesTheWorkspace: its scripts and the packages under development are the workspace's.
func TestACopiedEnvironmentNamesTheWorkspace(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	p := withWorkspaces(t, `echo .venv > .gitignore; mkdir src; echo 'HERE = __file__' > src/own.py; `+
		`printf -- '-i http://127.0.0.1:9/simple\nlowkey==1.0\n' > requirements.txt; git add -A; git commit -qm python; `+
		`python3 -m venv --without-pip .venv; `+
		`for d in .venv/lib/python3*/site-packages; do echo "$PWD/src" > $d/own.pth; done; `+
		`printf '#!%s/.venv/bin/python\nimport own, sys\nprint(own.HERE, sys.prefix)\n' "$PWD" > .venv/bin/tool; chmod +x .venv/bin/tool`)
	bin := t.TempDir()
	sh(t, bin, "printf '#!/bin/sh\necho Connection refused; exit 1\n' > python3; chmod +x python3")
	p.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	p.Setup = []string{"python3 -m venv .venv && .venv/bin/python -m pip install -q -r requirements.txt"}
	at := begun(t, p)
	want := at.Path("src/own.py") + " " + at.Path(".venv") + "\n"
	if got := sh(t, at.Dir, ".venv/bin/tool"); got != want {
		t.Errorf("the script says %q, want %q", got, want)
	}
}

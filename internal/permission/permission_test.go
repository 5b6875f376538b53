package permission_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/permission"
)

var tools = permission.Tools{
	Shell: "Bash", Edit: "Edit", Edits: []string{"Edit", "Write", "MultiEdit", "NotebookEdit"},
	Reads: []string{"Read", "Glob", "Grep"}, Fetch: "WebFetch",
	Settings: []string{".claude/settings*/**", ".claude/hooks/**", ".mcp.json"},
}

var policy = permission.Policy{
	Tools:   tools,
	Default: permission.Allow, Guards: true, Project: "/p/roj", State: "/p/roj/.git/ralph", Writable: []string{"/tmp"}, Home: "/home/ann",
}

func TestTheBuiltInRules(t *testing.T) {
	for rule, commands := range map[string][]string{
		"": {
			"ls -la", "go test ./...", "npm ci && npm test", "rm -rf build", "rm -rf ./dist/*", "mkdir -p a/b && touch a/b/c", "echo x > notes.txt 2>/dev/null", "cat /etc/passwd",
			"cp /etc/hosts fixtures/", "git add -A && git commit -m 'fix: --force'", "git push", "git push origin main", "git push -u origin main", "git config user.name", "git config --get remote.origin.url", "git remote -v", "git remote show origin",
			"git -c user.name=x commit -m y", "echo 'sudo rm -rf /'", "grep -r sudo .", "for f in *.go; do gofmt -w $f; done", "cat <<EOF > x.txt\nsudo\nEOF", "tee /tmp/log < x", "rm -rf \"$TMPDIR\"/x", "ralph status", "ralph task list", "./ralph run", "sed -n 1,3p /etc/hosts", "cd sub && rm -rf x", "cd /tmp && touch x",
			"find . -name '*.o' -delete", "timeout 5 go test", "git -C /other log", "git -C sub add -A", "git -C . commit -m x", "env FOO=1 make",
		},
		"root": {
			"sudo ls", "cd x && sudo -n true", "echo $(sudo id)", "bash -c 'sudo id'", "sh -ec \"sudo id\"", "env A=b sudo id", "timeout -k 1 5 sudo id", "ls | xargs -n 1 sudo rm", "eval 'sudo id'", "/usr/bin/sudo id", "su\\do id", "\"su\"do id", "( sudo id ) &", "if sudo id; then :; fi", "find . -exec sudo rm {} \\;",
			"f() { sudo id; }; f", "nohup nice -n 5 doas id", "su - root",
		},
		"force-push":     {"git push --force", "git push -f origin main", "git push origin +main", "git push origin :old", "git push --force-with-lease", "git -C . push --mirror", "git push origin --delete x", "git push -uf origin x"},
		"git-config":     {"git config user.name x", "git config --global core.hooksPath /tmp/x", "git config --unset a.b", "git remote add evil http://x", "git remote set-url origin x", "echo x > .git/hooks/pre-commit", "rm .git/config", "rm -rf .git", "git config set a.b c", "rm -rf /p/roj", "rm -rf .", "cd .. && rm -rf roj", "rm -rf /", "rm -rf ..", "cd / && rm -rf p"},
		"ralph":          {"ralph answer 3 yes", "ralph task cancel 2", "ralph run", "cat .git/ralph/ralph.db", "sqlite3 .git/ralph/ralph.db .dump", "echo x > ralph.yaml", "sed -i s/a/b/ ralph.yaml", "rm -r .git/ralph", "ralph -C . stop"},
		"agent-settings": {"echo {} > .claude/settings.json", "touch .mcp.json", "tee .claude/hooks/x"},
		"outside":        {"rm -rf ~", "rm -rf ~/.ssh", "rm -rf ../other", "echo x >> /etc/hosts", "cp x /usr/local/bin/", "mv a ../b", "ln -s x /usr/bin/y", "dd if=/dev/zero of=/dev/sda", "cd / && rm -rf home", "sed -i s/a/b/ /etc/hosts", "chmod 777 /etc/shadow", "find / -delete", "x=1 tee -a ~/.bashrc", "{ echo a; echo b; } > /etc/x", "mkdir /opt/x", "git -C /other commit -am x", "git -c user.name=x -C /other commit", "git --work-tree=/other --git-dir /other/.git checkout ."},
		"unreadable":     {"echo 'unclosed", "if true; then"},
	} {
		for _, command := range commands {
			input, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			a := policy.Decide("Bash", input)
			want := permission.Deny
			if rule == "" {
				want = permission.Allow
			}
			if a.Verdict != want || a.Rule != rule || (a.Reason == "") != (rule == "") {
				t.Errorf("%q: got %s by %q (%s), want %s by %q", command, a.Verdict, a.Rule, a.Reason, want, rule)
			}
		}
	}
}

func TestFilesOfTools(t *testing.T) {
	for _, tt := range []struct{ tool, field, path, rule string }{
		{"Write", "file_path", "/p/roj/a.go", ""},
		{"Edit", "file_path", "a.go", ""},
		{"Write", "file_path", "/tmp/x", ""},
		{"Write", "file_path", "/p/roj-other/a.go", "outside"},
		{"Edit", "file_path", "/p/roj/../x", "outside"},
		{"Edit", "file_path", "~/.bashrc", "outside"},
		{"NotebookEdit", "notebook_path", "/etc/x.ipynb", "outside"},
		{"Edit", "file_path", "/p/roj/ralph.yaml", "ralph"},
		{"Edit", "file_path", "/p/roj/sub/ralph.yaml", ""},
		{"Read", "file_path", "/p/roj/ralph.yaml", ""},
		{"Read", "file_path", "/etc/hosts", ""},
		{"Read", "file_path", "/p/roj/.git/ralph/ralph.db", "ralph"},
		{"Write", "file_path", "/p/roj/.git/hooks/pre-commit", "git-config"},
		{"Write", "file_path", "/p/roj/.claude/settings.local.json", "agent-settings"},
		{"Write", "file_path", "/p/roj/.claude/agents/x.md", ""},
	} {
		input, err := json.Marshal(map[string]string{tt.field: tt.path})
		if err != nil {
			t.Fatal(err)
		}
		if a := policy.Decide(tt.tool, input); a.Rule != tt.rule {
			t.Errorf("%s %s: got %s by %q, want %q", tt.tool, tt.path, a.Verdict, a.Rule, tt.rule)
		}
	}
}

func TestALinkOutOfTheProjectIsFollowed(t *testing.T) {
	p := policy
	p.Resolve = func(path string) string { return strings.Replace(path, "/p/roj/link", "/etc", 1) }
	if a := p.Decide("Write", json.RawMessage(`{"file_path": "link/passwd"}`)); a.Rule != "outside" {
		t.Errorf("got %+v", a)
	}
}

func TestConfiguredRules(t *testing.T) {
	p := policy
	p.Deny = []string{"Bash(curl *)", "Edit(vendor/**)", "WebFetch(domain:evil.example)", "mcp__db__*"}
	p.Ask = []string{"Bash(npm publish:*)", "Bash(git push *)"}
	p.Allow = []string{"Bash(sudo apt-get *)", "Edit(/etc/hosts)", "Bash(ls)"}
	for _, tt := range []struct {
		tool, input string
		want        permission.Verdict
	}{
		{"Bash", `{"command": "curl http://x"}`, permission.Deny},
		{"Bash", `{"command": "echo a && curl"}`, permission.Deny},
		{"Bash", `{"command": "curly"}`, permission.Allow},
		{"Bash", `{"command": "npm publish"}`, permission.Ask},
		{"Bash", `{"command": "npm publish --tag x"}`, permission.Ask},
		{"Bash", `{"command": "npm publisher"}`, permission.Allow},
		{"Bash", `{"command": "git push"}`, permission.Ask},
		{"Bash", `{"command": "git push --force"}`, permission.Ask},
		{"Bash", `{"command": "sudo apt-get install x"}`, permission.Allow},
		{"Bash", `{"command": "sudo apt-get install x && sudo rm -rf /"}`, permission.Deny},
		{"Bash", `{"command": "sudo rm -rf /"}`, permission.Deny},
		{"Edit", `{"file_path": "vendor/a/b.go"}`, permission.Deny},
		{"Write", `{"file_path": "/p/roj/vendor/a.go"}`, permission.Deny},
		{"Write", `{"file_path": "/etc/hosts"}`, permission.Allow},
		{"Write", `{"file_path": "/etc/passwd"}`, permission.Deny},
		{"WebFetch", `{"url": "https://www.evil.example/x"}`, permission.Deny},
		{"WebFetch", `{"url": "https://notevil.example/"}`, permission.Allow},
		{"mcp__db__drop", `{}`, permission.Deny},
		{"mcp__other", `{}`, permission.Allow},
		{"Bash", `{"command": 3}`, permission.Allow},
		{"Write", `null`, permission.Allow},
	} {
		if a := p.Decide(tt.tool, json.RawMessage(tt.input)); a.Verdict != tt.want {
			t.Errorf("%s %s: got %+v, want %s", tt.tool, tt.input, a, tt.want)
		}
	}
	p.Default = permission.Deny
	for command, want := range map[string]permission.Verdict{"ls": permission.Allow, "ls && ls": permission.Allow, "ls && id": permission.Deny} {
		if a := p.Decide("Bash", json.RawMessage(`{"command": "`+command+`"}`)); a.Verdict != want {
			t.Errorf("%s: got %+v, want %s", command, a, want)
		}
	}
}

func TestRulesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "(x)", "Bash(", "Bash()", "Bash(x", "two words", "Edit([)"} {
		_, err := tools.ParseRule(text)
		var field *ralph.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), "a rule is a tool's name") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("Bash", `{"command": "echo $(sudo id) && bash -c 'x'"}`)
	f.Add("Write", `{"file_path": "../x"}`)
	f.Fuzz(func(t *testing.T, tool, input string) {
		a := policy.Decide(tool, json.RawMessage(input))
		if (a.Verdict == permission.Deny) != (a.Reason != "") {
			t.Errorf("%+v", a)
		}
	})
}

package permission_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"ralph"
	"ralph/internal/permission"
)

var tools = permission.Tools{
	Shell: "Bash", Edit: "Edit", Edits: []string{"Edit", "Write", "MultiEdit", "NotebookEdit"},
	Reads: []string{"Read", "Glob", "Grep"}, Fetch: "WebFetch",
	Settings: []string{".claude/**", ".mcp.json"}, Own: []string{".claude/memory/**"},
}

var policy = permission.Policy{
	Tools:   tools,
	Default: permission.Allow, Guards: true, Project: "/p/roj", State: "/state", Writable: []string{"/tmp"}, Home: "/home/ann", Agent: "agent.sh",
	Resolve: func(path string) string { return strings.Replace(path, "/p/roj/bin/lnk", "/usr/bin/sudo", 1) },
	Exists:  func(path string) bool { return path != "/p/roj/gone" },
}

// A row is a line of testdata/commands.txt.
type row struct {
	permission.Policy
	line          int
	verdict, rule string
	command       string
}

func rows(t testing.TB) (list []row) {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := policy
	for i, line := range strings.Split(string(text), "\n") {
		if rules, ok := strings.CutPrefix(line, "== "); ok {
			p = policy
			read := yaml.NewDecoder(strings.NewReader(strings.TrimSuffix(rules, " ==")))
			if err := read.Decode(&p); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
		}
		verdict, rest, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"allow", "ask", "deny"}, verdict) {
			continue
		}
		rule, command, ok := strings.Cut(strings.TrimSpace(rest), "  ")
		if !ok { // a rule that is longer than its column ends in a parenthesis
			rule, command, _ = strings.Cut(strings.TrimSpace(rest), ") ")
			rule += ")"
		}
		if rule = strings.TrimSpace(rule); rule == "-" {
			rule = ""
		}
		list = append(list, row{p, i + 1, verdict, rule, strings.ReplaceAll(strings.TrimSpace(command), "↵", "\n")})
	}
	return list
}

func decide(p permission.Policy, command string) permission.Answer {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return p.Decide("Bash", input)
}

func TestCommands(t *testing.T) {
	list := rows(t)
	if len(list) < 200 {
		t.Errorf("%d rows", len(list))
	}
	for _, r := range list {
		a := decide(r.Policy, r.command)
		if string(a.Verdict) != r.verdict || a.Rule != r.rule || (a.Reason == "") != (r.verdict != "deny") {
			t.Errorf("commands.txt:%d: %q: got %s by %q (%s), want %s by %q",
				r.line, r.command, a.Verdict, a.Rule, a.Reason, r.verdict, r.rule)
		}
	}
}

// TestEachGuardIsListed with its description, and denies some row of commands.txt.
func TestEachGuardIsListed(t *testing.T) {
	denied := map[string]bool{}
	for _, r := range rows(t) {
		denied[r.rule] = denied[r.rule] || r.verdict == "deny"
	}
	for _, g := range permission.Guards() {
		if !denied[g[0]] || g[1] == "" {
			t.Errorf("guard %q (%s) denies nothing in commands.txt, or does not say what it denies", g[0], g[1])
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
		{"Read", "file_path", "/state/ralph.db", "ralph"},
		{"Write", "file_path", "/p/roj/.git/hooks/pre-commit", "git-config"},
		{"Write", "file_path", "/p/roj/.claude/settings.local.json", "agent-settings"},
		{"Write", "file_path", "/p/roj/.claude/agents/x.md", "agent-settings"},
		{"Write", "file_path", "/p/roj/.claude/memory/x.md", ""},
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

func TestALinkOutOfTheProjectIsResolved(t *testing.T) {
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

// around are wrappers that keep a command's meaning; % is the command.
var around = []string{
	"  %", "%  ", "%\n", "\n%", "%\nls", "ls\n%", "%\n# x", "true && true\n%", "(\n%\n)", "{\n%\n}", "if :; then\n%\nfi",
	"while :; do\n%\ndone", "x=$(\n%\n)", "f() {\n%\n}", "ls <(\n%\n)", "%\nHOME=/tmp", "%\ncd /tmp", "%\neval x",
}

// words may follow a command that these rules deny.
var words = []string{" x", " -v", " --help", " ''", ` "$x"`, " {a,b}", " 2>&1", " < /dev/null", " | cat", " && ls", " || ls", "; ls", " &"}

func TestNothingAroundADeniedCommandAllowsIt(t *testing.T) {
	for _, r := range rows(t) {
		if r.verdict == "allow" {
			continue
		}
		variants := []string{"bash -c " + quote(r.command), "timeout 5 bash -c " + quote(r.command), "eval " + quote(r.command)}
		for _, a := range around {
			variants = append(variants, strings.ReplaceAll(a, "%", r.command))
		}
		if program, rest, ok := strings.Cut(r.command, " "); ok && strings.Trim(program, "abcdefghijklmnopqrstuvwxyz") == "" &&
			!slices.Contains([]string{"if", "for", "while", "case", "coproc", "time"}, program) {
			variants = append(variants, "'"+program+"' "+rest, program[:1]+`""`+program[1:]+" "+rest, `\`+program+" \\\n"+rest, program+"  \t"+rest)
		}
		if (slices.Contains([]string{"root", "force-push", "nested-agent"}, r.rule) || strings.HasSuffix(r.rule, " *)")) &&
			!strings.ContainsAny(r.command, "\n;&|<>#") {
			for _, w := range words {
				if r.rule == "nested-agent" && slices.Contains([]string{" -v", " --help"}, w) {
					continue // it only says something of itself
				}
				variants = append(variants, r.command+w)
			}
		}
		for _, v := range variants {
			if a := decide(r.Policy, v); a.Verdict == permission.Allow {
				t.Errorf("commands.txt:%d: %s is allowed by %q", r.line, v, a.Rule)
			}
		}
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func TestTextsThatAreMadeToBreakTheReader(t *testing.T) {
	for _, open := range []string{"(", "((", "$(", "`", "{ ", "${x:-", "$((", "[[ (", "if ", "while ", "<(", "x=(", "a=${b[", "! ", "case x in (", "bash -c "} {
		for _, n := range []int{100, 100_000} {
			if a := decide(policy, strings.Repeat(open, n)); a.Verdict == permission.Allow {
				t.Errorf("%d times %q is allowed", n, open)
			}
		}
	}
	if a := decide(policy, strings.Repeat("cd a\ncd ..\n", 900)); a.Verdict != permission.Allow {
		t.Errorf("%+v", a)
	}
	if a := decide(policy, strings.Repeat("ls\n", 3000)+"sudo id"); a.Verdict != permission.Deny {
		t.Errorf("%+v", a)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("Write", `{"file_path": "../x"}`)
	f.Add("Bash", `{"command": "echo $(sudo id) && bash -c 'x'"}`)
	f.Fuzz(func(t *testing.T, tool, input string) {
		a := policy.Decide(tool, json.RawMessage(input))
		if (a.Verdict == permission.Deny) != (a.Reason != "") {
			t.Errorf("%+v", a)
		}
	})
}

// FuzzCommand looks for commands that are denied and no longer are with something behind.
func FuzzCommand(f *testing.F) {
	var policies []permission.Policy
	for i, r := range rows(f) {
		f.Add(r.command, []string{"ls", "HOME=/tmp", "cd /tmp", "x=1"}[i%4])
		if len(policies) == 0 || !slices.Equal(policies[len(policies)-1].Allow, r.Allow) || !slices.Equal(policies[len(policies)-1].Deny, r.Deny) {
			policies = append(policies, r.Policy)
		}
	}
	f.Fuzz(func(t *testing.T, command, more string) {
		if strings.HasSuffix(command, `\`) {
			return // it would be another word
		}
		for _, p := range policies {
			a := decide(p, command)
			if (a.Verdict == permission.Deny) != (a.Reason != "") {
				t.Errorf("%q: %+v", command, a)
			}
			if a.Verdict == permission.Allow || a.Rule == "unreadable" || !p.Guards {
				continue // what ends a quotation makes a text readable
			}
			if b := decide(p, command+"\n"+more); b.Verdict == permission.Allow {
				t.Errorf("%q is denied by %q; with %q behind it is allowed", command, a.Rule, more)
			}
		}
	})
}

package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/loop/agent"
)

func TestServers(t *testing.T) {
	for _, tt := range []struct{ name, file, want, wrong string }{
		{"no file", "", "[]", ""},
		{"no servers", "{}", "[]", ""},
		{
			"in the order of their names", `{"mcpServers":{"web":{"type":"http","url":"https://x/${KEY:-none}","headers":{"A":"${HOST}"}},"db":{"command":"db-mcp","args":["${HOST}:1","${GONE}"],"env":{"K":"${HOST}"}}}}`,
			`[{"command":"db-mcp","args":["here:1","${GONE}"],"env":{"K":"here"},"type":"stdio"},{"type":"http","url":"https://x/none","headers":{"A":"here"}}]`, "",
		},
		{"people's own of ralph is not a session's", `{"mcpServers":{"ralph":{"command":"ralph"}}}`, "[]", ""},
		{"no JSON", "{", "", ".mcp.json: "},
		{"a name that not every agent takes", `{"mcpServers":{"a.b":{"command":"x"}}}`, "", `server "a.b": its name may have`},
		{"nothing to start", `{"mcpServers":{"a":{}}}`, "", `server "a": it has no command`},
		{"nowhere", `{"mcpServers":{"a":{"type":"sse"}}}`, "", `server "a": it has no url`},
		{"an unknown type", `{"mcpServers":{"a":{"type":"ws","url":"x"}}}`, "", `server "a": its type must be`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := agent.Servers([]byte(tt.file))
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Fatalf("%v, not %q", err, tt.wrong)
				}
				return
			}
			got := []map[string]any{}
			for _, s := range list {
				got = append(got, s.Expand([]string{"HOST=there", "HOST=here"}).Entry())
			}
			b, err2 := json.Marshal(got)
			var is, want any
			if err != nil || err2 != nil || json.Unmarshal(b, &is) != nil || json.Unmarshal([]byte(tt.want), &want) != nil {
				t.Fatal(err, err2)
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEffort(t *testing.T) {
	for written, want := range map[string][2]string{
		"":                         {"", ""},
		"opus":                     {"opus", ""},
		"opus@high":                {"opus", "high"},
		"@minimal":                 {"", "minimal"},
		"claude-opus-4-1@20250805": {"claude-opus-4-1@20250805", ""}, // a service's name
		"claude@20250805@max":      {"claude@20250805", "max"},
		"opus@higher":              {"opus@higher", ""},
	} {
		model, effort := agent.SplitEffort(written)
		if got := [2]string{model, effort}; got != want || agent.JoinEffort(model, effort) != written {
			t.Errorf("%q is %q", written, got)
		}
	}
}

func TestPictures(t *testing.T) {
	dir, person := t.TempDir(), t.TempDir()
	png := "\x89PNG\r\n\x1a\n" + "pixels"
	for path, content := range map[string]string{
		filepath.Join(dir, "a b.png"): png, filepath.Join(person, "shot.gif"): "GIF89a", filepath.Join(dir, "key.png"): "secret",
		filepath.Join(dir, "large.png"): png + strings.Repeat("x", 4<<20), filepath.Join(t.TempDir(), "out.png"): png,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) == "out.png" {
			if err := os.Symlink(path, filepath.Join(dir, "link.png")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for text, want := range map[string]string{
		"![wrong](<a b.png>) and ![again](a b.png)": "image/png",
		"![](shot.gif)":             "image/gif",
		"![](a b.png)![](shot.gif)": "image/png image/gif",
		"[a link](shot.gif)":        "",
		"![](key.png)":              "", // it is none
		"![](large.png)":            "",
		"![](link.png)":             "", // it leads elsewhere
		"![](../x.png)![](/etc/passwd)![](https://x/y.png)![](gone.png)![](.)": "",
	} {
		var got []string
		for _, p := range agent.Pictures(text, dir, person) {
			got = append(got, p.Type)
		}
		if is := strings.Join(got, " "); is != want {
			t.Errorf("%s: %q, not %q", text, is, want)
		}
	}
}

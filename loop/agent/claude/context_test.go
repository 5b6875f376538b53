package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph/loop/agent/claude"
)

func TestTheLastUseOfAContext(t *testing.T) {
	t.Parallel()
	assistant := func(more, model, usage string) string {
		return `{"type":"assistant",` + more + `"message":{"model":"` + model + `","usage":{` + usage + `}}}` + "\n"
	}
	own := assistant("", "m", `"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4`)
	for name, c := range map[string]struct {
		text string
		want claude.Use
		ok   bool
	}{
		"no line":                       {"", claude.Use{}, false},
		"nothing of use":                {"{}\nx\n" + `{"type":"user","message":"assistant"}` + "\n", claude.Use{}, false},
		"all that is sent and answered": {own, claude.Use{10, "m"}, true},
		"the last one":                  {own + assistant("", "n", `"input_tokens":9`) + `{"type":"result"}`, claude.Use{9, "n"}, true},
		"not a sub-agent's of a chat":   {own + assistant(`"isSidechain":true,`, "n", `"input_tokens":9`), claude.Use{10, "m"}, true},
		"not a sub-agent's of a stream": {own + assistant(`"parent_tool_use_id":"t",`, "n", `"input_tokens":9`), claude.Use{10, "m"}, true},
		"not one that tells nothing":    {own + assistant("", "<synthetic>", ""), claude.Use{10, "m"}, true},
		"before a torn line":            {own + `{"type":"assistant","message":{"usage":{"input_tokens":7`, claude.Use{10, "m"}, true},
		"before a long line":            {own + `{"x":"` + strings.Repeat("y", 1<<20) + "\"}\n", claude.Use{10, "m"}, true},
		"with text that looks like one": {own + `{"type":"user","message":{"content":"{\"type\":\"assistant\",\"usage\":{\"input_tokens\":5}}"}}` + "\n", claude.Use{10, "m"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, ok, err := claude.LastUse(path); got != c.want || ok != c.ok || err != nil {
				t.Errorf("got %+v, %t, %v; want %+v, %t", got, ok, err, c.want, c.ok)
			}
		})
	}
	if _, ok, err := claude.LastUse(filepath.Join(t.TempDir(), "none")); ok || err != nil {
		t.Errorf("without a file: %t, %v", ok, err)
	}
}

func TestTheTranscriptOfAChatIsTheNewestOfItsFolder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	folder := filepath.Join(home, ".claude", "projects", "-srv-my-app-x")
	if err := os.MkdirAll(filepath.Join(folder, "sub.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for name, after := range map[string]time.Duration{"old.jsonl": -time.Hour, "first.jsonl": time.Minute, "second.jsonl": time.Hour, "notes.txt": 2 * time.Hour} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, since.Add(after), since.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		config, dir string
		since       time.Time
		want        string
	}{
		{"", "/srv/my_app.x", since, filepath.Join(folder, "second.jsonl")},
		{filepath.Join(home, ".claude"), "/srv/my_app.x", since, filepath.Join(folder, "second.jsonl")},
		{"", "/srv/my_app.x", since.Add(3 * time.Hour), ""},
		{"", "/srv/other", since, ""},
		{home, "/srv/my_app.x", since, ""},
	} {
		if got := claude.OfChat(c.config, home, c.dir, c.since); got != c.want {
			t.Errorf("OfChat(%q, %q, %s): got %q, want %q", c.config, c.dir, c.since, got, c.want)
		}
	}
}

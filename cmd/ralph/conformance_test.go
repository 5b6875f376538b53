package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// conformance are the scenarios of MCP's own suite that fit a server with tools
// and nothing else; the others ask for prompts, resources, sampling and tools of
// the suite's own.
var conformance = []string{"server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"}

// TestConformance runs MCP's conformance suite and the Inspector's command line.
// RALPH_TEST_CONFORMANCE names a folder in which `npm install
// @modelcontextprotocol/conformance @modelcontextprotocol/inspector node@22` was run.
func TestConformance(t *testing.T) {
	npm := os.Getenv("RALPH_TEST_CONFORMANCE")
	if npm == "" {
		t.Skip("skipped: RALPH_TEST_CONFORMANCE does not name a folder with the suite (see the test)")
	}
	bin := filepath.Join(npm, "node_modules", ".bin")
	node := filepath.Join(npm, "node_modules", "node", "bin", "node")
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Claimed by the Inspector")
	server, address := s.serveHTTP()
	defer func() {
		_ = server.Process.Signal(os.Interrupt) // it is over
		_ = server.Wait()
	}()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	// Neither program can send a token: this stands in front and adds it.
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // its subject
		r.Out.Header.Set("Authorization", "Bearer secret")
	}, FlushInterval: -1})
	defer proxy.Close()
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(node)+string(os.PathListSeparator)+os.Getenv("PATH"))
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for _, scenario := range conformance {
		t.Run(scenario, func(t *testing.T) {
			if text, err := run(filepath.Join(bin, "conformance"), "server", "--url", proxy.URL, "--scenario", scenario); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
	inspector := filepath.Join(bin, "mcp-inspector")
	t.Run("Inspector as a person's chat", func(t *testing.T) {
		s.ralph(0, "task", "add", "Claimed by a person", "--verify", "test -f made")
		s.ralph(0, "chat", "claim", "2")
		chat := func(want string, more ...string) {
			t.Helper()
			text, err := run(append(append([]string{inspector, "--cli"}, more...), s.command().Path, "mcp", "--profile", "chat")...)
			if !strings.Contains(text, want) {
				t.Errorf("%q: %v, want …%s…\n%s", more, err, want, text)
			}
		}
		call := func(want, tool string, args ...string) {
			t.Helper()
			var more []string
			for _, a := range args {
				more = append(more, "--tool-arg", a)
			}
			chat(want, append(more, "--method", "tools/call", "--tool-name", tool)...) // what follows --tool-arg is one
		}
		chat("agentic_create_checkpoint", "--method", "tools/list")
		chat("ralph://task/{id}/timeline", "--method", "resources/templates/list")
		chat("work-on-task", "--method", "prompts/list")
		chat("Claimed by a person", "--method", "resources/read", "--uri", "ralph://task/active")
		call("TASK-2", "agentic_get_active_task")
		call("Claimed by a person", "agentic_task_show", "task_id=TASK-2")
		call("progress updated", "agentic_task_update_progress", "task_id=2", "iteration=1", "tests_status=failing")
		call("checkpoint created", "agentic_create_checkpoint", "task_id=2", "iteration=1")
		call("Command: test -f made", "agentic_task_complete", "task_id=2")
		s.write("made", "x")
		call("completed", "agentic_task_complete", "task_id=2")
	})
	for name, args := range map[string][]string{
		"Inspector on HTTP":  {proxy.URL, "--transport", "http"},
		"Inspector on stdio": {s.command().Path, "mcp", "--profile", "worker"},
	} {
		t.Run(name, func(t *testing.T) {
			inspect := func(more ...string) (string, error) {
				return run(append(append([]string{inspector, "--cli"}, more...), args...)...)
			}
			text, err := inspect("--method", "tools/list")
			var list struct{ Tools []struct{ Name string } }
			if err != nil || json.Unmarshal([]byte(text), &list) != nil || len(list.Tools) != 17 {
				t.Errorf("tools/list: %v, %d tools\n%s", err, len(list.Tools), text)
			}
			text, err = inspect("--method", "tools/call", "--tool-name", "get_next_actionable")
			if err != nil || !strings.Contains(text, "Claimed by the Inspector") {
				t.Errorf("tools/call: %v\n%s", err, text)
			}
		})
	}
	if answer, err := http.Get(target.String()); err != nil {
		t.Error(err)
	} else if answer.Body.Close(); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", answer.Status)
	}
}

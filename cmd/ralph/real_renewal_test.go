package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ralph/internal/tools/messagesapi"
)

// tokens hands out credentials: each refresh token is good for once, and each access token
// until it is renewed.
type tokens struct {
	wait time.Duration // how long the first renewal is held up, unless there is a second one

	mu     sync.Mutex
	n      int           // the number of the tokens that are good
	reused int           // how often one was to be renewed that had been
	second chan struct{} // is closed by the second renewal
}

// renew answers requests to renew credentials.
func (k *tokens) renew(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	k.mu.Lock()
	good := err == nil && strings.Contains(string(body), fmt.Sprintf("sk-ant-ort01-%d\"", k.n))
	if good {
		k.n++
	} else {
		k.reused++
	}
	n := k.n
	if n+k.reused == 2 && k.second != nil {
		close(k.second)
	}
	k.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !good {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": "invalid_grant", "error_description": "Refresh token not found or invalid"}`)
		return
	}
	if k.second != nil {
		select {
		case <-k.second:
		case <-time.After(k.wait):
		}
	}
	fmt.Fprintf(w, `{"access_token": "sk-ant-oat01-%[1]d", "refresh_token": "sk-ant-ort01-%[1]d", "expires_in": 28800, "scope": "user:inference user:profile"}`, n)
}

// good tells whether a request is made with the access token of today.
func (k *tokens) good(r *http.Request) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.Header.Get("Authorization") == fmt.Sprintf("Bearer sk-ant-oat01-%d", k.n)
}

// anthropic is the address of a proxy that stands for every host: it renews credentials, and
// hands all else to the API of a stage. Its certificate is nobody's.
func anthropic(t *testing.T, api string, k *tokens) (proxy string) {
	t.Helper()
	to, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	rest := httputil.NewSingleHostReverseProxy(to)
	host := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/oauth/token"):
			k.renew(w, r)
		case !k.good(r):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"type": "error", "error": {"type": "authentication_error", "message": "OAuth token has expired"}}`)
		default:
			rest.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(host.Close)
	connect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		there, err := net.Dial("tcp", host.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		w.WriteHeader(http.StatusOK)
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		go func() { _, _ = io.Copy(there, buffered) }() // until the other one ends
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(connect.Close)
	return connect.URL
}

// TestRealRenewal: credentials that are over are renewed in each sandbox, and are there for
// the next session: a night is longer than they are valid.
func TestRealRenewal(t *testing.T) {
	t.Parallel()
	onEachSandbox(t, func(t *testing.T, name, first string) {
		s := newStage(t, turns(bash("echo x > made.txt"), done("made it")))
		s.first = first
		renewed := s.signedIn(&tokens{})
		s.run(0, "task", "add", "Make it", "--verify", gate)
		s.has(s.run(0, "run"), "sandbox: "+name, "TASK-1 merged")
		renewed()
	})
}

// signedIn has the CLI be signed in by credentials that are over. renewed wants them to have
// been renewed once, and to be there for people.
func (s *stage) signedIn(k *tokens) (renewed func()) {
	s.key = "UNUSED=1"
	s.environ = []string{"ANTHROPIC_BASE_URL=https://api.anthropic.com"}
	proxy := anthropic(s.t, s.api.URL, k)
	s.write(map[string]string{"ralph.yaml": "agent: {command: [" + realClaude(s.t) + "], env: {HTTPS_PROXY: '" + proxy + "', NODE_TLS_REJECT_UNAUTHORIZED: '0'}}\n#test: {exit_grace: 5s}\n"})
	file := filepath.Join(s.home, ".claude", ".credentials.json")
	s.file(file, `{"claudeAiOauth": {"accessToken": "sk-ant-oat01-0", "refreshToken": "sk-ant-ort01-0", "expiresAt": 1000, "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}}`)
	return func() {
		s.t.Helper()
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "sk-ant-ort01-1") || !strings.Contains(string(text), "sk-ant-oat01-1") {
			s.t.Errorf("the credentials are %s, %v", text, err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.n != 1 || k.reused != 0 {
			s.t.Errorf("credentials were renewed %d times, and tokens used again %d times", k.n, k.reused)
		}
	}
}

// TestRealRenewalOfSeveral: sessions that work at once renew credentials one after the other, though each is in a
// sandbox of its own: the second use of a refresh token signs the user out.
func TestRealRenewalOfSeveral(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		file := "one"
		if strings.Contains(r.Text, "Make two") {
			file = "two"
		}
		return []messagesapi.Turn{bash("echo x > " + file), done("made it"), finished}[min(strings.Count(r.Body, `"tool_result"`), 2)]
	})
	renewed := s.signedIn(&tokens{wait: 3 * time.Second, second: make(chan struct{})})
	s.run(0, "task", "add", "Make one", "--verify", "test -f one")
	s.run(0, "task", "add", "Make two", "--verify", "test -f two")
	s.has(s.run(0, "run", "--parallel", "2", "--no-wait"), "TASK-1 merged", "TASK-2 merged")
	renewed()
}

package mcpserver_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/mcpserver"
)

func TestHTTPNeedsThisMachineAndTheToken(t *testing.T) {
	server := httptest.NewServer(mcpserver.NewClients("secret", func() (*mcp.Server, func()) { return mcpserver.New(mcpserver.Options{}), func() {} }))
	defer server.Close()
	for _, tt := range []struct {
		name   string
		change func(r *http.Request)
		want   int
	}{
		{"a program with the token", func(*http.Request) {}, http.StatusOK},
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		{"a wrong token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer guess") }, http.StatusUnauthorized},
		{"another scheme", func(r *http.Request) { r.Header.Set("Authorization", "Basic secret") }, http.StatusUnauthorized},
		{"the scheme in small letters", func(r *http.Request) { r.Header.Set("Authorization", "bearer secret") }, http.StatusOK},
		{"a page of this machine", func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }, http.StatusOK},
		{"a page from elsewhere", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		{"a page without an origin of its own", func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		{"a name that was pointed here", func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
		{"an address that begins alike", func(r *http.Request) { r.Host = "127.0.0.1.evil.example:80" }, http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Authorization", "Bearer secret")
			tt.change(r)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(answer.Body)
			if err := errors.Join(err, answer.Body.Close()); err != nil {
				t.Error(err)
			}
			// The SDK would refuse some of these too, in its own words.
			if words := map[int]string{http.StatusForbidden: "refused", http.StatusUnauthorized: "the token is missing or wrong"}[tt.want]; !strings.Contains(string(said), words) && !strings.Contains(string(said), "is not one of this machine's") {
				t.Errorf("got %q", said)
			}
			if answer.StatusCode != tt.want {
				t.Errorf("got %d, want %d", answer.StatusCode, tt.want)
			}
		})
	}
}

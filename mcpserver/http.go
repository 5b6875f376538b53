package mcpserver

import (
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/localhttp"
)

// maxBody is how large a request may be, in bytes.
const maxBody = 1 << 20

// Handler serves MCP over streamable HTTP, for programs on this machine: each
// client gets a server of its own, a request needs the token as
// "Authorization: Bearer TOKEN", and neither its Host nor its Origin may be
// another machine's.
func Handler(token string, server func() *mcp.Server) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server() }, &mcp.StreamableHTTPOptions{SessionTimeout: time.Hour})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, ok := localhttp.OriginHost(r)
		switch {
		case !localhttp.Loopback(r.Host):
			http.Error(w, "this host name is not one of this machine's", http.StatusForbidden)
		case !ok || origin != "" && !localhttp.Loopback(origin):
			http.Error(w, "requests from other origins are refused", http.StatusForbidden)
		case !localhttp.Bearer(r, token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="ralph"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			inner.ServeHTTP(w, r)
		}
	})
}

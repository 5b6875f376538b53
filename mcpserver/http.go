package mcpserver

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !loopback(r.Host):
			http.Error(w, "this host name is not one of this machine's", http.StatusForbidden)
		case !loopbackOrigin(r.Header.Get("Origin")):
			http.Error(w, "requests from other origins are refused", http.StatusForbidden)
		case !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			w.Header().Set("WWW-Authenticate", `Bearer realm="ralph"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			inner.ServeHTTP(w, r)
		}
	})
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// loopbackOrigin reports whether a browser's page is this machine's; programs
// send none.
func loopbackOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && loopback(u.Host)
}

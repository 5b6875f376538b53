package mcpserver

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/web/localhttp"
)

// maxBody is the size limit of a request in bytes.
const maxBody = 1 << 20

// Clients serves MCP over streamable HTTP to programs on this machine. Each client gets
// its own server. Requests need the token as "Authorization: Bearer TOKEN", and a Host
// and Origin of this machine.
type Clients struct {
	token   string
	inner   http.Handler
	connect func() (server *mcp.Server, left func())

	mu     sync.Mutex
	closed bool
	open   map[*mcp.ServerSession]bool
	here   sync.WaitGroup // counts open
}

// NewClients calls connect for each client's server. left is called when that client is gone: it said so, made no call
// for an hour, or [Clients.Close] was called.
func NewClients(token string, connect func() (server *mcp.Server, left func())) *Clients {
	c := &Clients{token: token, connect: connect, open: map[*mcp.ServerSession]bool{}}
	server := func(*http.Request) *mcp.Server { return c.server() }
	c.inner = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{SessionTimeout: time.Hour})
	return c
}

// ServeHTTP implements [http.Handler].
func (c *Clients) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin, ok := localhttp.OriginHost(r)
	switch {
	case !localhttp.Loopback(r.Host):
		http.Error(w, "this host name is not one of this machine's", http.StatusForbidden)
	case !ok || origin != "" && !localhttp.Loopback(origin):
		http.Error(w, "requests from other origins are refused", http.StatusForbidden)
	case !localhttp.Bearer(r, c.token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="ralph"`)
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		c.inner.ServeHTTP(w, r)
	}
}

// Close disconnects every client. Calls in progress are completed, even if
// their answers no longer arrive; further ones are refused.
func (c *Clients) Close() error {
	c.mu.Lock()
	c.closed = true
	sessions := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	var errs []error
	for _, s := range sessions {
		errs = append(errs, s.Close())
	}
	c.here.Wait()
	return errors.Join(errs...)
}

// server returns a server that registers its client on the first call.
func (c *Clients) server() *mcp.Server {
	server, left := c.connect()
	var first sync.Once
	in := false
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if s, ok := req.GetSession().(*mcp.ServerSession); ok {
				first.Do(func() { in = c.join(s, left) })
			}
			if !in {
				return nil, errors.New("this server is being stopped")
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// join registers a client, unless Close was called.
func (c *Clients) join(s *mcp.ServerSession, left func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.open[s] = true
	c.here.Go(func() {
		_ = s.Wait() // its error does not matter
		left()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, s)
	})
	return true
}

package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/files"
	"ralph/internal/proc"
	"ralph/internal/text"
	"ralph/internal/web/localhttp"
	"ralph/loop"
)

// A Background is the server for chats that runs in the background.
type Background struct {
	PID       int        `json:"pid"`
	URL       string     `json:"url"`
	TokenFile string     `json:"token_file"` // "" if RALPH_MCP_TOKEN sets the token
	StartedAt ralph.Time `json:"started_at"`
}

// TokenVariable is the variable with the token for clients of an HTTP server.
const TokenVariable = "RALPH_MCP_TOKEN"

// Files of the server in ralph's folder. The lock is held while the server runs.
const (
	serverFile = "mcp-server.json"
	serverLock = "mcp-server.lock"
	serverLog  = "mcp-server.log"
	tokenFile  = "mcp-token" //nolint:gosec // a file's name
)

// Serve serves chats on stdio or on a loopback address.
func (c *Chats) Serve(ctx context.Context, address string, in io.ReadCloser, out io.WriteCloser) error {
	if address == "" {
		return Serve(ctx, newHuman(c), in, out)
	}
	return c.serve(ctx, address)
}

// file returns the path of a file of the server in ralph's folder.
func (c *Chats) file(name string) string { return filepath.Join(c.State, name) }

// serve serves HTTP and records this in ralph's folder. Only one such server runs at a time.
func (c *Chats) serve(ctx context.Context, address string) (err error) {
	lock := flock.New(c.file(serverLock))
	ok, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock of the server for chats: %w", err)
	}
	if !ok {
		return ralph.Usage(ralph.Conflict("a server for chats is running already; " +
			"stop it with `ralph chat stop`"))
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	me := Background{PID: os.Getpid(), StartedAt: ralph.At(time.Now())}
	token := c.Getenv(TokenVariable)
	if token == "" {
		me.TokenFile = c.file(tokenFile)
		if token, err = loadToken(me.TokenFile); err != nil {
			return err
		}
	}
	listener, err := listenLoopback(ctx, "--http", address)
	var taken *net.OpError
	if errors.As(err, &taken) && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(address)
		listener, err = listenLoopback(ctx, "--http", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return err
	}
	me.URL = "http://" + listener.Addr().String()
	b, err := json.MarshalIndent(me, "", "  ")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	path := c.file(serverFile)
	if err := files.Write(path, append(b, '\n'), 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(c.Warn, "serving MCP on %s\n", me.URL)
	connect := func() (*mcp.Server, func()) { return newHuman(c), func() {} }
	err = serveUntilStopped(ctx, listener, NewClients(token, connect))
	return errors.Join(err, os.Remove(path))
}

// loadToken returns the token in a file. It creates a missing file, so that clients need the token only once.
func loadToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if token := strings.TrimSpace(string(b)); err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token := rand.Text()
	return token, files.Write(path, []byte(token+"\n"), 0o600)
}

// listenLoopback listens on a loopback address.
func listenLoopback(ctx context.Context, name, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil || !localhttp.Loopback(address) {
		return nil, ralph.Usage(&ralph.FieldError{
			Field:   fmt.Sprintf("%s %q", name, address),
			Problem: "must be a loopback address with a port, such as 127.0.0.1:7475",
		})
	}
	l, err := localhttp.Listen(ctx, name, address)
	return l, ralph.Usage(err)
}

// serveUntilStopped serves until an interrupt or SIGTERM. It completes calls in progress first.
func serveUntilStopped(ctx context.Context, l net.Listener, clients *Clients) error {
	told, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	closing, closed := context.WithCancel(context.WithoutCancel(ctx))
	defer closed()
	left := make(chan error, 1)
	context.AfterFunc(told, func() {
		left <- clients.Close()
		closed()
	})
	err := localhttp.Serve(closing, &http.Server{Handler: clients, ReadHeaderTimeout: 10 * time.Second}, l)
	if told.Err() == nil {
		return errors.Join(err, clients.Close())
	}
	return errors.Join(err, <-left)
}

// Server returns the running server for chats; nil if there is none. A killed server does
// not count, because its lock is free.
func (c *Chats) Server() *Background {
	path := c.file(serverLock)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	lock := flock.New(path)
	if ok, err := lock.TryRLock(); err != nil || ok {
		_ = lock.Unlock() // released when the process ends at the latest
		return nil
	}
	b, err := os.ReadFile(c.file(serverFile))
	var s Background
	if err != nil || json.Unmarshal(b, &s) != nil {
		return nil // it is starting or ending
	}
	return &s
}

// How long to wait for the background server.
const (
	serverStarts = 10 * time.Second
	serverEnds   = 5 * time.Second
	serverPoll   = 20 * time.Millisecond
)

// Start starts the background server if it is not running, and waits until it can be reached.
func (c *Chats) Start(ctx context.Context) (*Background, error) {
	if s := c.Server(); s != nil {
		return s, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	path := c.file(serverLog)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := []string{self, "-C", c.Root, "mcp", "--profile", "chat", "--http", c.Addr}
	ended, err := proc.Detach(command, c.Environ, "/", log)
	if err != nil {
		return nil, fmt.Errorf("server for chats: %w", err)
	}
	patience, cancel := context.WithTimeout(ctx, serverStarts)
	defer cancel()
	tick := time.NewTicker(serverPoll)
	defer tick.Stop()
	for {
		if s := c.Server(); s != nil {
			return s, nil
		}
		select {
		case <-tick.C:
		case how := <-ended:
			why, err := os.ReadFile(path)
			return nil, errors.Join(fmt.Errorf("the server for chats ended at once (%w): %s", how,
				text.Line(strings.TrimSpace(string(why)), 500)), err)
		case <-patience.Done():
			return nil, fmt.Errorf("the server for chats cannot be reached after %s; see %s", serverStarts, path)
		}
	}
}

// Stop stops the background server; it returns false if none was running.
func (c *Chats) Stop(ctx context.Context) (bool, error) {
	s := c.Server()
	if s == nil {
		return false, nil
	}
	process, err := os.FindProcess(s.PID)
	if err != nil {
		return false, err
	}
	tick := time.NewTicker(serverPoll)
	defer tick.Stop()
	for _, end := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if err := process.Signal(end); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, fmt.Errorf("stop process %d: %w", s.PID, err)
		}
		patience, cancel := context.WithTimeout(ctx, serverEnds)
		for patience.Err() == nil {
			if now := c.Server(); now == nil || now.PID != s.PID {
				cancel()
				return true, nil
			}
			select {
			case <-tick.C:
			case <-patience.Done():
			}
		}
		cancel()
	}
	return false, fmt.Errorf("process %d does not end", s.PID)
}

// ServeWorker serves the worker profile on stdio or on a loopback address, until an
// interrupt or SIGTERM. It then releases the claims first; a second signal ends it at once.
func ServeWorker(ctx context.Context, o WorkerOptions, l *loop.Loop, in io.ReadCloser, out io.WriteCloser) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if o.Address != "" {
		return serveWorkers(ctx, o, l)
	}
	w := &worker{loop: l, name: o.Name}
	err := Serve(ctx, newWorker(o, w), in, out)
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, w.leave(context.WithoutCancel(ctx)))
}

// serveWorkers serves any number of workers on an address.
func serveWorkers(ctx context.Context, o WorkerOptions, l *loop.Loop) error {
	token := o.Token
	if token == "" {
		token = rand.Text()
	}
	listener, err := listenLoopback(ctx, "--http", o.Address)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Tell, "serving MCP on http://%s\n", listener.Addr())
	if o.Token == "" {
		fmt.Fprintf(o.Tell, "clients send: Authorization: Bearer %s\n(set %s to choose the token)\n", token, TokenVariable)
	}
	return serveUntilStopped(ctx, listener, NewClients(token, func() (*mcp.Server, func()) {
		w := &worker{loop: l, name: o.Name}
		return newWorker(o, w), func() {
			if err := w.leave(context.WithoutCancel(ctx)); err != nil {
				l.Log.Error("cannot release a claim; it will expire", "worker", o.Name, "error", err)
			}
		}
	}))
}

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
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
	"ralph/internal/proc"
	"ralph/internal/web/localhttp"
	"ralph/loop"
	"ralph/mcpserver"
)

// An mcpServer is the server for chats that runs in the background.
type mcpServer struct {
	PID       int        `json:"pid"`
	URL       string     `json:"url"`
	TokenFile string     `json:"token_file"` // "" if the token was chosen by RALPH_MCP_TOKEN
	StartedAt ralph.Time `json:"started_at"`
}

// Files of that server in ralph's folder. The lock is held as long as it lives.
const (
	serverFile = "mcp-server.json"
	serverLock = "mcp-server.lock"
	serverLog  = "mcp-server.log"
	tokenFile  = "mcp-token" //nolint:gosec // a file's name
)

// serveHuman serves the human profile on stdio, or on a loopback address.
func serveHuman(ctx context.Context, a *app, address string) error {
	return a.withLoop(ctx, func(p *project, l *loop.Loop) error {
		if !p.config.MCP.Enabled {
			return usage(errors.New("mcp.enabled is false in the configuration: ralph does not serve chats here"))
		}
		server := func() *mcp.Server { return mcpserver.NewHuman(version(), newChat(a, p, l)) }
		if address == "" {
			return mcpserver.Serve(ctx, server(), os.Stdin, os.Stdout)
		}
		return a.serveChats(ctx, p, address, server)
	})
}

// serveChats serves on HTTP and says so in ralph's folder, where one server at a
// time is known.
func (a *app) serveChats(ctx context.Context, p *project, address string, server func() *mcp.Server) (err error) {
	lock := flock.New(filepath.Join(p.state, serverLock))
	ok, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock of the server for chats: %w", err)
	}
	if !ok {
		return usage(fmt.Errorf("a server for chats is running already; stop it with `ralph session stop`: %w", ralph.ErrConflict))
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	me := mcpServer{PID: os.Getpid(), StartedAt: ralph.At(time.Now())}
	token := a.getenv(tokenVariable)
	if token == "" {
		me.TokenFile = filepath.Join(p.state, tokenFile)
		if token, err = keptToken(me.TokenFile); err != nil {
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
	path := filepath.Join(p.state, serverFile)
	if err := writeWhole(path, append(b, '\n'), 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(a.err, "serving MCP on %s\n", me.URL)
	err = serveUntilStopped(ctx, listener, mcpserver.NewClients(token, func() (*mcp.Server, func()) { return server(), func() {} }))
	return errors.Join(err, os.Remove(path))
}

// keptToken is the token in a file; a new one if there is none, so that clients need
// not be told again.
func keptToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if token := strings.TrimSpace(string(b)); err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token := rand.Text()
	return token, writeWhole(path, []byte(token+"\n"), 0o600)
}

// listenLoopback listens on an address of this machine alone.
func listenLoopback(ctx context.Context, name, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil || !localhttp.Loopback(address) {
		return nil, usage(&ralph.FieldError{Field: fmt.Sprintf("%s %q", name, address), Problem: "must be a loopback address with a port, such as 127.0.0.1:7475"})
	}
	l, err := localhttp.Listen(ctx, name, address)
	return l, usage(err)
}

// serveUntilStopped serves until it is interrupted or told to end. Calls in progress
// come to their end first.
func serveUntilStopped(ctx context.Context, l net.Listener, clients *mcpserver.Clients) error {
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

// serverOf is the server for chats that runs now; nil if there is none. What a
// killed one left behind does not count: its lock is free.
func serverOf(p *project) *mcpServer {
	path := filepath.Join(p.state, serverLock)
	if !exists(path) {
		return nil
	}
	lock := flock.New(path)
	if ok, err := lock.TryRLock(); err != nil || ok {
		_ = lock.Unlock() // it is given back with the process at the latest
		return nil
	}
	b, err := os.ReadFile(filepath.Join(p.state, serverFile))
	var s mcpServer
	if err != nil || json.Unmarshal(b, &s) != nil {
		return nil // it is just starting or ending
	}
	return &s
}

// Waits for the server in the background.
const (
	serverStarts = 10 * time.Second
	serverEnds   = 5 * time.Second
	serverPoll   = 20 * time.Millisecond
)

// startMCP starts the server in the background, if it does not run yet, and waits
// until it can be reached.
func (a *app) startMCP(ctx context.Context, p *project) (*mcpServer, error) {
	if !p.config.MCP.Enabled {
		return nil, usage(errors.New("mcp.enabled is false in the configuration: ralph does not serve chats here"))
	}
	if s := serverOf(p); s != nil {
		return s, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(p.state, serverLog)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ended, err := proc.Detach([]string{self, "-C", p.root, "mcp", "--profile", "human", "--http", p.config.MCP.Addr}, a.environ, "/", log)
	if err != nil {
		return nil, fmt.Errorf("server for chats: %w", err)
	}
	patience, cancel := context.WithTimeout(ctx, serverStarts)
	defer cancel()
	tick := time.NewTicker(serverPoll)
	defer tick.Stop()
	for {
		if s := serverOf(p); s != nil {
			return s, nil
		}
		select {
		case <-tick.C:
		case how := <-ended:
			why, err := os.ReadFile(path)
			return nil, errors.Join(fmt.Errorf("the server for chats ended at once (%w): %s", how, oneLine(strings.TrimSpace(string(why)), 500)), err)
		case <-patience.Done():
			return nil, fmt.Errorf("the server for chats cannot be reached after %s; see %s", serverStarts, path)
		}
	}
}

// stopMCP ends the server in the background; false if none runs.
func stopMCP(ctx context.Context, p *project) (bool, error) {
	s := serverOf(p)
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
			if now := serverOf(p); now == nil || now.PID != s.PID {
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

package bystander

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/retention"
	"ralph/internal/web"
	"ralph/internal/web/localhttp"
	"ralph/loop/agent"
	"ralph/loop/agent/kinds"
	"ralph/loop/workspace"
	"ralph/store"
)

// TokenVariable is the variable that sets the dashboard's token.
const TokenVariable = "RALPH_DASHBOARD_TOKEN"

// minToken is the minimum length of a chosen token, in characters.
const minToken = 20

// Options of [Open].
type Options struct {
	Person  string // name for people's decisions there
	Version string // version of ralph
	// TLSCert and TLSKey are files in PEM, relative to the project; "" is plain HTTP. Insecure serves that to other
	// machines, too.
	TLSCert, TLSKey string
	Insecure        bool
	// Settle does the work after a person's decision while no run does.
	Settle func(ctx context.Context) error
	// Patch returns the difference between two commits of a session's change, as git prints it; nil
	// if it cannot be read.
	Patch func(ctx context.Context, session, from, to string) (string, error)
	// Start starts a run, and describes how it began; nil if no run can be started.
	Start func(ctx context.Context) (string, error)
	// Undo takes a task's merged changes back, or brings them back.
	Undo func(ctx context.Context, task int64, to ralph.Status, why string, byAgent bool) (string, error)
}

// A Dashboard is listening on its address.
type Dashboard struct {
	server   *web.Server
	secure   *tls.Config // nil for HTTP
	listener net.Listener
	URL      string
	Link     string // signs a browser in
}

// Serve answers until ctx ends.
func (d *Dashboard) Serve(ctx context.Context) error {
	return d.server.Serve(ctx, d.listener, d.secure)
}

// Open listens on the dashboard's address. It refuses one that other machines can reach without
// TLS, unless that is configured.
func Open(ctx context.Context, p *project.Project, db *store.DB, o Options) (*Dashboard, error) {
	c := p.Config.Dashboard
	token, err := Token(p)
	if err != nil {
		return nil, err
	}
	d := &Dashboard{}
	secure := o.TLSCert != "" || o.TLSKey != ""
	if secure {
		pair, err := tls.LoadX509KeyPair(p.Path(o.TLSCert), p.Path(o.TLSKey))
		if err != nil {
			return nil, ralph.Usage(fmt.Errorf("--tls-cert and --tls-key: %w", err))
		}
		d.secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if d.listener, err = localhttp.Listen(ctx, "dashboard.addr", c.Addr); err != nil {
		return nil, ralph.Usage(fmt.Errorf("%w; choose another with --addr or dashboard.addr", err))
	}
	at, _ := d.listener.Addr().(*net.TCPAddr)
	public := at == nil || !at.IP.IsLoopback()
	if public && !secure && !o.Insecure {
		err := fmt.Errorf("%s can be reached from other machines: serve it by `ralph serve` with "+
			"--tls-cert and --tls-key, or "+
			"with --insecure if others on the network may read along (or reach 127.0.0.1 through ssh, "+
			"docs/dashboard.md)", d.listener.Addr())
		return nil, errors.Join(ralph.Usage(err), d.listener.Close())
	}
	d.URL = address(p, o, d.listener.Addr().String())
	d.Link = d.URL + signIn + token
	d.server = &web.Server{
		Store: db, Project: p.Name(), Person: o.Person, Version: o.Version, Limits: p.Limits(), Log: p.Log,
		Token: token, Hosts: c.Hosts, Public: public, TLS: secure, Always: c.SignIn == "always",
		Control: func(ctx context.Context, what string) error { return p.Control(ctx, db, what) },
		Forge:   func() string { return p.ForgeLine(time.Now()) }, Hook: p.Hook(db),
		Settle: o.Settle, Start: o.Start, Undo: o.Undo, Patch: o.Patch,
		Open: func(session string, file web.SessionFile) (io.ReadCloser, error) {
			name := agent.TranscriptFile
			switch file {
			case web.Prompt:
				name = promptFile
			case web.Diffs:
				name = workspace.DiffsFile
			}
			return retention.Open(filepath.Join(p.Session(session), name))
		},
		Reader: kinds.NewReader,
	}
	return d, nil
}

// promptFile is the file with a session's prompt.
const promptFile = "prompt.md"

// signIn is the sign-in page with the token in the fragment, which browsers do not send.
const signIn = "/sign-in#"

// Link returns the URL that signs a browser in. It starts no server.
func Link(p *project.Project, o Options) (string, error) {
	token, err := Token(p)
	return address(p, o, localhttp.Address(p.Config.Dashboard.Addr)) + signIn + token, err
}

// address returns the dashboard's URL for a browser.
func address(p *project.Project, o Options, addr string) string {
	c := p.Config.Dashboard
	scheme := "http"
	if o.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if len(c.Hosts) > 0 {
			host = localhttp.Name(c.Hosts[0])
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Token returns the dashboard's token, from the variable or from a file. It creates a missing
// file, which only this user can read.
func Token(p *project.Project) (string, error) {
	if chosen := p.Getenv(TokenVariable); chosen != "" {
		if len(chosen) < minToken {
			return "", ralph.Usage(&ralph.FieldError{
				Field: TokenVariable, Problem: fmt.Sprintf("must have at least %d characters", minToken),
			})
		}
		return chosen, nil
	}
	file := p.File("dashboard.token")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeToken(file); err == nil {
			text, err = os.ReadFile(file)
		}
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return "", fmt.Errorf("%s does not contain a dashboard token: remove it, and a new one is created", file)
	}
	return token, nil
}

// makeToken writes a new token, unless another process was faster; the file appears atomically.
func makeToken(file string) (err error) {
	part, err := os.CreateTemp(filepath.Dir(file), ".dashboard.token-*") // readable only by its owner
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(part.Name())) }()
	_, err = fmt.Fprintln(part, rand.Text())
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	if err := os.Link(part.Name(), file); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

package main

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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/retention"
	"ralph/internal/web"
	"ralph/internal/web/localhttp"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// dashboardToken is the variable that chooses the token of the dashboard.
const dashboardToken = "RALPH_DASHBOARD_TOKEN"

// minToken is how long a chosen token has to be, in characters.
const minToken = 20

// serveFlags override a key of the configuration, as those of `ralph run` do.
var serveFlags = []limitFlag{
	{"addr", "dashboard.addr", "serve on `ADDRESS`"},
	{"sign-in", "dashboard.sign_in", "for `WHAT` a browser on this machine has to sign in: changes or always"},
	{"tls-cert", "dashboard.tls_cert", "a `FILE` with the certificate for HTTPS"},
	{"tls-key", "dashboard.tls_key", "the `FILE` with its key"},
}

func newServe(a *app) *cobra.Command {
	var link, insecure bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Show the project in a browser: what runs, what waits for you, all that was said and done",
		Long: `Serve the dashboard, until Ctrl-C: what runs and what waits for you, the board, every
task with its timeline, sessions as they work, and forms to answer and to decide.

It listens on this machine only, where anybody may read; whoever changes something
signs in with the token in the file dashboard.token of the state directory, or in
` + dashboardToken + `. --link prints the address with which a browser signs in.
On other addresses reading takes a sign-in too, and they need TLS or --insecure. See
docs/dashboard.md.`,
		Example: "  ralph serve\n  ralph serve --link\n  ralph serve --addr 0.0.0.0:7474 --tls-cert box.pem --tls-key box.key", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.begin(cmd.Context(), func(p *project, db *store.DB) error {
				for _, f := range serveFlags {
					if set := cmd.Flags().Lookup(f.flag); set.Changed {
						if err := p.config.Set(f.key, "flag", set.Value.String()); err != nil {
							return usage(err)
						}
					}
				}
				p.config.Dashboard.Insecure = p.config.Dashboard.Insecure || insecure
				if link {
					token, err := p.token(a)
					if err != nil {
						return err
					}
					_, err = fmt.Fprintln(a.out, signInLink(p.address(localhttp.Address(p.config.Dashboard.Addr)), token))
					return err
				}
				return serve(cmd.Context(), a, p, db)
			})
		},
	}
	for _, f := range serveFlags {
		cmd.Flags().String(f.flag, "", f.usage+" ("+f.key+")")
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, "serve other machines without TLS (dashboard.insecure)")
	cmd.Flags().BoolVar(&link, "link", false, "only print the address with which a browser signs in")
	return cmd
}

// serve serves the dashboard until it is interrupted.
func serve(ctx context.Context, a *app, p *project, db *store.DB) error {
	d, err := openDashboard(ctx, a, p, db)
	if err != nil {
		return err
	}
	d.announce(a)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return d.serve(ctx)
}

// An openedDashboard has its address already.
type openedDashboard struct {
	server   *web.Server
	secure   *tls.Config // nil for HTTP
	listener net.Listener
	url      string
	link     string // with which a browser signs in
}

// announce says where it is, and how to sign in. The token goes to a terminal alone:
// whatever else reads the output may be a log.
func (d openedDashboard) announce(a *app) {
	fmt.Fprintf(a.err, "dashboard on %s\n", d.url)
	if onTerminal(a.err) {
		fmt.Fprintf(a.err, "sign in: %s\n", d.link)
		return
	}
	fmt.Fprintln(a.err, "sign in with the address that `ralph serve --link` prints")
}

func (d openedDashboard) serve(ctx context.Context) error {
	return d.server.Serve(ctx, d.listener, d.secure)
}

// openDashboard takes the dashboard's address. It refuses one that other machines
// reach without TLS, unless that was said to be wanted.
func openDashboard(ctx context.Context, a *app, p *project, db *store.DB) (d openedDashboard, err error) {
	c := p.config.Dashboard
	token, err := p.token(a)
	if err != nil {
		return d, err
	}
	secure := c.TLSCert != noFile || c.TLSKey != noFile
	if secure {
		pair, err := tls.LoadX509KeyPair(p.path(c.TLSCert), p.path(c.TLSKey))
		if err != nil {
			return d, usage(fmt.Errorf("dashboard.tls_cert and dashboard.tls_key: %w", err))
		}
		d.secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if d.listener, err = localhttp.Listen(ctx, "dashboard.addr", c.Addr); err != nil {
		return d, usage(fmt.Errorf("%w; choose another with --addr or dashboard.addr", err))
	}
	at, _ := d.listener.Addr().(*net.TCPAddr)
	public := at == nil || !at.IP.IsLoopback()
	if public && !secure && !c.Insecure {
		err := fmt.Errorf("%s can be reached from other machines: give --tls-cert and --tls-key, or --insecure if whoever is on the way may read along (or reach 127.0.0.1 through ssh, docs/dashboard.md)", d.listener.Addr())
		return d, errors.Join(usage(err), d.listener.Close())
	}
	d.url = p.address(d.listener.Addr().String())
	d.link = signInLink(d.url, token)
	log := newLog(a)
	active := func() (bool, error) { return loop.Active(p.state) }
	d.server = &web.Server{
		Store: db, Project: filepath.Base(p.root), Person: a.person(), Version: version(), Limits: limits(p.config.Limits), Log: log,
		Token: token, Hosts: c.Hosts, Public: public, TLS: secure, Always: c.SignIn == "always",
		Active: active, Report: reportRun, Since: reportSince,
		Control: func(ctx context.Context, what string) error { return p.control(ctx, db, what) },
		Settle:  func(ctx context.Context) error { return a.settleClaims(ctx, p, db) },
		Reader:  claude.NewReader,
		Open: func(session string, file web.SessionFile) (io.ReadCloser, error) {
			name := map[web.SessionFile]string{web.Transcript: claude.TranscriptFile, web.Prompt: promptFile}[file]
			return retention.Open(filepath.Join(p.state, "sessions", session, name))
		},
	}
	return d, nil
}

// promptFile is the file of a session that has its prompt.
const promptFile = "prompt.md"

// noFile is what a key for a file is where there is none.
const noFile = "none"

// path is a file that the configuration names, relative to the project.
func (p *project) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.root, name)
}

// address is how a browser reaches the dashboard.
func (p *project) address(addr string) string {
	c := p.config.Dashboard
	scheme := "http"
	if c.TLSCert != noFile {
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

// signInLink has the token where browsers keep it for themselves.
func signInLink(address, token string) string { return address + "/sign-in#" + token }

// token is the secret of the dashboard: the variable's, or the one in a file that
// only this user can read, made when it is needed first.
func (p *project) token(a *app) (string, error) {
	if chosen := a.getenv(dashboardToken); chosen != "" {
		if len(chosen) < minToken {
			return "", usage(&ralph.FieldError{Field: dashboardToken, Problem: fmt.Sprintf("must have at least %d characters", minToken)})
		}
		return chosen, nil
	}
	file := filepath.Join(p.state, "dashboard.token")
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
		return "", fmt.Errorf("%s is no token of a dashboard: remove it, and it is made anew", file)
	}
	return token, nil
}

// makeToken writes a new token, unless another process has been faster: a file is
// there as a whole or not at all.
func makeToken(file string) (err error) {
	part, err := os.CreateTemp(filepath.Dir(file), ".dashboard.token-*") // readable for its owner alone
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

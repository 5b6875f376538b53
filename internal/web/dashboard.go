// Package web is ralph over HTTP: the dashboard, and for programs /metrics and /healthz.
//
// The dashboard is ralph in a browser: what runs, what waits for a person, and
// all that was said and done, with forms to answer and to decide.
//
// Every page is HTML made here from one moment of the database; a small script
// brings it up to date while it is open, and nothing that a person has to do needs
// it. No page asks another host for anything. Texts of agents and people are shown,
// never obeyed: they are escaped, or rendered as Markdown and sanitised.
//
// It never writes SQL and makes no rule: what a person decides goes through the
// functions of store that the commands use. Whoever changes something has signed in
// with the server's token; reading takes that too, unless server and reader are on
// one machine (docs/dashboard.md).
package web

import (
	"context"
	"crypto/tls"
	"embed"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"ralph"
	"ralph/internal/web/localhttp"
	"ralph/loop/agent"
	"ralph/store"
)

//go:embed templates static
var files embed.FS

// A Server shows a project. Its fields are set before use and not changed after.
type Server struct {
	Store   *store.DB
	Project string       // its name
	Person  string       // under whose name people comment and decide here
	Version string       // of ralph
	Limits  ralph.Limits // of the next run
	Log     *slog.Logger

	Token  string   // whoever has it may change things; never empty
	Hosts  []string // names under which it is reached, beside those of this machine
	Public bool     // it can be reached from other machines
	TLS    bool     // it is reached by HTTPS
	Always bool     // reading takes the token too, on this machine as well

	// Active reports whether a run has the project now.
	Active func() (bool, error)
	// Control asks something of the run: one of ralph.Control….
	Control func(ctx context.Context, control string) error
	// Settle ends the claims that a person's decision is the end of, and that nobody
	// else watches over; nil if there is nothing to settle with.
	Settle func(ctx context.Context) error
	// Open opens a file of a session. The error is [fs.ErrNotExist] if it is not there
	// any more, or not yet.
	Open func(session string, file SessionFile) (io.ReadCloser, error)
	// Reader reads a transcript from its beginning.
	Reader func() agent.Reader
}

// A SessionFile is a file that a session leaves.
type SessionFile string

// The files that are shown.
const (
	Transcript SessionFile = "transcript"
	Prompt     SessionFile = "prompt"
)

// Times that a slow or silent client is given. Streams have none.
const (
	headerTime = 5 * time.Second
	readTime   = 30 * time.Second
	idleTime   = 2 * time.Minute
)

// Serve answers on l until ctx ends, and closes it; with a configuration of TLS by
// HTTPS. It leaves no goroutine behind.
func (s *Server) Serve(ctx context.Context, l net.Listener, secure *tls.Config) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	return s.serve(ctx, l, &http.Server{Handler: h, TLSConfig: secure})
}

// ServeMetrics does the same with nothing but /metrics and /healthz, without a password.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener) error {
	s.Log.Info("serving /metrics and /healthz", "addr", l.Addr().String())
	return s.serve(ctx, l, &http.Server{Handler: s.Metrics(), WriteTimeout: readTime})
}

func (s *Server) serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	srv.ReadHeaderTimeout, srv.ReadTimeout, srv.IdleTimeout = headerTime, readTime, idleTime
	srv.MaxHeaderBytes = 32 << 10
	srv.ErrorLog = slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)
	return localhttp.Serve(ctx, srv, l)
}

// An app is a server with what it keeps while it runs.
type app struct {
	*Server
	pages       pages
	key         key
	transcripts transcripts
	streams     atomic.Int64 // that are open
}

// Handler answers every page.
func (s *Server) Handler() (http.Handler, error) {
	a := &app{Server: s, key: newKey(s.Token)}
	a.transcripts.open, a.transcripts.reader = s.Open, s.Reader
	var err error
	if a.pages, err = parsePages(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	a.route(mux)
	return a.guard(mux), nil
}

// route is the list of what there is. A POST changes something.
func (a *app) route(mux *http.ServeMux) {
	for path, show := range map[string]shower{
		"/{$}":                  a.overview,
		"/board":                a.board,
		"/tasks":                a.taskList,
		"/tasks/{id}":           a.task,
		"/inbox":                a.inbox,
		"/sessions":             a.sessions,
		"/sessions/{id}/prompt": a.prompt,
		"/learnings":            a.learnings,
		"/features":             a.features,
		"/feature":              a.feature,
		"/runs":                 a.runs,
		"/runs/{id}":            a.run,
		"/charts":               a.charts,
	} {
		mux.HandleFunc("GET "+path, a.show(show))
	}
	mux.HandleFunc("GET /sessions/{id}", a.readFirst(a.show(a.session)))
	for path, act := range map[string]actor{
		"/tasks/{id}/comment":       byID(a.comment),
		"/tasks/{id}/retry":         byID(a.retry),
		"/tasks/{id}/cancel":        byID(a.cancel),
		"/tasks/{id}/unblock":       byID(a.unblock),
		"/tasks/{id}/approve":       byID(a.approveTask),
		"/tasks/{id}/reject":        byID(a.rejectTask),
		"/comments/{id}/answer":     byID(a.answer),
		"/comments/{id}/reply":      byID(a.reply),
		"/comments/{id}/settle":     byID(a.settle),
		"/amendments/{id}/decide":   byID(a.decideAmendment),
		"/amendments/{id}/rollback": byID(a.rollBack),
		"/permissions/{id}/decide":  byID(a.decidePermission),
		"/sessions/{id}/skip":       a.skip,
		"/learnings":                a.addLearning,
		"/learnings/{id}/{change}":  byID(a.changeLearning),
	} {
		mux.HandleFunc("POST "+path, a.act(act))
	}
	for path, control := range map[string]string{
		"pause": ralph.ControlPause, "resume": ralph.ControlNone, "stop": ralph.ControlStop,
	} {
		mux.HandleFunc("POST /run/"+path, a.control(control))
	}
	mux.HandleFunc("GET /sign-in", a.signInPage)
	mux.HandleFunc("POST /sign-in", a.signIn)
	mux.HandleFunc("POST /sign-out", a.signOut)
	mux.HandleFunc("GET /events", a.stream)
	mux.Handle("GET /static/", a.static())
	observed := a.Metrics()
	mux.Handle("GET /metrics", observed)
	mux.Handle("GET /healthz", observed)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, notThere(r))
	})
}

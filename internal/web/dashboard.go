// Package web serves ralph over HTTP: the dashboard, and for programs /metrics and /healthz.
//
// The dashboard is ralph in a browser: the work in progress, the inbox, and the whole history, with forms to answer and
// to decide.
//
// Every page is HTML rendered here from one moment of the database; a small script updates it while it is open, but
// every job also works without the script. Pages request nothing from other hosts. Texts of agents and people are
// escaped, or rendered as Markdown and sanitized.
//
// It contains no SQL and no rules: decisions go through the same functions of store as the commands. Changes require
// signing in with the server's token; so does reading, unless people have opened it to all users of the machine
// (docs/dashboard.md).
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

// A Server serves a project. Its fields are set before use and not changed after.
type Server struct {
	Store   *store.DB
	Project string       // its name
	Person  string       // name for people's comments and decisions here
	Version string       // version of ralph
	Limits  ralph.Limits // limits of the next run
	Log     *slog.Logger

	Token  string   // required for changes; never empty
	Hosts  []string // names of the server in addition to this machine's
	Public bool     // reachable from other machines
	TLS    bool     // served by HTTPS
	Always bool     // even reading on this machine requires the token

	// Control sends a request to the run: one of ralph.Control….
	Control func(ctx context.Context, control string) error
	// Start starts a run that outlives the server, and describes its start in a sentence; nil if no run can be started.
	Start func(ctx context.Context) (string, error)
	// Settle acts on a person's decision without a run: it ends claims, and begins to merge the queue. nil leaves both
	// to the next run.
	Settle func(ctx context.Context) error
	// Undo undoes or restores a task's merged changes, and describes the result in a sentence; nil if that is
	// impossible. to is the status that the person wants for the task, cancelled or completed; "" for either. why is for
	// the task's next session. byAgent lets an agent undo changes that conflict with later commits.
	Undo func(ctx context.Context, task int64, to ralph.Status, why string, byAgent bool) (said string, err error)
	// Forge returns the state of the forge in a line, "" for none; nil is none.
	Forge func() string
	// Hook checks the request of a webhook, and wakes the reader of the forge; nil without a secret.
	Hook http.Handler
	// Patch returns the difference between two commits of a session's change as git prints it, without secrets; nil
	// without a repository.
	Patch func(ctx context.Context, session, from, to string) (string, error)
	// Open opens a file of a session. The error is [fs.ErrNotExist] if it does not exist (yet).
	Open func(session string, file SessionFile) (io.ReadCloser, error)
	// Reader returns a reader for a transcript from its beginning.
	Reader func() agent.Reader
}

// A SessionFile is a kind of file of a session.
type SessionFile string

// The kinds of files that are shown.
const (
	Transcript SessionFile = "transcript"
	Prompt     SessionFile = "prompt"
	Diffs      SessionFile = "diffs" // the JSON of [ralph.Differences]
)

// Time limits for slow or silent clients. Streams have none.
const (
	headerTime = 5 * time.Second
	readTime   = 30 * time.Second
	idleTime   = 2 * time.Minute
)

// Serve answers on l until ctx ends, and closes l; by HTTPS if secure is not nil. It leaves no
// goroutine behind.
func (s *Server) Serve(ctx context.Context, l net.Listener, secure *tls.Config) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	return s.serve(ctx, l, &http.Server{Handler: h, TLSConfig: secure})
}

func (s *Server) serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	srv.ReadHeaderTimeout, srv.ReadTimeout, srv.IdleTimeout = headerTime, readTime, idleTime
	srv.MaxHeaderBytes = 32 << 10
	srv.ErrorLog = slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)
	return localhttp.Serve(ctx, srv, l)
}

// hookPath is the path of the forge's webhooks, which are signed.
const hookPath = "/hooks/forge"

// An app is a server with its state.
type app struct {
	*Server
	pages       pages
	key         key
	transcripts transcripts
	streams     atomic.Int64 // open ones
}

// Handler returns the handler of all pages.
func (s *Server) Handler() (http.Handler, error) {
	a := &app{Server: s, key: newKey(s.Token)}
	a.transcripts.open, a.transcripts.reader = s.Open, s.Reader
	var err error
	if a.pages, err = parsePages(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	a.route(mux)
	if s.Hook == nil {
		return a.guard(mux), nil
	}
	outer := http.NewServeMux() // a webhook has no session, and its signature covers its body
	outer.Handle("/", a.guard(mux))
	outer.Handle("POST "+hookPath, s.Hook)
	return outer, nil
}

// route registers all paths. A POST changes something.
func (a *app) route(mux *http.ServeMux) {
	for path, show := range map[string]shower{
		"/{$}":                  a.overview,
		"/board":                a.board,
		"/tasks":                a.taskList,
		"/sessions":             a.sessions,
		"/sessions/{id}/prompt": a.prompt,
		"/learnings":            a.learnings,
		"/features":             a.features,
		"/feature":              a.feature,
		"/runs":                 a.runs,
		"/runs/{id}":            a.run,
		"/charts":               a.charts,
		"/tasks/{id}":           a.task,
		"/inbox":                a.inbox,
		"/inbox/many":           a.many,
		"/search":               a.search,
	} {
		mux.HandleFunc("GET "+path, a.show(show))
	}
	mux.HandleFunc("GET /sessions/{id}", a.readFirst(a.show(a.session)))
	for path, act := range map[string]actor{
		"/tasks":                    a.addTask,
		"/tasks/{id}/edit":          byID(a.editTask),
		"/tasks/{id}/comment":       byID(a.comment),
		"/tasks/{id}/retry":         byID(a.retry),
		"/tasks/{id}/cancel":        byID(a.cancel),
		"/tasks/{id}/unblock":       byID(a.unblock),
		"/tasks/{id}/approve":       a.proposal(true),
		"/tasks/{id}/reject":        a.proposal(false),
		"/tasks/{id}/move":          byID(a.moveTask),
		"/tasks/{id}/split":         byID(a.splitTask),
		"/features":                 a.putFeature,
		"/comments/{id}/split":      byID(a.splitAsSuggested),
		"/comments/{id}/answer":     byID(a.answer),
		"/comments/{id}/reply":      byID(a.reply),
		"/comments/{id}/resolve":    byID(a.resolve),
		"/amendments/{id}/decide":   byID(a.decideAmendment),
		"/amendments/{id}/rollback": byID(a.rollBack),
		"/permissions/{id}/decide":  byID(a.decidePermission),
		"/inbox/many":               a.decideMany,
		"/merge/resume":             a.resumeMerging,
		"/sessions/{id}/skip":       a.skip,
		"/learnings":                a.addLearning,
		"/learnings/{id}/{change}":  byID(a.changeLearning),
	} {
		mux.HandleFunc("POST "+path, a.act(act))
	}
	for path, control := range map[string]string{
		"pause": ralph.ControlPause, "resume": ralph.ControlNone, "stop": ralph.ControlStop, "stop-now": ralph.ControlStopNow,
	} {
		mux.HandleFunc("POST /run/"+path, a.control(control))
	}
	if a.Undo != nil {
		mux.HandleFunc("POST /tasks/{id}/undo", a.undo)
	}
	if a.Start != nil {
		mux.HandleFunc("POST /run/start", a.start)
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

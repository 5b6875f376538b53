package web

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/store"
)

// pages are the templates by page, each with the layout and the parts.
type pages struct {
	templates *template.Template
	style     string // digest of static/, so that a new version loads new styles
}

// parsePages parses the embedded templates.
func parsePages() (p pages, err error) {
	if p.style, err = digestStatic(); err != nil {
		return p, err
	}
	md := newMarkdown()
	funcs := template.FuncMap{
		"static": func(name string) string { return "/static/" + p.style + "/" + name },
		"md":     md.render, "plain": text.Clean, "shown": text.Visible, "money": text.Money,
		"line": func(n int, s string) string { return text.Line(s, n) },
		"span": span, "number": number, "plural": plural,
		"moment": moment, "short": func(id string) string { return text.Head(id, 8) },
		"words": func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
		"verb":  verbLook, "phase": func(p ralph.Phase) look { return phases[p] },
		"status": wordLook, "task": taskLook, "args": args,
		"sign": sign, "icon": icon, "asked": newAsked, "counted": counted,
		"link": link, "tasks": tasksLike, "key": ralph.KeyOf, "edition": edition,
		"percent": percent, "left": left, "ago": ago, "brief": brief, "coded": coded, "proofs": proofs,
		"figure": func(g string, of url.Values) string { return figure(report.Group(g), of) },
		"add":    func(a, b int) int { return a + b }, "inc": func(n int) int { return n + 1 },
	}
	p.templates = template.New("").Funcs(funcs)
	// Each page has its content under its own name: a set of templates for each page would repeat all the rest.
	names, err := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		one, perr := template.New("").Funcs(funcs).ParseFS(files, name)
		if err = errors.Join(err, perr); perr != nil {
			continue
		}
		for _, t := range one.Templates() {
			called := t.Name()
			switch called {
			case "": // the set's own, which is empty
				continue
			case "content":
				called = contentOf(strings.TrimSuffix(path.Base(name), ".html"))
			}
			if p.templates.Lookup(called) != nil {
				err = errors.Join(err, fmt.Errorf("%s: another template is called %q, too", name, called))
			}
			_, perr := p.templates.AddParseTree(called, t.Tree)
			err = errors.Join(err, perr)
		}
	}
	return p, err
}

// contentOf returns the template name of a page's content, between header and footer.
func contentOf(page string) string { return "content of " + page }

// args builds a map for a template with several values: name, value, name, value.
func args(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// percent returns a part of a whole, from 0 to 100.
func percent(part, whole float64) int {
	if whole <= 0 {
		return 0
	}
	return int(max(0, min(100, part*100/whole)))
}

func digestStatic() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		sum.Write(b)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// static serves a file under its digest; it never changes.
func (a *app) static() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/static/"+a.pages.style+"/")
		if !ok || !fs.ValidPath(name) {
			a.fail(w, r, notThere(r))
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		http.ServeFileFS(w, r, files, "static/"+name)
	})
}

// A view is the content of a page.
type view struct {
	title  string
	name   string // name of the template
	nav    string // path of its menu entry
	task   int64  // only events of this task update the page; 0 for all
	live   bool   // the page is updated while it is open
	stream string // the session whose transcript is followed
	entry  int    // number of its entries on the page

	changes []*shownChange // changes on the page, compared after the transaction
	body    any
}

// A frame has the parts of every page around the view.
type frame struct {
	Title, Project, Version, Name, Nav, Path string
	SignedIn, Foreign                        bool
	CSRF                                     string
	Now                                      ralph.Time
	Group                                    []menuEntry    // the pages beside this one
	Waiting                                  int            // number of inbox items; -1 if unknown
	Band                                     []item         // permissions that paused agents wait for
	Notices                                  []notice       // below it
	Still                                    bool           // only the band is updated
	Refresh                                  bool           // the page is open, and has the rest already
	Stream                                   string         // URL of the updates; "" for none
	Morning                                  report.Morning // the summary since the visitor's last look
	Of                                       url.Values     // the conditions of the counted sessions
	Flash                                    string         // the result of the visitor's last form; "" for none
	Body                                     any
	Content                                  template.HTML // the body, rendered
}

// Urgent returns the number of things that a person should look at now.
func (f frame) Urgent() int {
	n := len(f.Notices)
	for _, i := range f.Band {
		n += i.Times()
	}
	return n
}

// Doing returns the shown state of a session. A session that waits for a permission stands still.
func (f frame) Doing(session string, state ralph.Phase) look {
	for _, i := range f.Band {
		for _, asks := range i.Members() {
			if asks.Session == session {
				return look{"⏸", "Stands still", "orange"}
			}
		}
	}
	return phases[state]
}

// A shower makes the view of a page from one state of the database.
type shower func(tx *store.Tx, r *http.Request) (view, error)

// show serves a page.
func (a *app) show(f shower) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fr, v, mark := a.frame(r), view{}, ""
		err := a.Store.View(r.Context(), func(tx *store.Tx) (err error) {
			if v, err = f(tx, r); err == nil {
				mark, err = a.surround(tx, r, &fr, v)
			}
			return err
		})
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.compare(r.Context(), v.changes)
		refresh := r.Header.Get("X-Refresh")
		fr.Refresh = refresh != ""
		if refresh == "" { // a page that updates itself is not a visit
			a.setCookie(w, "looked", mark, lookedFor)
		}
		if refresh != "yes" { // the message belongs to the page after the form
			fr.Flash = a.takeFlash(w, r)
		}
		page, err := a.render(fr, v)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.send(w, r, http.StatusOK, page)
	}
}

// surround fills in the parts around a view, and returns the mark that the visitor keeps. The id of the last event
// belongs to the same state as the view, so that the stream continues without a gap.
func (a *app) surround(tx *store.Tx, r *http.Request, fr *frame, v view) (mark string, err error) {
	after, err := tx.LastEvent()
	if err != nil {
		return "", err
	}
	fr.Now = tx.Now()
	counts, err := tx.InboxCounts()
	if err != nil {
		return "", err
	}
	fr.Waiting = 0
	for _, n := range counts {
		fr.Waiting += n
	}
	now, err := tx.InboxOf("permission")
	if err != nil {
		return "", err
	}
	if fr.Band, err = rows(tx, now); err != nil {
		return "", err
	}
	spending, err := a.spending(tx)
	if err != nil {
		return "", err
	}
	if fr.Notices, err = a.notices(tx, spending); err != nil {
		return "", err
	}
	from, mark := since(a.looked(r), tx.Now().Time)
	if v.name == "overview" {
		if fr.Morning, err = morning(tx, from, spending); err != nil {
			return "", err
		}
		fr.Of = conditionsOf(fr.Morning.Of)
	}
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if v.task != 0 {
		q.Set("task", strconv.FormatInt(v.task, 10))
	}
	if v.stream != "" {
		q.Set("session", v.stream)
		q.Set("entry", strconv.Itoa(v.entry))
	}
	fr.Stream, fr.Still = "/events?"+q.Encode(), !v.live
	return mark, nil
}

// write serves a page that does not use the database.
func (a *app) write(w http.ResponseWriter, r *http.Request, status int, v view) {
	page, err := a.render(a.frame(r), v)
	if err != nil {
		a.Log.Error("page", "name", v.name, "error", err)
		http.Error(w, "This page could not be made; the log of ralph says why.", http.StatusInternalServerError)
		return
	}
	a.send(w, r, status, page)
}

func (a *app) frame(r *http.Request) frame {
	v := a.visitor(r)
	return frame{
		Project: a.Project, Version: a.Version, Path: r.URL.RequestURI(),
		SignedIn: v.signedIn(), Foreign: !v.mayRead, CSRF: a.csrf(v), Waiting: -1,
	}
}

// render renders a whole page.
func (a *app) render(f frame, v view) (string, error) {
	f.Title, f.Name, f.Body = v.title, v.name, v.body
	f.Nav, f.Group = menu(v.nav)
	if v.nav != "/"+v.name { // a page about one thing links to its list itself
		f.Group = nil
	}
	var content, b strings.Builder
	if err := a.pages.templates.ExecuteTemplate(&content, contentOf(v.name), f); err != nil {
		return "", err
	}
	f.Content = template.HTML(content.String()) //nolint:gosec // already escaped by a template of ours
	err := a.pages.templates.ExecuteTemplate(&b, "layout", f)
	return b.String(), err
}

// send writes a page, compressed if the browser accepts that.
func (a *app) send(w http.ResponseWriter, r *http.Request, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Encoding")
	var err error
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		z := gzip.NewWriter(w)
		_, err = io.WriteString(z, page)
		err = errors.Join(err, z.Close())
	} else {
		w.WriteHeader(status)
		_, err = io.WriteString(w, page)
	}
	if err != nil {
		a.Log.Debug("page", "error", err) // the browser has gone
	}
}

// flashFor is how long a message waits for its page.
const flashFor = time.Minute

// flash leaves a message for the next page.
func (a *app) flash(w http.ResponseWriter, said string) {
	a.setCookie(w, "flash", a.key.seal("flash", url.QueryEscape(text.Line(said, 300))), flashFor)
}

func (a *app) takeFlash(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(a.key.cookie("flash"))
	if err != nil {
		return ""
	}
	a.setCookie(w, "flash", "", -1)
	text, ok := a.key.opened("flash", c.Value)
	said, err := url.QueryUnescape(text)
	if !ok || err != nil {
		return ""
	}
	return said
}

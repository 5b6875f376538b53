package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ralph"
)

// TestReadersAndWriters is the table of the security model (docs/dashboard.md).
func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		public, always       bool
		hosts                []string
		host, remote, header string // header as "Name: value"
		signedIn             bool
		read, change         int // statuses; a change is the answer to a question that does not exist
	}{
		"this machine may read":                   {read: 200, change: 401},
		"who has signed in may change":            {signedIn: true, read: 200, change: 404},
		"a program with the token may change":     {header: "Authorization: Bearer " + token, read: 200, change: 404},
		"a wrong token is none":                   {header: "Authorization: Bearer " + token + "x", read: 200, change: 401},
		"by its IPv6 address":                     {host: "[::1]:7474", remote: "[::1]:5", read: 200, change: 401},
		"reading may need a sign-in too":          {always: true, read: 303, change: 401},
		"and be allowed by it":                    {always: true, signedIn: true, read: 200, change: 404},
		"a name bent to this machine is refused":  {host: "evil.example", signedIn: true, read: 421, change: 421},
		"a known name needs a sign-in":            {hosts: []string{"box.example"}, host: "box.example", read: 303, change: 401},
		"a known name with a port":                {hosts: []string{"box.example"}, host: "BOX.example:7474", signedIn: true, read: 200, change: 404},
		"a proxy in front needs a sign-in":        {header: "X-Forwarded-For: 10.1.2.3", read: 303, change: 401},
		"another machine needs a sign-in":         {public: true, host: "10.0.0.5:7474", remote: "10.0.0.9:4", read: 303, change: 401},
		"a public server asks its own machine":    {public: true, read: 303, change: 401},
		"another machine that has signed in":      {public: true, host: "10.0.0.5:7474", remote: "10.0.0.9:4", signedIn: true, read: 200, change: 404},
		"a foreign name of a public server":       {public: true, host: "evil.example", signedIn: true, read: 421, change: 421},
		"an address, where it serves itself only": {host: "10.0.0.5:7474", read: 421, change: 421},
		"a page of another site":                  {header: "Origin: https://evil.example", signedIn: true, read: 403, change: 403},
		"a page of another port":                  {header: "Origin: http://127.0.0.1:8080", signedIn: true, read: 403, change: 403},
		"a page without an origin":                {header: "Origin: null", signedIn: true, read: 403, change: 403},
		"its own page":                            {header: "Origin: http://127.0.0.1:7474", signedIn: true, read: 200, change: 404},
		"a form that another site sends":          {header: "Sec-Fetch-Site: cross-site", signedIn: true, read: 200, change: 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.server.Public, s.server.Always, s.server.Hosts = c.public, c.always, c.hosts
			b := s.browser()
			form := url.Values{"text": {"x"}}
			if c.signedIn {
				b.signIn()
				b.host = "127.0.0.1:7474"
				form.Set("csrf", hidden.FindStringSubmatch(b.get("/"))[1])
			}
			if c.host != "" {
				b.host = c.host
			}
			if c.remote != "" {
				b.remote = c.remote
			}
			if name, value, ok := strings.Cut(c.header, ": "); ok {
				b.header.Set(name, value)
			}
			if w := b.send(http.MethodGet, "/", nil); w.Code != c.read {
				t.Errorf("reading: %d, want %d\n%s", w.Code, c.read, w.Body)
			}
			if w := b.send(http.MethodPost, "/comments/99/answer", form); w.Code != c.change {
				t.Errorf("changing: %d, want %d\n%s", w.Code, c.change, w.Body)
			}
		})
	}
}

func TestAFormNeedsItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	b := s.browser().signIn()
	other := s.browser().signIn()
	foreign := hidden.FindStringSubmatch(other.get("/"))[1]
	for name, proof := range map[string]string{"without its proof": "", "with a made-up one": "abc", "with another session's": foreign} {
		if w := b.send(http.MethodPost, "/tasks/1/comment", url.Values{"csrf": {proof}, "text": {"hello"}}); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), ">hello</textarea>") {
			t.Errorf("a form %s: %d, and what was written is in\n%s", name, w.Code, w.Body)
		}
	}
	if page := b.get("/tasks/1"); strings.Contains(page, "hello") {
		t.Errorf("TASK-%d was commented on:\n%s", id, page)
	}
}

func TestOnlyTheTokenSignsIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	for _, wrong := range []string{"", "x", token[:len(token)-1], token + "x"} {
		if w := b.send(http.MethodPost, "/sign-in", url.Values{"token": {wrong}}); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "not the token") {
			t.Errorf("%q signs in: %d", wrong, w.Code)
		}
	}
	b.signIn()
	cookies := b.cookies
	again := s.browser() // the server was started anew
	again.cookies = cookies
	has(t, again.get("/"), "Sign out")
	s.server.Token = token + "2"
	changed := s.browser()
	changed.cookies = cookies
	has(t, changed.get("/"), "Sign in")
	for name, value := range cookies {
		at := strings.IndexByte(value, '.')
		if at < 0 {
			continue // nothing is proved by it
		}
		b.cookies[name] = "9" + value[:at] + value[at:] // it would last longer
	}
	has(t, b.get("/"), "Sign in")
}

func TestSigningInLeadsToNoOtherSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, next := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, "javascript:alert(1)", "/a\r\nSet-Cookie: x=y", "http:evil"} {
		w := s.browser().send(http.MethodPost, "/sign-in", url.Values{"token": {token}, "next": {next}})
		if to := w.Header().Get("Location"); to != "/" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
}

func TestEveryAnswerIsFenced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/", "/board", "/sign-in", "/nothing", "/static/x"} {
		h := s.browser().send(http.MethodGet, path, nil).Header()
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: Content-Security-Policy %q", path, csp)
		}
		for _, name := range []string{"X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy", "Cache-Control"} {
			if h.Get(name) == "" {
				t.Errorf("%s has no %s", path, name)
			}
		}
	}
	page := s.browser().get("/")
	for _, bad := range []string{" style=", "javascript:", " onclick", "<script>", "//cdn", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q in it", bad)
		}
	}
}

// TestNoSecretIsLogged: neither the token nor the contents of a form.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser().signIn()
	b.send(http.MethodPost, "/sign-in", url.Values{"token": {"wrong-" + token}})
	b.post("/comments/9/answer", "text", "between us")
	s.db.Close()
	b.send(http.MethodGet, "/?token="+token, nil)
	if log := s.log.String(); log == "" || strings.Contains(log, token) || strings.Contains(log, "between us") {
		t.Errorf("the log is %q", log)
	}
}

func TestTooLongAFormIsRefused(t *testing.T) {
	t.Parallel()
	b := newSite(t).browser().signIn()
	if w := b.send(http.MethodPost, "/tasks/1/comment", url.Values{"text": {strings.Repeat("x", 2<<20)}}); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MiB: %d", w.Code)
	}
}

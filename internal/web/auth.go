package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph/internal/web/localhttp"
)

// signedInFor is how long a browser stays signed in.
const signedInFor = 90 * 24 * time.Hour

// A key signs the browsers' cookies. It is derived from the token, so that a restarted server accepts old cookies, and
// a new token invalidates all of them.
type key []byte

func newKey(token string) key {
	sum := sha256.Sum256([]byte("ralph dashboard\x00" + token))
	return sum[:]
}

// sign returns a proof of a text for a purpose.
func (k key) sign(purpose, text string) string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(purpose + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// seal returns a text with its proof; opened verifies it.
func (k key) seal(purpose, text string) string { return text + "." + k.sign(purpose, text) }

func (k key) opened(purpose, sealed string) (text string, ok bool) {
	i := strings.LastIndexByte(sealed, '.')
	if i < 0 {
		return "", false
	}
	return sealed[:i], localhttp.Same(sealed[i+1:], k.sign(purpose, sealed[:i]))
}

// cookie returns the name of a cookie of this server: browsers do not separate the ports of a host.
func (k key) cookie(purpose string) string {
	sum := sha256.Sum256(append([]byte("name\x00"+purpose), k...))
	return "ralph_" + purpose + "_" + hex.EncodeToString(sum[:4])
}

// A visitor is the sender of a request.
type visitor struct {
	session  string // proven by the cookie; "" if the browser has not signed in
	program  bool   // it sent the token itself
	mayRead  bool
	loopback bool
}

func (v visitor) signedIn() bool { return v.session != "" || v.program }

// visitor identifies the sender of a request.
func (a *app) visitor(r *http.Request) visitor {
	v := visitor{program: localhttp.Bearer(r, a.Token)}
	if c, err := r.Cookie(a.key.cookie("session")); err == nil {
		if text, ok := a.key.opened("session", c.Value); ok {
			expires, _, _ := strings.Cut(text, ".")
			if at, err := strconv.ParseInt(expires, 10, 64); err == nil && time.Now().Unix() < at {
				v.session = c.Value
			}
		}
	}
	// Behind a proxy, strangers seem to come from this machine.
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	v.loopback = err == nil && localhttp.Loopback(remote) && localhttp.Loopback(r.Host) && !proxied(r)
	v.mayRead = v.signedIn() || v.loopback && !a.Public && !a.Always
	return v
}

// proxied reports whether the request came through a proxy.
func proxied(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"},
		func(name string) bool { return r.Header.Get(name) != "" })
}

// csrf returns the token in the forms of a browser's session. No other page knows it.
func (a *app) csrf(v visitor) string {
	if v.session == "" {
		return ""
	}
	return a.key.sign("form", v.session)
}

// policy allows a page its own script and style, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxBody is the maximum size of a form in bytes: escaping each byte of a text of 64 KiB triples
// it.
const maxBody = 1 << 20

// open reports whether a path requires no sign-in.
func open(path string) bool {
	return path == "/sign-in" || path == "/healthz" || strings.HasPrefix(path, "/static/")
}

// guard checks every request.
func (a *app) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := r.ParseForm(); err != nil && statusOf(err) == http.StatusRequestEntityTooLarge {
			a.refuse(w, http.StatusRequestEntityTooLarge, "That is more text than a form may have.")
			return
		}
		origin, ok := localhttp.OriginHost(r)
		v := a.visitor(r)
		switch {
		case !a.knows(r.Host):
			a.refuse(w, http.StatusMisdirectedRequest, "This server is not known under that name. "+
				"Use its address, or name it in dashboard.hosts of ralph.yaml.")
		case !ok || origin != "" && !strings.EqualFold(origin, r.Host) || crossOrigin.Check(r) != nil:
			a.refuse(w, http.StatusForbidden, "Requests from pages of other sites are refused.")
		case open(r.URL.Path) || v.mayRead && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			next.ServeHTTP(w, r)
		case !v.signedIn():
			a.askToSignIn(w, r)
		case v.session != "" && !v.program && !localhttp.Same(r.PostFormValue("csrf"), a.csrf(v)):
			a.fail(w, r, errOldForm)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a Host belongs to the server. If the server listens for other machines it
// accepts any IP address, because DNS cannot redirect one.
func (a *app) knows(host string) bool {
	name := localhttp.Name(host)
	named := func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, host) }
	return localhttp.Loopback(host) || slices.ContainsFunc(a.Hosts, named) || a.Public && net.ParseIP(name) != nil
}

func (a *app) refuse(w http.ResponseWriter, status int, why string) {
	http.Error(w, why, status)
}

var (
	// errSignIn is the error for a change without a sign-in.
	errSignIn = errors.New("you are not signed in, or no longer: sign in first, and send this again")
	// errOldForm is the error for a form of an earlier sign-in. Its fields are shown again, so that
	// a person can send it again.
	errOldForm = errors.New("this form is older than your sign-in: look at it, and send it again")
)

// askToSignIn redirects a browser to the sign-in form, and tells programs that they lack the token.
func (a *app) askToSignIn(w http.ResponseWriter, r *http.Request) {
	html := strings.Contains(r.Header.Get("Accept"), "text/html")
	if html && r.Method == http.MethodPost {
		a.fail(w, r, errSignIn)
		return
	}
	if html {
		http.Redirect(w, r, "/sign-in?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="ralph"`)
	a.refuse(w, http.StatusUnauthorized, "Sign in first, or send the token as \"Authorization: Bearer TOKEN\".")
}

// signInPage asks for the token.
func (a *app) signInPage(w http.ResponseWriter, r *http.Request) {
	form := signInForm{Next: local(r.URL.Query().Get("next"))}
	a.write(w, r, http.StatusOK, view{title: "Sign in", name: "signin", body: form})
}

type signInForm struct {
	Next  string
	Wrong bool
}

func (a *app) signIn(w http.ResponseWriter, r *http.Request) {
	next := local(r.PostFormValue("next"))
	if !localhttp.Same(strings.TrimSpace(r.PostFormValue("token")), a.Token) {
		a.write(w, r, http.StatusForbidden, view{title: "Sign in", name: "signin", body: signInForm{Next: next, Wrong: true}})
		return
	}
	text := strconv.FormatInt(time.Now().Add(signedInFor).Unix(), 10) + "." + rand.Text()
	a.setCookie(w, "session", a.key.seal("session", text), signedInFor)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (a *app) signOut(w http.ResponseWriter, r *http.Request) {
	a.setCookie(w, "session", "", -1)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// setCookie sets a cookie. It is Lax, so that a link in a message leads to a page where a person
// can answer; changes are protected by the form's token.
func (a *app) setCookie(w http.ResponseWriter, purpose, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.key.cookie(purpose), Value: value, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: a.TLS, SameSite: http.SameSiteLaxMode,
	})
}

// local returns a path of this server for any link, never another site.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" ||
		!strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

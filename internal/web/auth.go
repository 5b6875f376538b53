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

// A key signs what browsers are given to keep. It follows from the token, so that
// a server that is started anew knows them again, and another token ends them all.
type key []byte

func newKey(token string) key {
	sum := sha256.Sum256([]byte("ralph dashboard\x00" + token))
	return sum[:]
}

// sign is a proof of a text for a purpose.
func (k key) sign(purpose, text string) string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(purpose + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// seal is a text with its proof, and opened the other way round.
func (k key) seal(purpose, text string) string { return text + "." + k.sign(purpose, text) }

func (k key) opened(purpose, sealed string) (text string, ok bool) {
	i := strings.LastIndexByte(sealed, '.')
	if i < 0 {
		return "", false
	}
	return sealed[:i], localhttp.Same(sealed[i+1:], k.sign(purpose, sealed[:i]))
}

// cookie is the name of a cookie of this server's: browsers do not tell the ports
// of a machine apart.
func (k key) cookie(purpose string) string {
	sum := sha256.Sum256(append([]byte("name\x00"+purpose), k...))
	return "ralph_" + purpose + "_" + hex.EncodeToString(sum[:4])
}

// A visitor is who asks.
type visitor struct {
	session  string // the cookie that says so; "" if the browser has not signed in
	program  bool   // it has sent the token itself
	mayRead  bool
	loopback bool
}

func (v visitor) signedIn() bool { return v.session != "" || v.program }

// visitor finds out who asks.
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
	// A proxy in front makes strangers look like this machine.
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	v.loopback = err == nil && localhttp.Loopback(remote) && localhttp.Loopback(r.Host) && !proxied(r)
	v.mayRead = v.signedIn() || v.loopback && !a.Public && !a.Always
	return v
}

// proxied reports whether somebody passes the request on.
func proxied(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return true
		}
	}
	return false
}

// csrf is what the forms of a browser's session have and no other page can know.
func (a *app) csrf(v visitor) string {
	if v.session == "" {
		return ""
	}
	return a.key.sign("form", v.session)
}

// policy lets a page have its own script and style and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxBody is how large a form may be, in bytes; a text of 64 KiB grows threefold
// where each byte has to be escaped.
const maxBody = 1 << 20

// open are the paths that nobody has to sign in for.
func open(path string) bool {
	return path == "/sign-in" || path == "/healthz" || strings.HasPrefix(path, "/static/")
}

// guard is in front of everything.
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

// knows reports whether a Host is one of the server's. A number cannot be bent to
// another machine by a name server, so that any is good where it can be reached
// from outside.
func (a *app) knows(host string) bool {
	name := localhttp.Name(host)
	named := func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, host) }
	return localhttp.Loopback(host) || slices.ContainsFunc(a.Hosts, named) || a.Public && net.ParseIP(name) != nil
}

func (a *app) refuse(w http.ResponseWriter, status int, why string) {
	http.Error(w, why, status)
}

var (
	// errSignIn is what changing something comes to for strangers.
	errSignIn = errors.New("you are not signed in, or no longer: sign in first, and send this again")
	// errOldForm is what a form comes to that another sign-in was made for. What it
	// says is shown, so that it can be sent again, which only a person can do.
	errOldForm = errors.New("this form is older than your sign-in: look at it, and send it again")
)

// askToSignIn sends a browser to the form, and tells programs what they lack.
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

// setCookie gives a browser something to keep. Lax: a link in a message leads to a
// page on which one can answer; what changes something is guarded by its form.
func (a *app) setCookie(w http.ResponseWriter, purpose, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.key.cookie(purpose), Value: value, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: a.TLS, SameSite: http.SameSiteLaxMode,
	})
}

// local is a path of this server, whatever a link says: never another site.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" ||
		!strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

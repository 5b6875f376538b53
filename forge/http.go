package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"ralph/internal/text"
)

// A Kind classifies a failed request by its remedy.
type Kind string

// The kinds of failures.
const (
	Away    Kind = "away"    // the forge cannot be reached or fails: try again later
	Limited Kind = "limited" // a rate limit is used up: wait
	Token   Kind = "token"   // the token is missing, revoked or expired: a person fixes it
	Denied  Kind = "denied"  // this request is not allowed: no right, locked, archived
	Gone    Kind = "gone"    // there is no such thing, or the token does not see it
	Invalid Kind = "invalid" // the forge refuses the content

	Elsewhere Kind = "elsewhere" // this is not the repository that the queue follows: a person fixes the remote
)

// Passes reports whether the same request may succeed later. A post with any other failure is given
// up.
func (k Kind) Passes() bool { return k == Away || k == Limited || k == Token || k == Elsewhere }

// An Error is a failed request.
type Error struct {
	Kind   Kind
	Status int       // status of the response; 0 without one
	Said   string    // by the forge
	Until  time.Time // of [Limited]: when to try again
}

// Error describes the failure.
func (e *Error) Error() string {
	said := e.Said
	if e.Status != 0 {
		said = fmt.Sprintf("%s (%d)", said, e.Status)
	}
	switch e.Kind {
	case Limited:
		return "the rate limit is used up: " + said
	case Token:
		return "the forge does not accept the token: " + said
	case Away:
		return "the forge cannot be reached: " + said
	case Denied:
		return "the forge refuses: " + said
	case Gone:
		return "the forge does not have it, or the token does not see it: " + said
	case Elsewhere:
		return said + ": set the remote back, or leave forge.label and merge.mode: pr out"
	}
	return "the forge does not accept it: " + said
}

// KindOf returns the kind of a failure: [Away] for one without a response.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Away
}

// Waits for limits that name no time, and at most.
const (
	limitWait = time.Minute
	limitMost = time.Hour
)

// away returns the failure of a request without a response. It keeps only the cause: people do not need the network's
// layers.
func away(err error) *Error {
	var dns *net.DNSError
	var call *os.SyscallError
	switch {
	case errors.As(err, &dns):
		return &Error{Kind: Away, Said: "there is no host " + dns.Name}
	case errors.As(err, &call):
		err = call.Err
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return &Error{Kind: Away, Said: "it does not answer in time"}
	}
	return &Error{Kind: Away, Said: text.Line(err.Error(), 300)}
}

// Unaddressed returns an error without the request's method and address, which [http.Client] puts before it.
func Unaddressed(err error) error {
	var of *url.Error
	if !errors.As(err, &of) {
		return err
	}
	return plainError{err, strings.Replace(err.Error(), of.Error(), of.Err.Error(), 1)}
}

// A plainError is an error in other words.
type plainError struct {
	error
	said string
}

func (e plainError) Error() string { return e.said }

func (e plainError) Unwrap() error { return e.error }

// Classify classifies a response with an error.
func Classify(status int, h http.Header, body string, now time.Time) *Error {
	e := &Error{Kind: Invalid, Status: status, Said: said(status, body)}
	spent := h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0"
	secondary := strings.Contains(strings.ToLower(body), "secondary rate limit")
	switch {
	case status == http.StatusTooManyRequests,
		status == http.StatusForbidden && (spent || secondary || h.Get("Retry-After") != ""):
		e.Kind, e.Until = Limited, until(h, now)
	case status == http.StatusUnauthorized:
		e.Kind = Token
	case status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons, status == http.StatusLocked:
		e.Kind = Denied
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Kind = Gone
	case status >= http.StatusInternalServerError, status == http.StatusRequestTimeout:
		e.Kind = Away
	}
	return e
}

// until returns when a limit ends, according to the response: now at the earliest, in an hour at
// the latest.
func until(h http.Header, now time.Time) time.Time {
	at := now.Add(limitWait)
	after := h.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil {
		at = now.Add(time.Duration(s) * time.Second)
	} else if date, err := http.ParseTime(after); err == nil {
		at = date
	} else {
		for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if s, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil {
				at = time.Unix(s, 0)
				break
			}
		}
	}
	switch {
	case at.Before(now):
		return now.Add(limitWait)
	case at.After(now.Add(limitMost)):
		return now.Add(limitMost)
	}
	return at
}

// said returns the message of a response, in one line.
func said(status int, body string) string {
	var m struct{ Message, Error any }
	words := http.StatusText(status)
	if json.Unmarshal([]byte(body), &m) == nil {
		for _, v := range []any{m.Message, m.Error} {
			if v != nil {
				words = fmt.Sprint(v)
				break
			}
		}
	}
	return text.Line(words, 300)
}

// maxBody bounds a response: forges page their lists.
const maxBody = 32 << 20

// Transport is the HTTP transport of all clients. It turns each unsuccessful response into an [*Error], and notes the
// rest of the rate limit. With each GET it sends the tag of the last answer, because an unchanged answer does not
// count against the limit.
type Transport struct {
	Base   http.RoundTripper
	Token  func(*http.Request) // adds the token
	Origin string              // scheme and host that get it: a redirect elsewhere does not
	Now    func() time.Time

	mu   sync.Mutex
	seen map[string]kept
	left int
	told bool
}

// A kept is a response that is kept for its tag.
type kept struct {
	tag    string
	header http.Header
	body   []byte
}

// maxSeen bounds the number of answers that are kept.
const maxSeen = 500

// Limit returns the rest of the rate limit, from the last response.
func (t *Transport) Limit() (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left, t.told
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.URL.Scheme+"://"+r.URL.Host == t.Origin {
		t.Token(r)
	}
	key := r.URL.String()
	t.mu.Lock()
	had, ok := t.seen[key]
	t.mu.Unlock()
	ok = ok && r.Method == http.MethodGet
	if ok {
		r.Header.Set("If-None-Match", had.tag)
	}
	res, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, away(err)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, away(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range []string{"X-RateLimit-Remaining", "RateLimit-Remaining"} {
		if n, err := strconv.Atoi(res.Header.Get(name)); err == nil {
			t.left, t.told = n, true
		}
	}
	switch {
	case r.Method != http.MethodGet && res.StatusCode >= http.StatusMultipleChoices &&
		res.StatusCode <= http.StatusSeeOther: // the client would read there, and write nothing
		return nil, &Error{Kind: Gone, Status: res.StatusCode, Said: "it has moved to " + res.Header.Get("Location")}
	case res.StatusCode == http.StatusNotModified && ok:
		res.StatusCode, res.Header, body = http.StatusOK, had.header, had.body
	case res.StatusCode >= http.StatusBadRequest:
		return nil, Classify(res.StatusCode, res.Header, string(body), t.Now())
	case r.Method == http.MethodGet && res.Header.Get("ETag") != "":
		if t.seen == nil || len(t.seen) >= maxSeen {
			t.seen = map[string]kept{}
		}
		t.seen[key] = kept{res.Header.Get("ETag"), res.Header.Clone(), body}
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

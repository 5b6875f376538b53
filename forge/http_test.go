package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestAway: a request without a response is told by its cause, without the network's layers and its address.
func TestAway(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		cause error
		want  string
	}{
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused"},
		{dial(&net.DNSError{Err: "no such host", Name: "git.example.org", IsNotFound: true}), "there is no host git.example.org"},
		{dial(context.DeadlineExceeded), "it does not answer in time"},
		{io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		err := fmt.Errorf("issue #3: %w", &url.Error{Op: "Get", URL: "https://git.example.org/x", Err: away(c.cause)})
		plain := Unaddressed(err)
		if want := "issue #3: the forge cannot be reached: " + c.want; plain.Error() != want {
			t.Errorf("%v: %q, want %q", c.cause, plain, want)
		}
		if KindOf(plain) != Away {
			t.Errorf("%v is %s", c.cause, KindOf(plain))
		}
	}
	if err := errors.New("x"); !errors.Is(Unaddressed(err), err) || Unaddressed(nil) != nil {
		t.Error("another error has changed")
	}
}

// TestRecognize: a forge of one's own is known by its API; a host that is away or no forge leaves the error.
func TestRecognize(t *testing.T) {
	answer := func(path string, status int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" || r.Header.Get("Private-Token") != "" {
				t.Error("the host got a token")
			}
			if r.URL.Path != path {
				http.NotFound(w, r)
				return
			}
			w.Header().Set(header, "x")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tt := range map[string]struct {
		serves http.HandlerFunc
		want   string
	}{
		"Gitea":             {answer("/api/v1/version", 200, "X", `{"version": "1.22.0"}`), Gitea},
		"GitLab":            {answer("/api/v4/version", 401, "X", `{"message": "401 Unauthorized"}`), GitLab},
		"GitHub Enterprise": {answer("/api/v3/meta", 401, "X-Github-Request-Id", `{"message": "Must authenticate"}`), GitHub},
		"a redirect":        {answer("/api/v1/version", 302, "Location", ""), ""},
		"a login page":      {answer("/api/v4/version", 401, "X", "<html>"), ""},
		"JSON of others":    {answer("/api/v1/version", 200, "X", "[1]"), ""},
		"nothing":           {http.NotFound, ""},
		"no answer":         {hangs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.serves)
			defer server.Close()
			ctx := t.Context()
			if name == "no answer" {
				limited, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
				defer cancel()
				ctx = limited
			}
			a, err := Locate(server.URL+"/octo/app.git", "", "")
			a, err = Recognize(ctx, a, err)
			if a.Kind != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", a.Kind, err, tt.want)
			}
		})
	}
	a, err := Locate("http://127.0.0.1:1/octo/app", "", "")
	if _, got := Recognize(t.Context(), a, err); !errors.Is(got, err) {
		t.Errorf("a host that is away: %v", got)
	}
	if a, err := Recognize(t.Context(), Address{Kind: GitHub}, nil); a.Kind != GitHub || err != nil {
		t.Errorf("a known one: %v, %v", a, err)
	}
}

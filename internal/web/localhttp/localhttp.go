// Package localhttp is what ralph's HTTP servers have in common: they listen on
// this machine unless told otherwise, tell its own names from others', ask for a
// token, and leave nothing behind when they end.
//
// It knows nothing of what is served. It never logs a token, a header or a query.
package localhttp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Listen takes an address: "HOST:PORT", or ":PORT" or "PORT" for the loopback
// interface. Other interfaces must be named, all of them as 0.0.0.0 or [::]. The
// error begins with what the address is called: a key or a flag.
func Listen(ctx context.Context, name, addr string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", Address(addr))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// Address is an address with its host: the loopback interface where none is named.
func Address(addr string) string {
	switch {
	case strings.HasPrefix(addr, ":"):
		return "127.0.0.1" + addr
	case !strings.Contains(addr, ":"):
		return "127.0.0.1:" + addr
	}
	return addr
}

// Loopback reports whether a host, with or without a port, is this machine's own:
// a page of another site that has its name resolved to 127.0.0.1 is none.
func Loopback(host string) bool {
	host = Name(host)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Name is a host without its port.
func Name(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// OriginHost is the host of the page that a browser says the request comes from;
// "" if it says none, as programs do. What is no origin is ok false.
func OriginHost(r *http.Request) (host string, ok bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return "", true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return "", false
	}
	return u.Host, true
}

// Bearer reports whether a request has the token as "Authorization: Bearer TOKEN".
func Bearer(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && Same(given, token)
}

// Same compares two secrets in a time that tells nothing. No secret is the same as
// an empty one.
func Same(given, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}

// closeTime is what answers in progress are given at the end.
const closeTime = time.Second

// Serve answers on l until ctx ends, and closes it; with a TLS configuration in srv
// by HTTPS. Requests have contexts that end with ctx, so that streams do too. It
// leaves no goroutine behind.
func Serve(ctx context.Context, srv *http.Server, l net.Listener) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv.BaseContext = func(net.Listener) context.Context { return requests }
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		cut()
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err := srv.Shutdown(brief)
		if errors.Is(err, context.DeadlineExceeded) {
			err = srv.Close()
		}
		closed <- err
	})
	var err error
	if srv.TLSConfig != nil {
		err = srv.ServeTLS(l, "", "")
	} else {
		err = srv.Serve(l)
	}
	if stop() { // it ended by itself
		return err
	}
	return <-closed
}

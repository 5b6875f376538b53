// Package localhttp has the common parts of ralph's HTTP servers: they listen on this machine unless told otherwise,
// know their own names, check a token, and clean up at their end.
//
// It knows nothing of the content. It never logs a token, a header or a query.
package localhttp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Listen listens on an address: "HOST:PORT", or ":PORT" or "PORT" for the loopback interface. Other
// interfaces must be given explicitly, all of them as 0.0.0.0 or [::]. name, a key or a flag,
// prefixes the error.
func Listen(ctx context.Context, name, addr string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(Address(addr))
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		return nil, fmt.Errorf("%s: %q is not an address with a port, such as 127.0.0.1:7474", name, addr)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", Address(addr))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// Address adds the loopback interface to an address without host.
func Address(addr string) string {
	switch {
	case strings.HasPrefix(addr, ":"):
		return "127.0.0.1" + addr
	case !strings.Contains(addr, ":"):
		return "127.0.0.1:" + addr
	}
	return addr
}

// Loopback reports whether a host, with or without a port, names this machine. A foreign name that
// resolves to 127.0.0.1 does not.
func Loopback(host string) bool {
	host = Name(host)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Name returns a host without its port.
func Name(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// OriginHost returns the host of the page that a request comes from; "" if there is no Origin
// header, as from programs. ok is false if the header is invalid.
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

// Bearer reports whether a request has the token in "Authorization: Bearer TOKEN".
func Bearer(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && Same(given, token)
}

// Same compares two secrets in constant time. An empty secret equals nothing.
func Same(given, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}

// closeTime is the time for requests in progress at the end.
const closeTime = time.Second

// Serve answers on l until ctx ends, and closes l; by HTTPS if srv has a TLS configuration. The
// contexts of requests end with ctx, so that streams do, too. It leaves no goroutine behind.
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
	if stop() { // Serve ended by itself
		return err
	}
	return <-closed
}

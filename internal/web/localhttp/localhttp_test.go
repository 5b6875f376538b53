package localhttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ralph/internal/web/localhttp"
)

func TestAnAddressWithoutAHostIsOnThisMachine(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"7474": "127.0.0.1:7474", ":7474": "127.0.0.1:7474", "0.0.0.0:7474": "0.0.0.0:7474", "[::1]:7474": "[::1]:7474", "box:80": "box:80",
	} {
		if got := localhttp.Address(addr); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
}

func TestTheAddressIsLoopback(t *testing.T) {
	for _, addr := range []string{"0", ":0", "127.0.0.1:0", "localhost:0"} {
		l, err := localhttp.Listen(t.Context(), "dashboard.addr", addr)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
			t.Errorf("%q listens on %s", addr, l.Addr())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{"nonsense", "127.0.0.1:99999", "256.0.0.1:1"} {
		if l, err := localhttp.Listen(t.Context(), "dashboard.addr", addr); err == nil || !strings.HasPrefix(err.Error(), "dashboard.addr: ") {
			t.Errorf("%q: got %v, %v", addr, l, err)
		}
	}
}

func TestOnlyThisMachinesNamesAreItsOwn(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:7474": true, "127.0.0.1:7474": true, "127.9.9.9": true, "[::1]:7474": true, "::1": true,
		"": false, "evil.example": false, "localhost.evil.example:7474": false, "127.0.0.1.evil.example": false, "10.0.0.1:7474": false, "0.0.0.0": false,
	} {
		if got := localhttp.Loopback(host); got != want {
			t.Errorf("Loopback(%q) is %v", host, got)
		}
	}
}

func TestATokenIsAskedForAsAWhole(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"Bearer secret": true, "Bearer secre": false, "Bearer secret2": false, "secret": false, "Bearer ": false, "": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		if got := localhttp.Bearer(r, "secret"); got != want {
			t.Errorf("%q is accepted: %v", header, got)
		}
		if localhttp.Bearer(r, "") {
			t.Errorf("%q is accepted where there is no token", header)
		}
	}
}

// TestAStreamEndsWithTheServer: Serve returns although a client still listens.
func TestAStreamEndsWithTheServer(t *testing.T) {
	t.Parallel()
	l, err := localhttp.Listen(t.Context(), "addr", "0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	listening := make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(listening)
		<-r.Context().Done()
	})}
	served := make(chan error)
	go func() { served <- localhttp.Serve(ctx, srv, l) }()
	resp, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-listening
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

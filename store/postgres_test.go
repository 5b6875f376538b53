package store

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestServerErrorsAreOneLine that ends with the remedy, and keep their kind.
func TestServerErrorsAreOneLine(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, tt := range []struct {
		name   string
		err    error
		says   string
		passes bool
	}{
		{"nobody listens", refused, "dial tcp: connect: connection refused: the server does not answer", true},
		{"a connection is ended", &pgconn.PgError{Code: "57P01", Message: "terminating connection"}, "terminating connection: the server", true},
		{"a connection is lost", driver.ErrBadConn, "driver: bad connection: the server", true},
		{"a wrong password", &pgconn.PgError{Code: "28P01", Message: "no"}, "no: see to the user and the password in RALPH_DATABASE", false},
		{"no such database", &pgconn.PgError{Code: "3D000", Message: "there is none"}, "there is none: make it", false},
		{"a server that only reads", &pgconn.PgError{Code: "25006", Message: "no"}, "no: the server only reads; have it write", true},
		{"no connection left", &pgconn.PgError{Code: "53300", Message: "no"}, "no: raise max_connections", true},
		{"a connection was idle", &pgconn.PgError{Code: "57P05", Message: "idle"}, "idle: the server", true},
		{"a full disk", &pgconn.PgError{Code: "53100", Message: "full"}, "full: the disk of the server is full", true},
	} {
		err := fmt.Errorf("tried this:\n\t%w", tt.err)
		said := explainPostgres(explainPostgres(err))
		if !strings.HasPrefix(said.Error(), tt.says) || strings.Contains(said.Error(), "\n") || !errors.Is(said, tt.err) ||
			Passes(said) != tt.passes {
			t.Errorf("%s: %q; it passes: %t", tt.name, said, Passes(said))
		}
	}
	if err := error(&os.PathError{Op: "remove", Path: "main.lock", Err: syscall.ENOTEMPTY}); Failed(err) || Passes(err) {
		t.Errorf("of a file: %v is taken for the database's", err)
	}
	if err := explainPostgres(pgx.ErrNoRows); !errors.Is(err, pgx.ErrNoRows) || err.Error() != pgx.ErrNoRows.Error() {
		t.Errorf("of an absence: %v", err)
	}
}

// TestAPasswordIsNeverShown: nor a part of one, where the driver and we see it end elsewhere.
func TestAPasswordIsNeverShown(t *testing.T) {
	for _, name := range []string{
		"postgres://eva:geheim@127.0.0.1:1/q", "postgres://eva@127.0.0.1:1/q?password=geheim", "postgres://127.0.0.1:1/q?user=eva&password=geheim",
		"postgres://eva:x@geheim@127.0.0.1:1/q", "postgres://eva:x@geheim@127.0.0.1:1/q?sslmode=bad", "postgres://eva:x%geheim@127.0.0.1:1/q",
		"postgres://eva:x#geheim@127.0.0.1:1/q", "postgres://eva:x?geheim@127.0.0.1:1/q", "postgres://eva:x/geheim@127.0.0.1:1/q",
		"postgres://eva:x geheim@127.0.0.1:1/q", "postgres://eva:x[geheim@127.0.0.1:1/q", "postgresql://eva:geheim@127.0.0.1:1:x/q",
		"postgres://eva:geheim@127.0.0.1:1/q?sslmode=bad", "postgres://eva@127.0.0.1:1/q?password=geheim&sslmode=bad",
		"postgres://eva:x@127.0.0.1:1/q?sslpassword=geheim&sslmode=require&sslcert=/x&sslkey=/y",
	} {
		_, err := Open(t.Context(), name, Options{})
		if err == nil || strings.Contains(err.Error()+Masked(name), "geheim") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, want := Masked("postgres://eva:x@h/q?options=-c%20search_path%3Dralph"), "postgres://eva@h/q?options=-c%20search_path%3Dralph"; got != want {
		t.Errorf("got %s", got) // as pg_dump reads it
	}
}

// TestAServerThatIsAwayIsSaidInALine, of each way that was tried.
func TestAServerThatIsAwayIsSaidInALine(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), "postgres://eva:geheim@"+address+"/queue", Options{})
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") ||
		!strings.Contains(err.Error(), "database postgres://eva@"+address+"/queue: dial tcp ") || !Passes(err) {
		t.Errorf("got %v", err)
	}
}

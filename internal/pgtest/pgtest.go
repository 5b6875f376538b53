// Package pgtest gives tests a PostgreSQL of their own. With RALPH_TEST_DATABASE=postgres the tests that call [Path]
// run on it, else on files. Where there is none they are skipped, unless RALPH_REQUIRE_POSTGRES is set.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"ralph/store"
)

// Used reports whether tests run on PostgreSQL.
func Used() bool { return os.Getenv("RALPH_TEST_DATABASE") == "postgres" }

// Files skips a test that is about files on PostgreSQL.
func Files(t testing.TB) {
	if t.Helper(); Used() {
		t.Skip("about a database in a file")
	}
}

var (
	mu    sync.Mutex
	known = map[string]string{} // URLs by path
)

// Path returns the name of a test's database for [store.Open]: the path itself, or the URL of a database that is new
// for each path and test. A URL is one already.
func Path(t testing.TB, path string) string {
	t.Helper()
	if !Used() || store.IsURL(path) {
		return path
	}
	mu.Lock()
	defer mu.Unlock()
	if known[path] == "" {
		known[path] = New(t)
	}
	return known[path]
}

var (
	making sync.Mutex // two copies of one template are not made at once
	made   int
)

// New makes a database for a test and returns its URL.
func New(t testing.TB) string {
	t.Helper()
	base := URL(t)
	making.Lock()
	defer making.Unlock()
	made++
	name := fmt.Sprintf("t%d", made)
	run(t, base, "CREATE DATABASE "+name+" TEMPLATE ralph")
	t.Cleanup(func() { run(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return strings.Replace(base, "/postgres?", "/"+name+"?", 1)
}

// URL returns the URL of the server's first database, and starts the server if need be.
func URL(t testing.TB) string {
	t.Helper()
	base, err := server()
	if err != nil {
		if os.Getenv("RALPH_REQUIRE_POSTGRES") == "" {
			t.Skipf("no PostgreSQL: %v", err)
		}
		t.Fatal(err)
	}
	return base
}

func run(t testing.TB, base, statement string) {
	t.Helper()
	if err := execute(base, statement); err != nil {
		t.Fatal(err)
	}
}

func execute(base, statement string) (err error) {
	db, err := sql.Open("pgx", base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(context.Background(), statement)
	return err
}

// Found reports whether there is a PostgreSQL to be started, or has to be.
func Found() bool {
	_, err := program("initdb")
	return err == nil || os.Getenv("RALPH_REQUIRE_POSTGRES") != ""
}

// program finds a program of PostgreSQL's.
func program(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err == nil && len(found) > 0 {
		return slices.Max(found), nil
	}
	return exec.LookPath(name)
}

// script starts a server, and ends and removes it when the test's process, which holds its standard input, has ended.
const script = `"$1" -D "$3/d" -A trust -U ralph --no-sync --no-instructions -E UTF8 --locale=C >/dev/null || exit
"$2" -D "$3/d" -k "$3" -c listen_addresses= -c fsync=$4 -c synchronous_commit=$4 -c full_page_writes=$4 \
	-c max_connections=300 -c shared_buffers=32MB >"$3/log" 2>&1 </dev/null &
read -r line
kill -QUIT $!
wait
rm -rf "$3"`

// held is the standard input of the script, which is open as long as this process is.
var held io.WriteCloser //nolint:unused // nobody writes there

// server starts the server of this process.
var server = sync.OnceValues(func() (base string, err error) {
	initdb, err := program("initdb")
	if err != nil {
		return "", err
	}
	postgres, err := program("postgres")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("/tmp", "ralph-pg-") // short: the name of a socket has its limit
	if err != nil {
		return "", err
	}
	durable := "off"
	if Used() {
		durable = "on" // `ralph db check` and `ralph doctor` want it
	}
	//nolint:noctx,forbidigo // it ends with the process
	cmd := exec.Command("sh", "-c", script, "sh", initdb, postgres, dir, durable)
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 { // which initdb refuses
		const nobody = 65534
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return "", err
		}
	}
	if held, err = cmd.StdinPipe(); err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	base = "postgres://ralph@/postgres?host=" + url.QueryEscape(dir)
	for range 600 {
		if err = execute(base, "CREATE DATABASE ralph"); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		log, _ := os.ReadFile(dir + "/log") // there may be none
		return "", fmt.Errorf("PostgreSQL does not start: %w\n%s", err, log)
	}
	db, err := store.Open(context.Background(), strings.Replace(base, "/postgres?", "/ralph?", 1), store.Options{})
	if err == nil {
		err = db.Close()
	}
	return base, err
})

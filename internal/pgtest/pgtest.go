// Package pgtest gives tests a PostgreSQL server. With RALPH_TEST_DATABASE=postgres the tests that call [Path] run
// on it, otherwise on files. Without a server they are skipped, unless RALPH_REQUIRE_POSTGRES is set.
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
	"github.com/mattn/go-sqlite3"

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

// Timeless skips a test in a synctest bubble on PostgreSQL: time stops there during a wait for a
// connection.
func Timeless(t testing.TB) {
	if t.Helper(); Used() {
		t.Skip("about a time that is made up")
	}
}

var (
	mu    sync.Mutex
	known = map[string]string{} // URLs by path
)

// Path returns a test's database for [store.Open]: the path itself, or the URL of a new database for each path and
// test, named after the folder of that path. It returns URLs unchanged.
func Path(t testing.TB, path string) string {
	t.Helper()
	if !Used() || store.IsURL(path) {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if known[path] == "" {
		known[path] = New(t)
	}
	return known[path]
}

// Raw opens a test's database as another program would, without ralph's checks of its writes. name is the argument or
// the result of [Path].
func Raw(t testing.TB, name string) *sql.DB {
	t.Helper()
	driver, name, unchecked := "sqlite3", Path(t, name), ""
	if store.IsURL(name) {
		driver, name = "pgx", name+"&session_replication_role=replica"
		unchecked = `DO $$ DECLARE c record; BEGIN
			FOR c IN SELECT conrelid::regclass AS of, conname FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0 LOOP
				EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.of, c.conname);
			END LOOP; END $$`
	} else {
		name = "file:" + name + "?_ignore_check_constraints=1&_busy_timeout=30000"
	}
	raw, err := sql.Open(driver, name)
	if err == nil {
		t.Cleanup(func() { raw.Close() })
		_, err = raw.ExecContext(t.Context(), unchecked)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Refuse makes a database refuse writes to a table, as a full disk would. event is, for example, "INSERT" or
// "UPDATE OF status"; the condition may name the row NEW. allow ends that.
func Refuse(t testing.TB, raw *sql.DB, event, table, condition, why string) (allow func()) {
	t.Helper()
	begin := fmt.Sprintf(`CREATE TRIGGER refused BEFORE %s ON %s WHEN %s BEGIN SELECT RAISE(ABORT, '%s'); END`,
		event, table, condition, why)
	end := "DROP TRIGGER refused"
	if _, files := raw.Driver().(*sqlite3.SQLiteDriver); !files {
		begin = fmt.Sprintf(`CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF %s THEN RAISE EXCEPTION '%s'; END IF; RETURN NEW; END $$;
			CREATE TRIGGER refused BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION refused()`, condition, why, event, table)
		end = "DROP FUNCTION refused CASCADE"
	}
	execute := func(statement string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	execute(begin)
	return func() { execute(end) }
}

// Remove removes a test's database while it is in use. name is as for [Raw].
func Remove(t testing.TB, name string) {
	t.Helper()
	if name = Path(t, name); store.IsURL(name) {
		u, err := url.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		run(t, URL(t), "DROP DATABASE "+strings.TrimPrefix(u.Path, "/")+" WITH (FORCE)")
	} else if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

var (
	making sync.Mutex // two copies of one template are not made at once
	made   int
)

// New makes a database for a test and returns its URL.
func New(t testing.TB) string {
	t.Helper()
	return makeAll(t, "", "")
}

// Projects makes a database for each of some projects, and returns the URL for all: its {project} is a project's name.
func Projects(t testing.TB, names ...string) string {
	t.Helper()
	return makeAll(t, "_{project}", names...)
}

func makeAll(t testing.TB, end string, names ...string) string {
	t.Helper()
	base := URL(t)
	making.Lock()
	defer making.Unlock()
	made++
	begin := fmt.Sprintf("t%d", made)
	for _, name := range names {
		name = `"` + strings.ReplaceAll(begin+strings.ReplaceAll(end, "{project}", name), `"`, `""`) + `"`
		run(t, base, "CREATE DATABASE "+name+" TEMPLATE ralph")
		t.Cleanup(func() { run(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	}
	return strings.Replace(base, "/postgres?", "/"+begin+end+"?", 1)
}

// URL returns the URL of the server's first database, and starts the server if need be.
func URL(t testing.TB) string {
	t.Helper()
	if testing.Short() && !Used() {
		t.Skip("skipped: make check has PostgreSQL")
	}
	base, err := server()
	if err != nil {
		absent(t, err)
	}
	return base
}

// absent skips a test for want of a server, or fails it.
func absent(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("RALPH_REQUIRE_POSTGRES") == "" {
		t.Skipf("no PostgreSQL: %v", why)
	}
	t.Fatal(why)
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
	if testing.Short() && !Used() {
		return false // make check sets it
	}
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

// script starts a server. For each line of its standard input it kills the server, and starts a new one after that
// number of seconds, or of the next line's. It stops and removes the server when the test's process, which holds the
// input, has ended.
const script = `"$1" -D "$3/d" -A trust -U ralph --no-sync --no-instructions -E UTF8 --locale=C >/dev/null || exit
echo host all all samenet trust >>"$3/d/pg_hba.conf"
start() {
	"$2" -D "$3/d" -k "$3" -c listen_addresses="$5" -c fsync=$4 -c full_page_writes=$4 \
		-c max_connections=300 -c shared_buffers=32MB >>"$3/log" 2>&1 </dev/null &
}
end() { kill -QUIT $! 2>/dev/null; wait; }
start "$@"
while read -r seconds; do
	end
	test "$seconds" != stop || read -r seconds || break
	sleep "$seconds"
	start "$@"
done
end
rm -rf "$3"`

// A Server is a PostgreSQL.
type Server struct {
	URL string // URL of its first database, by a socket

	held io.WriteCloser // the standard input of the script
}

// Restart kills the server, and starts it anew after a while. It cuts off all connections, and keeps committed data.
func (s *Server) Restart(after time.Duration) error {
	_, err := fmt.Fprintln(s.held, after.Seconds())
	return err
}

// Stop kills the server and waits for its end. [Server.Restart] starts a new one.
func (s *Server) Stop() error {
	_, err := fmt.Fprintln(s.held, "stop")
	for err == nil && execute(s.URL, "SELECT") == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// Start starts a server that also listens at an address, for the time of a test. launch starts its process, nil by
// itself.
func Start(t testing.TB, address string, launch func(*exec.Cmd) error) *Server {
	t.Helper()
	s, ended, err := start(address, launch)
	if err != nil {
		absent(t, err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.held.Close(), ended()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// server starts the server of this process, which ends with the process.
var server = sync.OnceValues(func() (base string, err error) {
	s, err := Serve()
	if err != nil {
		return "", err
	}
	db, err := store.Open(context.Background(), strings.Replace(s.URL, "/postgres?", "/ralph?", 1), store.Options{})
	if err == nil {
		err = db.Close()
	}
	return s.URL, err
})

// held are the standard inputs of servers' scripts. The reference keeps them open as long as this process lives.
var held []io.WriteCloser

// start starts a server with a database "ralph". ended waits for its end.
func start(address string, launch func(*exec.Cmd) error) (s *Server, ended func() error, err error) {
	initdb, err := program("initdb")
	if err != nil {
		return nil, nil, err
	}
	postgres, err := program("postgres")
	if err != nil {
		return nil, nil, err
	}
	parent := os.TempDir() // in memory, as .ci/memory permits: it waits mostly for the disk
	if len(parent) > 60 {
		parent = "/tmp" // the name of a socket has its limit
	}
	dir, err := os.MkdirTemp(parent, "ralph-pg-")
	if err != nil {
		return nil, nil, err
	}
	durable := "off"
	if Used() {
		durable = "on" // `ralph db check` and `ralph doctor` want it
	}
	//nolint:noctx,forbidigo // it ends with the process
	cmd := exec.Command("sh", "-c", script, "sh", initdb, postgres, dir, durable, address)
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 { // initdb refuses root
		const nobody = 65534
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, nil, err
		}
	}
	s = &Server{URL: "postgres://ralph@/postgres?host=" + url.QueryEscape(dir)}
	if s.held, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if launch == nil {
		launch = (*exec.Cmd).Start
	}
	if err := launch(cmd); err != nil {
		return nil, nil, err
	}
	for range 600 {
		if err = execute(s.URL, "CREATE DATABASE ralph"); err == nil {
			return s, cmd.Wait, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	log, _ := os.ReadFile(dir + "/log") // there may be none
	return nil, nil, fmt.Errorf("PostgreSQL does not start: %w\n%s", err, log)
}

// Serve starts a server that ends with this process.
func Serve() (*Server, error) {
	s, _, err := start("", nil)
	if err == nil {
		held = append(held, s.held)
	}
	return s, err
}

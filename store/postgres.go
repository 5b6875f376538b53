package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"ralph"
)

// On PostgreSQL one transaction at a time writes, as on SQLite: it takes an advisory lock first. So no rule has to be
// proved twice, and events have ids in the order of their commits. Readers take no lock.

// IsURL reports whether a database is named by the URL of a server, and not by the path of a file.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Masked returns the name of a database without the secrets that a URL has.
func Masked(name string) string {
	if !IsURL(name) {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "postgres://…"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	for key := range q {
		if strings.Contains(key, "pass") {
			q.Del(key)
		}
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // which PostgreSQL's own programs do not read as a space
	return u.String()
}

// readURL reads the URL of a database. Its errors quote no part of the URL: the driver may split it differently than
// [Masked], so that the part belongs to the password.
func readURL(name string) (*pgx.ConnConfig, error) {
	unclear := errors.New("its URL cannot be read: in a password, write each character but letters and digits as " +
		"% and two " +
		"hexadecimal digits, such as %40 for @")
	u, err := url.Parse(name)
	if err != nil {
		return nil, unclear
	}
	config, err := pgx.ParseConfig(name)
	if err != nil {
		says := err.Error()
		return nil, errors.New("its URL cannot be read: " + says[strings.LastIndex(says, "`: ")+len("`: "):])
	}
	if password, _ := u.User.Password(); password != "" && password != config.Password && !u.Query().Has("password") {
		return nil, unclear
	}
	return config, nil
}

const (
	pgClock = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint` // in milliseconds
	pgConns = 16                                                       // connections that read
	// pgIdle is how long the server lets a transaction idle: it has the lock, and its machine may be frozen. A
	// transaction that was only slow is retried.
	pgIdle = 3 * time.Second
	// pgRetry is how long to retry if the server is unreachable, such as during a restart.
	pgRetry = 20 * time.Second
)

var postgres = dialect{
	name:    "postgres",
	driver:  "pgx",
	shared:  true,
	retry:   pgRetry,
	view:    &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	begin:   beginPostgres,
	check:   func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) },
	durable: durablePostgres,
	explain: explainPostgres,
	patient: `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '10min'`,
	tables: `SELECT relname::text FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY oid`,
	columns: `SELECT column_name::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position`,
	keys: `SELECT a.attname::text
		FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
		WHERE i.indrelid = $1::regclass AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)`,
	ids: `SELECT replace(sequencename::text, '_id_seq', ''), last_value FROM pg_sequences
		WHERE schemaname = current_schema() AND last_value IS NOT NULL`,
	setID: func(tx *Tx, table string, last int64) error {
		_, err := value[int64](tx, `SELECT setval(pg_get_serial_sequence($1, 'id'), greatest($2, 1), $2 > 0)`, table, last)
		return err // the query has to run, as setval holds even after a rollback
	},
}

// beginPostgres takes the lock, and then reads the server's time and transaction id.
func beginPostgres(tx *Tx) error {
	var ms int64
	if err := tx.Tx.QueryRowContext(tx.ctx, `SELECT `+pgClock+`, pg_current_xact_id()::text FROM (
		SELECT pg_advisory_xact_lock(hashtextextended('ralph/' || current_schema(), 0)) OFFSET 0) l`,
	).Scan(&ms, &tx.id); err != nil {
		return err
	}
	if tx.db.clock { // one clock for all machines
		now := time.UnixMilli(ms)
		tx.now = ralph.At(now)
		tx.db.toldTime(now)
	}
	return nil
}

// openPool opens a pool of at most that many connections to a server.
func openPool(config *pgx.ConnConfig, most int) *sql.DB {
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	return pool
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dumpPostgres copies the database with PostgreSQL's own program.
func dumpPostgres(ctx context.Context, name, path string) error {
	config, err := readURL(name)
	if err != nil {
		return err
	}
	// The password is not among the arguments, which others can read.
	//nolint:forbidigo // PostgreSQL's own program, which starts nothing
	cmd := exec.CommandContext(ctx, "pg_dump", "--format=custom", "--file="+path, "--dbname="+Masked(name))
	cmd.Env = append(cmd.Environ(), "PGPASSWORD="+config.Password)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("pg_dump, which makes the copy, is not installed, or not in PATH")
	}
	if err != nil {
		said := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; ")
		return fmt.Errorf("pg_dump: %w: %s", err, strings.ReplaceAll(said, "pg_dump: ", ""))
	}
	return nil
}

func durablePostgres(ctx context.Context, db *sql.DB) error {
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var is string
		if err := db.QueryRowContext(ctx, `SELECT current_setting($1)`, setting).Scan(&is); err != nil {
			return err
		}
		if is == "off" {
			return fmt.Errorf("%s is off on the server: stored data does not survive a crash", setting)
		}
	}
	return nil
}

// readBack finds out whether a transaction whose COMMIT was not answered was stored; why is the error of the COMMIT.
// The error is nil if it was stored. stored is false if it was not, and can be retried.
func (db *DB) readBack(ctx context.Context, id string, why error) (stored bool, err error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgRetry)
	defer cancel()
	for {
		var status sql.NullString
		err := db.read.QueryRowContext(limited, `SELECT pg_xact_status($1::text::xid8)`, id).Scan(&status)
		switch { // else the transaction goes on, or the server has forgotten it
		case err == nil && status.String == "committed":
			return true, nil
		case err == nil && status.String == "aborted":
			return false, why
		}
		select {
		case <-limited.Done():
			return true, fmt.Errorf("it is unknown whether a change was stored: %w", why)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A serverError is a server's error in words for people: the driver's errors have several lines, and repeat the
// attempt.
type serverError struct {
	says string
	err  error
}

func (e *serverError) Error() string { return e.says }
func (e *serverError) Unwrap() error { return e.err }

// explainPostgres adds the remedy to common errors of the server.
func explainPostgres(err error) error {
	if errors.As(err, new(*serverError)) {
		return err
	}
	if misread(err) {
		return &serverError{"a value in the database is not as ralph wrote it: " + cause(err), err}
	}
	advice := map[string]string{
		"28P01":    "see to the user and the password in RALPH_DATABASE, or in database in ~/.config/ralph/config.yaml",
		"28000":    "see to the server's pg_hba.conf, or to RALPH_DATABASE or database in ~/.config/ralph/config.yaml",
		"3D000":    "make it (createdb), or name another one in RALPH_DATABASE or database in ~/.config/ralph/config.yaml",
		pgReadOnly: "the server only reads; have it write (default_transaction_read_only), or name the one that does",
		"42P07":    "something else is in that database; give ralph one of its own",
		"42723":    "something else is in that database; give ralph one of its own",
		"42501":    "give the user that right, or ralph a user that has it",
		"53100":    "the disk of the server is full; free some space, nothing that was stored is lost",
		"53300":    "raise max_connections of the server, or end the connections that hold them",
		"55P03":    "another process kept the database for too long; find it and try again",
	}[pgCode(err)]
	if advice == "" && cutOff(err) {
		advice = "the server does not answer, or has ended the connection; start it, or mend the way to it, and try again: " +
			"nothing that was stored is lost"
	}
	if advice == "" {
		return err
	}
	return &serverError{cause(err) + ": " + advice, err}
}

// cause returns the cause of an error, in a line.
func cause(err error) string {
	var said *pgconn.PgError
	var way *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &said):
		return said.Message
	case errors.As(err, &name):
		return name.Error()
	case errors.As(err, &way):
		return way.Error()
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

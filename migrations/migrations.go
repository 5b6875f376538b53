// Package migrations updates the schema of a database.
//
// Each database has a folder of SQL files: the first makes the schema, later ones change it. They are applied in the
// order of their names, and each is recorded. The common part of both databases is written once, for SQLite, and
// translated. The package never opens, locks or backs up a database; store does that. Either all pending migrations
// are applied or none.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// ErrTooNew means that the database was written by a newer ralph.
var ErrTooNew = errors.New("the database was written by a newer ralph; use that version or a newer one")

// catalogues query, for each dialect, whether the table of migrations exists.
var catalogues = map[string]string{
	"sqlite":   `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'`,
	"postgres": `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_migrations'`,
}

// Names lists the migrations of a dialect ("sqlite" or "postgres") in the order of application.
func Names(dialect string) ([]string, error) {
	entries, err := fs.ReadDir(files, dialect)
	if err != nil {
		return nil, fmt.Errorf("migrations for %s: %w", dialect, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// SignalsView returns the statement that creates the view task_signals, for a file that had a table of an older design
// in its place.
func SignalsView() (string, error) {
	const begin = "CREATE VIEW task_signals AS"
	text, err := read("sqlite", "0001_schema.sql")
	if err != nil {
		return "", fmt.Errorf("view task_signals: %w", err)
	}
	_, rest, found := strings.Cut(text, begin)
	body, _, ended := strings.Cut(rest, ";\n")
	if !found || !ended {
		return "", errors.New("view task_signals: its statement is not in the first migration")
	}
	return strings.Replace(begin, "VIEW", "VIEW IF NOT EXISTS", 1) + body, nil
}

// Pending lists the migrations that the database lacks. It fails with [ErrTooNew] if the database
// has an unknown one.
func Pending(ctx context.Context, db *sql.DB, dialect string) ([]string, error) {
	names, err := Names(dialect)
	if err != nil {
		return nil, err
	}
	applied, err := appliedNames(ctx, db, dialect)
	if err != nil {
		return nil, err
	}
	for _, a := range applied {
		if !slices.Contains(names, a) {
			return nil, fmt.Errorf("migration %s is not known here: %w", a, ErrTooNew)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(applied, n) }), nil
}

// Up applies the pending migrations in one transaction, and records now as their time. The caller
// excludes all other processes.
func Up(ctx context.Context, db *sql.DB, dialect, now string) (applied []string, err error) {
	pending, err := Pending(ctx, db, dialect)
	if err != nil || len(pending) == 0 {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer func() {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, rollback)
		}
	}()
	if _, err := tx.ExecContext(ctx, record); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	for _, name := range pending {
		text, err := read(dialect, name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO schema_migrations (name, applied) VALUES ($1, $2)`, name, now); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return pending, nil
}

// record creates the table of applied migrations.
const record = `CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)`

// appliedNames lists the recorded migrations; none if the table does not exist yet.
func appliedNames(ctx context.Context, db *sql.DB, dialect string) (names []string, err error) {
	var there int
	if err := db.QueryRowContext(ctx, catalogues[dialect]).Scan(&there); err != nil {
		return nil, err
	}
	if there == 0 {
		return nil, nil
	}
	rows, err := db.QueryContext(ctx, `SELECT name FROM schema_migrations ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	return names, rows.Err()
}

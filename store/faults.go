package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "github.com/mattn/go-sqlite3"
)

// pgReadOnly is the SQLSTATE of a server that refuses to write.
const pgReadOnly = "25006"

// Passes reports whether a database error may go away by itself: another process holds the
// database, or the disk is full. Nothing of the transaction was stored.
func Passes(err error) bool {
	var e sqlite3.Error
	return NoRoom(err) || again(err) || pgCode(err) == "55P03" || errors.As(err, &e) && slices.Contains([]sqlite3.ErrNo{
		sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrCantOpen,
	}, e.Code)
}

// Failed reports whether an error comes from the database or from a full disk.
func Failed(err error) bool {
	return NoRoom(err) || cutOff(err) || pgCode(err) != "" || errors.As(err, new(sqlite3.Error))
}

// Corrupt reports whether an error means that the database is damaged.
func Corrupt(err error) bool {
	var e sqlite3.Error
	return misread(err) || errors.As(err, &e) && (e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}

// misread reports whether an error is about a stored value that ralph cannot have written. Package database/sql has no
// type for it.
func misread(err error) bool {
	return err != nil && strings.Contains(err.Error(), "sql: Scan error on column ")
}

// NoRoom reports whether an error means that the disk is full.
func NoRoom(err error) bool {
	var e sqlite3.Error
	return pgCode(err) == "53100" ||
		errors.As(err, &e) && (e.Code == sqlite3.ErrFull || e.SystemErrno == syscall.ENOSPC) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// pgCode returns the SQLSTATE of an error; "" if it has none.
func pgCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// cutOff reports whether the connection to the server was lost, or could not be made. File errors do not count,
// although [syscall.Errno] implements [net.Error].
func cutOff(err error) bool {
	code := pgCode(err)
	var connect *pgconn.ConnectError
	var network *net.OpError
	return errors.As(err, &connect) && (code == "" || code == "57P03") || errors.As(err, &network) &&
		!errors.Is(err, context.DeadlineExceeded) ||
		strings.HasPrefix(code, "08") || code == "57P01" || code == "57P02" || code == "57P03" || code == "57P05" ||
		code == "25P03" ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, sql.ErrConnDone) ||
		err != nil && strings.Contains(err.Error(), "conn closed")
}

// again reports whether a transaction that was not committed may be tried again.
func again(err error) bool {
	code := pgCode(err)
	switch code {
	case "40001", "40P01", pgReadOnly, "53300": // a conflict, a deadlock, a failover, no free connection
		return true
	}
	return cutOff(err)
}

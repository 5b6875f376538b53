package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// A connection to PostgreSQL waits for the server only where an answer is needed: a server far away costs its round
// trips. What only changes rows, and BEGIN, travel with the next statement that is answered, or with COMMIT, so that
// an error of theirs is that statement's. A statement is prepared on the way when it is used first. Nobody waits for
// the end of a transaction that has only read.

// A pgConnector connects to a server.
type pgConnector struct {
	config *pgx.ConnConfig
	lost   atomic.Int64 // when a connection was found broken last, in nanoseconds since 1970
}

// Connect implements driver.Connector.
func (c *pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := pgconn.ConnectConfig(ctx, &c.config.Config)
	if err != nil {
		return nil, err
	}
	return &pgConn{PgConn: conn, from: c, used: time.Now(), prepared: map[string]string{}}, nil
}

// Driver implements driver.Connector.
func (c *pgConnector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// A pgConn is a connection.
type pgConn struct {
	*pgconn.PgConn
	from     *pgConnector
	used     time.Time         // last
	prepared map[string]string // names by text
	names    int               // that were taken
	tx       bool              // in a transaction
	sent     bool              // its BEGIN has been sent
	unsent   []pgStatement
}

// A pgStatement is what is sent, with the values of its parameters as text, nil for NULL, and their types, which the
// server finds out where that is 0.
type pgStatement struct {
	text   string
	ends   bool // or begins a transaction, which is not worth preparing
	args   [][]byte
	types  []uint32
	result *pgResult
}

// Close implements driver.Conn.
func (c *pgConn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), pgIdle)
	defer cancel()
	return c.PgConn.Close(ctx)
}

// Prepare implements driver.Conn, and is never called.
func (c *pgConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// Begin implements driver.Conn.
func (c *pgConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements driver.ConnBeginTx.
func (c *pgConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	begin := "BEGIN"
	if opts.ReadOnly {
		begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}
	c.tx, c.sent, c.unsent = true, false, []pgStatement{{text: begin, ends: true}}
	return pgTx{c, ctx}, nil
}

// IsValid implements driver.Validator.
func (c *pgConn) IsValid() bool { return !c.IsClosed() }

// ResetSession implements driver.SessionResetter: of a server that was lost, all connections are.
func (c *pgConn) ResetSession(context.Context) error {
	if c.IsClosed() || c.used.UnixNano() <= c.from.lost.Load() {
		return driver.ErrBadConn
	}
	return nil
}

// QueryContext implements driver.QueryerContext.
func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := pgBound(query, args)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, s)
}

// ExecContext implements driver.ExecerContext. Without arguments, the text may be several statements.
func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		if err := c.flush(ctx); err != nil {
			return nil, err
		}
		results, err := c.Exec(ctx, query).ReadAll()
		if err != nil || len(results) == 0 {
			return driver.RowsAffected(0), c.noting(ctx, err)
		}
		return driver.RowsAffected(results[len(results)-1].CommandTag.RowsAffected()), nil
	}
	s, err := pgBound(query, args)
	if err != nil {
		return nil, err
	}
	result := &pgResult{c: c, ctx: ctx}
	s.result = result
	c.unsent = append(c.unsent, s)
	if !c.tx {
		err = c.flush(ctx)
	}
	return result, err
}

// flush sends what is unsent.
func (c *pgConn) flush(ctx context.Context) error {
	n := len(c.unsent)
	if n == 0 {
		return nil
	}
	last := c.unsent[n-1]
	c.unsent = c.unsent[:n-1]
	rows, err := c.send(ctx, last)
	if err != nil {
		return err
	}
	return rows.Close()
}

// maxPrepared bounds the statements that a connection has prepared; the text of few depends on what is asked for.
const maxPrepared = 500

// send sends what is unsent and a last statement, and returns the rows of that. They are to be closed.
func (c *pgConn) send(ctx context.Context, last pgStatement) (rows *pgRows, err error) {
	list := append(c.unsent, last)
	c.unsent, c.sent = nil, true
	p := c.StartPipeline(ctx)
	fresh := make([]string, len(list)) // the texts that are prepared
	for i, s := range list {
		name, known := c.prepared[s.text]
		if !known && !s.ends && len(c.prepared) < maxPrepared {
			name = "s" + strconv.Itoa(c.names)
			fresh[i], c.prepared[s.text] = s.text, name
			c.names++
			p.SendPrepare(name, s.text, s.types)
		}
		if name == "" {
			p.SendQueryParams(s.text, s.args, s.types, nil, nil)
		} else {
			p.SendQueryPrepared(name, s.args, nil, nil)
		}
	}
	at := 0
	defer func() {
		if err == nil {
			return
		}
		_ = p.Close() // which repeats the error
		for _, text := range fresh[at:] {
			delete(c.prepared, text)
		}
		err = c.noting(ctx, err)
	}()
	if err := p.Sync(); err != nil {
		return nil, err
	}
	for i, s := range list {
		if at = i; fresh[i] != "" {
			if _, err := p.GetResults(); err != nil {
				return nil, err
			}
			at = i + 1
		}
		answer, err := p.GetResults()
		if err != nil {
			return nil, err
		}
		reader, ok := answer.(*pgconn.ResultReader)
		if !ok {
			return nil, fmt.Errorf("the server answered a statement with %T", answer)
		}
		if i == len(list)-1 {
			return &pgRows{c: c, ctx: ctx, p: p, reader: reader, result: s.result}, nil
		}
		tag, err := reader.Close()
		if err != nil {
			return nil, err
		}
		s.result.is(tag)
	}
	return nil, nil
}

// noting notes that the server was lost, if that is what an error says. A connection also ends with the context of
// what it is used for.
func (c *pgConn) noting(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && c.IsClosed() {
		c.from.lost.Store(time.Now().UnixNano())
	}
	return err
}

// A pgTx is a transaction.
type pgTx struct {
	c   *pgConn
	ctx context.Context
}

// Commit implements driver.Tx.
func (tx pgTx) Commit() error {
	if !tx.c.sent {
		return tx.Rollback()
	}
	rows, err := tx.c.send(tx.ctx, pgStatement{text: "COMMIT", ends: true})
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	tx.c.tx = false
	if err := rows.Close(); err != nil {
		return err
	}
	if rows.tag.String() == "ROLLBACK" {
		return errors.New("the transaction had failed before its commit")
	}
	return nil
}

// Rollback implements driver.Tx.
func (tx pgTx) Rollback() error {
	c := tx.c
	c.unsent, c.tx = nil, false
	if !c.sent || c.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pgIdle)
	defer cancel()
	rows, err := c.send(ctx, pgStatement{text: "ROLLBACK", ends: true})
	if err != nil {
		return err
	}
	return rows.Close()
}

// A pgResult is what a statement has changed. It may still be unsent.
type pgResult struct {
	c    *pgConn
	ctx  context.Context
	done bool
	rows int64
}

// is fills in the result.
func (r *pgResult) is(tag pgconn.CommandTag) {
	if r != nil {
		r.done, r.rows = true, tag.RowsAffected()
	}
}

// RowsAffected implements driver.Result, and sends the statement if need be.
func (r *pgResult) RowsAffected() (int64, error) {
	if !r.done {
		if err := r.c.flush(r.ctx); err != nil {
			return 0, err
		}
	}
	return r.rows, nil
}

// LastInsertId implements driver.Result.
func (r *pgResult) LastInsertId() (int64, error) { return 0, errors.ErrUnsupported }

// pgRows are the rows of a statement, as they arrive.
type pgRows struct {
	c      *pgConn
	ctx    context.Context
	p      *pgconn.Pipeline
	reader *pgconn.ResultReader
	result *pgResult
	tag    pgconn.CommandTag
	closed bool
}

// Columns implements driver.Rows.
func (r *pgRows) Columns() []string {
	var names []string
	for _, f := range r.reader.FieldDescriptions() {
		names = append(names, f.Name)
	}
	return names
}

// Next implements driver.Rows.
func (r *pgRows) Next(dest []driver.Value) (err error) {
	if !r.reader.NextRow() {
		if err := r.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	for i, b := range r.reader.Values() {
		if dest[i], err = pgValue(r.reader.FieldDescriptions()[i].DataTypeOID, b); err != nil {
			return err
		}
	}
	return nil
}

// Close implements driver.Rows. It reads what is left.
func (r *pgRows) Close() (err error) {
	if r.closed {
		return nil
	}
	r.closed = true
	r.tag, err = r.reader.Close()
	if perr := r.p.Close(); err == nil {
		err = perr
	}
	if r.c.used = time.Now(); err == nil {
		r.result.is(r.tag)
	}
	return r.c.noting(r.ctx, err)
}

// pgValue reads a value that the server has sent as text; nil is NULL.
func pgValue(oid uint32, b []byte) (driver.Value, error) {
	if b == nil {
		return nil, nil
	}
	switch s := string(b); oid {
	case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID:
		return strconv.ParseInt(s, 10, 64)
	case pgtype.Float8OID, pgtype.Float4OID:
		return strconv.ParseFloat(s, 64)
	case pgtype.BoolOID:
		return s == "t", nil
	default:
		return s, nil
	}
}

// pgBound returns a statement with its arguments.
func pgBound(text string, args []driver.NamedValue) (pgStatement, error) {
	s := pgStatement{text: text, args: make([][]byte, len(args)), types: make([]uint32, len(args))}
	for i, a := range args {
		switch v := a.Value.(type) {
		case nil:
		case string:
			s.args[i] = []byte(v)
		case int64:
			s.args[i] = strconv.AppendInt(nil, v, 10)
		case float64: // it would be an integer where it is multiplied with one
			s.args[i], s.types[i] = strconv.AppendFloat(nil, v, 'g', -1, 64), pgtype.Float8OID
		case bool:
			s.args[i] = strconv.AppendBool(nil, v)
		default:
			return s, fmt.Errorf("a parameter is a %T", v)
		}
	}
	return s, nil
}

// openPool opens the connections to a server, at most so many.
func openPool(config *pgx.ConnConfig, most int) *sql.DB {
	pool := sql.OpenDB(&pgConnector{config: config})
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	return pool
}

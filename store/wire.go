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
// trips. What only changes rows, and what begins a transaction, travel with the next statement that is answered, or
// with COMMIT, so that an error of theirs is that statement's. What functions read together ([Tx.Together]) is asked
// together, too. A statement is prepared on the way when it is used first. Nobody waits for the end of a transaction
// that has only read.

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
	answers  map[string]*pgAnswer // to what was asked ahead, by [pgStatement.key]
}

// A pgStatement is what is sent, with the values of its parameters as text, nil for NULL, and their types, which the
// server finds out where that is 0.
type pgStatement struct {
	text   string
	ends   bool // or begins a transaction, which is not worth preparing
	args   [][]byte
	types  []uint32
	result *pgResult
	answer *pgAnswer // takes the rows; nil if there are none, or they are read as they arrive
}

// key is equal for statements that ask the same.
func (s pgStatement) key() string { return fmt.Sprintf("%q %q", s.text, s.args) }

// A pgAnswer is what a statement was answered. As an argument of a statement, it takes its answer.
type pgAnswer struct {
	*pgconn.Result
	at time.Time
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

// CheckNamedValue implements driver.NamedValueChecker.
func (c *pgConn) CheckNamedValue(v *driver.NamedValue) error {
	switch v.Value.(type) {
	case *pgAnswer, []read:
		return nil
	}
	return driver.ErrSkip
}

// QueryContext implements driver.QueryerContext.
func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := pgBound(query, args)
	if err != nil {
		return nil, err
	}
	if len(c.answers) > 0 {
		if a := c.answers[s.key()]; a != nil {
			return &pgRows{answer: a}, nil
		}
	}
	c.unsent = append(c.unsent, s)
	return c.send(ctx, true)
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
	if reads, ok := args[0].Value.([]read); ok {
		return nil, c.ask(ctx, reads)
	}
	answer, _ := args[0].Value.(*pgAnswer)
	if answer != nil {
		args = nil
	}
	s, err := pgBound(query, args)
	if err != nil {
		return nil, err
	}
	c.answers = nil // it may change what was read
	s.result, s.answer = &pgResult{c: c, ctx: ctx}, answer
	c.unsent = append(c.unsent, s)
	if !c.tx {
		err = c.flush(ctx)
	}
	return s.result, err
}

// ask asks all of what is about to be read, and keeps the answers.
func (c *pgConn) ask(ctx context.Context, reads []read) error {
	answers := map[string]*pgAnswer{}
	for _, r := range reads {
		args := make([]driver.NamedValue, len(r.args))
		for i, a := range bound(r.args) {
			v, err := driver.DefaultParameterConverter.ConvertValue(a)
			if err != nil {
				return err
			}
			args[i].Value = v
		}
		s, err := pgBound(r.query, args)
		if err != nil {
			return err
		}
		if key := s.key(); answers[key] == nil {
			s.answer = new(pgAnswer)
			answers[key] = s.answer
			c.unsent = append(c.unsent, s)
		}
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	c.answers = answers
	return nil
}

// flush sends what is unsent.
func (c *pgConn) flush(ctx context.Context) error {
	if len(c.unsent) == 0 {
		return nil
	}
	_, err := c.send(ctx, false)
	return err
}

// maxPrepared bounds the statements that a connection has prepared; the text of few depends on what is asked for.
const maxPrepared = 500

// send sends what is unsent. Of a stream, it returns the rows of the last statement as they arrive; they are to be
// closed.
func (c *pgConn) send(ctx context.Context, stream bool) (rows *pgRows, err error) {
	list := c.unsent
	c.unsent, c.answers, c.sent = nil, nil, true
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
		if stream && i == len(list)-1 {
			return &pgRows{c: c, ctx: ctx, p: p, reader: reader}, nil
		}
		if err := s.take(reader); err != nil {
			return nil, err
		}
	}
	c.used = time.Now()
	return nil, p.Close()
}

// take takes the answer to a statement.
func (s pgStatement) take(reader *pgconn.ResultReader) (err error) {
	var tag pgconn.CommandTag
	if s.answer == nil {
		tag, err = reader.Close()
	} else {
		got := reader.Read()
		*s.answer = pgAnswer{got, time.Now()}
		tag, err = got.CommandTag, got.Err
	}
	if s.result != nil && err == nil {
		s.result.done, s.result.tag = true, tag
	}
	return err
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
	if !tx.c.sent && len(tx.c.unsent) == 1 { // nothing but its BEGIN
		return tx.Rollback()
	}
	commit := &pgResult{}
	tx.c.unsent = append(tx.c.unsent, pgStatement{text: "COMMIT", ends: true, result: commit})
	if err := tx.c.flush(tx.ctx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	tx.c.tx = false
	if commit.tag.String() == "ROLLBACK" {
		return errors.New("the transaction had failed before its commit")
	}
	return nil
}

// Rollback implements driver.Tx.
func (tx pgTx) Rollback() error {
	c := tx.c
	c.unsent, c.answers, c.tx = nil, nil, false
	if !c.sent || c.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pgIdle)
	defer cancel()
	c.unsent = []pgStatement{{text: "ROLLBACK", ends: true}}
	return c.flush(ctx)
}

// A pgResult is what a statement has changed. It may still be unsent.
type pgResult struct {
	c    *pgConn
	ctx  context.Context
	done bool
	tag  pgconn.CommandTag
}

// RowsAffected implements driver.Result, and sends the statement if need be.
func (r *pgResult) RowsAffected() (int64, error) {
	if !r.done {
		if err := r.c.flush(r.ctx); err != nil {
			return 0, err
		}
	}
	if !r.done {
		return 0, errors.New("the transaction failed before this statement")
	}
	return r.tag.RowsAffected(), nil
}

// LastInsertId implements driver.Result.
func (r *pgResult) LastInsertId() (int64, error) { return 0, errors.ErrUnsupported }

// pgRows are the rows of a statement, as they arrive, or of an answer.
type pgRows struct {
	c      *pgConn
	ctx    context.Context
	p      *pgconn.Pipeline
	reader *pgconn.ResultReader
	answer *pgAnswer // nil if they arrive
	next   int       // of its rows
	closed bool
}

func (r *pgRows) fields() []pgconn.FieldDescription {
	if r.answer != nil {
		return r.answer.FieldDescriptions
	}
	return r.reader.FieldDescriptions()
}

// Columns implements driver.Rows.
func (r *pgRows) Columns() []string {
	var names []string
	for _, f := range r.fields() {
		names = append(names, f.Name)
	}
	return names
}

// Next implements driver.Rows.
func (r *pgRows) Next(dest []driver.Value) error {
	if r.answer != nil {
		if r.next == len(r.answer.Rows) {
			return io.EOF
		}
		r.next++
		return pgValues(r.answer.FieldDescriptions, r.answer.Rows[r.next-1], dest)
	}
	if !r.reader.NextRow() {
		if err := r.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	return pgValues(r.reader.FieldDescriptions(), r.reader.Values(), dest)
}

// Close implements driver.Rows. It reads what is left.
func (r *pgRows) Close() error {
	if r.closed || r.answer != nil {
		return nil
	}
	r.closed = true
	_, err := r.reader.Close()
	if perr := r.p.Close(); err == nil {
		err = perr
	}
	r.c.used = time.Now()
	return r.c.noting(r.ctx, err)
}

// pgValues reads the values of a row.
func pgValues(fields []pgconn.FieldDescription, row [][]byte, into []driver.Value) (err error) {
	for i, b := range row {
		if into[i], err = pgValue(fields[i].DataTypeOID, b); err != nil {
			return err
		}
	}
	return nil
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

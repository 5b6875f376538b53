package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"strconv"
	"strings"

	"ralph"
)

// A copied table has the metadata for a copy: its stored columns, and those of the primary key.
type copied struct {
	name string
	cols []string
	key  []string
}

// Moved summarises the copy of a table by [Move].
type Moved struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"` // of all rows, in the order of the primary key
}

const (
	rowsAtOnce  = 100     // most rows of one INSERT
	bytesAtOnce = 4 << 20 // bytes of text after which an INSERT gets no more rows
)

// Move copies a database into an empty one, of the same kind or not, and compares the counts and digests of all tables
// before it commits. The error wraps [ralph.ErrConflict] if a run or session works on from, or if to is not empty.
func Move(ctx context.Context, from, to *DB) (moved []Moved, err error) {
	done := false
	err = from.Tx(ctx, func(src *Tx) error {
		if done { // the server was lost after that
			return nil
		}
		err := errors.Join(src.takeTime(), src.atRest())
		if err == nil && from.Shared() {
			err = src.Touch() // only a writer sees the last ids
		}
		if err != nil {
			return err
		}
		err = to.Tx(ctx, func(dst *Tx) error {
			if err := dst.takeTime(); err != nil {
				return err
			}
			tables, err := tablesOf(src, dst)
			if err == nil {
				err = dst.isEmpty(tables)
			}
			if err == nil {
				moved, err = copyTables(src, dst, tables)
			}
			if err == nil {
				err = src.takeTime() // the lock is still held: nothing has changed meanwhile
			}
			return err
		})
		done = err == nil
		return err
	})
	if done {
		err = nil // a read-only transaction may end in any way
	}
	if done && to.Shared() {
		_, _ = to.write.ExecContext(ctx, "ANALYZE") // else the server plans for empty tables until it runs it by itself
	}
	return moved, err
}

// takeTime lets a server's transaction idle for long, while the other database works.
func (tx *Tx) takeTime() error {
	if tx.db.dialect.patient == "" {
		return nil
	}
	_, err := tx.exec(tx.db.dialect.patient)
	return err
}

// isEmpty returns an error that wraps [ralph.ErrConflict] if a table has rows that not every queue has.
func (tx *Tx) isEmpty(tables []copied) error {
	for _, t := range tables {
		if slices.Contains([]string{"merge_queue", "project"}, t.name) {
			continue
		}
		n, err := value[int64](tx, `SELECT count(*) FROM (SELECT 1 FROM `+t.name+` LIMIT 1) first`)
		if err != nil {
			return err
		}
		if n > 0 {
			return ralph.Conflict("%s is not empty: there are %s", tx.db.Path(), strings.ReplaceAll(t.name, "_", " "))
		}
	}
	return nil
}

// atRest returns an error that wraps [ralph.ErrConflict] if a run or a session works on the database.
func (tx *Tx) atRest() error {
	open, err := runRows.all(tx, `WHERE r.ended_at = '' ORDER BY r.id`)
	if err != nil {
		return err
	}
	for _, r := range open {
		if tx.Alive(r) {
			return ralph.Conflict("run %d works on %s: stop it first", r.ID, cmp.Or(r.Machine, "this queue"))
		}
	}
	s, ok, err := sessionRows.first(tx, `WHERE s.completed_at = '' ORDER BY s.started_at`)
	if err == nil && ok {
		err = ralph.Conflict("a session of TASK-%d is open: it has to be decided first", s.TaskID)
	}
	return err
}

// tablesOf lists the tables that both databases have, referenced tables first: other programs may have created more. It
// leaves out the tables about the database itself, its count and its live runs.
func tablesOf(src, dst *Tx) (list []copied, err error) {
	from, err := values[string](src, src.db.dialect.tables)
	if err != nil {
		return nil, err
	}
	to, err := values[string](dst, dst.db.dialect.tables)
	if err != nil {
		return nil, err
	}
	if src.db.Shared() { // a database that was restored has made its tables in another order
		from, to = to, from
	}
	for _, name := range from {
		if !slices.Contains(to, name) || slices.Contains([]string{"schema_migrations", "progress", "leases"}, name) {
			continue
		}
		t := copied{name: name}
		if t.cols, err = values[string](src, src.db.dialect.columns, name); err != nil {
			return nil, err
		}
		if t.key, err = values[string](src, src.db.dialect.keys, name); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// copyTables copies all rows and compares the written rows with the rows read.
func copyTables(src, dst *Tx, tables []copied) (moved []Moved, err error) {
	for _, t := range slices.Backward(tables) { // an empty queue has a few rows that every queue has
		if _, err := dst.exec(`DELETE FROM ` + t.name); err != nil {
			return nil, err
		}
	}
	for _, t := range tables {
		had, err := copyTable(src, dst, t)
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", t.name, err)
		}
		moved = append(moved, had)
	}
	if err := copyIDs(src, dst); err != nil {
		return nil, fmt.Errorf("copy the last ids: %w", err)
	}
	for i, t := range tables {
		var d digest
		if err := dst.eachRow(t, d.take); err != nil {
			return nil, err
		}
		if got := d.summary(t); got != moved[i] {
			return nil, fmt.Errorf("%s is not the same in both databases: %d rows with the digest %.12s became %d with %.12s; "+
				"nothing was moved", t.name, moved[i].Rows, moved[i].Digest, got.Rows, got.Digest)
		}
	}
	return moved, nil
}

// copyTable copies the rows of a table, and returns a summary of the rows read.
func copyTable(src, dst *Tx, t copied) (Moved, error) {
	var d digest
	var batch []any
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		var b strings.Builder
		fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES ", t.name, strings.Join(t.cols, ", "))
		for i := range batch {
			b.WriteString(map[bool]string{true: "($", false: ", $"}[i%len(t.cols) == 0] + strconv.Itoa(i+1))
			if i%len(t.cols) == len(t.cols)-1 && i < len(batch)-1 {
				b.WriteString("), ")
			}
		}
		b.WriteString(")")
		_, err := dst.exec(b.String(), batch...)
		batch, size = batch[:0], 0
		return err
	}
	err := src.eachRow(t, func(row []any) error {
		if err := d.take(row); err != nil {
			return err
		}
		for i, v := range row {
			s, _ := v.(string)
			if clean(s) != s {
				return fmt.Errorf("%s of the row %v has a NUL, or bytes that are not UTF-8, which ralph does not write: "+
					"change that first; nothing was moved", t.cols[i], row[slices.Index(t.cols, t.key[0])])
			}
			size += len(s)
		}
		batch = append(batch, row...)
		if len(batch) < rowsAtOnce*len(t.cols) && size < bytesAtOnce {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return d.summary(t), err
}

// eachRow calls f for each row of a table in the order of its key, with values in the same form for both databases.
func (tx *Tx) eachRow(t copied, f func(row []any) error) (err error) {
	rows, err := tx.QueryContext(tx.ctx, //nolint:gosec // names of the schema
		`SELECT `+strings.Join(t.cols, ", ")+` FROM `+t.name+` ORDER BY `+strings.Join(t.key, ", "))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, to := make([]any, len(t.cols)), make([]any, len(t.cols))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b)
			}
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A digest sums up the rows of a table.
type digest struct {
	sum  hash.Hash
	rows int64
}

// take adds a row.
func (d *digest) take(row []any) error {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	d.rows++
	var b []byte
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v)) //nolint:gosec // its bits
		case float64:
			b = binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case string:
			b = append(binary.BigEndian.AppendUint64(append(b, 's'), uint64(len(v))), v...)
		default:
			return fmt.Errorf("a value of the type %T", v)
		}
	}
	_, err := d.sum.Write(b)
	return err
}

// summary returns the number and the digest of the added rows as those of a table.
func (d *digest) summary(t copied) Moved {
	m := Moved{Table: t.name, Rows: d.rows}
	if d.sum != nil {
		m.Digest = fmt.Sprintf("%x", d.sum.Sum(nil))
	}
	return m
}

// copyIDs makes dst assign ids after the last ones of src, so that no id is used twice.
func copyIDs(src, dst *Tx) error {
	list, err := src.lastIDs()
	for table, last := range list {
		if err == nil {
			err = dst.db.dialect.setID(dst, table, last)
		}
	}
	return err
}

// lastIDs returns the last assigned id of each table that has assigned any.
func (tx *Tx) lastIDs() (map[string]int64, error) {
	return byKey[string, int64](tx, tx.db.dialect.ids)
}

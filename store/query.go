package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ralph"
)

// A field is a column of a query and the variable that it is scanned into.
type field struct {
	column string
	into   any
}

// A reader reads values of one type: its columns and their destinations stand side by side in one
// list.
type reader[T any] struct {
	query  string // SELECT … FROM …
	fields func(*T) []field
}

// reads makes a reader of a table, given with its alias, which the columns use.
func reads[T any](table string, fields func(*T) []field) reader[T] {
	var columns []string
	for _, f := range fields(new(T)) {
		columns = append(columns, f.column)
	}
	return reader[T]{"SELECT " + strings.Join(columns, ", ") + " FROM " + table + " ", fields}
}

func (r reader[T]) scan(row scanner) (v T, err error) {
	fields := r.fields(&v)
	into := make([]any, len(fields))
	for i, f := range fields {
		into[i] = f.into
	}
	return v, row.Scan(into...)
}

// all reads the rows that the rest of the query selects.
func (r reader[T]) all(tx *Tx, rest string, args ...any) ([]T, error) {
	return all(tx, r.scan, r.query+rest, args...)
}

// readable reads every row and keeps none.
func (r reader[T]) readable(tx *Tx) error {
	_, err := all(tx, func(row scanner) (none struct{}, err error) { _, err = r.scan(row); return none, err }, r.query)
	return err
}

// first reads the first row; ok is false if there is none.
func (r reader[T]) first(tx *Tx, rest string, args ...any) (v T, ok bool, err error) {
	v, err = r.scan(tx.row(r.query+rest+" LIMIT 1", args...))
	ok, err = found(err)
	return v, ok, err
}

// one reads one row. If there is none, the error names it, has the remedy ("" for none), and wraps [ralph.ErrNotFound].
func (r reader[T]) one(tx *Tx, name string, otherwise ralph.Remedy, rest string, args ...any) (T, error) {
	v, ok, err := r.first(tx, rest, args...)
	if err == nil && !ok {
		err = missing(name, otherwise)
	}
	return v, err
}

// missing is the error for a row that does not exist, with its remedy.
func missing(name string, otherwise ralph.Remedy) error {
	return &ralph.RemedyError{Err: fmt.Errorf("%s: %w", name, ralph.ErrNotFound), Do: otherwise}
}

// refused is [ralph.Conflict] with a remedy for the thing with that id.
func refused(do ralph.Remedy, id int64, format string, args ...any) error {
	return &ralph.RemedyError{Err: ralph.Conflict(format, args...), Do: do, ID: id}
}

// all reads every row of a query with scan.
func all[T any](tx *Tx, scan func(scanner) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := tx.QueryContext(tx.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// value reads a query's only column of its only row.
func value[T any](tx *Tx, query string, args ...any) (v T, err error) {
	return v, tx.row(query, args...).Scan(&v)
}

// values reads a query's only column.
func values[T any](tx *Tx, query string, args ...any) ([]T, error) {
	return all(tx, func(row scanner) (v T, err error) { return v, row.Scan(&v) }, query, args...)
}

// byKey reads rows of two columns, a key and its value.
func byKey[K comparable, V any](tx *Tx, query string, args ...any) (map[K]V, error) {
	m := map[K]V{}
	_, err := all(tx, func(row scanner) (none struct{}, err error) {
		var key K
		var of V
		err = row.Scan(&key, &of)
		m[key] = of
		return none, err
	}, query, args...)
	return m, err
}

// found maps [sql.ErrNoRows] to false.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// cells are the values to write into a row, by column.
type cells map[string]any

// columns returns the names in sorted order, so that the statement is the same each time and is
// prepared once, and the values in that order.
func (r cells) columns() (names []string, args []any) {
	names = slices.Sorted(maps.Keys(r))
	for _, n := range names {
		args = append(args, r[n])
	}
	return names, args
}

// add inserts a row and returns its id.
func (tx *Tx) add(table string, r cells) (int64, error) {
	text, args := inserting(table, r)
	return value[int64](tx, text+" RETURNING id", args...)
}

// put inserts a row, or updates the row with the same key.
func (tx *Tx) put(table, key string, r cells) error {
	text, args := inserting(table, r)
	var changed []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		if !slices.Contains(strings.Split(key, ", "), n) {
			changed = append(changed, n+" = excluded."+n)
		}
	}
	return tx.do(text+" ON CONFLICT ("+key+") DO UPDATE SET "+strings.Join(changed, ", "), args...)
}

func inserting(table string, r cells) (text string, args []any) {
	names, args := r.columns()
	marks := make([]string, len(names))
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")", args
}

// set updates columns of the row with an id.
func (tx *Tx) set(table string, id any, r cells) error {
	names, args := r.columns()
	for i, n := range names {
		names[i] = n + " = $" + strconv.Itoa(i+1)
	}
	args = append(args, id)
	return tx.do("UPDATE "+table+" SET "+strings.Join(names, ", ")+" WHERE id = $"+strconv.Itoa(len(args)), args...)
}

// A filter collects the conditions of a query and their arguments.
type filter struct {
	clauses []string
	args    []any
}

// and adds a condition, in which each ? stands for an argument.
func (f *filter) and(clause string, args ...any) {
	f.clauses = append(f.clauses, f.number(clause, args...))
}

// number replaces each ? by the number of its argument.
func (f *filter) number(text string, args ...any) string {
	for _, a := range args {
		f.args = append(f.args, a)
		text = strings.Replace(text, "?", "$"+strconv.Itoa(len(f.args)), 1)
	}
	return text
}

// where returns the WHERE clause; "" if there are no conditions.
func (f *filter) where() string {
	if len(f.clauses) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.clauses, " AND ")
}

// page returns the LIMIT clause of a list; "" for a limit of 0.
func (f *filter) page(limit, skip int) string {
	if limit == 0 {
		return ""
	}
	return f.number(" LIMIT ? OFFSET ?", limit, skip)
}

// in adds the condition that a column has one of some values; without values it adds none.
func in[T any](f *filter, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	f.and(column+" IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
}

// null returns nil, for NULL, if v is its zero value.
func null[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// asJSON stores v as JSON text; a nil slice becomes an empty list.
func asJSON(v any) driver.Valuer { return jsonValue{v} }

type jsonValue struct{ v any }

// Value implements driver.Valuer.
func (j jsonValue) Value() (driver.Value, error) {
	b, err := json.Marshal(j.v)
	if string(b) == "null" && j.v != nil {
		return "[]", err
	}
	return clean(string(b)), err
}

// column scans JSON text into dest.
func column(dest any) sql.Scanner { return jsonColumn{dest} }

type jsonColumn struct{ dest any }

// Scan implements sql.Scanner.
func (c jsonColumn) Scan(value any) error {
	s, ok := value.(string)
	if !ok {
		return fmt.Errorf("JSON column holds %T, not text", value)
	}
	if err := json.Unmarshal([]byte(s), c.dest); err != nil {
		return fmt.Errorf("stored JSON: %w", err)
	}
	return nil
}

// An idList scans comma-separated ids; NULL is an empty list.
type idList struct{ dest *[]int64 }

// Scan implements sql.Scanner.
func (l idList) Scan(value any) error {
	*l.dest = []int64{}
	s, ok := value.(string)
	if !ok && value != nil {
		return fmt.Errorf("list of ids is %T, not text", value)
	}
	for id := range strings.SplitSeq(s, ",") {
		if id == "" {
			continue
		}
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fmt.Errorf("list of ids: %w", err)
		}
		*l.dest = append(*l.dest, n)
	}
	return nil
}

// tableExists reports whether there is a table (not a view) with that name.
func tableExists(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, name string,
) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1`, name).Scan(&n)
	return n > 0, err
}

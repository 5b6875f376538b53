package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
)

// Read runs f in a read-only transaction ([DB.View]) and returns its result.
func Read[T any](ctx context.Context, db *DB, f func(tx *Tx) (T, error)) (value T, err error) {
	err = db.View(ctx, func(tx *Tx) (err error) {
		value, err = f(tx)
		return err
	})
	return value, err
}

// A read is a query that is about to be asked.
type read struct {
	query string
	args  []any
}

// Together runs functions that only read, and returns the error of the first that failed. One runs at a time, in their
// order; on a server each goes on until it asks something, and what all of them ask then travels at once, as a server
// far away costs its round trips.
func (tx *Tx) Together(fs ...func(tx *Tx) error) error {
	if !tx.db.dialect.shared {
		for _, f := range fs {
			if err := f(tx); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(fs))
	var running []func() ([]read, bool)
	for i, f := range fs {
		next, stop := iter.Pull(func(yield func([]read) bool) {
			part := *tx
			part.asks = func(reads []read) { yield(reads) }
			errs[i] = f(&part)
		})
		defer stop()
		running = append(running, next)
	}
	for len(running) > 0 {
		var round []read
		running = slices.DeleteFunc(running, func(next func() ([]read, bool)) bool {
			reads, more := next()
			round = append(round, reads...)
			return !more
		})
		if err := tx.ask(round); err != nil {
			return err
		}
	}
	return cmp.Or(errs...)
}

// Into is f with its result kept in value, for [Tx.Together].
func Into[T any](value *T, f func(tx *Tx) (T, error)) func(tx *Tx) error {
	return func(tx *Tx) (err error) {
		*value, err = f(tx)
		return err
	}
}

// ask asks what is about to be read, with what others read at the same time.
func (tx *Tx) ask(reads []read) error {
	if tx.asks != nil {
		tx.asks(reads)
		return nil
	}
	if len(reads) < 2 {
		return nil // it is asked when it is read
	}
	_, err := tx.Tx.ExecContext(tx.ctx, "", reads)
	return err
}

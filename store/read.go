package store

import "context"

// Read runs f in a read-only transaction ([DB.View]) and returns its result.
func Read[T any](ctx context.Context, db *DB, f func(tx *Tx) (T, error)) (value T, err error) {
	err = db.View(ctx, func(tx *Tx) (err error) {
		value, err = f(tx)
		return err
	})
	return value, err
}

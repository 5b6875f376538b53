package store

import "context"

// Read is what f reads in one view.
func Read[T any](ctx context.Context, db *DB, f func(tx *Tx) (T, error)) (value T, err error) {
	err = db.View(ctx, func(tx *Tx) (err error) {
		value, err = f(tx)
		return err
	})
	return value, err
}

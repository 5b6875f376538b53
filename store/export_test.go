package store

import "time"

// WithoutLock lets writing transactions of PostgreSQL run at once, which no other code may, to show the consequences.
func (db *DB) WithoutLock() { db.dialect.begin = nil }

// RetryFor changes how long a server is tried again that cannot be reached.
func (db *DB) RetryFor(d time.Duration) { db.dialect.retry = d }

package store

import "time"

// WithoutLock lets transactions that write into a PostgreSQL run at once, which no other code may: a test shows what
// happens then.
func (db *DB) WithoutLock() { db.dialect.begin = nil }

// RetryFor changes how long a server is tried again that cannot be reached.
func (db *DB) RetryFor(d time.Duration) { db.dialect.retry = d }

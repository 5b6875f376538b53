package store

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// TestACopyThatLacksSomethingIsNone: a copy that lacks a table or rows is refused.
func TestACopyThatLacksSomethingIsNone(t *testing.T) {
	open := func(name string, statements ...string) *sql.DB {
		db, err := sql.Open(sqlite.driver, filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		for _, statement := range statements {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		return db
	}
	a, b, row := `CREATE TABLE a (x)`, `CREATE TABLE b (x)`, `INSERT INTO a VALUES (1)`
	whole := open("whole", a, b, row)
	for name, tt := range map[string]struct {
		copy *sql.DB
		same bool
	}{
		"all is there":      {open("same", a, b, row), true},
		"a row is missing":  {open("rows", a, b), false},
		"a table is":        {open("tables", a, row), false},
		"there is one more": {open("more", a, b, row, row), false},
	} {
		if err := equal(t.Context(), whole, tt.copy); (err == nil) != tt.same {
			t.Errorf("%s: %v", name, err)
		}
	}
}

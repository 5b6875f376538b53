package migrations

import (
	"regexp"
	"testing"
)

// TestNothingOfSQLiteIsLeft: words with other names in PostgreSQL are translated, even without a server to try it.
func TestNothingOfSQLiteIsLeft(t *testing.T) {
	names, err := Names("postgres")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := read("postgres", name)
		if err != nil {
			t.Fatal(err)
		}
		const own = `\b(INTEGER|AUTOINCREMENT|REAL|STRICT|strftime|group_concat|ABORT|VIRTUAL)\b|TEXT NOT NULL|\) AS \(|translated`
		for _, left := range regexp.MustCompile(own).FindAllString(text, -1) {
			t.Errorf("%s has SQLite's %q", name, left)
		}
	}
}

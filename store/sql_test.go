package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ralph/store"
)

// placeholder is one of SQL's.
var placeholder = regexp.MustCompile(`\$(\d+)`)

// TestPlaceholdersAreNumberedAsTheyAppear: SQLite numbers $n by first appearance,
// PostgreSQL by the digits. A query whose numbers do not rise means two things.
func TestPlaceholdersAreNumberedAsTheyAppear(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			highest := 0
			for _, m := range placeholder.FindAllStringSubmatch(literal.Value, -1) {
				number, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				if number > highest+1 {
					t.Errorf("%s: $%d comes before $%d", set.Position(literal.Pos()), number, highest+1)
				}
				highest = max(highest, number)
				seen++
			}
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d placeholders were looked at", seen)
	}
}

// TestQueriesOfTheLoopReadIndexes: what every session needs does not read a whole
// table, however long the history is.
func TestQueriesOfTheLoopReadIndexes(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	for _, query := range []string{
		`SELECT id FROM tasks WHERE status = 'pending' ORDER BY priority, rank, (CASE WHEN attempts > 0 THEN 0 ELSE 1 END), id LIMIT 1`,
		`SELECT count(*) FROM task_comments WHERE task_id = 1 AND holding = 1`,
		`SELECT * FROM task_comments c WHERE c.session_id = 'x' AND c.signal_verb IS NOT NULL ORDER BY c.created, c.id`,
		`SELECT * FROM sessions s WHERE s.completed_at = '' ORDER BY s.started_at`,
		`SELECT coalesce(sum(cost_usd), 0.0) FROM sessions WHERE completed_at >= '2026'`,
		`SELECT * FROM events WHERE id > 100 ORDER BY id LIMIT 10`,
		`SELECT count(*) FROM permission_requests WHERE decided_at = '' AND session_id = 'x'`,
		`SELECT review FROM task_comments WHERE holding = 1 AND review <> ''`,
		`SELECT result FROM verifications WHERE content = 'x' AND command = 'y'`,
	} {
		err := db.View(t.Context(), func(tx *store.Tx) error {
			rows, err := tx.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query)
			if err != nil {
				return err
			}
			defer func() {
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
			}()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				if strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "INDEX") {
					t.Errorf("%s\n%s", query, detail)
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

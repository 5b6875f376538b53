package order

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// needed maps tasks to the learnings that they need, out of all that are known.
var needed = []struct {
	task ralph.Task
	best []string
}{
	{ralph.Task{Title: "Reject empty URLs when a bookmark is saved"}, []string{
		"validateURL in bookmarks.go accepts an empty string; the caller has to check", "Bookmarks are saved through BookmarkStore.Save, never directly",
	}},
	{ralph.Task{Title: "Mend the failing suite", Description: "The tests fail where there is no Redis."}, []string{
		"Tests need Redis on port 6379; start it with make redis", "The test suite takes the Redis address from REDIS_URL",
	}},
	{ralph.Task{Title: "Audit endpoint", Acceptance: []string{"pagination of the audit log"}}, []string{
		"Audit logs are append-only; read them through the AuditLog iterator, never with OFFSET", "Endpoints return at most 100 rows; pagination uses an opaque cursor",
	}},
	{ralph.Task{Title: "Migrate the users table to the new schema"}, []string{
		"Schema migrations run inside a transaction, one file per table", "The users table has a trigger that forbids deleting rows",
	}},
	{ralph.Task{Title: "Make the login page work on phones"}, []string{
		"The login page is rendered by the server; its styles are in auth.css", "Layouts for phones begin below 600 pixels",
	}},
}

// TestAPromptHasTheLearningsThatItsTaskNeeds, even if many times as many are known as fit: matches for the task come
// before learnings that were seen more often.
func TestAPromptHasTheLearningsThatItsTaskNeeds(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &Config{Dir: t.TempDir(), Prompts: Prompts{Tokens: 4000}}
	write := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	learn := func(tx *store.Tx, k ralph.Learning) error {
		k.Kind = "discovery"
		_, err := tx.AddLearning(k)
		return err
	}
	const others = 300
	write(func(tx *store.Tx) error {
		for _, name := range []string{"web", "billing"} {
			if err := tx.PutFeature(ralph.Feature{Name: name}); err != nil {
				return err
			}
		}
		for i := range others {
			if err := learn(tx, ralph.Learning{
				Text: fmt.Sprintf("Prices of region %d are stored in cents and rounded by accounting at month's end", i), Scope: ralph.ScopeProject, Origin: ralph.ByAgent, TimesSeen: 5,
			}); err != nil {
				return err
			}
		}
		for _, n := range needed {
			for _, text := range n.best {
				if err := learn(tx, ralph.Learning{Text: text, Scope: ralph.ScopeProject, Origin: ralph.ByAgent}); err != nil {
					return err
				}
			}
		}
		for _, k := range []ralph.Learning{
			{Text: "Releases are tagged on Fridays", Scope: ralph.ScopeProject, Origin: ralph.ByHuman},
			{Text: "Colours come from the palette", Scope: ralph.ScopeFeature, Feature: "web", Origin: ralph.ByAgent},
			{Text: "Login pages of invoices differ", Scope: ralph.ScopeFeature, Feature: "billing", Origin: ralph.ByAgent},
		} {
			if err := learn(tx, k); err != nil {
				return err
			}
		}
		return nil
	})
	for _, n := range needed {
		t.Run(n.task.Title, func(t *testing.T) {
			n.task.Feature = "web"
			var text string
			write(func(tx *store.Tx) error {
				id, err := tx.AddTask(n.task, "human")
				if err != nil {
					return err
				}
				task, err := tx.Task(id)
				if err != nil {
					return err
				}
				built, err := c.BuildPrompt(tx, task)
				text = built.Text
				return err
			})
			first := strings.Index(text, "Prices of region ")
			if shown := strings.Count(text, "Prices of region "); shown == 0 || shown > others/2 {
				t.Fatalf("%d of the others are shown: this test does not see what is left out", shown)
			}
			for _, best := range n.best {
				if at := strings.Index(text, best); at < 0 || at > first {
					t.Errorf("%q is not shown before the others (%d, %d)", best, at, first)
				}
			}
			if at := strings.Index(text, "Releases are tagged on Fridays"); at < 0 || at > strings.Index(text, n.best[0]) {
				t.Error("what a person wrote does not come first")
			}
			if !strings.Contains(text, "Colours come from the palette") || strings.Contains(text, "Login pages of invoices differ") {
				t.Error("of features it has not its own alone")
			}
		})
	}
}

package order

import (
	"fmt"
	"path/filepath"
	"testing"

	"ralph"
	"ralph/prompt"
	"ralph/store"
)

// BenchmarkPromptByLearnings reads, ranks and selects learnings for a
// prompt. The cost per learning must not grow with their number.
func BenchmarkPromptByLearnings(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "ralph.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			c := &Config{Dir: b.TempDir(), Prompts: Prompts{Tokens: 24_000}}
			var task ralph.Task
			err = db.Tx(b.Context(), func(tx *store.Tx) error {
				id, err := tx.AddTask(ralph.Task{Title: "Retry the uploads", Description: "The network fails now and then."}, "human")
				if err != nil {
					return err
				}
				for i := range n {
					if _, err := tx.AddLearning(ralph.Learning{
						Text:  fmt.Sprintf("Service %d keeps its uploads in a folder of its own, and tries again after %d seconds when the network fails", i, i%60),
						Scope: ralph.ScopeProject, Kind: "discovery", Origin: ralph.ByAgent,
					}); err != nil {
						return err
					}
				}
				task, err = tx.Task(id)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				err := db.View(b.Context(), func(tx *store.Tx) error {
					d := prompt.Data{Task: task, MaxTokens: c.Prompts.Tokens}
					if err := c.addKnowledge(tx, task, &d); err != nil {
						return err
					}
					return prompt.Build(d).Err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package doctor

import (
	"context"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// flaky lists the tests that failed and then passed on the same commit.
func flaky(ctx context.Context, db *store.DB) (findings []Finding) {
	list, err := store.Read(ctx, db, func(tx *store.Tx) ([]ralph.Flaky, error) {
		return tx.Flaky(ralph.FlakySince(tx.Now()))
	})
	if err != nil {
		return []Finding{{"flaky tests", false, err.Error(), ""}}
	}
	for _, f := range list {
		findings = append(findings, Finding{
			"flaky test", true, text.Line(f.String(), 300), "it failed and then passed on the same commit: mend it",
		})
	}
	return findings
}

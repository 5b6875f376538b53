package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ralph/internal/schedule"
	"ralph/store"
)

// sinceUsage describes the flag --since.
const sinceUsage = "`TIME`: 22:00, 2h, 7d, today, yesterday, \"last night\", monday, 2026-11-20, or \"run 12\""

// since reads the flag --since: a time, or the beginning of a run.
func (a *app) since(ctx context.Context, text string) (time.Time, error) {
	if number, ok := strings.CutPrefix(strings.TrimSpace(text), "run "); ok {
		id, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || id <= 0 {
			return time.Time{}, usage(fmt.Errorf("--since %q: a run has a number, as in \"run 12\"", text))
		}
		return read(ctx, a, func(tx *store.Tx) (time.Time, error) {
			r, err := tx.Run(id)
			return r.StartedAt.Time, err
		})
	}
	t, err := schedule.ParseSince(text, time.Now())
	if err != nil {
		return t, usage(fmt.Errorf("--since %w", err))
	}
	return t, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/words"
	"ralph/store"
)

// eventPage is how many events are read at a time, so that memory stays the same
// however many there are.
const eventPage = 500

// pollFollowed is how often a follower looks whether anybody still reads what it prints.
const pollFollowed = 200 * time.Millisecond

func newEvents(a *app) *cobra.Command {
	var follow bool
	var since int64
	var types []string
	var task string
	cmd := newCommand("events", func(cmd *cobra.Command, _ []string) (err error) {
		r := eventReader{after: since, types: types, json: a.json, out: a.out}
		if r.task, err = optionalTask(task); err != nil {
			return err
		}
		for _, t := range types {
			if err := oneOf("--type", t, ralph.EventTypes...); err != nil {
				return err
			}
		}
		if since < 0 {
			return usage(&ralph.FieldError{
				Field: fmt.Sprintf("--since %d", since), Problem: "must be an event's id, or 0 for all",
			})
		}
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			if follow && p.Blank {
				return state.ErrNoQueue // it would never see one that is made
			}
			r.db = db
			if err := db.View(cmd.Context(), func(tx *store.Tx) error { return tx.CheckTask(r.task) }); err != nil {
				return err
			}
			if follow && !cmd.Flags().Changed("since") {
				err := db.View(cmd.Context(), func(tx *store.Tx) (err error) { r.after, err = tx.LastEvent(); return err })
				if err != nil {
					return err
				}
			}
			if !follow {
				return r.print(cmd.Context())
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return r.follow(ctx)
		})
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with those that are to come")
	cmd.Flags().Int64Var(&since, "since", 0, "only those after the event with this `ID`")
	cmd.Flags().StringArrayVar(&types, "type", nil, "only events of this type (repeatable)")
	cmd.Flags().StringVar(&task, "task", "", "only those of this task")
	return cmd
}

type eventReader struct {
	db    *store.DB
	out   io.Writer
	json  bool
	after int64
	types []string
	task  int64
}

// print prints the events that there are, a page at a time.
func (r *eventReader) print(ctx context.Context) error {
	for {
		var page []ralph.Event
		err := r.db.View(ctx, func(tx *store.Tx) (err error) { page, err = tx.Events(r.after, eventPage); return err })
		if err != nil {
			return err
		}
		for _, e := range page {
			r.after = e.ID
			if err := r.one(e); err != nil {
				return err
			}
		}
		if len(page) < eventPage {
			return nil
		}
	}
}

// follow prints events as they come until ctx ends or nobody reads them any more,
// which is no error.
func (r *eventReader) follow(ctx context.Context) error {
	tick := time.NewTicker(pollFollowed)
	defer tick.Stop()
	for {
		changed := r.db.Changed()
		if err := r.print(ctx); err != nil {
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				waiting = false
			case <-tick.C:
				if readerGone(r.out) {
					return nil
				}
			}
		}
	}
}

func (r *eventReader) one(e ralph.Event) error {
	if r.task != 0 && e.TaskID != r.task || len(r.types) > 0 && !slices.Contains(r.types, e.Type) {
		return nil
	}
	if r.json {
		return json.NewEncoder(r.out).Encode(e)
	}
	at := e.Created.Local().Format("2006-01-02 15:04:05")
	_, err := fmt.Fprintf(r.out, "%6d  %s  %s\n", e.ID, at, words.Listed(e, time.Now()))
	return err
}

package order

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/store"
)

// A somebody is an agent that never works.
type somebody struct{ name string }

func (somebody) Work(context.Context, agent.Assignment) (agent.Report, error) {
	return agent.Report{}, errors.New("nobody works here")
}

func (somebody) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// TestTheOrderOfASession: its recipient decides on its agent, its prompt and its budget; its commands are the task's.
func TestTheOrderOfASession(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.Path(t, t.TempDir()+"/ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &Config{
		Dir: t.TempDir(), Agent: somebody{"usual"}, Prompts: Prompts{Tokens: 3_000}, Models: Models{Config: "small"},
		Agents: Agents{Use: "usual", All: map[string]agent.Agent{"other": somebody{"other"}}, Models: map[string]string{"other": "large"}},
		Check:  check.Rules{Commands: []string{"make test"}}, Session: Limits{CheckpointAt: 80},
		Limits: ralph.Limits{
			MaxSessions: 3, MaxCostUSD: 10, MaxDayCostUSD: 10, MaxMonthCostUSD: 10, SessionCostUSD: 4, SessionMinUSD: 1,
			SessionSeconds: 60, SessionTurns: 7,
		},
	}
	loops := func(s store.Spending) func(*store.Tx, ralph.Task) (Order, error) {
		return func(tx *store.Tx, t ralph.Task) (Order, error) { return For(tx, c, t, nil, s) }
	}
	worker := func(tx *store.Tx, t ralph.Task) (Order, error) { return ForWorker(tx, c, t, nil) }
	person := func(tx *store.Tx, t ralph.Task) (Order, error) { return ForPerson(tx, c, t) }
	lost := func(tx *store.Tx, t ralph.Task) (Order, error) {
		return Of(tx, c, t, ralph.Session{TaskID: t.ID, Agent: "gone", CostLimitUSD: 2})
	}
	for _, tt := range []struct {
		name  string
		said  int // the length of what a person says of the task
		task  ralph.Task
		write func(*store.Tx, ralph.Task) (Order, error)
		agent string // "" for none
		model string
		usd   float64
		err   error
		fails string // the text of an error that is none of ralph's values
	}{
		{"of the loop", 0, ralph.Task{}, loops(store.Spending{}), "usual", "small", 4, nil, ""},
		{"for another agent", 0, ralph.Task{Agent: "other"}, loops(store.Spending{}), "other", "large", 4, nil, ""},
		{"for an agent that is not configured", 0, ralph.Task{Agent: "gone"}, loops(store.Spending{}), "", "", 0, nil, `it is for the agent "gone"`},
		{"with what is left", 0, ralph.Task{}, loops(store.Spending{USD: 7, DayUSD: 7, MonthUSD: 7}), "usual", "small", 3, nil, ""},
		{"where others may spend all", 0, ralph.Task{}, loops(store.Spending{Open: 1, Reserved: 10, DayReserved: 10}), "", "", 0, ErrSpent, ""},
		{"where no other session may begin", 0, ralph.Task{}, loops(store.Spending{Sessions: 3}), "", "", 0, ErrSpent, ""},
		{"whose prompt has no room", 12_000, ralph.Task{}, loops(store.Spending{}), "", "", 0, ralph.ErrConflict, ""},
		{"of a worker", 0, ralph.Task{Agent: "gone"}, worker, "", "", 0, nil, ""},
		{"of a worker whose prompt has no room", 12_000, ralph.Task{}, worker, "", "", 0, ralph.ErrConflict, ""},
		{"of a person", 0, ralph.Task{Agent: "gone"}, person, "", "", 0, nil, ""},
		{"of a lost session whose agent is no longer configured", 0, ralph.Task{}, lost, "usual", "", 2, nil, ""},
	} {
		var o Order
		err := db.Tx(t.Context(), func(tx *store.Tx) error {
			tt.task.Title, tt.task.Verify = "A", []string{"make own"}
			id, err := tx.AddTask(tt.task, "human")
			if err != nil {
				return err
			}
			if tt.said > 0 {
				said := ralph.Comment{TaskID: id, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: strings.Repeat("word ", tt.said/5)}
				if _, err := tx.AddComment(said); err != nil {
					return err
				}
			}
			task, err := tx.Task(id)
			if err == nil {
				o, err = tt.write(tx, task)
			}
			return err
		})
		if tt.err != nil || tt.fails != "" {
			if err == nil || tt.err != nil && !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: got %v, want %v %s", tt.name, err, tt.err, tt.fails)
			}
			continue
		}
		name := ""
		if its, ok := o.Agent.(somebody); ok {
			name = its.name
		}
		if err != nil || name != tt.agent || o.Model != tt.model || o.Limits.CostUSD != tt.usd {
			t.Errorf("%s: got %q, model %q, $%g: %v", tt.name, name, o.Model, o.Limits.CostUSD, err)
		}
		if want := "make test, make own"; strings.Join(o.Verify.All(), ", ") != want || o.Limits.CheckpointAt != 80 || o.Limits.Turns != 7 {
			t.Errorf("%s: its commands are %q, want %q; its limits %+v", tt.name, o.Verify.All(), want, o.Limits)
		}
		if !strings.Contains(tt.name, "lost") && !strings.Contains(o.Prompt, "make own") {
			t.Errorf("%s: its prompt does not name its command", tt.name)
		}
	}
}

package webtest

import (
	"time"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// Plan adds a feature whose plan waits for a person: five new tasks, a change of one that is open, and one to drop.
func (n *Night) Plan() error {
	n.set(n.Morning.Add(-8 * time.Minute))
	defer n.set(n.after)
	var task int64
	err := n.tx(func(tx *store.Tx) (err error) {
		err = tx.PutFeature(ralph.Feature{Name: "invoices", Description: "Let people pay by invoice."})
		if err == nil {
			task, err = tx.AddTask(ralph.Task{
				Title: "Plan: let people pay by invoice", Feature: "invoices", Role: ralph.RolePlan, Priority: 2,
			}, "human")
		}
		return err
	})
	if err != nil {
		return err
	}
	id, err := n.start(task)
	if err != nil {
		return err
	}
	plan := ralph.Plan{
		Tasks: []ralph.PlannedTask{
			{
				Name: "model", Title: "Keep invoices with their lines and a number",
				Description: "An invoice has a number without gaps, the buyer's address and **lines** in cents.\n\n" +
					"It belongs into `src/invoice.js`, beside `src/order.js`.",
				Acceptance: []string{"numbers have no gaps, also after a crash", "a line without a price is refused"},
				Verify:     []string{"node --test test/invoice.test.js"}, Files: []string{"src/invoice.js"},
			},
			{
				Name: "pdf", Title: "Print an invoice as PDF", Description: "A page of A4, with the logo.",
				Verify: []string{"test -f README.md"}, Files: []string{"src/pdf/**"}, DependsOn: []string{"model"},
			},
			{
				Name: "mail", Title: "Send it by mail", Verify: []string{"smtp-check --now", "node --test test/mail.test.js"},
				Files: []string{"src/mail.js"}, DependsOn: []string{"pdf"}, Estimate: "half a day",
			},
			{
				Name: "remind", Title: "Remind of what is not paid", Verify: []string{"npm run watch"},
				Files: []string{"src/mail.js", "src/remind.js"}, DependsOn: []string{"model"},
			},
			{Name: "legal", Title: "Ask a lawyer about the wording", DependsOn: []string{"model"}},
		},
		Marks: map[string][]string{
			"pdf":  {"`test -f README.md` " + signals.MarkPasses},
			"mail": {"`smtp-check --now` cannot run: there is no command smtp-check"},
			"remind": {
				"touches files of mail and waits for nothing of it: in parallel they may conflict",
				"`npm run watch` does not end: killed after 10m0s",
			},
			"legal": {signals.MarkNothing},
		},
	}
	if _, err := n.decide(task, id, signals.Done{Summary: "invoices in five steps"}, func(f *signals.Facts) {
		f.Planned = "planned: 5 tasks, 1 change of tasks, 1 task to drop, for you to approve"
		f.Merges, f.Changed = false, false
	}); err != nil {
		return err
	}
	return n.tx(func(tx *store.Tx) error {
		known, err := tx.KnownToPlan("invoices")
		if err != nil {
			return err
		}
		old := map[string]string{"price": "Show prices without tax", "fax": "Send invoices by fax"}
		for _, name := range []string{"price", "fax"} {
			t := ralph.PlannedTask{Name: name, Title: old[name], Description: "As planned last week."}.Task("invoices")
			t.Status = ralph.Pending
			if t.ID, err = tx.AddTask(t, "agent"); err != nil {
				return err
			}
			known[name] = t
		}
		plan.Tasks = append(plan.Tasks,
			ralph.PlannedTask{
				Name: "price", Title: "Show prices with tax, and say so", Verify: []string{"node --test test/price.test.js"},
			},
			ralph.PlannedTask{Name: "fax", Drop: "nobody has asked for it since"})
		s, err := tx.Session(id)
		if err == nil {
			err = tx.ProposePlan(s, "invoices", plan, known)
		}
		return err
	})
}

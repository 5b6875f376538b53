package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/text"
	"ralph/store"
)

// A PlanCall is a call of agentic_plan_decide.
type PlanCall struct {
	Feature string   `json:"feature"` // "" for the only waiting plan
	Names   []string `json:"names"`   // names of tasks, in the plan or as TASK-3; none for all
	Verdict string   `json:"verdict"` // approve or reject
	Reason  string   `json:"reason"`
}

// A shownPlan is the answer of agentic_plan_show.
type shownPlan struct {
	Feature string   `json:"feature"`
	Plan    string   `json:"plan"`  // as Markdown
	Waits   []string `json:"waits"` // a person's open decisions, in a line each
}

// planShown shows a plan.
func (c *chat) planShown(ctx context.Context, in struct {
	Feature string `json:"feature"`
},
) (any, error) {
	v := shownPlan{Waits: []string{}}
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		p, err := inbox.ReadPlan(tx, in.Feature)
		if err != nil {
			return err
		}
		lines, _, err := tx.PlanLines(p.Waits)
		v.Feature, v.Plan, v.Waits = p.Feature.Name, p.Markdown(), append(v.Waits, lines...)
		return err
	})
	return v, err
}

// planAsked approves or rejects a plan, or parts of it, if the person agrees in the client's own way. The person sees
// the parts in full, and nothing is decided if the plan has changed meanwhile.
func (c *chat) planAsked(ctx context.Context, req *mcp.CallToolRequest, in PlanCall) (any, error) {
	if err := ralph.CheckText("reason", in.Reason, false); err != nil {
		return nil, err
	}
	p, lines, err := c.planOf(ctx, in)
	if err != nil {
		return nil, err
	}
	feature, do := p.Feature.Name, "Approve"
	if in.Verdict == "reject" {
		do = "Reject"
	}
	question := fmt.Sprintf("%s %s of the plan of %s?\n\n%s", do, text.Count(len(lines), "part"),
		text.VisibleLine(feature), text.Visible(strings.Join(lines, "\n")))
	was := digest(p)
	pending, err := c.agrees(ctx, req, question, was, "`ralph plan approve` and `ralph plan reject` in a terminal do it, "+
		"as does the inbox of the dashboard", "the plan stays as it is")
	if err != nil || pending != nil {
		return pending, err
	}
	var said []string
	var lapsed []ralph.Session
	err = c.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if said, err = p.Decide(tx, in.Names, in.Verdict == "approve", in.Reason, c.Person); err != nil {
			return err
		}
		lapsed, err = tx.LapsedClaims()
		return err
	})
	if err == nil && len(lapsed) > 0 { // changing a task ends its claim
		err = c.Loop.Lapse(ctx)
	}
	return map[string][]string{"decided": said}, err
}

// planOf reads the plan of a call, and describes its open parts in a line each.
func (c *chat) planOf(ctx context.Context, in PlanCall) (p inbox.Plan, lines []string, err error) {
	err = c.Store.View(ctx, func(tx *store.Tx) error {
		var items []store.InboxItem
		if p, err = inbox.ReadPlan(tx, in.Feature); err == nil {
			items, err = p.Named(in.Names)
		}
		if err == nil {
			lines, _, err = tx.PlanLines(items)
		}
		return err
	})
	return p, lines, err
}

// digest returns a digest of everything in a plan.
func digest(p inbox.Plan) string {
	sum := sha256.Sum256([]byte(p.Markdown()))
	return hex.EncodeToString(sum[:])
}

package acp

import (
	"encoding/json"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/agent"
)

// A tally is the reported use of a conversation so far.
type tally struct {
	model    string
	requests int // number of the model's requests, if reported
	tokens   ralph.Tokens
	told     bool     // tokens were
	costUSD  *float64 // cost of the whole session; nil if unreported
}

// maxCost is more than any conversation costs, in USD: other programs may write costs to the agent's output, too.
const maxCost = 1e5

// update reads news of a turn, and reports whether they had tokens or costs.
func (t *tally) update(u update) bool {
	now := u.Update
	used := now.Meta.Usage
	if used != nil {
		t.requests++
		t.tokens, t.told = t.tokens.Add(used.tokens()), true
	}
	if now.Kind != "usage_update" {
		return used != nil
	}
	if c := now.Cost; c != nil && c.Currency == "USD" {
		var usd *float64
		if json.Unmarshal(c.Amount, &usd) == nil && usd != nil && *usd >= 0 && *usd < maxCost { // a text is invalid
			t.costUSD = usd
		}
	}
	return true
}

// end reads the end of a turn.
func (t *tally) end(e ended, of *Profile) {
	for _, m := range e.Meta.Quota.Models {
		t.model = text.Clip(m.Model, maxID)
	}
	switch quota := e.Meta.Quota.Tokens; {
	case e.Usage != nil && of.Total:
		t.tokens, t.told = e.Usage.tokens(), true
	case e.Usage != nil:
		t.tokens, t.told = t.tokens.Add(e.Usage.tokens()), true
	case quota != nil:
		t.tokens, t.told = t.tokens.Add(ralph.Tokens{Input: count(quota.Input), Output: count(quota.Output)}), true
	}
}

// usd returns the cost that the agent reported, or else that by prices; known is false without both.
func (t *tally) usd(price agent.Pricing) (usd float64, known bool) {
	switch {
	case t.costUSD != nil:
		return *t.costUSD, true
	case !t.told:
		return 0, false
	}
	return price(t.model, t.tokens)
}

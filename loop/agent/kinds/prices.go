package kinds

import (
	"ralph"
	"ralph/internal/config"
	"ralph/loop/agent"
)

// pricing returns an agent's costs based on the configured prices, and on list prices for other models.
func pricing(c config.NamedAgent) agent.Pricing {
	return func(model string, t ralph.Tokens) (usd float64, known bool) {
		if p, ok := c.Prices[model]; ok { // tokens written to a cache cost as much as input
			return agent.Price{Input: p.Input, Cached: p.Cached, Write: p.Input, Output: p.Output}.Of(t), true
		}
		return agent.Listed(model, t)
	}
}

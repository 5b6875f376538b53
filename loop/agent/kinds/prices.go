package kinds

import (
	"ralph"
	"ralph/internal/config"
	"ralph/loop/agent"
)

// pricing returns an agent's costs based on the configured prices; nil if there are none.
func pricing(c config.NamedAgent) agent.Pricing {
	if len(c.Prices) == 0 {
		return nil
	}
	return func(model string, t ralph.Tokens) (usd float64, known bool) {
		if p, ok := c.Prices[model]; ok {
			return cost(p, t), true
		}
		for _, p := range c.Prices {
			usd = max(usd, cost(p, t))
		}
		return usd, false
	}
}

// cost returns USD. Tokens written to a cache cost as much as input.
func cost(p config.Price, t ralph.Tokens) float64 {
	return (float64(t.Input+t.CacheCreation)*p.Input + float64(t.CacheRead)*p.Cached + float64(t.Output)*p.Output) / 1e6
}

package claude

import (
	"strings"

	"ralph"
)

// A price has USD per million tokens.
type price struct {
	model                                 string // a part of the model's name
	input, output, cacheRead, cacheCreate float64
}

// prices are the list prices per model family; the first match applies.
// They only serve to estimate the cost of a session without a result: an
// unknown cost is never taken for zero (unattended, "Limits").
var prices = []price{
	{"haiku", 1, 5, 0.10, 1.25},
	{"sonnet", 3, 15, 0.30, 3.75},
	{"opus-4-1", 15, 75, 1.50, 18.75},
	{"opus-4-2", 15, 75, 1.50, 18.75}, // claude-opus-4-20250514
	{"3-opus", 15, 75, 1.50, 18.75},
	{"", 5, 25, 0.50, 6.25}, // opus, and unknown models
}

// estimate returns the approximate cost of the tokens in USD.
func estimate(model string, t ralph.Tokens) float64 {
	for _, p := range prices {
		if strings.Contains(model, p.model) {
			return (float64(t.Input)*p.input + float64(t.Output)*p.output +
				float64(t.CacheRead)*p.cacheRead + float64(t.CacheCreation)*p.cacheCreate) / 1e6
		}
	}
	return 0
}

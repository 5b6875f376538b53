package agent

import "ralph"

// A Pricing returns the cost of a model's tokens in USD. It is known if the model's prices
// are; otherwise it is an estimate based on the highest known prices, or 0 without any.
type Pricing func(model string, t ralph.Tokens) (usd float64, known bool)

package agent

import (
	"strings"

	"ralph"
)

// A Price is the price of a model's tokens in USD per million.
type Price struct{ Input, Cached, Write, Output float64 }

// Of returns the price of tokens in USD.
func (p Price) Of(t ralph.Tokens) float64 {
	return (float64(t.Input)*p.Input + float64(t.CacheRead)*p.Cached + float64(t.CacheCreation)*p.Write +
		float64(t.Output)*p.Output) / 1e6
}

// PricesOf is the month of the list prices that ralph ships.
const PricesOf = "June 2026"

// prices are list prices by model. A longer name comes before its own prefix.
var prices = []struct {
	model string
	Price
}{
	{"gpt-5.5", Price{5, 0.5, 5, 30}},
	{"gpt-5.4-mini", Price{0.75, 0.075, 0.75, 4.5}},
	{"gpt-5.4-nano", Price{0.2, 0.02, 0.2, 1.25}},
	{"gpt-5.4", Price{2.5, 0.25, 2.5, 15}},
	{"gpt-5.3-codex", Price{1.75, 0.175, 1.75, 14}},
	{"gpt-5.2-codex", Price{1.75, 0.175, 1.75, 14}},
	{"gpt-5.2", Price{1.75, 0.175, 1.75, 14}},
	{"gpt-5.1-codex-mini", Price{0.25, 0.025, 0.25, 2}},
	{"gpt-5.1-codex-max", Price{1.25, 0.125, 1.25, 10}},
	{"gpt-5.1-codex", Price{1.25, 0.125, 1.25, 10}},
	{"gpt-5.1", Price{1.25, 0.125, 1.25, 10}},
	{"gpt-5-codex", Price{1.25, 0.125, 1.25, 10}},
	{"gpt-5-mini", Price{0.25, 0.025, 0.25, 2}},
	{"gpt-5", Price{1.25, 0.125, 1.25, 10}},
	{"gemini-3.5-flash", Price{1.5, 0.15, 1.5, 9}},
	{"gemini-3.1-pro-preview", Price{2, 0.2, 2, 12}},
	{"gemini-3.1-flash-lite", Price{0.25, 0.025, 0.25, 1.5}},
	{"gemini-3-pro-preview", Price{2, 0.2, 2, 12}},
	{"gemini-3-flash-preview", Price{0.5, 0.05, 0.5, 3}},
	{"gemini-2.5-pro", Price{1.25, 0.31, 1.25, 10}},
	{"gemini-2.5-flash-lite", Price{0.1, 0.025, 0.1, 0.4}},
	{"gemini-2.5-flash", Price{0.3, 0.075, 0.3, 2.5}},
	{"claude-opus-4-1", Price{15, 1.5, 18.75, 75}},
	{"claude-opus-4-2", Price{15, 1.5, 18.75, 75}}, // claude-opus-4-20250514
	{"claude-opus-4", Price{5, 0.5, 6.25, 25}},
	{"claude-sonnet", Price{3, 0.3, 3.75, 15}},
	{"claude-haiku", Price{1, 0.1, 1.25, 5}},
}

// PriceOf returns a model's list price. A name may have the service before it ("openai/gpt-5.5") and a suffix that
// names no other model ("gpt-5.5-2026-04-23", "claude-opus-4-8[1m]").
func PriceOf(model string) (p Price, ok bool) {
	model = model[strings.LastIndexByte(model, '/')+1:]
	for _, known := range prices {
		rest, is := strings.CutPrefix(model, known.model)
		if is && (rest == "" || strings.ContainsAny(rest[:1], "[@:") || strings.HasPrefix(model, "claude-") ||
			strings.HasPrefix(rest, "-20") || strings.HasPrefix(rest, "-preview")) {
			return known.Price, true
		}
	}
	return Price{}, false
}

// Dearest is the highest list price of each kind of tokens. It is the price of models without a known one.
var Dearest = func() (most Price) {
	for _, p := range prices {
		most.Input, most.Cached = max(most.Input, p.Input), max(most.Cached, p.Cached)
		most.Write, most.Output = max(most.Write, p.Write), max(most.Output, p.Output)
	}
	return most
}()

// A Pricing returns the cost of a model's tokens in USD. The cost is known if a person set the model's price; a
// list price makes it an estimate. Without a price it is 0, and unknown.
type Pricing func(model string, t ralph.Tokens) (usd float64, known bool)

// Listed returns the Pricing by list prices alone.
func Listed(model string, t ralph.Tokens) (usd float64, known bool) {
	p, _ := PriceOf(model)
	return p.Of(t), false
}

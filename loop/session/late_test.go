package session

import (
	"testing"

	"ralph"
)

// TestLateBill: late costs are booked once their machine reports them.
func TestLateBill(t *testing.T) {
	cost := func(usd float64, known bool) ralph.Session { return ralph.Session{CostUSD: usd, CostKnown: known} }
	tests := []struct {
		name                string
		settled, told, want ralph.Session
	}{
		{"a guess, and then the bill", cost(10, false), cost(2, true), cost(2, true)},
		{"nothing was known, and it was dear", cost(0, false), cost(7, true), cost(7, true)},
		{"two guesses", cost(1, false), cost(3, false), cost(3, false)},
		{"two guesses, the first one dearer", cost(5, false), cost(3, false), cost(5, false)},
		{"the bill was known", cost(2, true), cost(9, true), cost(2, true)},
		{"the bill was known, and only a guess is told", cost(2, true), cost(9, false), cost(2, true)},
	}
	for _, tt := range tests {
		if got := lateBill(tt.settled, tt.told); got.CostUSD != tt.want.CostUSD || got.CostKnown != tt.want.CostKnown {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, got.CostUSD, got.CostKnown, tt.want.CostUSD, tt.want.CostKnown)
		}
	}
}

package acp

import (
	"encoding/json"
	"testing"
)

// TestACostThatIsNoNumberIsUnknown rather than nothing.
func TestACostThatIsNoNumberIsUnknown(t *testing.T) {
	for amount, want := range map[string]bool{
		`0.5`: true, `0`: true, `"free"`: false, `"0.5"`: false, `null`: false, `{}`: false, `-1`: false, `1e300`: false,
	} {
		var u update
		text := `{"update":{"sessionUpdate":"usage_update","cost":{"amount":` + amount + `,"currency":"USD"}}}`
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Fatal(err)
		}
		var sum tally
		if sum.update(u); (sum.costUSD != nil) != want {
			t.Errorf("%s: %v", amount, sum.costUSD)
		}
	}
}

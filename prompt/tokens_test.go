package prompt_test

import (
	"os"
	"path/filepath"
	"testing"

	"ralph/prompt"
)

// TestTheEstimateIsNearRealTokenizers compares it with the counts of two public tokenizers (cl100k_base, o200k_base)
// for these texts on 2026-11-21. The model's own tokenizer is not public; docs/prompt.md has the tolerance.
func TestTheEstimateIsNearRealTokenizers(t *testing.T) {
	for _, tt := range []struct {
		name           string
		cl100k, o200k  int
		lowest, higher float64 // accepted range of estimate / count
	}{
		{"prompt.md", 1281, 1277, 0.95, 1.25},
		{"prose.md", 836, 836, 0.95, 1.25},
		{"code.txt", 3233, 3224, 0.95, 1.25},
		{"other.txt", 41, 30, 0.6, 1.6}, // letters outside of ASCII count one each
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "tokens", tt.name))
		if err != nil {
			t.Fatal(err)
		}
		estimate := float64(prompt.EstimateTokens(string(b)))
		for _, count := range []int{tt.cl100k, tt.o200k} {
			ratio := estimate / float64(count)
			t.Logf("%s: %.0f estimated, %d counted, %.2f", tt.name, estimate, count, ratio)
			if ratio < tt.lowest || ratio > tt.higher {
				t.Errorf("%s: the estimate is %.2f of the count", tt.name, ratio)
			}
		}
	}
}

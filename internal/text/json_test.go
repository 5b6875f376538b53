package text_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ralph/internal/text"
)

func TestEscaping(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"plain\n", "\u202e\u009b", "ümlaut 日本", "\U000e0041\x7f", "\xff"} {
		var b strings.Builder
		if err := json.NewEncoder(text.Escaping(&b)).Encode(s); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\u202e\u009b\U000e0041\x7f") {
			t.Errorf("%q is written raw: %q", s, b.String())
		}
		var back string
		if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q is read as %q, %v", s, back, err)
		}
	}
}

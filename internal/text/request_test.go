package text_test

import (
	"testing"

	"ralph/internal/text"
)

// TestRequestsAreShownInFull, by their fields: none can pose as another.
func TestRequestsAreShownInFull(t *testing.T) {
	for stored, want := range map[string]struct{ tool, input, request, line string }{
		`Bash {"command":"npm publish --tag next"}`: {
			"Bash", "npm publish --tag next", "Bash: npm publish --tag next", "Bash: npm publish --tag next",
		},
		`Bash {"command":"a\nb","description":"harmless"}`: {
			"Bash", "command: a\n  b\ndescription: harmless", "Bash:\n  command: a\n    b\n  description: harmless",
			`Bash {"command":"a\nb","description":"harmless"}`,
		},
		`Bash {"description":"x","command":"a\ndescription: y"}`: {
			"Bash", "description: x\ncommand: a\n  description: y",
			"Bash:\n  description: x\n  command: a\n    description: y",
			`Bash {"description":"x","command":"a\ndescription: y"}`,
		},
		`Bash {"command":"a","command":"b"}`: {
			"Bash", "command: a\ncommand: b", "Bash:\n  command: a\n  command: b", `Bash {"command":"a","command":"b"}`,
		},
		`Edit {"file":"a","all":true,"at":[1, 2]}`: {
			"Edit", "file: a\nall: true\nat: [1, 2]", "Edit:\n  file: a\n  all: true\n  at: [1, 2]",
			`Edit {"file":"a","all":true,"at":[1, 2]}`,
		},
		`Bash {"command":"a"} {"command":"b"}`: asItIs(`Bash {"command":"a"} {"command":"b"}`),
		`Bash {"command":"a`:                   asItIs(`Bash {"command":"a`),
		`Bash {}`:                              asItIs(`Bash {}`),
		`Bash null`:                            asItIs(`Bash null`),
		`Bash`:                                 asItIs(`Bash`),
	} {
		tool, input := text.Asked(stored)
		if tool != want.tool || input != want.input {
			t.Errorf("%s is read as %q %q", stored, tool, input)
		}
		if got := text.Request(stored); got != want.request {
			t.Errorf("%s is shown as %q, want %q", stored, got, want.request)
		}
		if got := text.RequestLine(stored); got != want.line {
			t.Errorf("%s is shown on a line as %q, want %q", stored, got, want.line)
		}
	}
}

func asItIs(stored string) struct{ tool, input, request, line string } {
	return struct{ tool, input, request, line string }{"", stored, stored, stored}
}

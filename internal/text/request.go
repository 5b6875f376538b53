package text

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Asked reads an agent's stored request to use a tool, "TOOL INPUT" with the input in JSON. It returns the complete
// input, field by field; a lone command without its field's name. If the text is not a JSON object, it is returned
// unchanged, without a tool.
func Asked(stored string) (tool, input string) {
	tool, object, ok := strings.Cut(stored, " ")
	if !ok {
		return "", stored
	}
	d := json.NewDecoder(strings.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", stored
	}
	var names, values []string
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return "", stored
		}
		said := string(value)
		if text := ""; json.Unmarshal(value, &text) == nil && strings.HasPrefix(said, `"`) {
			said = text
		}
		names, values = append(names, fmt.Sprint(name)), append(values, said)
	}
	if _, err := d.Token(); err != nil || strings.TrimSpace(object[d.InputOffset():]) != "" || len(names) == 0 {
		return "", stored
	}
	if len(names) == 1 && names[0] == "command" {
		return tool, values[0]
	}
	var lines []string
	for i, name := range names { // further lines of a value are indented: none can pose as a field
		lines = append(lines, name+": "+strings.ReplaceAll(values[i], "\n", "\n  "))
	}
	return tool, strings.Join(lines, "\n")
}

// Request formats a stored request as "Bash: npm test". Input of several lines is indented below the tool.
func Request(stored string) string {
	switch tool, input := Asked(stored); {
	case tool == "":
		return input
	case strings.Contains(input, "\n"):
		return tool + ":\n  " + strings.ReplaceAll(input, "\n", "\n  ")
	default:
		return tool + ": " + input
	}
}

// RequestLine is [Request] on one line: a request of several lines keeps its stored form, so that the line ends
// remain visible.
func RequestLine(stored string) string {
	if said := Request(stored); !strings.Contains(said, "\n") {
		return VisibleLine(said)
	}
	return VisibleLine(stored)
}

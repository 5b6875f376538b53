package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ralph"
)

// A Script has the agent's actions for each task.
type Script []Block

// A Block has its actions if its conditions are met.
type Block struct {
	Task    string // part of the task's title; "*" is any
	Session int    // the task's session, from 1; 0 is any
	When    []string
	Turns   []Turn
}

// A Turn has the steps of the agent's answer to a message.
type Turn []Step

// A Step is one thing that the agent does.
type Step struct {
	Verb string // as in the script; "call" for ralph's own verbs
	Arg  string // the text or command; the path, tool or number
	Text string // the content to write; the input of a tool, as JSON
}

// Parse parses a script. An error names the line.
func Parse(text string) (Script, error) {
	var s Script
	number := 0
	for l := range strings.Lines(text) {
		number++
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		if err := s.add(l); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return s, nil
}

func (s *Script) add(l string) error {
	verb, rest, _ := strings.Cut(l, " ")
	rest = strings.TrimSpace(rest)
	if verb == "task" {
		if rest == "" {
			return fmt.Errorf("task needs a part of the title, or *")
		}
		*s = append(*s, Block{Task: rest, Turns: []Turn{nil}})
		return nil
	}
	if len(*s) == 0 {
		return fmt.Errorf("%s comes before the first task", verb)
	}
	b := &(*s)[len(*s)-1]
	switch verb {
	case "session":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 {
			return fmt.Errorf("session needs a number from 1, not %q", rest)
		}
		b.Session = n
	case "when":
		b.When = append(b.When, rest)
	case "turn":
		b.Turns = append(b.Turns, nil)
	default:
		step, err := parseStep(verb, rest)
		if err != nil {
			return err
		}
		last := len(b.Turns) - 1
		b.Turns[last] = append(b.Turns[last], step)
	}
	return nil
}

func parseStep(verb, rest string) (Step, error) {
	if slices.Contains(ralph.Verbs, ralph.Verb(verb)) {
		verb, rest = "call", verb+" "+rest
	}
	step := Step{Verb: verb, Arg: rest}
	switch verb {
	case "kill", "hang", "silent", "garbage", "promptTooLong":
		if rest != "" {
			return step, fmt.Errorf("%s takes nothing after it", verb)
		}
	case "say", "run", "spawn", "error":
		if rest == "" {
			return step, fmt.Errorf("%s needs something after it", verb)
		}
	case "exit", "flood":
		if n, err := strconv.Atoi(rest); err != nil || n < 0 {
			return step, fmt.Errorf("%s needs a number, not %q", verb, rest)
		}
	case "ratelimit":
		if rest == "" {
			step.Arg = "3600"
		}
		if n, err := strconv.Atoi(step.Arg); err != nil || n < 0 {
			return step, fmt.Errorf("ratelimit needs seconds, not %q", rest)
		}
	case "usage":
		fields := strings.Fields(rest)
		if len(fields) != 3 {
			return step, fmt.Errorf("usage needs a window, percent and seconds, not %q", rest)
		}
		for _, f := range fields[1:] {
			if _, err := strconv.Atoi(f); err != nil {
				return step, fmt.Errorf("usage needs percent and seconds as numbers, not %q", f)
			}
		}
	case "write":
		path, quoted, _ := strings.Cut(rest, " ")
		content, err := strconv.Unquote(strings.TrimSpace(quoted))
		if err != nil || path == "" {
			return step, fmt.Errorf("write needs a path and a quoted content")
		}
		step.Arg, step.Text = path, content
	case "call":
		tool, input, _ := strings.Cut(rest, " ")
		if tool == "" || !json.Valid([]byte(input)) {
			return step, fmt.Errorf("call needs a tool and its input as JSON")
		}
		step.Arg, step.Text = tool, input
	default:
		return step, fmt.Errorf("unknown step %q", verb)
	}
	return step, nil
}

// Select returns the turns for the nth session of the prompt's task; none if no block applies.
func (s Script) Select(prompt string, n int) []Turn {
	title := taskLine(prompt)
	for _, b := range s {
		missing := func(text string) bool { return !strings.Contains(prompt, text) }
		if (b.Task == "*" || strings.Contains(title, b.Task)) && (b.Session == 0 || b.Session == n) &&
			!slices.ContainsFunc(b.When, missing) {
			return b.Turns
		}
	}
	return nil
}

// counts reports whether a block depends on the number of the session.
func (s Script) counts() bool {
	return slices.ContainsFunc(s, func(b Block) bool { return b.Session > 0 })
}

// taskLine returns the line of a ralph prompt that names the task, or else its first line.
func taskLine(prompt string) string {
	for l := range strings.Lines(prompt) {
		if title, ok := strings.CutPrefix(l, "## Your task: "); ok {
			return strings.TrimSpace(title)
		}
	}
	first, _, _ := strings.Cut(prompt, "\n")
	return strings.TrimSpace(first)
}

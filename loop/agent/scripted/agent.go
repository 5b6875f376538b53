package scripted

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is one conversation.
type agent struct {
	options  options
	events   *events
	sessions []*mcp.ClientSession
	servers  []serverStatus
	tools    []tool
}

// An exit ends the program in the middle of a turn, with this status.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// A chooser picks the turns for a prompt.
type chooser func(prompt string) ([]Turn, error)

// converse answers messages until there are no more, and returns the exit
// status. It calls choose for the first message.
func (a *agent) converse(ctx context.Context, lines <-chan line, choose chooser) (int, error) {
	if err := a.connect(ctx); err != nil { // as Claude Code does, before it is asked anything
		return 0, err
	}
	var turns []Turn
	for first := true; ; {
		text, message, err := next(ctx, lines)
		switch {
		case err != nil:
			return 0, err
		case ctx.Err() != nil:
			a.events.interrupted()
			return 1, a.events.err
		case message == nil:
			return 0, nil
		}
		if first {
			first = false
			if turns, err = choose(text); err != nil {
				return 0, err
			}
		}
		turn := Turn{{Verb: "say", Arg: "There is nothing for me to do."}}
		if len(turns) > 0 {
			turn, turns = turns[0], turns[1:]
		}
		err = a.play(ctx, turn, message)
		if status, ok := errors.AsType[exit](err); ok {
			return int(status), nil
		}
		if ctx.Err() != nil {
			a.events.interrupted()
			return 1, a.events.err
		}
		if err != nil {
			return 0, err
		}
	}
}

// next waits for a user message. There is none at the end of stdin or of ctx.
func next(ctx context.Context, lines <-chan line) (text string, message json.RawMessage, err error) {
	for {
		var l line
		var ok bool
		select {
		case <-ctx.Done():
			return "", nil, nil
		case l, ok = <-lines:
		}
		if !ok || l.err != nil {
			return "", nil, l.err
		}
		if strings.TrimSpace(l.text) == "" {
			continue
		}
		var m struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
		}
		if err := json.Unmarshal([]byte(l.text), &m); err != nil {
			return "", nil, fmt.Errorf("a line of stdin is not a message: %w", err)
		}
		if m.Type == "user" && m.Message != nil {
			text, err := textOf(m.Message)
			return text, m.Message, err
		}
	}
}

// textOf returns the text of a message.
func textOf(message json.RawMessage) (string, error) {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return "", fmt.Errorf("a message of the user: %w", err)
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		return "", fmt.Errorf("the content of a user's message: %w", err)
	}
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// play plays a turn.
func (a *agent) play(ctx context.Context, turn Turn, message json.RawMessage) error {
	if len(turn) > 0 && turn[0].Verb == "silent" {
		a.events.muted = true
	}
	a.events.init(a.servers, a.tools)
	if a.options.replay {
		a.events.replay(message)
	}
	for _, s := range turn {
		if err := cmp.Or(a.step(ctx, s), a.events.err, ctx.Err()); err != nil {
			return err
		}
	}
	a.events.result()
	return a.events.err
}

func (a *agent) step(ctx context.Context, s Step) error {
	n, err := strconv.Atoi(s.Arg)
	if err != nil {
		n = 0 // only steps with a checked number use it
	}
	switch s.Verb {
	case "say":
		a.events.say(s.Arg)
	case "write":
		return a.write(ctx, s.Arg, s.Text)
	case "run":
		return a.shell(ctx, s.Arg)
	case "call":
		a.call(ctx, s.Arg, s.Text)
	case "spawn":
		return a.spawn(s.Arg)
	case "usage":
		return a.usage(s.Arg)

	case "exit": // failures from here on
		return exit(n)
	case "kill":
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			return err
		}
		<-ctx.Done() // the kill is on its way
	case "hang":
		<-ctx.Done()
	case "silent":
		a.events.muted = true
	case "garbage":
		a.events.raw([]byte("TypeError: undefined is not a function\n    at main (cli.js:1:1)\n[1,2]\n"))
	case "flood":
		a.events.say(strings.Repeat("x", n))
	case "ratelimit":
		reset := time.Now().Add(time.Duration(n) * time.Second)
		a.window("rejected", "five_hour", reset, object{"overageStatus": "rejected"})
		text := "You've hit your limit · resets " + reset.UTC().Format("3:04pm") + " (UTC)"
		return a.fail(text, "rate_limit", 429, "completed")
	case "error":
		return a.fail("API Error: "+s.Arg, s.Arg, statuses[s.Arg], "completed")
	case "promptTooLong":
		return a.fail("Prompt is too long", "invalid_request", 400, "prompt_too_long")
	}
	return nil
}

// statuses are the HTTP statuses of API errors; other errors have none.
var statuses = map[string]any{
	"authentication_failed": 401,
	"billing_error":         400,
	"server_error":          500,
	"overloaded":            529,
	"rate_limit":            429,
}

// fail ends the program as claude ends after an API error.
func (a *agent) fail(text, class string, status any, terminal string) error {
	a.events.apiError(text, class, status, terminal)
	return errors.Join(a.events.err, exit(1))
}

// usage reports the use of a usage window, as the service does before it is used up.
func (a *agent) usage(arg string) error {
	fields := strings.Fields(arg)
	percent, err := strconv.Atoi(fields[1])
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(fields[2])
	if err != nil {
		return err
	}
	reset := time.Now().Add(time.Duration(seconds) * time.Second)
	a.window("allowed_warning", fields[0], reset, object{"utilization": float64(percent) / 100})
	return nil
}

// window prints an event about a usage window.
func (a *agent) window(status, name string, reset time.Time, more object) {
	info := object{"status": status, "resetsAt": reset.Unix(), "rateLimitType": name, "isUsingOverage": false}
	maps.Copy(info, more)
	a.events.print(object{"type": "rate_limit_event", "rate_limit_info": info})
}

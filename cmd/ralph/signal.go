package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph/internal/pipe"
	"ralph/mcpserver"
	"ralph/signals"
)

// newSignal makes the command with which an agent without tools signals from its session.
func newSignal(a *app) *cobra.Command {
	cmd := newCommand("signal", func(cmd *cobra.Command, args []string) error {
		socket := a.getenv(pipe.Variable)
		if socket == "" {
			return usage(errors.New("signals are an agent's, in a session of a run; " +
				"people have `ralph chat complete` and `ralph comment`"))
		}
		input, err := signalInput(args[1], args[2:])
		if err != nil {
			return usage(err)
		}
		params, err := json.Marshal(map[string]any{"ticket": args[0], "verb": args[1], "input": input})
		if err != nil {
			return err
		}
		var answer pipe.Answer
		if err := pipe.Ask(cmd.Context(), socket, pipe.Signal, params, &answer); err != nil {
			return err
		}
		if answer.Said != "" {
			fmt.Fprintln(a.out, answer.Said)
		}
		if answer.Ticket != "" {
			fmt.Fprintln(a.out, "Ticket for your next signal: "+answer.Ticket)
		}
		if answer.Refused != "" {
			return usage(errors.New(answer.Refused))
		}
		return nil
	})
	cmd.Hidden = true
	cmd.Long = signalHelp()
	cmd.Args = cobra.MinimumNArgs(2)
	return cmd
}

// signalInput parses FIELD=VALUE into a verb's input. The error names the fault.
func signalInput(verb string, fields []string) (map[string]any, error) {
	i := slices.IndexFunc(signals.Verbs, func(v signals.Known) bool { return string(v.Payload.Verb()) == verb })
	if i < 0 {
		return nil, fmt.Errorf("%q is not one of the verbs; see `ralph signal --help`", verb)
	}
	schema, err := mcpserver.Schema(signals.Verbs[i])
	if err != nil {
		return nil, err
	}
	input := map[string]any{}
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not FIELD=VALUE; %s takes %s", f, verb,
				strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
		}
		input[name] = value
		if p := schema.Properties[name]; p != nil && p.Type != "string" {
			var v any
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				return nil, fmt.Errorf("%s must be a JSON value (%s): %w", name, p.Type, err)
			}
			input[name] = v
		}
	}
	return input, nil
}

// signalHelp describes the verbs for an agent.
func signalHelp() string {
	var b strings.Builder
	b.WriteString("Signal something to the run, within its session: ralph signal TICKET VERB FIELD=VALUE... " +
		"The first ticket is in your prompt, and each answer has the next one. " +
		"Text is written as it is, other values are JSON.\n")
	for _, v := range signals.Verbs {
		schema, err := mcpserver.Schema(v)
		if err != nil {
			panic(err) // only a bug in package signals can cause it
		}
		fmt.Fprintf(&b, "\n%s: %s\n", v.Payload.Verb(), v.Tool)
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			p, needed := schema.Properties[name], ""
			if slices.Contains(schema.Required, name) {
				needed = ", required"
			}
			fmt.Fprintf(&b, "    %s (%s%s) %s\n", name, p.Type, needed, p.Description)
		}
	}
	return b.String()
}

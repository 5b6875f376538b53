// Package scripted is a program that behaves like `claude -p` with stream-json input and output,
// but follows a script instead of asking a model. Tests and `ralph demo` run ralph with it.
//
// It speaks the protocol of version 2.1.197: it reads one user message per line from stdin, starts
// the MCP servers of --mcp-config, prints the events of its session, and exits with status 0 when
// stdin ends. On SIGINT it prints a result about the interruption, and exits. It ignores unknown
// flags.
//
// It never uses a network, and claims to cost a cent a turn. Its tool calls are
// real: files are written, commands run, and signals reach ralph's MCP server.
//
// # Scripts
//
// The script is the file named by the variable RALPH_SCRIPT, or claude.script in the
// working directory. Without a script, the agent replies that it did nothing. Each line
// is a step or a condition; empty lines and lines that begin with # are skipped.
//
//	task TITLE      begins a block for tasks with TITLE in their title; * is any task
//	session N       … if this is the Nth session of the task
//	when TEXT       … if the prompt contains TEXT
//	turn            the next steps answer the next message of the same session
//
// The agent plays the first block whose conditions are all true. It answers a message
// without a remaining turn, and does no work for it. If the script contains the word
// session, sessions are counted in a file next to it, with the same name plus ".sessions".
// Steps are:
//
//	say TEXT              say something
//	write PATH "CONTENT"  write a file; the content is a Go string literal
//	run COMMAND           run a shell command
//	call TOOL JSON        call a tool of an MCP server
//	done JSON             call ralph's tool of this name; so for all verbs
//	spawn COMMAND         leave a process behind, in a session of its own
//	usage WINDOW PERCENT SECONDS
//	                      tell how far a usage window is used, and when it is reset
//
// Before it writes or runs something, it asks the tool of --permission-prompt-tool.
//
// These steps simulate failures:
//
//	exit N                exit in the middle of the turn
//	kill                  be killed by SIGKILL
//	hang                  do nothing more, not even when stdin closes
//	silent                print nothing from here on, no init if it comes first
//	garbage               print lines that are not JSON
//	flood BYTES           say something very long
//	ratelimit SECONDS     reach a usage limit that ends in so many seconds
//	error CLASS           an API error, such as authentication_failed,
//	                      billing_error, server_error or overloaded
//	promptTooLong         the prompt does not fit the model
package scripted

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Version is the answer to --version.
const Version = "2.1.197 (scripted agent)"

// defaultScript is the name of the script in the working directory.
const defaultScript = "claude.script"

// maxLine is the longest line of input, in bytes.
const maxLine = 64 << 20

// Main runs the program with the arguments of claude, without the name, and
// returns the exit status. If ctx ends, it behaves like claude on SIGINT.
func Main(ctx context.Context, args []string, in io.Reader, out, errw io.Writer, getenv func(string) string) int {
	o := parseOptions(args)
	if o.version {
		fmt.Fprintln(out, Version)
		return 0
	}
	status, err := run(ctx, o, in, out, getenv)
	if err != nil {
		fmt.Fprintln(errw, "scripted agent:", err)
		return 1
	}
	return status
}

func run(ctx context.Context, o options, in io.Reader, out io.Writer, getenv func(string) string) (int, error) {
	path := getenv("RALPH_SCRIPT")
	named := path != ""
	if !named {
		path = defaultScript
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && !named {
		text, err = []byte("task *\nsay There is no script: I did nothing.\n"), nil
	}
	if err != nil {
		return 0, err
	}
	script, err := Parse(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	a := &agent{options: o, events: &events{out: out, options: o}}
	defer a.close()
	return a.converse(ctx, readLines(ctx, in), func(prompt string) ([]Turn, error) {
		n := 1
		if script.counts() {
			var err error
			if n, err = countSession(path+".sessions", prompt); err != nil {
				return nil, err
			}
		}
		return script.Select(prompt, n), nil
	})
}

// A line is a line read from stdin.
type line struct {
	text string
	err  error
}

// readLines reads lines until stdin or ctx ends.
func readLines(ctx context.Context, in io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, maxLine)
		for scan.Scan() {
			select {
			case lines <- line{text: scan.Text()}:
			case <-ctx.Done():
				return
			}
		}
		if err := scan.Err(); err != nil {
			select {
			case lines <- line{err: fmt.Errorf("read stdin: %w", err)}:
			case <-ctx.Done():
			}
		}
	}()
	return lines
}

// countSession records a session of the prompt's task, and returns how many there have been.
func countSession(path, prompt string) (int, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	title := taskLine(prompt)
	_, err = fmt.Fprintln(f, title)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n := 0
	for l := range strings.Lines(string(text)) {
		if strings.TrimSuffix(l, "\n") == title {
			n++
		}
	}
	return n, nil
}

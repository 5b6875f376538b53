package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/retention"
	"ralph/loop/claude"
	"ralph/store"
)

func newSession(a *app) *cobra.Command {
	return noun("session", "Look at the agent's sessions", newSessionList(a), newSessionShow(a), newSessionLog(a))
}

func newSessionList(a *app) *cobra.Command {
	var f store.SessionFilter
	var task string
	cmd := &cobra.Command{
		Use: "list", Short: "List sessions, newest first", Example: "  ralph session list --outcome failure", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if task != "" {
				if f.Task, err = ralph.ParseTaskID(task); err != nil {
					return err
				}
			}
			if f.Limit < 1 {
				return usage(&ralph.FieldError{Field: fmt.Sprintf("--limit %d", f.Limit), Problem: "must be at least 1"})
			}
			switch f.Outcome {
			case "", ralph.OutcomeSuccess, ralph.OutcomeFailure, ralph.OutcomeTimeout:
			default:
				return fieldError("--outcome", f.Outcome, ralph.OutcomeSuccess, ralph.OutcomeFailure, ralph.OutcomeTimeout)
			}
			var list []ralph.Session
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { list, err = tx.Sessions(f); return err }); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) error {
				for _, s := range list {
					if _, err := fmt.Fprintf(w, "%.8s  %s  TASK-%-5d %-8s %-8s %s\n", s.ID, s.StartedAt.Local().Format("2006-01-02 15:04"), s.TaskID, s.State, s.Outcome, oneLine(s.Reason, 120)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&task, "task", "", "only this task's")
	cmd.Flags().StringVar(&f.Outcome, "outcome", "", "only success, failure or timeout")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most so many")
	return cmd
}

// sessionOf finds a session and where its files are.
func (a *app) sessionOf(cmd *cobra.Command, id string) (s ralph.Session, dir string, err error) {
	err = a.with(cmd.Context(), func(p *project, db *store.DB) error {
		return db.View(cmd.Context(), func(tx *store.Tx) error {
			s, err = tx.Session(id)
			dir = filepath.Join(p.state, "sessions", s.ID)
			return err
		})
	})
	return s, dir, err
}

func newSessionShow(a *app) *cobra.Command {
	var prompt, decision bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a session: why it ended, what it changed, how it was checked",
		Example: "  ralph session show bcb16b43\n  ralph session show bcb16b43 --prompt", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, dir, err := a.sessionOf(cmd, args[0])
			if err != nil {
				return err
			}
			switch {
			case prompt:
				text, err := os.ReadFile(filepath.Join(dir, "prompt.md"))
				if err != nil {
					return err
				}
				_, err = a.out.Write(text)
				return err
			case decision:
				_, err := fmt.Fprintln(a.out, s.Decision)
				return err
			}
			return a.print(s, func(w io.Writer) error { return saySession(w, s, dir) })
		},
	}
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print the prompt that it got")
	cmd.Flags().BoolVar(&decision, "decision", false, "print what the rules made of it, as JSON")
	return cmd
}

func saySession(w io.Writer, s ralph.Session, dir string) error {
	cost := dollars(s.CostUSD)
	if !s.CostKnown {
		cost += " (estimated: the agent gave no total)"
	}
	fmt.Fprintf(w, "session %s on TASK-%d, attempt %d\n%s, %s: %s\n", s.ID, s.TaskID, s.Attempt, s.State, s.Ending, oneLine(s.Reason, 500))
	fmt.Fprintf(w, "from %s to %s, %d turns, %s, model %s\n", s.StartedAt, s.CompletedAt, s.Turns, cost, s.Model)
	for _, c := range s.Verify {
		fmt.Fprintf(w, "checked  %s: exit %d in %.1f s %s\n", oneLine(c.Command, 100), c.Exit, c.Seconds, c.Error)
		if !c.Passed {
			fmt.Fprintln(w, printable(c.Tail))
		}
	}
	for _, f := range s.Files {
		fmt.Fprintf(w, "%-8s %s +%d -%d\n", f.Status, oneLine(f.Path, 200), f.Added, f.Removed)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"commit", s.Commits}, {"refused", s.Denials}, {"killed", s.Leftovers}, {"unchanged", s.Unchanged}, {"gone", s.Gone}} {
		for _, i := range list.items {
			fmt.Fprintf(w, "%-9s %s\n", list.name, oneLine(i, 200))
		}
	}
	if len(s.Gone) > 0 {
		fmt.Fprintf(w, "files that were not committed are gone; bring them back: ralph snapshot restore %d\n", s.SnapshotID)
	}
	if s.LastWords != "" {
		fmt.Fprintf(w, "last words: %s\n", oneLine(s.LastWords, 500))
	}
	if s.StderrTail != "" {
		fmt.Fprintf(w, "stderr: %s\n", printable(s.StderrTail))
	}
	_, err := fmt.Fprintf(w, "transcript: %s\n", dir)
	return err
}

func newSessionLog(a *app) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "log ID", Short: "Print a session's transcript", Example: "  ralph session log bcb16b43", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, dir, err := a.sessionOf(cmd, args[0])
			if err != nil {
				return err
			}
			f, err := retention.Open(filepath.Join(dir, claude.TranscriptFile))
			if errors.Is(err, fs.ErrNotExist) {
				return usage(fmt.Errorf("the transcript of session %.8s is not there any more (retention in ralph.yaml)", args[0]))
			}
			if err != nil {
				return err
			}
			if raw {
				_, err = io.Copy(a.out, f)
			} else {
				err = renderLog(a.out, f)
			}
			return errors.Join(err, f.Close())
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "as the agent printed it")
	return cmd
}

// renderLog prints a transcript for people: what was said, a line for each tool
// call, errors. What it does not understand it leaves out.
func renderLog(w io.Writer, r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for _, text := range renderEvent(line) {
			if _, werr := fmt.Fprintln(w, text); werr != nil {
				return werr
			}
		}
		if err != nil {
			return nil
		}
	}
}

// essentials are what matters of a tool's input, on one line.
func essentials(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return oneLine(string(input), 160)
	}
	for _, name := range []string{"command", "file_path", "notebook_path", "pattern", "url", "query", "path", "summary", "remaining", "reason", "question", "what", "text", "on", "prompt", "description"} {
		if s, ok := fields[name].(string); ok && s != "" {
			return oneLine(s, 160)
		}
	}
	return oneLine(string(input), 160)
}

func renderEvent(line []byte) (out []string) {
	var e struct {
		Type, Subtype, Result string
		IsError               bool `json:"is_error"`
		Message               struct {
			Content json.RawMessage
		}
	}
	if json.Unmarshal(line, &e) != nil {
		return nil // not JSON: kept in the transcript, see --raw
	}
	if e.Type == "result" {
		return []string{fmt.Sprintf("= %s: %s", e.Subtype, oneLine(e.Result, 300))}
	}
	var blocks []struct {
		Type, Text, Name string
		Input, Content   json.RawMessage
		IsError          bool `json:"is_error"`
	}
	if json.Unmarshal(e.Message.Content, &blocks) != nil {
		return nil
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, printable(b.Text))
		case "tool_use":
			out = append(out, "→ "+strings.TrimPrefix(b.Name, "mcp__ralph__ralph_")+" "+essentials(b.Input))
		case "tool_result":
			if b.IsError {
				out = append(out, "  ✕ "+oneLine(string(b.Content), 300))
			}
		}
	}
	return out
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"ralph"
	"ralph/internal/retention"
	"ralph/internal/text"
	"ralph/internal/transcript"
	"ralph/loop/agent/claude"
	"ralph/store"
)

func newSessionLog(a *app) *cobra.Command {
	var raw, follow bool
	cmd := &cobra.Command{
		Use: "log [ID]", Short: "Print a session's transcript, the newest without ID, or follow one that is running",
		Long: `Print what the agent said and did: prose, a line for each tool call, diffs, errors,
sub-agents indented. With --follow go on until the session ends.`,
		Example: "  ralph session log bcb16b43\n  ralph session log -f", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && a.json {
				return usage(errors.New("--raw and --json exclude each other: --raw is what the agent printed, --json what ralph reads in it"))
			}
			s, dir, err := a.sessionOf(cmd, args)
			if err != nil {
				return err
			}
			l := sessionLog{app: a, path: filepath.Join(dir, claude.TranscriptFile), printer: newTranscriptPrinter(a.out, a.screen(), raw, a.json)}
			if follow && s.CompletedAt.IsZero() {
				s, err = l.follow(cmd.Context(), s)
			} else {
				err = l.read()
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = noTranscript(s)
			}
			return errors.Join(err, l.end(s))
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "as the agent printed it")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session ends")
	return cmd
}

// noTranscript says why there is none.
func noTranscript(s ralph.Session) error {
	if s.Origin == ralph.FromHuman {
		return fmt.Errorf("session %.8s is %s's own, with a chat that ralph does not record; see `ralph timeline %d`: %w", s.ID, s.Worker, s.TaskID, ralph.ErrNotFound)
	}
	if s.CompletedAt.IsZero() {
		return fmt.Errorf("session %.8s has not begun to speak; follow it with -f: %w", s.ID, ralph.ErrConflict)
	}
	return fmt.Errorf("the transcript of session %.8s is not there: it ended before the agent was started, or it is older than retention in ralph.yaml keeps: %w", s.ID, ralph.ErrNotFound)
}

// A sessionLog is a transcript that is being printed.
type sessionLog struct {
	app     *app
	path    string
	file    io.ReadCloser // nil until it is there
	printer transcriptPrinter
}

// read prints what there is. The error is [fs.ErrNotExist] if there is no transcript.
func (l *sessionLog) read() (err error) {
	if l.file == nil {
		if l.file, err = retention.Open(l.path); err != nil {
			l.file = nil
			return err
		}
	}
	_, err = io.Copy(&l.printer, l.file)
	return err
}

// follow prints what comes until the session has ended, nobody reads it any more,
// or the person has seen enough. It returns the session as it is then.
func (l *sessionLog) follow(ctx context.Context, s ralph.Session) (ralph.Session, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(pollFollowed)
	defer tick.Stop()
	return s, l.app.with(ctx, func(_ *project, db *store.DB) error {
		var changed <-chan struct{}
		for {
			if changed == nil {
				changed = db.Changed()
				err := db.View(ctx, func(tx *store.Tx) (err error) { s, err = tx.Session(s.ID); return err })
				if ctx.Err() != nil {
					return nil
				}
				if err != nil {
					return err
				}
			}
			// What was written before it ended is read after that was known.
			err := l.read()
			over := !s.CompletedAt.IsZero()
			if err != nil && (over || !errors.Is(err, fs.ErrNotExist)) || over {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				changed = nil
			case <-tick.C:
				if readerGone(l.app.out) {
					return nil
				}
			}
		}
	})
}

// end prints the last words and what ralph made of the session.
func (l *sessionLog) end(s ralph.Session) error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.printer.end(s), l.file.Close())
}

// A transcriptPrinter prints a transcript as it is written to it.
type transcriptPrinter struct {
	out    io.Writer
	raw    bool
	json   bool
	screen screen

	reader transcript.Reader
	spoken bool // something has been printed
}

func newTranscriptPrinter(out io.Writer, s screen, raw, json bool) transcriptPrinter {
	if raw && s.columns > 0 {
		// Not every line has to be JSON, which would have no such characters.
		out = transform.NewWriter(out, runes.Map(harmless))
	}
	return transcriptPrinter{out: out, raw: raw, json: json, screen: s, reader: transcript.NewReader(claude.NewReader())}
}

// Write implements io.Writer. Whoever writes need not know where lines end.
func (p *transcriptPrinter) Write(b []byte) (int, error) {
	if !p.raw {
		return len(b), p.entries(p.reader.Feed(b))
	}
	return p.out.Write(b)
}

// harmless is a character that does not steer a terminal.
func harmless(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return '\uFFFD'
	}
	return r
}

// end prints a last line without a line break, as a killed agent leaves it, and how
// the session ended.
func (p *transcriptPrinter) end(s ralph.Session) error {
	if p.raw {
		return nil
	}
	err := p.entries(p.reader.End())
	if p.json || s.CompletedAt.IsZero() || err != nil {
		return err
	}
	end := fmt.Sprintf("%s: %s (%s, %s)", s.State, oneLine(s.Reason, 500), text.Span(s.CompletedAt.Sub(s.StartedAt.Time).Seconds()), dollars(s.CostUSD))
	colour := "32"
	if s.State == ralph.PhaseFailed {
		colour = "31"
	}
	return p.line("■ ", colour, end)
}

func (p *transcriptPrinter) entries(list []transcript.Entry) error {
	for _, e := range list {
		if p.json {
			if err := json.NewEncoder(p.out).Encode(e); err != nil {
				return err
			}
			continue
		}
		if e.Kind == transcript.Text && e.Depth == 0 && p.spoken {
			if _, err := fmt.Fprintln(p.out); err != nil {
				return err
			}
		}
		for _, l := range e.Lines() {
			if err := p.line(l.Lead, lineColours[l.Kind], l.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// lineColours are the colours of lines by their kind, as terminals number them.
var lineColours = map[string]string{
	transcript.Start: "2", transcript.Tool: "34", transcript.Answer: "2", transcript.Error: "31", transcript.Told: "36", transcript.Result: "2", transcript.Note: "33",
	"+": "32", "-": "31", "…": "2", " ": "2",
}

// maxColumns is how wide a text may be on a wide screen, to be read with pleasure.
const maxColumns = 110

// line prints one line in as many rows as it takes.
func (p *transcriptPrinter) line(lead, colour, text string) error {
	p.spoken = true
	s := p.screen
	s.columns = min(s.columns, maxColumns)
	for _, row := range s.wrap(text, columnsOf(lead)) {
		if _, err := fmt.Fprintln(p.out, strings.TrimRight(lead+p.screen.paint(colour, row), " ")); err != nil {
			return err
		}
		lead = strings.Repeat(" ", columnsOf(lead))
	}
	return nil
}

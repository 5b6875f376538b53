package main

import (
	"bufio"
	"bytes"
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

	"ralph/internal/retention"
	"ralph/internal/transcript"
	"ralph/loop/claude"
	"ralph/store"
)

func newSessionLog(a *app) *cobra.Command {
	var raw, follow bool
	cmd := &cobra.Command{
		Use: "log ID", Short: "Print a session's transcript, or follow one that is running",
		Long: `Print what the agent said and did: prose, a line for each tool call, diffs, errors,
sub-agents indented. With --follow go on until the session ends.`,
		Example: "  ralph session log bcb16b43\n  ralph session log bcb16b43 -f", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, dir, err := a.sessionOf(cmd, args[0])
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
			p := transcriptPrinter{out: a.out, raw: raw, json: a.json, screen: a.screen()}
			if follow && s.CompletedAt.IsZero() {
				err = a.followLog(cmd, s.ID, f, &p)
			} else {
				err = p.read(f)
			}
			return errors.Join(err, p.end(), f.Close())
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "as the agent printed it")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session ends")
	return cmd
}

// followLog prints what comes until the session has ended, or the person has seen
// enough.
func (a *app) followLog(cmd *cobra.Command, session string, f io.Reader, p *transcriptPrinter) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(pollFollowed)
	defer tick.Stop()
	return a.with(ctx, func(_ *project, db *store.DB) error {
		for {
			over := false
			err := db.View(ctx, func(tx *store.Tx) error {
				s, err := tx.Session(session)
				over = !s.CompletedAt.IsZero()
				return err
			})
			// What was written before it ended is read after that was known.
			if err = errors.Join(err, p.read(f)); err != nil || over {
				if errors.Is(err, context.Canceled) {
					return nil
				}
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				if readerGone(a.out) {
					return nil
				}
			}
		}
	})
}

// A transcriptPrinter prints a transcript as it comes.
type transcriptPrinter struct {
	out    io.Writer
	raw    bool
	json   bool
	screen screen

	reader transcript.Reader
	rest   []byte // a line whose end has not come
}

// read prints all that there is.
func (p *transcriptPrinter) read(f io.Reader) error {
	if p.raw {
		_, err := io.Copy(p.out, f)
		return err
	}
	lines := bufio.NewReaderSize(f, 64<<10)
	for {
		part, err := lines.ReadBytes('\n')
		p.rest = append(p.rest, part...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.line(p.rest); err != nil {
			return err
		}
		p.rest = nil
	}
}

// end prints a last line without a line break, as a killed agent leaves it.
func (p *transcriptPrinter) end() error {
	if p.raw || len(bytes.TrimSpace(p.rest)) == 0 {
		return nil
	}
	return p.line(p.rest)
}

func (p *transcriptPrinter) line(line []byte) error {
	for _, e := range p.reader.Line(line) {
		if p.json {
			if err := json.NewEncoder(p.out).Encode(e); err != nil {
				return err
			}
			continue
		}
		if _, err := io.WriteString(p.out, p.text(e)); err != nil {
			return err
		}
	}
	return nil
}

// text is an entry for people.
func (p *transcriptPrinter) text(e transcript.Entry) string {
	var b strings.Builder
	indent := strings.Repeat("    ", e.Depth)
	put := func(colour, mark, text string) {
		for n, line := range strings.Split(text, "\n") {
			for _, l := range p.screen.wrap(line, len(indent)+2) {
				if n > 0 || b.Len() > 0 {
					mark = strings.Repeat(" ", len([]rune(mark)))
				}
				fmt.Fprintf(&b, "%s%s%s\n", indent, mark, p.screen.paint(colour, l))
			}
		}
	}
	switch e.Kind {
	case transcript.Start:
		put("2", "", e.Text)
	case transcript.Text:
		put("", "", e.Text)
	case transcript.Said:
		put("36", "« ", e.Text)
	case transcript.Error:
		put("31", "  ✕ ", strings.TrimSpace(e.Text+lasted(e.Seconds)))
	case transcript.Result:
		put("2", "= ", e.Text+lasted(e.Seconds))
	case transcript.Tool:
		if e.Text == "" && len(e.Diff) == 0 && e.Seconds > 0 {
			put("2", "  ", strings.TrimSpace(e.Tool+lasted(e.Seconds)))
			break
		}
		put("34", "→ ", strings.TrimSpace(e.Tool+" "+e.Text))
		for _, d := range e.Diff {
			colour := map[byte]string{'+': "32", '-': "31"}[d[0]]
			fmt.Fprintf(&b, "%s    %s\n", indent, p.screen.paint(colour, d))
		}
	}
	return b.String()
}

// lasted is how long something took, where that is worth a word.
func lasted(seconds float64) string {
	if seconds < 1 {
		return ""
	}
	return " (" + (time.Duration(seconds*10) * time.Second / 10).String() + ")"
}

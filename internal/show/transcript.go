package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/transcript"
	"ralph/loop/agent/kinds"
)

// A Printer prints a transcript as it is written to it.
type Printer struct {
	out    io.Writer
	raw    bool
	json   bool
	screen Screen

	reader transcript.Reader
	spoken bool // something has been printed
}

// NewPrinter prints for a screen; raw is as the agent printed it.
func NewPrinter(out io.Writer, s Screen, raw, json bool) Printer {
	if raw && s.Columns > 0 {
		// Not every line has to be JSON, which would have no such characters.
		out = transform.NewWriter(out, runes.Map(harmless))
	}
	return Printer{out: out, raw: raw, json: json, screen: s, reader: transcript.NewReader(kinds.NewReader())}
}

// Write implements io.Writer. Whoever writes need not know where lines end.
func (p *Printer) Write(b []byte) (int, error) {
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

// End prints a last line without a line break, as a killed agent leaves it, and how
// the session ended.
func (p *Printer) End(s ralph.Session) error {
	if p.raw {
		return nil
	}
	err := p.entries(p.reader.End())
	if p.json || s.CompletedAt.IsZero() || err != nil {
		return err
	}
	took := text.Span(s.CompletedAt.Sub(s.StartedAt.Time).Seconds())
	end := fmt.Sprintf("%s: %s (%s, %s)", s.State, text.Line(s.Reason, 500), took, text.Money(s.CostUSD))
	colour := "32"
	if s.State == ralph.PhaseFailed {
		colour = "31"
	}
	return p.line("■ ", colour, end)
}

func (p *Printer) entries(list []transcript.Entry) error {
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
	transcript.Start: "2", transcript.Tool: "34", transcript.Answer: "2", transcript.Error: "31",
	transcript.Told: "36", transcript.Result: "2", transcript.Note: "33",
	"+": "32", "-": "31", "…": "2", " ": "2",
}

// maxColumns is how wide a text may be on a wide screen, to be read with pleasure.
const maxColumns = 110

// line prints one line in as many rows as it takes.
func (p *Printer) line(lead, colour, text string) error {
	p.spoken = true
	s := p.screen
	s.Columns = min(s.Columns, maxColumns)
	for _, row := range s.wrap(text, columnsOf(lead)) {
		if _, err := fmt.Fprintln(p.out, strings.TrimRight(lead+p.screen.Paint(colour, row), " ")); err != nil {
			return err
		}
		lead = strings.Repeat(" ", columnsOf(lead))
	}
	return nil
}

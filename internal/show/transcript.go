package show

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"ralph"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/internal/transcript"
	"ralph/loop/agent/kinds"
)

// A Printer prints a transcript that is written to it.
type Printer struct {
	out    io.Writer
	raw    bool
	json   bool
	screen term.Screen

	reader transcript.Reader
	spoken bool // something has been printed
}

// NewPrinter prints for a screen; raw prints the agent's output unchanged.
func NewPrinter(out io.Writer, s term.Screen, raw, json bool) Printer {
	if raw && s.Columns > 0 {
		// Lines that are not JSON may contain control characters.
		out = transform.NewWriter(out, runes.Map(harmless))
	}
	return Printer{out: out, raw: raw, json: json, screen: s, reader: transcript.NewReader(kinds.NewReader())}
}

// Spent returns the spending of sessions in progress so far (USD), by id, as reported in their transcripts, which
// open opens.
func Spent(sessions []ralph.Session, open func(session string) (io.ReadCloser, error)) (map[string]float64, error) {
	spent := map[string]float64{}
	for _, s := range sessions {
		file, err := open(s.ID)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has not said anything yet
		}
		if err != nil {
			return nil, err
		}
		reader, buffer := transcript.NewReader(kinds.NewReader()), make([]byte, 64<<10)
		for err == nil {
			var n int
			n, err = file.Read(buffer)
			reader.Feed(buffer[:n])
		}
		if err := errors.Join(err, file.Close()); !errors.Is(err, io.EOF) {
			return nil, err
		}
		spent[s.ID] = reader.Used().CostUSD
	}
	return spent, nil
}

// Write implements io.Writer. b may end anywhere in a line.
func (p *Printer) Write(b []byte) (int, error) {
	if !p.raw {
		return len(b), p.entries(p.reader.Feed(b))
	}
	return p.out.Write(b)
}

// harmless replaces characters that control a terminal or reorder text.
func harmless(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) {
		return '\uFFFD'
	}
	return r
}

// End prints an incomplete last line, which a killed agent may leave, and the session's result.
func (p *Printer) End(s ralph.Session) error {
	if p.raw {
		return nil
	}
	err := p.entries(p.reader.End())
	if p.json || s.CompletedAt.IsZero() || err != nil {
		return err
	}
	took := text.Span(s.CompletedAt.Sub(s.StartedAt.Time).Seconds())
	end := fmt.Sprintf("%s: %s (%s, %s)", s.State, text.Line(s.Reason, 500), took,
		text.Cost(s.CostUSD, s.CostKnown, s.Tokens.Sum()))
	colour := term.Green
	if s.State == ralph.PhaseFailed {
		colour = term.Red
	}
	return p.line("■ ", colour, end)
}

func (p *Printer) entries(list []transcript.Entry) error {
	for _, e := range list {
		if p.json {
			if err := json.NewEncoder(text.Escaping(p.out)).Encode(e); err != nil {
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

// lineColours are the styles of lines by kind.
var lineColours = map[string]term.Style{
	transcript.Start: term.Dim, transcript.Tool: term.Blue, transcript.Answer: term.Dim, transcript.Error: term.Red,
	transcript.Told: term.Cyan, transcript.Result: term.Dim, transcript.Note: term.Yellow,
	"+": term.Green, "-": term.Red, "…": term.Dim, " ": term.Dim,
}

// maxColumns limits the width of text on a wide screen, for readability.
const maxColumns = 110

// line prints one line, wrapped into rows.
func (p *Printer) line(lead string, colour term.Style, text string) error {
	p.spoken = true
	s := p.screen
	s.Columns = min(s.Columns, maxColumns)
	for _, row := range s.Wrap(text, term.Width(lead)) {
		if _, err := fmt.Fprintln(p.out, strings.TrimRight(lead+p.screen.Paint(colour, row), " ")); err != nil {
			return err
		}
		lead = strings.Repeat(" ", term.Width(lead))
	}
	return nil
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"ralph/internal/state"
	"ralph/internal/web/webtest"
	"ralph/loop/agent"
	"ralph/store"
)

// A grid has the contents of a terminal. It understands the controls that the live screen writes, and reports any
// other.
type grid struct {
	t     *testing.T
	cells [][]rune
	x, y  int
	last  rune

	top, end int // the lines that scroll
}

// resize makes the terminal larger; its contents stay.
func (g *grid) resize(width, height int) {
	for len(g.cells) < height {
		g.cells = append(g.cells, nil)
	}
	g.top, g.end = 0, height
	for i, row := range g.cells {
		g.cells[i] = append(row, slices.Repeat([]rune{' '}, width-len(row))...)
	}
}

func (g *grid) String() string {
	var b strings.Builder
	for _, row := range g.cells {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

func (g *grid) print(r rune) {
	g.last = r
	if g.x >= len(g.cells[0]) {
		g.x, g.y = 0, min(g.y+1, len(g.cells)-1)
	}
	g.cells[g.y][g.x] = r
	g.x++
}

// blank empties a part of the screen, given in cells from its beginning.
func (g *grid) blank(from, to int) {
	width := len(g.cells[0])
	for i := max(0, from); i < min(to, width*len(g.cells)); i++ {
		g.cells[i/width][i%width] = ' '
	}
}

// scroll moves the lines from one on that scroll so many up, or down if that is negative.
func (g *grid) scroll(from, by int) {
	lines := g.cells[from:g.end]
	for range min(max(by, -by), len(lines)) {
		empty := slices.Repeat([]rune{' '}, len(g.cells[0]))
		if by > 0 {
			copy(lines, lines[1:])
			lines[len(lines)-1] = empty
		} else {
			copy(lines[1:], lines)
			lines[0] = empty
		}
	}
}

func (g *grid) escape(c ansi.Cmd) {
	if c.Intermediate() == 0 && c.Final() == 'M' {
		if g.y--; g.y == g.top-1 {
			g.y = g.top
			g.scroll(g.top, -1)
		}
	}
}

func (g *grid) control(c byte) {
	switch c {
	case '\r':
		g.x = 0
	case '\n':
		if g.y++; g.y == g.end {
			g.y = g.end - 1
			g.scroll(g.top, 1)
		}
	case '\b':
		g.x = max(0, g.x-1)
	case '\t':
		g.x = min(g.x/8*8+8, len(g.cells[0])-1)
	}
}

func (g *grid) sequence(c ansi.Cmd, params ansi.Params) {
	if c.Prefix() != 0 || c.Intermediate() != 0 || strings.ContainsRune("mhltuqncp", rune(c.Final())) {
		return // colours, modes and questions
	}
	n, _, _ := params.Param(0, 1)
	kind, _, _ := params.Param(0, 0)
	width, height := len(g.cells[0]), len(g.cells)
	at := g.y*width + g.x
	switch c.Final() {
	case 'A':
		g.y -= n
	case 'B':
		g.y += n
	case 'C':
		g.x += n
	case 'D':
		g.x -= n
	case 'G', '`':
		g.x = n - 1
	case 'd':
		g.y = n - 1
	case 'H', 'f':
		column, _, _ := params.Param(1, 1)
		g.y, g.x = n-1, column-1
	case 'J':
		g.blank([]int{at, 0, 0}[kind], []int{width * height, at + 1, width * height}[kind])
	case 'K':
		g.blank([]int{at, g.y * width, g.y * width}[kind], []int{(g.y + 1) * width, at + 1, (g.y + 1) * width}[kind])
	case 'X':
		g.blank(at, min(at+n, (g.y+1)*width))
	case 'b':
		for range n {
			g.print(g.last)
		}
	case 'P':
		row := append(slices.Delete(g.cells[g.y], g.x, min(g.x+n, width)), slices.Repeat([]rune{' '}, min(n, width-g.x))...)
		g.cells[g.y] = row
	case '@':
		g.cells[g.y] = slices.Insert(g.cells[g.y], g.x, slices.Repeat([]rune{' '}, n)...)[:width]
	case 'r':
		end, _, _ := params.Param(1, height)
		g.top, g.end, g.x, g.y = n-1, end, 0, 0
	case 'S', 'T':
		g.scroll(g.top, map[byte]int{'S': n, 'T': -n}[c.Final()])
	case 'M', 'L':
		g.scroll(g.y, map[byte]int{'M': n, 'L': -n}[c.Final()])
	default:
		g.t.Errorf("this terminal does not know CSI %q", c.Final())
	}
	g.x, g.y = max(0, min(g.x, width-1)), max(0, min(g.y, height-1))
}

// TestTheScreenOfANight on a pseudo-terminal of 80×24: the headline comes first, then open items as rows to select and
// open; a transcript fills the whole screen and can be searched; the keys are always in the last line. The same holds
// when the terminal becomes larger.
func TestTheScreenOfANight(t *testing.T) {
	t.Parallel()
	s, n := newScriptedProject(t, "", ""), &webtest.Night{}
	home, err := state.Locate(t.Context(), s.dir, s.env)
	if err == nil {
		err = home.Make(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(home.State, state.Database), store.Options{Now: n.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := n.Fill(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		task, err := tx.Task(1)
		if err != nil {
			return err
		}
		task.Title = strings.Repeat("a long title ", 23)
		return tx.UpdateTask(task)
	}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home.State, "sessions", n.Running[0])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	said := n.Files[n.Running[0]+"/transcript"]
	if err := os.WriteFile(filepath.Join(dir, agent.TranscriptFile), []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("watch")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer tty.Close()
	const up, down, enter, esc = "\x1b[A", "\x1b[B", "\r", "\x1b"
	last := func(s string) string { return "\n" + s + "\n\x00" } // the last line
	open := last("1-3 choose  a answer  ↑↓ Enter open  c comment  p pause  s skip  ? help  q quit")
	allow := last("a allow  r deny  ↑↓ Enter open  c comment  p pause  s skip  ? help  q quit")
	whole := last("↑↓ scroll  Esc back  c comment  / find  Tab next session  s skip  ? help  q quit")
	steps := []struct {
		seen []string
		keys string // "" makes the terminal larger
	}{
		{[]string{"12 merged  15 failed", "$9.23", "3  TASK-1 a long title", "▸ permission TASK-1", allow}, down},
		{[]string{"▸ flag TASK-2"}, down},
		{[]string{"▸ question TASK-2"}, enter},
		{[]string{"only with --lenient", "→ ralph answer Q", last("1-3 choose  a answer  ↑↓ scroll  Esc back")}, esc},
		{[]string{"▸ question TASK-2", open}, up},
		{[]string{"▸ flag"}, up},
		{[]string{"▸ permission"}, up},
		{[]string{"▸ 4  TASK-49"}, up},
		{[]string{"▸ 3  TASK-1"}, enter},
		{[]string{"I read the parser and its tests first.", "the edge cases now.", whole}, "/edge cases" + enter},
		{[]string{"filter: edge cases", "the edge cases now.", whole}, ""},
		{[]string{"filter: edge cases", strings.Repeat("─", 100), whole}, esc},
		{[]string{"▸ 3  TASK-1", "15 failed", "? help  q quit\n\x00"}, "q"},
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }) // the failure is reported below
	defer late.Stop()
	g := &grid{t: t}
	g.resize(80, 24)
	parser := ansi.NewParser()
	parser.SetHandler(ansi.Handler{Print: g.print, Execute: g.control, HandleCsi: g.sequence, HandleEsc: g.escape})
	some := make([]byte, 4096)
	for {
		read, err := tty.Read(some)
		for _, b := range some[:read] {
			parser.Advance(b)
		}
		if err != nil {
			break // it has left
		}
		if len(steps) == 0 || slices.ContainsFunc(steps[0].seen, func(s string) bool { return !strings.Contains(g.String()+"\x00", s) }) {
			continue
		}
		keys := steps[0].keys
		if steps = steps[1:]; keys == "" {
			g.resize(100, 30)
			err = pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 100})
		} else {
			_, err = tty.WriteString(keys)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ralph watch: %v", err)
	}
	if len(steps) > 0 {
		t.Errorf("%q is never seen on\n%s", steps[0].seen, fmt.Sprint(g))
	}
}

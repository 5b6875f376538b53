package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/term"
)

// A terminal has a model's view drawn as soon as it is another one, and then nothing more. Bubble Tea's own program
// looks for something to draw on a ticker, so that an answer to a key waits for it, and an idle screen has to pay for
// one that is quick. What draws is the same.
type terminal struct {
	in, out *os.File
	screen  *uv.TerminalScreen
	shown   tea.View
	msgs    chan tea.Msg // of commands
	works   sync.WaitGroup
}

// Run shows the screen on a terminal until the person leaves it, the terminal is gone, the process is asked to end, or
// ctx ends. A last action that was asked for is waited for.
func Run(ctx context.Context, s Source, in, out *os.File, environ []string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	t := &terminal{in: in, out: out, screen: uv.NewTerminalScreen(out, environ), msgs: make(chan tea.Msg)}
	defer t.works.Wait() // after stop: who does not want to wait for it can interrupt
	defer stop()
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("the terminal's keys cannot be read: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(int(in.Fd()), before)) }()
	t.screen.EnterAltScreen()
	t.screen.HideCursor()
	t.screen.EnableBracketedPaste()
	defer func() {
		t.screen.Reset()
		t.screen.ShowCursor()
		err = errors.Join(err, t.screen.Flush())
	}()
	reader, err := uv.NewCancelReader(in)
	if err != nil {
		return fmt.Errorf("the terminal's keys cannot be read: %w", err)
	}
	events, ended := make(chan uv.Event), make(chan error, 1)
	go func() {
		defer close(events)
		ended <- uv.NewTerminalReader(reader, uv.Environ(environ).Getenv("TERM")).StreamEvents(ctx, events)
	}()
	defer func() {
		stop()
		if reader.Cancel() {
			for range events { // whoever types meanwhile is heard out, so that it ends
			}
		}
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	return t.run(ctx, New(ctx, s), events, ended, resized)
}

// run has the model see what happens, and draws it, until it or the input ends.
func (t *terminal) run(
	ctx context.Context, m tea.Model, events <-chan uv.Event, ended <-chan error, resized <-chan os.Signal,
) error {
	msg := t.size()
	t.start(ctx, m.Init())
	for {
		var cmd tea.Cmd
		switch told := msg.(type) {
		case error:
			return told
		case tea.QuitMsg:
			return nil
		case tea.BatchMsg:
			for _, one := range told {
				t.start(ctx, one)
			}
		case tea.WindowSizeMsg:
			t.screen.Resize(told.Width, told.Height)
			t.shown = tea.View{}
			m, cmd = m.Update(told)
		default:
			m, cmd = m.Update(told)
		}
		t.start(ctx, cmd)
		if err := t.draw(m.View()); err != nil {
			return fmt.Errorf("the terminal takes nothing more: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-resized:
			msg = t.size()
		case msg = <-t.msgs:
		case event := <-events:
			msg = event
			switch event := event.(type) {
			case uv.KeyPressEvent:
				msg = tea.KeyPressMsg(event)
			case uv.PasteEvent:
				msg = tea.PasteMsg(event)
			}
		}
	}
}

// size is how large the terminal is, as a message.
func (t *terminal) size() tea.Msg {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return fmt.Errorf("the terminal does not say how large it is: %w", err)
	}
	return tea.WindowSizeMsg{Width: width, Height: height}
}

// start has a command run beside the screen.
func (t *terminal) start(ctx context.Context, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	t.works.Go(func() {
		msg := cmd()
		select {
		case t.msgs <- msg:
		case <-ctx.Done():
		}
	})
}

// draw draws a view, unless it is what is shown.
func (t *terminal) draw(v tea.View) error {
	if v.WindowTitle != t.shown.WindowTitle {
		t.screen.SetWindowTitle(v.WindowTitle)
	} else if v.Content == t.shown.Content {
		return nil
	}
	t.shown = v
	return t.screen.Display(uv.NewStyledString(v.Content))
}

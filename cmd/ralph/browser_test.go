package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ralph/loop/gate/gatetest"
)

// chromiums are the names under which a browser without a screen is found.
var chromiums = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// needChromium finds a browser, from RALPH_TEST_CHROMIUM or the path. Without one
// the test is skipped, unless RALPH_REQUIRE_CHROMIUM is set.
func needChromium(t *testing.T) string {
	t.Helper()
	long(t)
	if path := os.Getenv("RALPH_TEST_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range chromiums {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("RALPH_REQUIRE_CHROMIUM") != "" {
		t.Fatal("a browser is required here: install chromium or chromium-headless-shell")
	}
	t.Skip("skipped without a browser: install chromium, or name one in RALPH_TEST_CHROMIUM")
	return ""
}

// needPages skips a test that looks at every page, which takes half a minute, unless
// it is asked for.
func needPages(t *testing.T) {
	t.Helper()
	if os.Getenv("RALPH_TEST_PAGES") == "" && os.Getenv("RALPH_REQUIRE_CHROMIUM") == "" {
		t.Skip("skipped: set RALPH_TEST_PAGES to look at every page of the dashboard")
	}
	needChromium(t)
}

// A tab is a page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// stepTime is the time limit of a step in a browser. No step should take that long.
const stepTime = time.Minute

// browser is the one that all tests share; it ends with the tests.
var browser = sync.OnceValues(func() (context.Context, error) {
	path := os.Getenv("RALPH_TEST_CHROMIUM")
	for _, name := range chromiums {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	allocated, _ := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-partial-raster", true)) // a picture does not depend on what changed before it
	ctx, _ := chromedp.NewContext(allocated)
	return ctx, chromedp.Do(ctx, chromedp.Navigate("about:blank"))
})

// newTab opens an empty page, with cookies of its own.
func newTab(t *testing.T) *tab {
	t.Helper()
	needChromium(t)
	shared, err := browser()
	if err != nil {
		t.Fatal("browser: ", err)
	}
	ctx, leave := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(leave)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal("browser: ", err)
	}
	return &tab{t, ctx}
}

// do carries out steps, or says which page they failed on.
func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, end := context.WithTimeout(p.ctx, stepTime)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v\n%s", what, err, p.text())
	}
}

func (p *tab) open(address string) {
	p.t.Helper()
	p.do("open "+address, chromedp.Navigate(address))
}

// click clicks the visible element of a CSS selector.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// press sends keys to the element in focus. Key and text are one event, as from a keyboard: if the page takes the key,
// the element that gets the focus receives no text.
func (p *tab) press(key string) {
	p.t.Helper()
	p.pressWith(0, key)
}

// control is the Ctrl key among the modifiers of [tab.pressWith].
const control = 2

// pressWith is press with modifiers held, which let no text through.
func (p *tab) pressWith(modifiers int64, key string) {
	p.t.Helper()
	p.do("press a key", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, r := range key {
			events := kb.Encode(r)
			if modifiers != 0 {
				events = slices.DeleteFunc(events, func(e *input.DispatchKeyEventParams) bool { return e.Type == "char" })
			}
			if len(events) == 3 {
				events[0].Text, events[0].UnmodifiedText = events[1].Text, events[1].UnmodifiedText
				events = slices.Delete(events, 1, 2)
			}
			for _, e := range events {
				e.Modifiers |= modifiers
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// write types into a field, once that has the focus: a page may replace one that nobody is in.
func (p *tab) write(selector, text string) {
	p.t.Helper()
	p.sees("one can write to "+selector, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e?.checkVisibility()) return false;
		e.focus();
		return document.activeElement === e;
	})()`, selector))
	p.press(text)
}

// choose selects an entry of a list.
func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.do("choose "+value, chromedp.SetValue(chromedp.CSS(selector), value, chromedp.NodeVisible))
}

// sees waits until an expression in the page is true, over changes of the page. It asks again by itself: the timers of a
// page without its script stand still.
func (p *tab) sees(what, expression string) {
	p.t.Helper()
	ctx, end := context.WithTimeout(p.ctx, stepTime)
	defer end()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		seen, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")) // an error is that of a page that goes
		if err == nil && seen {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			p.t.Fatalf("it is never seen that %s (%s); the page says:\n%s", what, expression, p.text())
		}
	}
}

// reads waits until the element of a selector contains a text.
func (p *tab) reads(selector, text string) {
	p.t.Helper()
	p.sees(fmt.Sprintf("%s reads %q", selector, text), fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, end := context.WithTimeout(p.ctx, stepTime)
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// text returns the visible text of the page.
func (p *tab) text() string {
	ctx, end := context.WithTimeout(p.ctx, stepTime)
	defer end()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return s
}

// look sets the width of the screen, and light or dark.
func (p *tab) look(width, height int64, scheme string) {
	p.t.Helper()
	p.do("look", chromedp.EmulateViewport(width, height))
	p.prefers(scheme, "reduce")
}

// prefers sets a person's preferences: light or dark, and "reduce" or "no-preference" for motion.
func (p *tab) prefers(scheme, motion string) {
	p.t.Helper()
	p.do("prefer", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}})
		return err
	}))
}

// stopClocks has pages loaded from now on count no seconds.
func (p *tab) stopClocks() {
	p.t.Helper()
	p.begins("performance.now = () => 0")
}

// begins has pages loaded from now on begin with a script.
func (p *tab) begins(script string) {
	p.t.Helper()
	p.do("begin with a script", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// withoutScript has pages run no script from now on.
func (p *tab) withoutScript() {
	p.t.Helper()
	p.do("without script", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// A served dashboard is a process of its own.
type served struct {
	cmd  *exec.Cmd
	url  string
	rest chan string // what it says afterwards
}

// serveProject starts the dashboard of a project, by `ralph serve` or another
// command that serves it.
func serveProject(t *testing.T, s *scriptedProject, addr string, args ...string) *served {
	t.Helper()
	if args == nil {
		args = []string{"serve"}
	}
	d := &served{cmd: s.command(args...), rest: make(chan string, 1)}
	d.cmd.Env = append(d.cmd.Env, "RALPH_DASHBOARD_ADDR="+addr)
	d.cmd.Stdout = io.Discard
	said, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill(); <-d.rest })
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "dashboard on "); ok {
			d.url = at
			break
		}
	}
	go func() {
		var b strings.Builder
		for lines.Scan() {
			b.WriteString(lines.Text() + "\n")
		}
		d.rest <- b.String()
		close(d.rest)
	}()
	if d.url == "" {
		t.Fatalf("%s does not serve: %s", d.cmd, <-d.rest)
	}
	return d
}

// stop ends it as Ctrl-C does, and wants an exit status.
func (d *served) stop(t *testing.T, status int) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-d.rest         // all that it says is read before it is waited for
	_ = d.cmd.Wait() // the status says it
	if got := d.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("%s: exit status %d, want %d", d.cmd, got, status)
	}
}

// addr returns the address that it listens on.
func (d *served) addr(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// signIn signs a browser in by the link that `ralph serve --link` prints.
func (p *tab) signIn(s *scriptedProject, d *served) {
	p.t.Helper()
	link := s.command("serve", "--link", "--addr", d.addr(p.t))
	out, err := link.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	p.open(strings.TrimSpace(string(out)))
	p.reads("header button", "Sign out")
	if at := eval[string](p, "location.href"); strings.Contains(at, "#") {
		p.t.Errorf("the token stays in the address %s", at)
	}
}

// axeVersion is the version of the checker of accessibility.
const axeVersion = "4.14.1"

// axeSource returns axe-core's program, installed once with npm. Without npm it is "", unless a browser is required.
func axeSource(t *testing.T) string {
	t.Helper()
	source, err := installPackage(t.Context(), "axe-core", axeVersion, "axe.min.js")
	if err != nil {
		if os.Getenv("RALPH_REQUIRE_CHROMIUM") != "" {
			t.Fatal("axe-core is required here: ", err)
		}
		t.Skip("skipped without axe-core: ", err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// installPackage installs a package of npm into the user's cache, once, and returns
// the path of one of its files.
func installPackage(ctx context.Context, name, version, file string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ralph-test", filepath.Base(name)+"-"+version)
	return gatetest.Install(ctx, dir, filepath.Join(dir, "node_modules", name, file), name+"@"+version)
}

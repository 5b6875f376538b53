package systemd_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ralph/internal/systemd"
)

// listen plays systemd: it listens on its own socket and returns the messages until the call of the returned function.
func listen(t *testing.T, socket string) (heard func() []string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	const last = "the end of the test"
	all := make(chan []string)
	go func() {
		defer conn.Close()
		var states []string
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil || string(buf[:n]) == last {
				all <- states
				return
			}
			states = append(states, string(buf[:n]))
		}
	}()
	return func() []string {
		to, err := net.Dial("unixgram", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		if _, err := to.Write([]byte(last)); err != nil {
			t.Fatal(err)
		}
		return <-all
	}
}

func notifier(t *testing.T, log *slog.Logger) *systemd.Notifier {
	t.Helper()
	n, err := systemd.New(log)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSystemdIsTold(t *testing.T) {
	for _, socket := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@ralph-test-%d", os.Getpid())} {
		t.Run(socket[:1], func(t *testing.T) {
			if strings.HasPrefix(socket, "@") && runtime.GOOS != "linux" {
				t.Skip("abstract sockets are Linux's")
			}
			heard := listen(t, socket)
			n := notifier(t, slog.New(slog.DiscardHandler))
			n.Ready()
			n.Status("on TASK-1")
			n.Status("on TASK-1")
			n.Status("evil\nMAINPID=1\x00\u009b title \xff")
			n.Status(strings.Repeat("é", 300))
			n.Stopping()
			want := []string{"READY=1", "STATUS=on TASK-1", "STATUS=evil MAINPID=1 title \uFFFD", "STATUS=" + strings.Repeat("é", 199) + "…", "STOPPING=1"}
			if got := heard(); !slices.Equal(got, want) {
				t.Errorf("systemd heard %q, want %q", got, want)
			}
		})
	}
}

// The watchdog is fed at half its period for as long as the beats keep their
// promises, and not once after that.
func TestTheWatchdogStarvesWhenTheLoopHangs(t *testing.T) {
	heard := listen(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(int(2*time.Minute/time.Microsecond)))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		n := notifier(t, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		go n.Run(ctx)
		synctest.Wait()
		time.Sleep(10 * time.Second) // from here on no beat falls on a tick
		for range 40 {               // 20 minutes of work in steps of 30 s
			n.Beat(time.Minute)
			time.Sleep(30 * time.Second)
		}
		n.Beat(10*time.Minute + time.Second) // a step that may take long, and hangs
		time.Sleep(time.Hour)
		n.Beat(90 * time.Second) // and ends after all
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
	})
	pings := heard()
	if want := slices.Repeat([]string{"WATCHDOG=1"}, 20+10+1); !slices.Equal(pings, want) {
		t.Errorf("systemd heard %d times %q, want %d", len(pings), slices.Compact(pings), len(want))
	}
	if n := strings.Count(log.String(), "the loop hangs"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, &log)
	}
}

func TestNobodyWatches(t *testing.T) {
	heard := listen(t, filepath.Join(t.TempDir(), "notify"))
	for name, env := range map[string][2]string{
		"no watchdog":                     {"", ""},
		"a watchdog of the process above": {"1000", "1"},
		"a process, but no watchdog":      {"", strconv.Itoa(os.Getpid())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WATCHDOG_USEC", env[0])
			t.Setenv("WATCHDOG_PID", env[1])
			notifier(t, slog.New(slog.DiscardHandler)).Run(t.Context()) // returns
		})
	}
	if got := heard(); len(got) > 0 {
		t.Errorf("systemd heard %q", got)
	}
}

func TestAWatchdogThatIsNoNumber(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "soon")
	if _, err := systemd.New(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "WATCHDOG_USEC") {
		t.Errorf("err = %v", err)
	}
}

func TestWithoutSystemdNothingHappens(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	var log bytes.Buffer
	n := notifier(t, slog.New(slog.NewTextHandler(&log, nil)))
	n.Ready()
	n.Status("x")
	if log.Len() > 0 {
		t.Errorf("the log says %s", &log)
	}
}

func TestASocketThatIsGoneIsLogged(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	var log bytes.Buffer
	notifier(t, slog.New(slog.NewTextHandler(&log, nil))).Ready()
	if !strings.Contains(log.String(), "cannot notify systemd") {
		t.Errorf("the log says %q", &log)
	}
}

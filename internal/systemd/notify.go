package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"ralph/internal/text"
)

// A Notifier speaks for one daemon. Its methods may be called from any goroutine.
type Notifier struct {
	log      *slog.Logger
	watchdog time.Duration // after which systemd takes silence for a hang; 0 if it does not watch

	mu       sync.Mutex
	status   string
	promised time.Time // until when the next beat is to come
}

// firstBeat is what a daemon is given to begin with its work.
const firstBeat = 5 * time.Minute

// maxStatus bounds a status text, in characters: it is shown as one line.
const maxStatus = 200

// New reads what systemd wants to be told from the environment. The error is for
// a WATCHDOG_USEC that is no number.
func New(log *slog.Logger) (*Notifier, error) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("systemd's watchdog: %w", err)
	}
	return &Notifier{log: log, watchdog: watchdog, promised: time.Now().Add(firstBeat)}, nil
}

// Ready says that the daemon has begun to work.
func (n *Notifier) Ready() { n.send(daemon.SdNotifyReady) }

// Stopping says that the daemon is ending.
func (n *Notifier) Stopping() { n.send(daemon.SdNotifyStopping) }

// Status says in one line what the daemon is doing, for `systemctl status`.
// What was said last is not said again.
func (n *Notifier) Status(said string) {
	said = text.Short(said, maxStatus)
	n.mu.Lock()
	news := said != n.status
	n.status = said
	n.mu.Unlock()
	if news {
		n.send("STATUS=" + said)
	}
}

// Beat is called by the work itself, whenever it gets on: it promises the next
// beat within d. While that promise holds, systemd is told that all is well.
func (n *Notifier) Beat(d time.Duration) {
	n.mu.Lock()
	n.promised = time.Now().Add(d)
	n.mu.Unlock()
}

// Run feeds systemd's watchdog twice in each of its periods as long as the beats
// keep coming, until ctx ends. When they stop, so does it, and systemd kills the
// daemon and starts it anew. It returns at once if systemd does not watch.
func (n *Notifier) Run(ctx context.Context) {
	if n.watchdog == 0 {
		return
	}
	tick := time.NewTicker(n.watchdog / 2)
	defer tick.Stop()
	for fed := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.Lock()
		late := time.Since(n.promised)
		n.mu.Unlock()
		if late <= 0 {
			n.send(daemon.SdNotifyWatchdog)
		} else if fed {
			n.log.Error("the loop hangs: systemd's watchdog is no longer fed", "late", late.Round(time.Second).String())
		}
		fed = late <= 0
	}
}

// send tells systemd. A failure is no reason to stop working.
func (n *Notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("systemd could not be told", "what", state, "error", err)
	}
}

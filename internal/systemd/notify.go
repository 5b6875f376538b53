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

// A Notifier notifies systemd for one daemon. Its methods may be called from any goroutine.
type Notifier struct {
	log      *slog.Logger
	watchdog time.Duration // systemd's timeout; 0 if it does not watch

	mu       sync.Mutex
	status   string
	promised time.Time // the next beat is due by then
}

// firstBeat is the time for a daemon to start working.
const firstBeat = 5 * time.Minute

// maxStatus bounds a status text, in characters: it is shown on one line.
const maxStatus = 200

// New reads systemd's settings from the environment. The error is for an invalid WATCHDOG_USEC.
func New(log *slog.Logger) (*Notifier, error) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("systemd's watchdog: %w", err)
	}
	return &Notifier{log: log, watchdog: watchdog, promised: time.Now().Add(firstBeat)}, nil
}

// Ready reports that the daemon has started to work.
func (n *Notifier) Ready() { n.send(daemon.SdNotifyReady) }

// Stopping reports that the daemon is ending.
func (n *Notifier) Stopping() { n.send(daemon.SdNotifyStopping) }

// Status reports the daemon's activity in one line, for `systemctl status`. A repeated text is not sent again.
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

// Beat is called by the work itself whenever it makes progress. It promises the next beat within
// d, and feeds systemd's watchdog until then.
func (n *Notifier) Beat(d time.Duration) {
	n.mu.Lock()
	n.promised = time.Now().Add(d)
	n.mu.Unlock()
}

// Run feeds systemd's watchdog twice per period while the beats keep coming, until ctx ends. When
// they stop, systemd kills the daemon and restarts it. It returns at once if systemd does not
// watch.
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

// send notifies systemd. A failure is only logged.
func (n *Notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("cannot notify systemd", "what", state, "error", err)
	}
}

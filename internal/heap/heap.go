// Package heap lets ralph's heap grow to five times of what lives before it is collected, unless GOGC says otherwise:
// most commands end before their garbage is worth the time. It imports next to nothing, so that this holds while the
// packages of all commands are initialized, which fills a fresh heap.
package heap

import (
	"os"
	"runtime/debug"
)

func init() { //nolint:gochecknoinits // before the packages that take long
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

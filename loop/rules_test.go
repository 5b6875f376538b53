package loop

import (
	"testing"
	"time"

	"ralph"
)

func TestRequestsEndWorkNowOrSoon(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		control   string
		grace     time.Duration
		now, soon bool
	}{
		{ralph.ControlNone, 0, false, false},
		{ralph.ControlNone, time.Minute, false, false},
		{ralph.ControlPause, 0, false, false},
		{ralph.ControlPause, time.Minute, false, false},
		{ralph.ControlStop, 0, true, true},
		{ralph.ControlStop, time.Minute, false, true},
		{ralph.ControlStopNow, 0, true, false},
		{ralph.ControlStopNow, time.Minute, true, false},
	} {
		if now, soon := obeyed(tt.control, tt.grace); now != tt.now || soon != tt.soon {
			t.Errorf("%q with a grace of %s: now %t, soon %t", tt.control, tt.grace, now, soon)
		}
	}
}

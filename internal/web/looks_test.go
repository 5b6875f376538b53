package web

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/report"
)

// TestNumbersLeadToTheirLists, and nothing else of the line is changed.
func TestNumbersLeadToTheirLists(t *testing.T) {
	said := []report.Part{
		{Text: "since <05:10>, "},
		{Text: "2 runs", Group: report.Runs},
		{Text: "3 failed", Group: report.Failed},
		{Text: "1 needs you", Group: report.NeedsYou},
		{Text: "$11.88", Group: report.Costs},
	}
	line := ""
	for _, p := range said {
		line += p.Text
	}
	got := string(counted(said, url.Values{"active": {"2026-11-26T05:10:00.000Z"}}))
	for _, got := range []string{got, string(counted(said, nil))} {
		if want := html.EscapeString(line); regexp.MustCompile(`</?a( [^>]*)?>`).ReplaceAllString(got, "") != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
	}
	const active = "active=2026-11-26T05%3A10%3A00.000Z"
	for _, want := range []string{
		`<a href="/runs?` + active + `">2 runs</a>`, `<a href="/inbox">1 needs you</a>`,
		`<a href="/tasks?` + active + `&amp;status=failed">3 failed</a>`,
		`<a href="/sessions?` + active + `&amp;sort=cost">$11.88</a>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %s:\n%s", want, got)
		}
	}
}

// TestTimesAreRelative, in the past and to come.
func TestTimesAreRelative(t *testing.T) {
	now := ralph.At(time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC))
	for d, want := range map[time.Duration]string{
		0: "0 s", -59 * time.Second: "59 s", -time.Hour: "1 h", -47 * time.Hour: "47 h", -72 * time.Hour: "3 d", 26 * time.Minute: "in 26 min",
	} {
		if got := ago(ralph.At(now.Add(d)), now); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// TestPhasesHaveAScale: the parts fill it, and its end is the sum of all.
func TestPhasesHaveAScale(t *testing.T) {
	l := newTimeline([]ralph.Stay{{Phase: ralph.PhaseAnalyzing, Seconds: 90}, {Phase: ralph.PhaseImplementing, Seconds: 90}, {Phase: ralph.PhaseTesting, Seconds: 30}, {Phase: ralph.PhaseImplementing, Seconds: 10}})
	var marks []string
	for _, m := range l.Ticks {
		marks = append(marks, fmt.Sprintf("%s at %g", m.Text, m.X))
	}
	if got, want := strings.Join(marks, ", "), "0 at 0, 1 min at 27.3, 2 min at 54.5, 3 min 40 s at 100"; got != want {
		t.Errorf("the scale is %s, want %s", got, want)
	}
	if last := l.Parts[3]; last.X+last.Width < 99.9 || last.Class != "yellow" {
		t.Errorf("the last part is %+v", last)
	}
	if len(l.Phases) != 3 || l.Phases[1].Seconds != 100 {
		t.Errorf("the phases are %+v", l.Phases)
	}
	for _, seconds := range []float64{0.2, 8, 3600, 1e6, 1e8} {
		if n := len(newTimeline([]ralph.Stay{{Phase: ralph.PhaseTesting, Seconds: seconds}}).Ticks); n < 2 || n > mostTicks+2 {
			t.Errorf("%g s has %d ticks", seconds, n)
		}
	}
	if l := newTimeline(nil); l.Parts != nil {
		t.Errorf("nothing is drawn as %+v", l)
	}
}

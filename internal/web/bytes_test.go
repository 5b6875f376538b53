package web_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestBytesOfAnOpenPage: an open page that is brought up to date every two seconds, as often as it may be, takes at most
// a tenth of its bytes in an hour before pages were compressed and left out the transcript: 132 MB for a followed session
// and 86 MB for Now.
func TestBytesOfAnOpenPage(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	followed := n.Running[1]
	s.files[followed+"/transcript"] = longTranscript(2000)
	b := s.browser().signIn()
	if page := b.get("/sessions/" + followed); strings.Count(page, "<li class=\"e-") < 200 {
		t.Fatal("the page has no transcript")
	}
	b.header = http.Header{"Accept-Encoding": {"gzip"}, "X-Refresh": {"yes"}}
	for page, most := range map[string]float64{"/": 8.6, "/sessions/" + followed: 13.2} {
		mb := float64(len(b.get(page))) * 1800 / 1e6
		t.Logf("%s: %.1f MB an hour, of %.1f", page, mb, most)
		if mb > most {
			t.Errorf("%s takes %.1f MB an hour, want at most %.1f", page, mb, most)
		}
	}
}

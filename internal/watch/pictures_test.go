package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ralph/internal/picturetest"
)

// TestWatchLooksLikeThis draws the screen with one, four and eight sessions, in three sizes, dark and light, into the
// folder RALPH_TEST_SCREENSHOTS. `make pictures` takes docs/pictures/watch.svg from it.
func TestWatchLooksLikeThis(t *testing.T) {
	folder := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if folder == "" {
		t.Skip("skipped: RALPH_TEST_SCREENSHOTS is not set")
	}
	draw := func(name, scheme string, data func() *fake, width, height int) {
		inTime(t, name, func(t *testing.T) {
			p := picturetest.Picture{
				Text: show(t, data(), width, height).model.View().Content, Columns: width, Rows: height, Scheme: scheme,
				Title: "ralph watch: the sessions, what needs you, what the agent does, and the queue",
			}
			if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(p.SVG()), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	draw("watch", "", parallel, 120, 32)
	for sessions, data := range map[int]func() *fake{1: running, 4: parallel, 8: eight} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
			for _, scheme := range []string{"dark", "light"} {
				draw(fmt.Sprintf("watch-%d-%dx%d-%s", sessions, size[0], size[1], scheme), scheme, data, size[0], size[1])
			}
		}
	}
}

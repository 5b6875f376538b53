package doctor

import (
	"testing"

	"ralph/internal/secret"
)

// TestPublic replaces the home directory where a path begins with it, and secrets.
func TestPublic(t *testing.T) {
	t.Parallel()
	mask := secret.New([]string{"FORGE_TOKEN=glpat-0123456789"}, nil, func(string) bool { return false })
	for _, c := range []struct{ home, said, want string }{
		{"/home/ada", "/home/ada/app/ralph.yaml", "~/app/ralph.yaml"},
		{"/home/ada", "run it in /home/ada", "run it in ~"},
		{"/home/ada", "/home/adam/app; /home/ada: no", "/home/adam/app; ~: no"},
		{"/home/ada", "/srv/home/ada/app", "/srv/home/ada/app"},
		{"/", "/usr/bin/git", "/usr/bin/git"},
		{"", "/usr/bin/git", "/usr/bin/git"},
		{"/home/ada", "401 for glpat-0123456789", "401 for [FORGE_TOKEN]"},
	} {
		got := Public([]Finding{{"x", false, c.said, c.said}}, mask, c.home)[0]
		if want := (Finding{"x", false, c.want, c.want}); got != want {
			t.Errorf("at %q: %+v, want %+v", c.home, got, want)
		}
	}
}

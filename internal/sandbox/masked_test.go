package sandbox

import (
	"slices"
	"testing"
)

// TestMasked: what is hidden in a layer is covered, unless something in it is shown.
func TestMasked(t *testing.T) {
	v := View{Layers: []Layer{{At: "/home/a/.cargo"}, {At: "/home/a/.cache"}}}
	p := Policy{Paths: map[string]Access{
		"/": ReadOnly, "/home/a/.cargo/credentials.toml": Hidden, "/home/a/.cargo/bin": ReadOnly, "/home/a/.npmrc": Hidden,
		"/home/a/.cache/keys": Hidden, "/home/a/.cache/keys/known": ReadOnly,
	}}
	if got := v.masked(p); !slices.Equal(got, []string{"/home/a/.cargo/credentials.toml"}) {
		t.Error(got)
	}
}

package order

import "testing"

func TestScopesThatMeet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a.go", "a.go", true},
		{"a.go", "b.go", false},
		{"**", "x/y", true},
		{"x/*.go", "x/y.go", true},
		{"x/*.go", "x/y/z.go", false},
		{"x/**", "x/y/*.go", true},
		{"x/*.go", "xy/*.go", false},
		{"*.go", "x/*.go", true},
	} {
		if Meet([]string{tt.a}, []string{tt.b}) != tt.want || Meet([]string{tt.b}, []string{tt.a}) != tt.want {
			t.Errorf("%s and %s: want %t", tt.a, tt.b, tt.want)
		}
	}
	if Meet(nil, []string{"**"}) {
		t.Error("nothing meets something")
	}
}

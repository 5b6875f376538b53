package config

import "testing"

func TestNothingIsDocumentedThatIsNoKey(t *testing.T) {
	known := map[string]bool{}
	for _, f := range fields {
		known[f.name] = true
		for _, item := range f.items {
			known[f.name+"."+item.name] = true
		}
	}
	for name := range docs {
		if !known[name] {
			t.Errorf("%s is documented and no key", name)
		}
	}
}

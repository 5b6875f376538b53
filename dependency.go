package ralph

import (
	"fmt"
	"strings"
)

// A Dependency is a direct dependency that a change adds, removes or changes, or an entry of a lock file that a person
// has to approve.
type Dependency struct {
	Name     string `json:"name"`
	File     string `json:"file"` // the manifest or lock file
	Was      string `json:"was,omitempty"`
	Is       string `json:"is,omitempty"` // its version or source
	Added    bool   `json:"added,omitempty"`
	Removed  bool   `json:"removed,omitempty"`
	Foreign  bool   `json:"foreign,omitempty"`  // it comes from no registry
	Installs bool   `json:"installs,omitempty"` // it newly runs a script when it is installed
}

// sourceWidth is the number of bytes of a version or source that are shown.
const sourceWidth = 100

// String describes the change of the dependency.
func (d Dependency) String() string {
	cut := func(s string) string {
		if len(s) > sourceWidth {
			s = strings.ToValidUTF8(s[:sourceWidth], "") + "…"
		}
		return s
	}
	said := "dependency " + cut(d.Name)
	switch {
	case d.Removed:
		return "removed " + said
	case d.Added:
		said = strings.TrimSpace("new " + said + " " + cut(d.Is))
	case d.Was != d.Is:
		said = fmt.Sprintf("%s from %s to %s", said, cut(d.Was), cut(d.Is))
	}
	if d.Foreign {
		said += " (no registry)"
	}
	if d.Installs {
		said += " (runs a script when installed)"
	}
	return said
}

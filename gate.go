package ralph

// A WeakeningKind says what became of a test that passed on the target (docs/gate.md).
type WeakeningKind string

// The kinds of weakenings.
const (
	TestLost     WeakeningKind = "lost"     // it does not run any more, or not by what ran it
	TestLoosened WeakeningKind = "loosened" // it no longer tells old code from new
	TestChanged  WeakeningKind = "changed"  // it asks for another behaviour than before
)

// A Weakening is a test that passes on the target and refuses the change as it was there.
type Weakening struct {
	Kind    WeakeningKind `json:"kind"`
	Test    string        `json:"test,omitempty"` // "" if the command names no tests
	Command string        `json:"command"`
	Why     string        `json:"why"`
}

// Name returns the test, or the command if it names no tests.
func (w Weakening) Name() string {
	if w.Test != "" {
		return w.Test
	}
	return "`" + w.Command + "`"
}

// A Blob is a file that differs between the target and a change: git's ids of its contents, "" where there is none.
type Blob struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// A Gate is what a change does to what decides on it (docs/gate.md).
type Gate struct {
	Weakened []Weakening `json:"weakened,omitempty"`
	Files    []Blob      `json:"files,omitempty"`   // gate files of the target that it changes, moves or removes
	Guarded  []Blob      `json:"guarded,omitempty"` // files that a person has to approve before they land
	Refused  string      `json:"refused,omitempty"` // why no reason helps; "" if one may
	Tried    bool        `json:"tried,omitempty"`   // the new code was tried under the old gate
	Unknown  string      `json:"unknown,omitempty"` // why that is not known; "" if it is
}

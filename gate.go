package ralph

import (
	"fmt"
	"slices"
	"strings"
)

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
	Unseen  bool          `json:"unseen,omitempty"` // sessions of the same feature wrote it, and no person has seen it
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

// A Hidden is a check of a done that no session sees (docs/gate.md).
type Hidden struct {
	Title   string `json:"title"`   // what it checks, in words that an agent may read
	Command string `json:"command"` // a shell command that must exit 0
}

// A Gate is what a change does to what decides on it (docs/gate.md).
type Gate struct {
	Weakened []Weakening `json:"weakened,omitempty"`
	Files    []Blob      `json:"files,omitempty"`    // gate files of the target that it changes, moves or removes
	Guarded  []Blob      `json:"guarded,omitempty"`  // files that a person has to approve before they are merged
	Refused  string      `json:"refused,omitempty"`  // why no reason helps; "" if one may
	Tried    bool        `json:"tried,omitempty"`    // the new code was tried under the old gate
	Reason   string      `json:"reason,omitempty"`   // tests_changed of the done
	Unknown  string      `json:"unknown,omitempty"`  // why that is not known; "" if it is
	Idle     []string    `json:"idle,omitempty"`     // commands of the task alone that passed before any work
	Unproved bool        `json:"unproved,omitempty"` // a proof is required; no test of the change fails on the old code

	Says      string      `json:"says,omitempty"`      // what a reviewer says of the changed tests
	Asks      string      `json:"asks,omitempty"`      // whether the task asks for the changed tests, as a reviewer says
	Allowed   []Weakening `json:"allowed,omitempty"`   // weakenings that the task allows
	Unchanged bool        `json:"unchanged,omitempty"` // nothing was changed, and all commands passed before
}

// A Proof is what the tests of a merged change prove: they were run on the code as it was before, too.
type Proof struct {
	Proved    []string `json:"proved,omitempty"`    // tests and commands, red before and green now
	Idle      int      `json:"idle,omitempty"`      // new tests that pass on the old code too: they prove nothing
	Tests     bool     `json:"tests,omitempty"`     // the change has tests of its own
	Unchecked bool     `json:"unchecked,omitempty"` // no command checked it
	Unknown   string   `json:"unknown,omitempty"`   // why that is not known; "" if it is
}

// provedNamed is the most tests that a proof names.
const provedNamed = 5

// String says what the tests of a change prove.
func (p Proof) String() string {
	said := "unproved"
	if n := len(p.Proved); n > 0 {
		said = "proved by " + strings.Join(p.Proved[:min(n, provedNamed)], ", ")
		if n > provedNamed {
			said += fmt.Sprintf(" and %d more", n-provedNamed)
		}
		said += ": red before, green now"
	}
	if p.Idle > 0 {
		said += fmt.Sprintf("; of its new tests %d pass on the old code too", p.Idle)
	}
	return said
}

// A Review is what a person has to approve before a change is merged (docs/gate.md).
type Review struct {
	Change    string      `json:"change,omitempty"`    // the commit that is to be merged; "" if nothing was changed
	Reason    string      `json:"reason,omitempty"`    // why the agent says that the task asks for it
	Weakened  []Weakening `json:"weakened,omitempty"`  // tests that refuse the change as they were
	Says      string      `json:"says,omitempty"`      // what a reviewer says of them
	Guarded   []Blob      `json:"guarded,omitempty"`   // files that run for people, or that steer agents or runs
	Protected []string    `json:"protected,omitempty"` // files that a session must not change
	Files     []Blob      `json:"files,omitempty"`     // the gate files behind Weakened
	Unchanged bool        `json:"unchanged,omitempty"` // nothing was changed, and all commands passed before

	Objected   []AgentReview `json:"objected,omitempty"`   // by which reviewers object to it still, after all rounds
	Unreviewed []AgentReview `json:"unreviewed,omitempty"` // that were to look at it, and did not
	Summary    string        `json:"summary,omitempty"`    // what the author says that it did, where reviewers object
}

// The kinds of reviews, as the inbox names them.
const (
	ReviewObjected  = "reviewer objects"
	ReviewNone      = "not reviewed"
	ReviewTests     = "tests changed"
	ReviewGuarded   = "guarded files"
	ReviewProtected = "protected files"
	ReviewUnchanged = "nothing changed"
)

// Kind returns the gravest reason of the review; "" if there is nothing to review.
func (r Review) Kind() string {
	switch {
	case len(r.Weakened) > 0:
		return ReviewTests
	case len(r.Protected) > 0:
		return ReviewProtected
	case len(r.Guarded) > 0:
		return ReviewGuarded
	case r.Unchanged:
		return ReviewUnchanged
	case len(r.Objected) > 0:
		return ReviewObjected
	case len(r.Unreviewed) > 0:
		return ReviewNone
	}
	return ""
}

// Paths returns the files of the review, each once.
func (r Review) Paths() (paths []string) {
	for _, b := range slices.Concat(r.Files, r.Guarded) {
		paths = append(paths, b.Path)
	}
	paths = append(paths, r.Protected...)
	for _, review := range r.Objected {
		for _, o := range review.Blocking() {
			paths = append(paths, o.File)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Without returns what is left to approve where a person has approved others of the same task. What was approved are
// the contents that were shown: a file with other contents has to be approved again.
func (r Review) Without(approved []Review) Review {
	seen := map[Blob]bool{}
	unchanged := false
	for _, a := range approved {
		for _, b := range slices.Concat(a.Files, a.Guarded) {
			seen[b] = true
		}
		unchanged = unchanged || a.Unchanged
	}
	news := func(list []Blob) bool { return slices.ContainsFunc(list, func(b Blob) bool { return !seen[b] }) }
	known := func(w Weakening) bool {
		return slices.ContainsFunc(approved, func(a Review) bool {
			return slices.ContainsFunc(a.Weakened, func(o Weakening) bool { return o.Test == w.Test && o.Command == w.Command })
		})
	}
	if !news(r.Files) && len(r.Files) > 0 {
		r.Weakened = slices.DeleteFunc(slices.Clone(r.Weakened), known)
	}
	if !news(r.Guarded) {
		r.Guarded = nil
	}
	r.Unchanged = r.Unchanged && !unchanged
	return r
}

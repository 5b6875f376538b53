package ralph

import (
	"fmt"
	"slices"
	"strings"
)

// A WeakeningKind is a way in which a change weakened a test that passed on the target
// (docs/gate.md).
type WeakeningKind string

// The kinds of weakenings.
const (
	TestLost     WeakeningKind = "lost"     // it does not run any more, or another runner runs it
	TestLoosened WeakeningKind = "loosened" // it no longer distinguishes old code from new
	TestChanged  WeakeningKind = "changed"  // it asks for another behaviour than before
)

// A Weakening is a test that passes on the target and in its former version refuses the change.
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

// A Blob is a file that differs between the target and a change: git's ids of its contents, "" if
// it does not exist.
type Blob struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// A Hidden is a check of a done that no session sees (docs/gate.md).
type Hidden struct {
	Title   string `json:"title"`   // its subject, in words that an agent may read
	Command string `json:"command"` // a shell command that must exit 0
}

// A Gate describes a change's effect on the tests and files that decide on it (docs/gate.md).
type Gate struct {
	Weakened []Weakening  `json:"weakened,omitempty"`
	Files    []Blob       `json:"files,omitempty"`    // gate files of the target that it changes, moves or removes
	Guarded  []Blob       `json:"guarded,omitempty"`  // files that a person has to approve before they are merged
	Scope    []string     `json:"scope,omitempty"`    // globs of the task's files, if it changes others
	Outside  []Blob       `json:"outside,omitempty"`  // changed files that no glob of Scope matches
	Depends  []Dependency `json:"depends,omitempty"`  // dependencies that it adds, removes or changes
	Deciding []string     `json:"-"`                  // changed gate files, with new ones that run tests
	Refused  string       `json:"refused,omitempty"`  // why no reason is accepted; "" if one may be
	Tried    bool         `json:"tried,omitempty"`    // the new code passes under the old gate, too
	Reason   string       `json:"reason,omitempty"`   // tests_changed of the done
	Unknown  string       `json:"unknown,omitempty"`  // why the effect is unknown; "" if it is known
	Idle     []string     `json:"idle,omitempty"`     // commands of the task alone that passed before any work
	Unproved bool         `json:"unproved,omitempty"` // a proof is required; no test of the change fails on the old code

	Says      string      `json:"says,omitempty"`      // a reviewer's words on the changed tests
	Asks      string      `json:"asks,omitempty"`      // a reviewer's answer: whether the task requires the changed tests
	Allowed   []Weakening `json:"allowed,omitempty"`   // weakenings that the task allows
	Unchanged bool        `json:"unchanged,omitempty"` // nothing was changed, and all commands passed before

	Trial Trial `json:"trial,omitzero"`
}

// A Trial is the result of the target's tests with changed expectations (docs/gate.md). The zero value is not a trial.
type Trial struct {
	Neutralised []string `json:"neutralised,omitempty"` // tests and `commands` that pass with any expectation
	Tests       int      `json:"tests,omitempty"`       // tests that were tried
	Silent      int      `json:"silent,omitempty"`      // tests among these without a literal expectation
	Fewer       []string `json:"fewer,omitempty"`       // changed test files with fewer expectations than on the target
	Unknown     string   `json:"unknown,omitempty"`     // tests that could not be tried, and why; "" for none
}

// A Proof counts the tests of a merged change by their results on the code before it.
type Proof struct {
	Proved    []string `json:"proved,omitempty"`    // tests and commands, red before and green now
	Idle      int      `json:"idle,omitempty"`      // new tests that pass on the old code too: they prove nothing
	Numb      int      `json:"numb,omitempty"`      // tests of the change that pass with any expectation
	Tests     bool     `json:"tests,omitempty"`     // the change has its own tests
	Unchecked bool     `json:"unchecked,omitempty"` // no command checked it
	Unknown   string   `json:"unknown,omitempty"`   // why the proof is unknown; "" if it is known
}

// provedNamed is the most tests that a proof names.
const provedNamed = 5

// String describes the proof in a sentence.
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
	if p.Numb > 0 {
		said += fmt.Sprintf("; %d of its tests pass with any expectation", p.Numb)
	}
	return said
}

// An Approval lists the parts of a change that a person has to approve before it is merged (docs/gate.md).
type Approval struct {
	Change    string       `json:"change,omitempty"`    // the commit to merge; "" if nothing was changed
	Reason    string       `json:"reason,omitempty"`    // the agent's reason why the task requires it
	Weakened  []Weakening  `json:"weakened,omitempty"`  // tests that in their former version refuse the change
	Says      string       `json:"says,omitempty"`      // a reviewer's words on them
	Guarded   []Blob       `json:"guarded,omitempty"`   // files that run for people, or that steer agents or runs
	Depends   []Dependency `json:"depends,omitempty"`   // dependencies that it adds, removes or changes
	Scope     []string     `json:"scope,omitempty"`     // globs of the task's files, if Outside has any
	Outside   []Blob       `json:"outside,omitempty"`   // files that match none of them
	Protected []string     `json:"protected,omitempty"` // files that a session must not change
	Files     []Blob       `json:"files,omitempty"`     // the gate files behind Weakened
	Unchanged bool         `json:"unchanged,omitempty"` // nothing was changed, and all commands passed before

	Objected   []Review `json:"objected,omitempty"`   // the reviews that still object after all rounds
	Unreviewed []Review `json:"unreviewed,omitempty"` // reviewers that did not review it although they should have
	Summary    string   `json:"summary,omitempty"`    // the author's summary, if reviewers object
}

// The kinds of approvals, as the inbox names them.
const (
	ApprovalObjected  = "reviewer objects"
	ApprovalNone      = "not reviewed"
	ApprovalTests     = "tests changed"
	ApprovalGuarded   = "guarded files"
	ApprovalOutside   = "outside of its files"
	ApprovalProtected = "protected files"
	ApprovalUnchanged = "nothing changed"
)

// Kind returns the gravest reason of the approval; "" if there is nothing to approve.
func (a Approval) Kind() string {
	switch {
	case len(a.Weakened) > 0:
		return ApprovalTests
	case len(a.Protected) > 0:
		return ApprovalProtected
	case len(a.Guarded) > 0:
		return ApprovalGuarded
	case len(a.Outside) > 0:
		return ApprovalOutside
	case a.Unchanged:
		return ApprovalUnchanged
	case len(a.Objected) > 0:
		return ApprovalObjected
	case len(a.Unreviewed) > 0:
		return ApprovalNone
	}
	return ""
}

// Asks names in one line the reasons for the approval, the gravest first.
func (a Approval) Asks() string {
	var list []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			list = append(list, what+strings.Join(names, ", "))
		}
	}
	var tests, files []string
	for _, w := range a.Weakened {
		tests = append(tests, fmt.Sprintf("%s (%s)", w.Name(), w.Kind))
	}
	for _, f := range a.Guarded {
		files = append(files, f.Path)
	}
	add("Changes tests: ", tests)
	add("Changes protected files: ", a.Protected)
	add("Changes ", files)
	if len(a.Outside) > 0 {
		beyond := Beyond(a.Outside, a.Scope)
		list = append(list, strings.ToUpper(beyond[:1])+beyond[1:])
	}
	var depends []string
	for _, d := range a.Depends {
		depends = append(depends, d.String())
	}
	add("Dependencies: ", depends)
	if a.Unchanged {
		list = append(list, "Changed nothing, and its checks passed before. Is that right?")
	}
	add("Reviewers object: ", reviewers(a.Objected))
	add("Not reviewed by ", reviewers(a.Unreviewed))
	return strings.Join(list, "; ")
}

// reviewers lists the names of reviewers.
func reviewers(list []Review) (names []string) {
	for _, r := range list {
		names = append(names, r.For)
	}
	return names
}

// Paths returns the files of the approval, each once.
func (a Approval) Paths() (paths []string) {
	for _, b := range slices.Concat(a.Files, a.Guarded, a.Outside) {
		paths = append(paths, b.Path)
	}
	paths = append(paths, a.Protected...)
	for _, review := range a.Objected {
		for _, o := range review.Blocking() {
			paths = append(paths, o.File)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Without returns the rest of the approval after a person has approved other approvals of the same task. An approval
// covers only the contents that were shown: a file with other contents needs another approval.
func (a Approval) Without(approved []Approval) Approval {
	seen := map[Blob]bool{}
	unchanged := false
	for _, b := range approved {
		for _, f := range slices.Concat(b.Files, b.Guarded, b.Outside) {
			seen[f] = true
		}
		unchanged = unchanged || b.Unchanged
	}
	news := func(list []Blob) bool { return slices.ContainsFunc(list, func(b Blob) bool { return !seen[b] }) }
	known := func(w Weakening) bool {
		return slices.ContainsFunc(approved, func(b Approval) bool {
			return slices.ContainsFunc(b.Weakened, func(o Weakening) bool { return o.Test == w.Test && o.Command == w.Command })
		})
	}
	if !news(a.Files) && len(a.Files) > 0 {
		a.Weakened = slices.DeleteFunc(slices.Clone(a.Weakened), known)
	}
	if !news(a.Guarded) {
		a.Guarded = nil
	}
	if !news(a.Outside) {
		a.Outside, a.Scope = nil, nil
	}
	a.Unchanged = a.Unchanged && !unchanged
	return a
}

// Beyond describes the number of changed files outside of the globs of the task's files.
func Beyond(outside []Blob, scope []string) string {
	files := "1 file"
	if n := len(outside); n != 1 {
		files = fmt.Sprintf("%d files", n)
	}
	return fmt.Sprintf("changes %s outside of %s", files, strings.Join(scope, ", "))
}

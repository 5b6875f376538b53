package ralph

import "strings"

// An Import is the content of another tool's task file, in ralph's terms (docs/import.md).
type Import struct {
	Format      string // "markdown", "prd.json", …
	Features    []ImportedFeature
	Disciplines []ImportedDiscipline
	Tasks       []ImportedTask // in the order of work
	Learnings   []ImportedLearning
	Notes       []string // parts left out or changed, one sentence each

	// Live also changes tasks that sessions work on, like a person's edit.
	Live bool

	Lost map[string]int // keys of skipped tasks, and their number

	// Here are the tasks of a present export of the project in this format, by key and by id. Differences from it are
	// edits of the file.
	Here map[string]ImportedTask

	Read   *Reading // the counts of a checklist; nil for other formats
	Offers []Offer  // commands that may check its tasks, in the order of the file
}

// A Reading counts the boxes, headings and other lines of a checklist. Lines without a letter or a
// digit do not count.
type Reading struct {
	Boxes    Tally `json:"boxes"`
	Headings Tally `json:"headings"`
	Lines    Tally `json:"lines"`
}

// Add adds the counts of another checklist.
func (r *Reading) Add(of Reading) {
	for _, t := range [][2]*Tally{{&r.Boxes, &of.Boxes}, {&r.Headings, &of.Headings}, {&r.Lines, &of.Lines}} {
		t[0].Read, t[0].Made = t[0].Read+t[1].Read, t[0].Made+t[1].Made
		t[0].Folded, t[0].Left = t[0].Folded+t[1].Folded, t[0].Left+t[1].Left
	}
}

// A Tally counts the lines of a kind by their use: Read is the sum of the others.
type Tally struct {
	Read   int `json:"read"`
	Made   int `json:"made"`   // a task each
	Folded int `json:"folded"` // a part of a task, or of the feature's description
	Left   int `json:"left"`   // left out; a note says why
}

// An Offer is a command that a file offers for the verification of its tasks. It runs only if a
// person agrees.
type Offer struct {
	Command string `json:"command"`
	Section string `json:"section"` // its heading in the file
	Line    int    `json:"line"`
	Task    string `json:"-"` // the key of its task; "" if it is for all
}

// Lose counts a key of a task that is not taken over.
func (in *Import) Lose(key string) {
	if in.Lost == nil {
		in.Lost = map[string]int{}
	}
	in.Lost[key]++
}

// An ImportedFeature is a feature from a file.
type ImportedFeature struct {
	Feature
	Line  int      // its line in the file, from 1
	Taken []string // commands of the file that a person has accepted; an existing feature gets them, too
}

// An ImportedDiscipline is a discipline from a file.
type ImportedDiscipline struct {
	Discipline
	Line int // its line in the file, from 1
}

// An ImportedLearning is a learning from a file.
type ImportedLearning struct {
	Learning
	Line int // its line in the file, from 1
}

// An ImportedTask is a task from a file.
type ImportedTask struct {
	Task         // with ExternalID and ExternalSource; Status is the other tool's; DependsOn is unused
	Line  int    // its line in the file, from 1
	Key   string // see [ExternalKey]
	Needs []Need
	// Parent is the key of the parent task, which may be in another file; "" for none.
	Parent string
}

// A Need is a dependency: a task that has to be completed first.
type Need struct {
	Key      string // key of the task, see [ExternalKey]
	Optional bool   // if the task is missing, or closes a cycle, the need is noted and dropped
}

// ExternalKey identifies an imported task by its source and its id there: "beads#bd-12".
func ExternalKey(source, id string) string { return source + "#" + id }

// ExternalID splits a key into source and id.
func ExternalID(key string) (source, id string) {
	source, id, ok := strings.Cut(key, "#")
	if !ok {
		return "", key
	}
	return source, id
}

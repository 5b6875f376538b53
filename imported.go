package ralph

import "strings"

// An Import is the content of another tool's task file, in ralph's terms (docs/import.md).
type Import struct {
	Format      string // "markdown", "prd.json", …
	Features    []ImportedFeature
	Disciplines []ImportedDiscipline
	Tasks       []ImportedTask // in the order of work
	Learnings   []ImportedLearning
	Notes       []string // what was left out or changed, one sentence each

	Lost map[string]int // keys of tasks that were not taken over, and of how many
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
	Line int // its line in the file, from 1
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
	// Parent is the key of the task of which this one is a part, and which may be in another file; "" for none.
	Parent string
}

// A Need is a dependency: a task that has to be completed first.
type Need struct {
	Key      string // of the task, see [ExternalKey]
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

package ralph

import "strings"

// An Import is what a file of another tool holds, in ralph's terms (docs/import.md).
type Import struct {
	Format      string // "markdown", "prd.json", …
	Features    []ImportedFeature
	Disciplines []ImportedDiscipline
	Tasks       []ImportedTask // in the order in which they are to be done
	Learnings   []ImportedLearning
	Notes       []string // what was left out or changed, a sentence each
}

// An ImportedFeature is a feature of a file.
type ImportedFeature struct {
	Feature
	Line int // where it stands in the file, from 1
}

// An ImportedDiscipline is a discipline of a file.
type ImportedDiscipline struct {
	Discipline
	Line int // where it stands in the file, from 1
}

// An ImportedLearning is a learning of a file.
type ImportedLearning struct {
	Learning
	Line int // where it stands in the file, from 1
}

// An ImportedTask is a task as another tool has it.
type ImportedTask struct {
	Task         // ExternalID and ExternalSource are set; Status is what it is there; DependsOn is not used
	Line  int    // where it stands in the file, from 1
	Key   string // see [ExternalKey]
	Needs []Need
}

// A Need is a task that has to be completed before.
type Need struct {
	Key      string // of the task, see [ExternalKey]
	Optional bool   // there may be no such task, or a circle: it is noted and left out
}

// ExternalKey is what tells an imported task from all others: where it comes from
// and its id there, "beads#bd-12".
func ExternalKey(source, id string) string { return source + "#" + id }

// ExternalID takes a key apart.
func ExternalID(key string) (source, id string) {
	source, id, ok := strings.Cut(key, "#")
	if !ok {
		return "", key
	}
	return source, id
}

package exchange

import (
	"bytes"
	"regexp"
	"strings"

	"ralph"
)

var orchestratorStatus = map[string]ralph.Status{
	"":            ralph.Pending,
	"open":        ralph.Pending,
	"pending":     ralph.Pending,
	"in_progress": ralph.Pending,
	"blocked":     ralph.Pending,
	"closed":      ralph.Completed,
	"done":        ralph.Completed,
	"failed":      ralph.Failed,
}

// readOrchestrator reads tasks.jsonl and memories.md of ralph-orchestrator.
func readOrchestrator(data []byte) (in ralph.Import, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return readMemories(data)
	}
	type task struct {
		ID                         ident
		Title, Description, Status string
		Priority                   *int
		BlockedBy                  []ident `json:"blocked_by"`
	}
	return in, eachLine(&in, data, func(line int, v task) (err error) {
		if v.ID == "" {
			return wrong(line, `a task has no "id"`)
		}
		const space = "ralph-orchestrator"
		t := ralph.ImportedTask{
			Line:  line,
			Key:   ralph.ExternalKey(space, string(v.ID)),
			Needs: needs(space, v.BlockedBy),
			Task: ralph.Task{
				Title: v.Title, Description: strings.TrimSpace(v.Description), Priority: ralph.DefaultPriority,
			},
		}
		if t.Status, err = statusOf(line, v.Status, orchestratorStatus); err != nil {
			return err
		}
		if v.Priority != nil {
			if *v.Priority < 1 || *v.Priority > 5 {
				return wrong(line, "the priority is %d; it must be 1 (highest) to 5 (lowest)", *v.Priority)
			}
			t.Priority = *v.Priority - 1
		}
		in.Tasks = append(in.Tasks, t)
		return nil
	})
}

var (
	memoryHead = regexp.MustCompile(`^###\s+(mem-\S+)`)
	memoryKind = map[string]string{
		"patterns":  "convention",
		"decisions": "decision",
		"fixes":     "discovery",
		"context":   "discovery",
	}
)

// readMemories reads memories.md: quoted texts below headings that name their kind.
func readMemories(data []byte) (in ralph.Import, err error) {
	kind, head := "discovery", 0
	var quoted []string
	end := func() error {
		if head == 0 {
			return nil
		}
		if len(quoted) == 0 {
			return wrong(head, `a memory has no text; it is expected in lines that begin with ">"`)
		}
		in.Learnings = append(in.Learnings, learned(head, strings.Join(quoted, "\n"), kind))
		head, quoted = 0, nil
		return nil
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		switch {
		case memoryHead.MatchString(line):
			if err := end(); err != nil {
				return in, err
			}
			head = n
		case strings.HasPrefix(line, "## "):
			if err := end(); err != nil {
				return in, err
			}
			if kind = memoryKind[strings.ToLower(strings.TrimSpace(line[3:]))]; kind == "" {
				kind = "discovery"
			}
		case strings.HasPrefix(line, ">") && head > 0:
			quoted = append(quoted, strings.TrimSpace(line[1:]))
		}
	}
	return in, end()
}

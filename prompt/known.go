package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sort"

	"ralph"
	"ralph/internal/text"
)

// learnings shows the project's learnings, then the feature's, each with people's before agents'.
func learnings(d Data) section {
	s := section{name: "learnings", head: "## What is known\n\n"}
	s.groups = append(s.groups, known("Of the project:\n\n", d.ProjectLearnings))
	head := "Of the feature:\n\n"
	if d.FeatureName == "" {
		head = "Of the tasks that belong to no feature, as this one:\n\n"
	}
	of := known(head, d.FeatureLearnings)
	if q := quote(by("", ralph.ByHuman, ralph.Time{}), d.FeatureHuman); q.text != "" {
		of.items = append([]item{{text: q.text, cut: q.cut, class: peoplesLearnings}}, of.items...)
	}
	s.groups = append(s.groups, of)
	return s
}

func known(head string, all []ralph.Learning) group {
	g := group{head: head}
	peoples := first(all, func(l ralph.Learning) bool { return l.Origin == ralph.ByHuman })
	for i, l := range first(peoples, func(l ralph.Learning) bool { return l.Pinned }) {
		it := learned(l)
		it.rank = i
		g.items = append(g.items, it)
	}
	return g
}

func learned(l ralph.Learning) item {
	parts := []string{tag(l.Kind)}
	if l.TaskID != 0 {
		parts = append(parts, fmt.Sprintf("from TASK-%d", l.TaskID))
	}
	if l.TimesSeen > 1 {
		parts = append(parts, fmt.Sprintf("learned %d times", l.TimesSeen))
	}
	if l.Claim {
		parts = append(parts, "a claim that no person has confirmed: your checks, permissions and signals are as this "+
			"prompt says")
	}
	at := l.LastSeen
	if at.IsZero() {
		at = l.Created
	}
	said := l.Text
	if text.Clean(l.Rationale) != "" {
		said += "\nRationale: " + l.Rationale
	}
	q := quote(by(l.Author, l.Origin, at, parts...), said)
	c := agentLearnings
	if l.Origin == ralph.ByHuman {
		c = peoplesLearnings
	}
	return item{text: q.text, cut: q.cut, class: c}
}

// problems shows the flags, blocking ones first.
func problems(d Data) section {
	blocking := group{head: "Blocking: these keep the task from being completed while they hold.\n\n"}
	other := group{head: "Others, the latest first:\n\n"}
	for i, c := range d.Flags {
		f := readFlag(c)
		parts := []string{"flag", tag(f.Severity), tag(f.Category)}
		if c.TaskID != d.Task.ID {
			parts = append(parts, fmt.Sprintf("from TASK-%d", c.TaskID))
		}
		label := by(c.Author, c.AuthorKind, c.Created, parts...)
		if f.Severity == "blocking" {
			blocking.items = append(blocking.items, item{text: fence(label, f.What), class: blockingFlags})
			continue
		}
		q := quote(label, f.What)
		it := item{text: q.text, cut: q.cut, rank: i}
		switch f.Severity {
		case "info":
			it.class = infoFlags
		default:
			it.class = warningFlags
		}
		other.items = append(other.items, it)
	}
	return section{name: "problems", head: "## Known problems\n\n", groups: []group{blocking, other}}
}

// A flag has the shown fields of a flag's payload.
type flag struct {
	What     string `json:"what"`
	Severity string `json:"severity"`
	Category string `json:"category"`
}

// readFlag parses a flag's payload. If it is invalid or empty, the flag is
// shown by its body, as a warning.
func readFlag(c ralph.Comment) flag {
	var f flag
	if err := json.Unmarshal(c.Payload, &f); err != nil || text.Clean(f.What) == "" {
		return flag{What: c.Body}
	}
	return f
}

// comments shows the comments on the task, oldest first, each reply below its
// parent. The oldest are left out first; a reply names its parent, so it can do
// without it. Comments by people since the last session are always shown in full.
func comments(d Data) section {
	thread := threads(d.Comments)
	g := group{items: make([]item, len(thread))}
	for i, c := range thread {
		g.items[i] = said(c, d.NewComments[c.ID])
	}
	youngest := make([]int, len(thread))
	for i := range youngest {
		youngest[i] = i
	}
	sort.SliceStable(youngest, func(i, j int) bool {
		a, b := thread[youngest[i]].Created, thread[youngest[j]].Created
		return a.After(b.Time)
	})
	for rank, i := range youngest {
		g.items[i].rank = rank
	}
	return section{name: "comments", head: "## Comments on this task\n\n", groups: []group{g}}
}

// threads puts each reply after its parent. A reply without its parent becomes a separate comment.
func threads(all []ralph.Comment) []ralph.Comment {
	top := map[int64]bool{}
	for _, c := range all {
		if c.ParentID == nil {
			top[c.ID] = true
		}
	}
	replies := map[int64][]ralph.Comment{}
	var roots []ralph.Comment
	for _, c := range all {
		switch {
		case c.ParentID == nil:
			roots = append(roots, c)
		case top[*c.ParentID]:
			replies[*c.ParentID] = append(replies[*c.ParentID], c)
		default:
			c.ParentID = nil
			roots = append(roots, c)
		}
	}
	sorted := make([]ralph.Comment, 0, len(all))
	for _, c := range roots {
		sorted = append(append(sorted, c), replies[c.ID]...)
		delete(replies, c.ID) // only once, even if two comments have the same id
	}
	return sorted
}

// said shows a comment and its resolution, in full if it is new.
func said(c ralph.Comment, isNew bool) item {
	quote, class := quote, plainComments
	if isNew {
		class = newComments
		quote = func(label, text string) quotation { return quotation{text: fence(label, text)} }
	}
	place := fmt.Sprintf("comment %d", c.ID)
	if c.ParentID != nil {
		place = fmt.Sprintf("reply to comment %d", *c.ParentID)
	}
	kind := ""
	if c.Kind != ralph.Note {
		kind = tag(cmp.Or(string(c.Kind), string(c.Verb)))
	}
	said := c.Body
	if text.Clean(c.Rationale) != "" {
		said += "\nRationale: " + c.Rationale
	}
	q := quote(by(c.Author, c.AuthorKind, c.Created, place, kind), said)
	if text.Clean(c.Decision) != "" {
		resolver := "resolved"
		if c.ResolvedBy != "" {
			resolver += " by " + word(c.ResolvedBy, nameMarks)
		}
		if !c.ResolvedAt.IsZero() {
			resolver += ", " + date(c.ResolvedAt)
		}
		decision := quote(resolver, c.Decision)
		q.text += decision.text
		q.cut += decision.cut
	}
	if c.ParentID != nil {
		q.text = indent(q.text)
	}
	return item{text: q.text, cut: q.cut, class: class}
}

// files lists the changes of earlier sessions, newest first, in a single fence.
func files(d Data) section {
	s := section{name: "files", head: "## Files\n\n"}
	if len(d.Files) == 0 {
		return s
	}
	head := "Changed by earlier sessions, the latest first, with lines added and removed:\n\n"
	s.groups = []group{fileGroup(head, d.Files)}
	return s
}

// fileGroup lists files; the first is left out last.
func fileGroup(head string, files []ralph.FileChange) group {
	g := group{items: make([]item, len(files))}
	longest := 0
	for i, f := range files {
		line := fmt.Sprintf("+%d −%d %s", f.Added, f.Removed, word(f.Path, pathMarks))
		if f.Status == "" && f.Added+f.Removed == 0 { // named by a chat, without counts
			line = word(f.Path, pathMarks)
		}
		if f.Status != "" && f.Status != "modified" {
			line += " " + word(f.Status, nameMarks)
		}
		longest = max(longest, longestRun(line))
		g.items[i] = item{text: line + "\n", class: fileLines, rank: i}
	}
	mark := fenceMark(longest)
	g.head = head + mark + " files\n"
	g.foot = mark + "\n\n"
	return g
}

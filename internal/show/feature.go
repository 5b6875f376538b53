package show

import (
	"fmt"
	"io"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A FeatureView is the output of `feature NAME --json`.
type FeatureView struct {
	ralph.Feature
	Progress store.Progress `json:"progress"`
	Tasks    []ralph.Task   `json:"tasks"`
}

// ReadFeature reads everything that is shown of a feature.
func ReadFeature(tx *store.Tx, name string) (v FeatureView, err error) {
	if v.Feature, err = tx.Feature(name); err != nil {
		return v, err
	}
	if v.Progress, err = tx.Progress(name); err != nil {
		return v, err
	}
	v.Tasks, err = tx.Tasks(store.TaskFilter{Feature: name})
	return v, err
}

// Feature writes everything that is shown of a feature.
func Feature(w io.Writer, v FeatureView) {
	progress(w, v.Feature, v.Progress)
	for _, c := range v.Verify {
		fmt.Fprintf(w, "verify  %s\n", c)
	}
	for _, t := range v.Tasks {
		fmt.Fprintf(w, "TASK-%-5d %-9s %s\n", t.ID, t.Word(), text.Line(t.Title, 100))
	}
}

// barWidth is the width of a full progress bar.
const barWidth = 30

// progress writes the progress and the cost of a feature.
func progress(w io.Writer, f ralph.Feature, p store.Progress) {
	fmt.Fprintln(w, text.Line(f.Name, 200))
	for _, about := range []string{f.Description, f.Learnings} {
		if about = strings.TrimSpace(text.Visible(about)); about != "" {
			fmt.Fprintf(w, "%s\n", about)
		}
	}
	wanted := 0
	var counts []string
	for _, word := range ralph.Words {
		n := p.Tasks[ralph.KeyOf(word)]
		if n == 0 {
			continue
		}
		counts = append(counts, fmt.Sprintf("%d %s", n, word))
		if word != "cancelled" {
			wanted += n
		}
	}
	if wanted > 0 {
		done := p.Tasks["merged"]
		full := barWidth * done / wanted
		fmt.Fprintf(w, "progress [%s%s] %d of %s, %d %%\n",
			strings.Repeat("#", full), strings.Repeat("-", barWidth-full), done, text.Count(wanted, "task"), 100*done/wanted)
	}
	if len(counts) > 0 {
		fmt.Fprintf(w, "tasks    %s\n", strings.Join(counts, ", "))
	}
	if p.Sessions > 0 {
		fmt.Fprintf(w, "spent    %s in %s\n", text.Money(p.CostUSD), text.Count(p.Sessions, "session"))
	}
	if p.Open > 0 {
		fmt.Fprintf(w, "open     %d (see `ralph inbox`)\n", p.Open)
	}
	if p.Learnings > 0 {
		fmt.Fprintf(w, "learned  %d (see `ralph learning list --feature NAME`)\n", p.Learnings)
	}
}

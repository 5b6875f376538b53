package web

import (
	"net/http"
	"slices"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A featureRow is a feature with its progress.
type featureRow struct {
	ralph.Feature
	Progress  store.Progress
	All, Done int
	Bar       []segment
	Counts    []count
}

// newFeatureRow makes the row of a feature, from its tasks and their reasons to wait.
func newFeatureRow(f ralph.Feature, p store.Progress) featureRow {
	row := featureRow{Feature: f, Progress: p}
	row.Done = row.Progress.Tasks["merged"]
	for _, n := range row.Progress.Tasks {
		row.All += n
	}
	x := 0.0
	for _, word := range ralph.Words {
		if n := row.Progress.Tasks[ralph.KeyOf(word)]; n > 0 {
			w := float64(n) * barWidth / float64(row.All)
			row.Counts = append(row.Counts, count{word, n})
			row.Bar = append(row.Bar, segment{round(x), round(w), wordLook(word).Class, plural(n, wordLook(word).Label+" task")})
			x += w
		}
	}
	return row
}

// A featuresView is the list of features.
type featuresView struct {
	Rows []featureRow
	New  ralph.Feature // the fields of a new feature
}

func (a *app) features(tx *store.Tx, _ *http.Request) (view, error) {
	list, err := tx.Features()
	if err != nil {
		return view{}, err
	}
	var v featuresView
	for _, f := range list {
		var p store.Progress // features without sessions and cost: there are too many to add up
		if p.Tasks, p.Open, err = tx.FeatureTasks(f.ID); err != nil {
			return view{}, err
		}
		v.Rows = append(v.Rows, newFeatureRow(f, p))
	}
	return view{title: "Features", name: "features", nav: "/features", live: true, body: v}, nil
}

// featureTasks is the maximum number of open and of ended tasks on a feature's page.
const featureTasks = 30

// A featureView is a feature's page.
type featureView struct {
	featureRow
	Plan  *plan        // nil if no part of it is open
	Tasks []ralph.Task // open ones in the order of the queue, then ended ones, the newest first
	Known []ralph.Learning
	More  bool
}

func (a *app) feature(tx *store.Tx, r *http.Request) (view, error) {
	f, err := tx.Feature(r.URL.Query().Get("name"))
	if err != nil {
		return view{}, err
	}
	var v featureView
	progress, err := tx.Progress(f.Name)
	if err != nil {
		return view{}, err
	}
	v.featureRow = newFeatureRow(f, progress)
	for _, ended := range []bool{false, true} {
		list, err := tx.Tasks(store.TaskFilter{
			Feature: f.Name, Limit: featureTasks, Latest: ended,
			Statuses: slices.DeleteFunc(slices.Clone(ralph.Statuses), func(s ralph.Status) bool { return s.Ended() != ended }),
		})
		if err != nil {
			return view{}, err
		}
		v.Tasks = append(v.Tasks, list...)
	}
	waits, err := tx.WaitsOfPlan(f.ID)
	if err == nil && len(waits) > 0 {
		v.Plan, err = readPlan(tx, f.Name)
	}
	if err != nil {
		return view{}, err
	}
	list, err := tx.Learnings(store.LearningFilter{Scope: ralph.ScopeFeature, Feature: f.Name})
	v.Known, v.More = paged(list, learningsListed)
	return view{title: "Feature " + text.Line(f.Name, 60), name: "feature", nav: "/features", live: true, body: v}, err
}

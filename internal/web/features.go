package web

import (
	"net/http"

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
}

func newFeatureRow(tx *store.Tx, f ralph.Feature) (row featureRow, err error) {
	row.Feature = f
	if row.Progress, err = tx.Progress(f.Name); err != nil {
		return row, err
	}
	row.Done = row.Progress.Tasks[ralph.Completed]
	for _, n := range row.Progress.Tasks {
		row.All += n
	}
	x := 0.0
	for _, s := range ralph.Statuses {
		if n := row.Progress.Tasks[s]; n > 0 {
			w := float64(n) * barWidth / float64(row.All)
			row.Bar = append(row.Bar, segment{round(x), round(w), statusLook(s).Class, plural(n, statusLook(s).Label+" task")})
			x += w
		}
	}
	return row, nil
}

// A featuresView is the list of features.
type featuresView struct {
	Rows []featureRow
	New  ralph.Feature // the fields of one that is added
}

func (a *app) features(tx *store.Tx, _ *http.Request) (view, error) {
	list, err := tx.Features()
	if err != nil {
		return view{}, err
	}
	var v featuresView
	for _, f := range list {
		row, err := newFeatureRow(tx, f)
		if err != nil {
			return view{}, err
		}
		v.Rows = append(v.Rows, row)
	}
	return view{title: "Features", name: "features", nav: "/features", live: true, body: v}, nil
}

// A featureView is a feature's page.
type featureView struct {
	featureRow
	Counts []count
	Known  []ralph.Learning
	More   bool
}

func (a *app) feature(tx *store.Tx, r *http.Request) (view, error) {
	f, err := tx.Feature(r.URL.Query().Get("name"))
	if err != nil {
		return view{}, err
	}
	var v featureView
	if v.featureRow, err = newFeatureRow(tx, f); err != nil {
		return view{}, err
	}
	for _, s := range ralph.Statuses {
		if n := v.Progress.Tasks[s]; n > 0 {
			v.Counts = append(v.Counts, count{s, n})
		}
	}
	list, err := tx.Learnings(store.LearningFilter{Scope: ralph.ScopeFeature, Feature: f.Name})
	v.Known, v.More = paged(list, learningsListed)
	return view{title: "Feature " + text.Line(f.Name, 60), name: "feature", nav: "/features", live: true, body: v}, err
}

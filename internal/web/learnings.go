package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// learningsListed is the number of learnings on a page.
const learningsListed = 50

// A learningsView is a page of learnings.
type learningsView struct {
	Learnings []ralph.Learning
	Scope     string
	Text      string
	Forgotten bool
	Scopes    []string
	Kinds     []string
	Features  []ralph.Feature
	Pager     pager
}

func (a *app) learnings(tx *store.Tx, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := learningsView{
		Scope:     q.Get("scope"),
		Text:      strings.TrimSpace(q.Get("q")),
		Forgotten: q.Get("forgotten") != "",
		Scopes:    signals.Scopes,
		Kinds:     signals.LearnedKinds,
	}
	f := store.LearningFilter{Forgotten: v.Forgotten}
	if slices.Contains(v.Scopes, v.Scope) {
		f.Scope = v.Scope
	}
	list, err := tx.Learnings(f)
	if err != nil {
		return view{}, err
	}
	if v.Text != "" {
		list = slices.DeleteFunc(list, func(l ralph.Learning) bool {
			return !strings.Contains(strings.ToLower(l.Text), strings.ToLower(v.Text))
		})
	}
	if v.Features, err = tx.Features(); err != nil {
		return view{}, err
	}
	v.Learnings, v.Pager = pageIn(r, list, learningsListed)
	return view{title: "Learnings", name: "learnings", nav: "/learnings", live: true, body: v}, nil
}

func (a *app) addLearning(tx *store.Tx, r *http.Request) (string, error) {
	l := ralph.Learning{
		Text:      written(r, "text"),
		Kind:      r.PostFormValue("kind"),
		Scope:     ralph.ScopeProject,
		Feature:   r.PostFormValue("feature"),
		Rationale: written(r, "rationale"),
		Author:    a.Person,
	}
	if l.Feature != "" {
		l.Scope = ralph.ScopeFeature
	}
	id, err := tx.AddLearning(l)
	return fmt.Sprintf("Learning %d is known from now on.", id), err
}

// changeLearning forgets or pins a learning, or undoes that.
func (a *app) changeLearning(tx *store.Tx, r *http.Request, id int64) (string, error) {
	l, err := tx.Learning(id)
	if err != nil {
		return "", err
	}
	said := ""
	switch r.PathValue("change") {
	case "forget":
		l.Status, said = "forgotten", "is in no prompt any more"
	case "remember":
		l.Status, said = "active", "is remembered again"
	case "pin":
		l.Pinned, said = true, "comes before all others of its scope"
	case "unpin":
		l.Pinned, said = false, "comes where it fits again"
	default:
		return "", notThere(r)
	}
	return fmt.Sprintf("Learning %d %s.", id, said), tx.ChangeLearning(l)
}

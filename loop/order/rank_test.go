package order

import (
	"slices"
	"testing"

	"ralph"
)

// TestWhichLearningsComeFirst: pinned ones and those of people, then those that fit the task; equal ones keep their
// order.
func TestWhichLearningsComeFirst(t *testing.T) {
	list := []ralph.Learning{
		{ID: 1, Terms: "database lock"},
		{ID: 2, Terms: "color button"},
		{ID: 3, Terms: "color button"},
		{ID: 4, Terms: "database lock", Pinned: true},
		{ID: 5, Terms: "color button", Origin: ralph.ByHuman},
	}
	rank(ralph.Task{Title: "The color of a button"}, list)
	var ids []int64
	for _, l := range list {
		ids = append(ids, l.ID)
	}
	if want := []int64{5, 4, 2, 3, 1}; !slices.Equal(ids, want) {
		t.Errorf("the order is %v, want %v", ids, want)
	}
}

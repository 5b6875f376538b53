package web

import (
	"html/template"
	"time"

	"ralph"
	"ralph/store"
)

// Render returns a text as pages show it.
func Render(s string) template.HTML { return newMarkdown().render(s) }

// Looks returns the characters of all looks.
func Looks() (list []string) {
	for _, v := range ralph.Verbs {
		list = append(list, verbLook(v).Icon)
	}
	for _, word := range ralph.Words {
		list = append(list, wordLook(word).Icon)
	}
	list = append(list, taskLook(ralph.Task{Status: ralph.Proposed}).Icon, taskLook(ralph.Task{Status: ralph.NeedsInput}).Icon)
	for _, l := range phases {
		list = append(list, l.Icon)
	}
	for _, kind := range store.InboxKinds() {
		list = append(list, waitLook(kind).Icon)
	}
	return list
}

// Since is since when somebody has not looked, and the mark to keep.
func Since(mark string, now time.Time) (ralph.Time, string) { return since(mark, now) }

// FilesOf returns the files of a patch, some of them for a person to decide on.
func FilesOf(patch string, whole func(path string) bool) []Changed { return filesOf(patch, whole) }

// A Changed is a changed file as pages show it.
type Changed = changed

// Icon returns a character as pages draw it.
func Icon(character string) template.HTML { return icon(character) }

// Starts returns the moments at which the columns of a chart begin, and the end of the last one.
func Starts(by string, now time.Time) []time.Time {
	for _, s := range stretches {
		if s.Name == by {
			return s.starts(now)
		}
	}
	return nil
}

// NearLimits returns the limits of a run that are about to be reached.
func NearLimits(run ralph.Run, elapsed, today, spending float64) []string {
	return nearLimits(run, elapsed, store.Spending{USD: run.CostUSD, DayUSD: today}, spending, nil)
}

// MoneyHolds returns the notice that reserved money holds sessions back, and its remedy.
func MoneyHolds(run ralph.Run, s store.Spending) (said, remedy string) {
	n, _ := moneyHolds(run, s)
	return n.Text, n.Remedy
}

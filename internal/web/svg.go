package web

import (
	"fmt"
	"math"
	"slices"

	"ralph"
)

// A segment is a part of a bar, in thousandths of its width.
type segment struct {
	X, Width float64
	Class    string // colour
	Title    string
}

// A timeline shows a session's phases on a time scale. Positions and widths are in percent.
type timeline struct {
	Parts  []segment
	Ticks  []tick
	Phases []phaseTime // in order of their start, only visible ones
}

// A tick is a moment on a scale. Anchor is the SVG text-anchor of its label.
type tick struct {
	X            float64
	Text, Anchor string
}

// A phaseTime is the time of a session in a phase, in seconds.
type phaseTime struct {
	Name, Class string
	Seconds     float64
}

// steps are the distances of a scale’s ticks, in seconds.
var steps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 8 * 3600, 24 * 3600}

// mostTicks is the maximum number of ticks of a scale, without its end.
const mostTicks = 5

// newTimeline draws stays; without any time it has no parts.
func newTimeline(stays []ralph.Stay) (l timeline) {
	all := 0.0
	for _, s := range stays {
		all += s.Seconds
	}
	if all <= 0 {
		return l
	}
	at := 0.0
	for _, s := range stays {
		look := phases[s.Phase]
		l.Parts = append(l.Parts, segment{
			round(at / all * 100), round(s.Seconds / all * 100), look.Class, look.Label + " " + span(s.Seconds),
		})
		at += s.Seconds
		i := slices.IndexFunc(l.Phases, func(p phaseTime) bool { return p.Name == look.Label })
		if i < 0 {
			i, l.Phases = len(l.Phases), append(l.Phases, phaseTime{look.Label, look.Class, 0})
		}
		l.Phases[i].Seconds += s.Seconds
	}
	l.Phases = slices.DeleteFunc(l.Phases, func(p phaseTime) bool { return p.Seconds < all/100 })
	step := steps[len(steps)-1]
	for all/step > mostTicks {
		step *= 2
	}
	if i := slices.IndexFunc(steps, func(s float64) bool { return all/s <= mostTicks }); i >= 0 {
		step = steps[i]
	}
	l.Ticks = append(l.Ticks, tick{0, "0", "start"})
	for t := step; t < all*0.7; t += step { // on a phone the last tick would overlap the end
		l.Ticks = append(l.Ticks, tick{round(t / all * 100), unit(t), "middle"})
	}
	l.Ticks = append(l.Ticks, tick{100, span(all), "end"})
	return l
}

// unit formats a time of a scale, in seconds.
func unit(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%g s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%g min", seconds/60)
	}
	return fmt.Sprintf("%g h", seconds/3600)
}

// barWidth is the width of a bar in its own units.
const barWidth = 1000

// round shortens the numbers in a drawing.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// A chart is a column chart; a column has one or more parts.
type chart struct {
	Title   string
	Columns []chartColumn
	Lines   []chartLine // horizontal lines with their values
	Legend  []legendEntry
	Height  float64
	Width   float64
	Empty   bool
	Limit   string // in words; "" for none

	top float64
}

type chartColumn struct {
	X, Width   float64
	Left, Room float64 // the clickable area
	Middle     float64
	Label      string // below it
	Minor      bool   // omit the label on a small screen
	Name       string // in the table
	To         string // the address of its details
	Total      string
	Parts      []chartPart
	Texts      []string // texts of the parts, in the table
}

type chartPart struct {
	Y, Height float64
	Class     string
}

type chartLine struct {
	Y     float64
	Text  string
	Limit bool
}

// A legendEntry names a part of each column. To is the address of its details, in all columns; "" for none.
type legendEntry struct{ Class, Name, To string }

// A datum is the data of one column.
type datum struct {
	Name   string    // in the table
	Label  string    // below the column
	To     string    // the address of its details
	Values []float64 // one per legend entry
}

// Sizes of charts in their own units.
const (
	chartWidth  = 720
	chartHeight = 180
	chartLeft   = 84

	widestColumn = 60
	labelledWide = 6 // number of labelled columns on a small screen
)

// newChart draws columns. format formats a value.
func newChart(title string, legend []legendEntry, data []datum, format func(float64) string) chart {
	c := chart{Title: title, Legend: legend, Width: chartWidth, Height: chartHeight}
	highest := 0.0
	for _, d := range data {
		highest = max(highest, sum(d.Values))
	}
	if c.Empty = highest == 0; c.Empty {
		return c
	}
	top := nice(highest)
	c.top = top
	for i := 0; i <= 4; i++ {
		// Small counts of things have no fractions.
		if text := format(top * float64(i) / 4); len(c.Lines) == 0 || c.Lines[len(c.Lines)-1].Text != text {
			c.Lines = append(c.Lines, chartLine{round(chartHeight - chartHeight*float64(i)/4), text, false})
		}
	}
	step := float64(chartWidth-chartLeft) / float64(len(data))
	for i, d := range data {
		width := min(step*0.76, widestColumn)
		col := chartColumn{
			X:      round(chartLeft + float64(i)*step + (step-width)/2),
			Width:  round(width),
			Left:   round(chartLeft + float64(i)*step),
			Room:   round(step),
			Middle: round(chartLeft + (float64(i)+0.5)*step),
			Label:  d.Label,
			Minor:  len(data) > labelledWide && (len(data)-1-i)%3 != 0,
			Name:   d.Name,
			To:     d.To,
			Total:  format(sum(d.Values)),
		}
		y := float64(chartHeight)
		for k, v := range d.Values {
			h := v * chartHeight / top
			y -= h
			col.Parts = append(col.Parts, chartPart{round(y), round(h), legend[k].Class})
			col.Texts = append(col.Texts, format(v))
		}
		c.Columns = append(c.Columns, col)
	}
	return c
}

// limit draws a limit of the columns' values, if it is within the chart.
func (c *chart) limit(at float64, words string) {
	if c.Limit = words; !c.Empty && at <= c.top {
		c.Lines = append(c.Lines, chartLine{round(chartHeight - chartHeight*at/c.top), "", true})
	}
}

func sum(list []float64) (total float64) {
	for _, v := range list {
		total += v
	}
	return total
}

// nice returns a round number not less than x.
func nice(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 4, 8, 10} {
		if f*power >= x {
			return f * power
		}
	}
	return 10 * power
}

package web

import (
	"fmt"
	"math"

	"ralph"
)

// A segment is a part of a bar that is wide as a whole: in thousandths.
type segment struct {
	X, Width float64
	Class    string // its colour
	Title    string
}

// barWidth is the width of a bar in its own units.
const barWidth = 1000

// bar is the time in each state, in order.
func bar(stays []ralph.Stay) (list []segment) {
	whole := 0.0
	for _, s := range stays {
		whole += s.Seconds
	}
	if whole <= 0 {
		return nil
	}
	x := 0.0
	for _, s := range stays {
		w, phase := s.Seconds*barWidth/whole, phases[s.Phase]
		label := fmt.Sprintf("%s: %s", phase.Label, span(s.Seconds))
		list = append(list, segment{round(x), round(w), phase.Class, label})
		x += w
	}
	return list
}

// round keeps a drawing short.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// A chart is columns over some steps of time or size, each of one or more parts.
type chart struct {
	Title   string
	Columns []chartColumn
	Lines   []chartLine // across, with what they stand for
	Legend  []legendEntry
	Height  float64
	Width   float64
	Empty   bool
}

type chartColumn struct {
	X, Width float64
	Middle   float64
	Label    string // below it; "" where there is no room
	Minor    bool   // the label is left out on a small screen
	Name     string // in the table
	Total    string
	Parts    []chartPart
	Texts    []string // of the parts, in the table
}

type chartPart struct {
	Y, Height float64
	Class     string
}

type chartLine struct {
	Y    float64
	Text string
}

type legendEntry struct{ Class, Name string }

// A datum is what one column stands for.
type datum struct {
	Name   string    // as in the table
	Label  string    // as below the column
	Values []float64 // one for each entry of the legend
}

// Sizes of charts in their own units.
const (
	chartWidth  = 720
	chartHeight = 180
	chartLeft   = 84

	widestColumn = 60
)

// newChart draws columns. Format says how a value is written.
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
	for i := 0; i <= 4; i++ {
		// Of a few things there is no half.
		if text := format(top * float64(i) / 4); len(c.Lines) == 0 || c.Lines[len(c.Lines)-1].Text != text {
			c.Lines = append(c.Lines, chartLine{round(chartHeight - chartHeight*float64(i)/4), text})
		}
	}
	step := float64(chartWidth-chartLeft) / float64(len(data))
	every := int(math.Ceil(float64(len(data)) / 12))
	for i, d := range data {
		width := min(step*0.76, widestColumn)
		col := chartColumn{
			X:      round(chartLeft + float64(i)*step + (step-width)/2),
			Width:  round(width),
			Middle: round(chartLeft + (float64(i)+0.5)*step),
			Name:   d.Name,
			Total:  format(sum(d.Values)),
		}
		if i%every == 0 {
			col.Label, col.Minor = d.Label, i/every%3 != 0 && len(data) > 6
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

func sum(list []float64) (total float64) {
	for _, v := range list {
		total += v
	}
	return total
}

// nice is a round number not below x.
func nice(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 4, 8, 10} {
		if f*power >= x {
			return f * power
		}
	}
	return 10 * power
}

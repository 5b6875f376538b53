package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A row is one line of the table.
type row struct {
	what    string
	product samples
	floor   samples
	value   string // how the two compare
	aim     string // "" if there is none
	met     bool
}

// samples are measurements of one thing, in a unit.
type samples struct {
	unit   string
	values []float64
}

func (s *samples) add(v float64) { s.values = append(s.values, v) }

// took adds a duration, in milliseconds.
func (s *samples) took(d time.Duration) {
	s.unit = "ms"
	s.add(float64(d) / float64(time.Millisecond))
}

// quantile returns the value below which a part of the samples is, from 0 to 1.
func (s samples) quantile(q float64) float64 {
	if len(s.values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s.values))
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

func (s samples) median() float64 { return s.quantile(0.5) }

// String returns the median and, in brackets, the quartiles.
func (s samples) String() string {
	switch len(s.values) {
	case 0:
		return ""
	case 1:
		return number(s.values[0]) + " " + s.unit
	}
	return fmt.Sprintf("%s %s (%s–%s)", number(s.median()), s.unit, number(s.quantile(0.25)), number(s.quantile(0.75)))
}

// signed is [samples.String] of differences: their median has its sign.
func (s samples) signed() string {
	if s.median() < 0 {
		return s.String()
	}
	return "+" + s.String()
}

// number has about three digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// ratio compares the medians of two measurements, and limits their ratio.
func ratio(what string, product, floor samples, most float64) row {
	r := product.median() / floor.median()
	return row{what, product, floor, number(r) + "×", fmt.Sprintf("≤ %s×", number(most)), r <= most}
}

// difference compares two things that were measured turn about, round by round.
func difference(product, floor samples) samples {
	d := samples{unit: product.unit}
	for i := range min(len(product.values), len(floor.values)) {
		d.add(product.values[i] - floor.values[i])
	}
	return d
}

// heading begins the results in Markdown.
func heading(machine string) string {
	return machine + "\n\n| what | ralph | floor | compared | aim |\n|---|---|---|---|---|\n"
}

// lines are rows of the results in Markdown.
func lines(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		aim := r.aim
		if aim != "" && !r.met {
			aim += ", **missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.what, r.product, r.floor, r.value, aim)
	}
	return b.String()
}

// machine describes the measured machine, without its name.
func machine() string {
	parts := []string{time.Now().UTC().Format("2006-01-02"), fmt.Sprintf("%d cores", runtime.NumCPU())}
	if kib, err := strconv.Atoi(field("/proc/meminfo", "MemTotal")); err == nil {
		parts = append(parts, fmt.Sprintf("%d GB", kib>>20))
	}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		parts = append(parts, model)
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		one, _, _ := strings.Cut(string(text), " ")
		parts = append(parts, "load before "+one)
	}
	return strings.Join(append(parts, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH), ", ") + "."
}

// field returns the first value of a name in a file of /proc, without a unit.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSuffix(strings.TrimSpace(value), " kB")
		}
	}
	return ""
}

// Marks between which a document has the results.
const (
	resultsBegin = "<!-- results -->\n"
	resultsEnd   = "<!-- end of results -->\n"
)

// replaceResults puts a table into a document.
func replaceResults(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begun := bytes.Cut(old, []byte(resultsBegin))
	_, after, ended := bytes.Cut(rest, []byte(resultsEnd))
	if !begun || !ended {
		return fmt.Errorf("%s has no place for results, between %q and %q", path, resultsBegin, resultsEnd)
	}
	return os.WriteFile(path, slices.Concat(before, []byte(resultsBegin), []byte(text), []byte(resultsEnd), after), 0o644)
}

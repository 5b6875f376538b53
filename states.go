package ralph

import "slices"

// A StateTime sums up the time that sessions spent in one phase.
type StateTime struct {
	State    Phase   `json:"state"`
	Sessions int     `json:"sessions"` // sessions that entered it
	Seconds  float64 `json:"seconds"`  // in total
	Median   float64 `json:"median_seconds"`
	Long     int     `json:"unusually_long"`
	Failed   int     `json:"failed_here"` // sessions that failed or timed out while in it
}

// TimeInStates sums up sessions by phase, in the order of the phases.
func TimeInStates(list []Session, now Time) []StateTime {
	times := map[Phase][]float64{}
	long, failed := map[Phase]int{}, map[Phase]int{}
	for _, s := range list {
		in := map[Phase]float64{}
		for _, stay := range s.Stays(now) {
			in[stay.Phase] += stay.Seconds
			if stay.Long {
				long[stay.Phase]++
			}
		}
		for p, t := range in {
			times[p] = append(times[p], t)
		}
		if s.Outcome == OutcomeFailure || s.Outcome == OutcomeTimeout {
			failed[s.Stood()]++
		}
	}
	rows := []StateTime{}
	for _, p := range append([]Phase{PhaseIdle}, ReportedPhases...) {
		r := StateTime{State: p, Sessions: len(times[p]), Long: long[p], Failed: failed[p]}
		slices.Sort(times[p])
		for _, t := range times[p] {
			r.Seconds += t
		}
		if n := len(times[p]); n > 0 {
			r.Median = times[p][n/2]
		}
		rows = append(rows, r)
	}
	return rows
}

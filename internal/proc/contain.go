package proc

// Limits bound what a command and everything that it started may use together. 0 means unlimited.
type Limits struct {
	Memory    int64 // bytes, swap included
	Processes int   // processes and threads
	Nice      int   // added to the nice value, 1 to 19
}

// A Containment contains commands in addition to their supervisors. The zero value contains
// nothing; [Contain] finds out what is available.
type Containment struct {
	limits Limits
	parent string // the cgroup in which each command gets its own
	meters bool   // the cgroups can limit memory and processes
}

// An enclosure is the part of a containment that a supervisor needs.
type enclosure struct {
	Limits Limits
	Parent string
	Meters bool
	Marker string // names the cgroup
}

// enclosure returns the containment of a command with a marker. Without a marker there is no
// cgroup: it could not be found again.
func (c Containment) enclosure(marker string) enclosure {
	if marker == "" {
		c.parent, c.meters = "", false
	}
	return enclosure{c.limits, c.parent, c.meters, marker}
}

// Cgroup returns the directory of the cgroup (version 2) in which each command with a Spec.Marker
// gets its own, or "" if there is none. In it [Sweep] finds even processes that have cleared their
// environment.
func (c Containment) Cgroup() string { return c.parent }

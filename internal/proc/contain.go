package proc

// Limits bound what a command and all that it started may use together. What is
// 0 is not limited.
type Limits struct {
	Memory    int64 // bytes, swap included
	Processes int   // processes and threads
	Nice      int   // what is added to the nice value, 1 to 19
}

// A Containment holds a command beside its supervisor. The zero value is none;
// [Contain] finds out what can be had.
type Containment struct {
	limits Limits
	parent string // the cgroup below which each command gets one of its own
	meters bool   // such a cgroup can limit memory and processes
}

// An enclosure is what a supervisor is told of a containment.
type enclosure struct {
	Limits Limits
	Parent string
	Meters bool
	Marker string // which the cgroup is named after
}

// enclosure is the containment of a command with a marker. There is no cgroup
// for one without: it could not be found again.
func (c Containment) enclosure(marker string) enclosure {
	if marker == "" {
		c.parent, c.meters = "", false
	}
	return enclosure{c.limits, c.parent, c.meters, marker}
}

// Cgroup is the directory of the cgroup (version 2) below which each command
// with a Spec.Marker gets one of its own, or "" if none can be had. In it
// [Sweep] finds even processes that have cleared their environment.
func (c Containment) Cgroup() string { return c.parent }

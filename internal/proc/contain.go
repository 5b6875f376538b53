package proc

// A Containment contains commands in addition to their supervisors. The zero value contains
// nothing; [Contain] finds out what is available.
type Containment struct {
	parent string // the cgroup in which each command gets its own
}

// An enclosure is the part of a containment that a supervisor needs.
type enclosure struct {
	Parent string
	Marker string // names the cgroup
}

// enclosure returns the containment of a command with a marker. Without a marker there is no
// cgroup: it could not be found again.
func (c Containment) enclosure(marker string) enclosure {
	if marker == "" {
		return enclosure{}
	}
	return enclosure{c.parent, marker}
}

// Cgroup returns the directory of the cgroup (version 2) in which each command with a Spec.Marker
// gets its own, or "" if there is none. In it [Sweep] finds even processes that have cleared their
// environment.
func (c Containment) Cgroup() string { return c.parent }

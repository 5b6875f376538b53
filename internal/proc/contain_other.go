//go:build !linux

package proc

// Contain only reports that no limit can be enforced here.
func Contain(l Limits) (c Containment, missing []string) {
	if l != (Limits{}) {
		missing = []string{"memory, processes and priority are not limited: that takes Linux"}
	}
	return c, missing
}

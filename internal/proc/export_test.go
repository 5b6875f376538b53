package proc

// SuperviseArg is the first argument of a supervisor.
const SuperviseArg = superviseArg

// Clip writes pieces to a clip of a size and returns its text.
func Clip(size int, pieces ...[]byte) (string, int64) {
	c := newClip(size)
	for _, p := range pieces {
		if n, err := c.Write(p); n != len(p) || err != nil {
			panic("a clip takes everything")
		}
	}
	return c.text()
}

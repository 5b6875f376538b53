package process

import "os"

// A streams is both ends of a program's standard streams.
type streams struct{ theirs, ours [3]*os.File }

// newStreams creates the pipes.
func newStreams() (s streams, err error) {
	for i := range s.ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(s.theirs)
			closeAll(s.ours)
			return s, err
		}
		if s.theirs[i], s.ours[i] = w, r; i == 0 {
			s.theirs[i], s.ours[i] = r, w
		}
	}
	return s, nil
}

// closeAll closes the files; nil is none.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

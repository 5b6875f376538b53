package dashboard

import "io"

// transcripts reads what sessions did.
type transcripts struct {
	open func(session string, file SessionFile) (io.ReadCloser, error)
}

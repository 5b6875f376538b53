package follow

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"ralph"
	"ralph/internal/retention"
	"ralph/internal/show"
	"ralph/store"
)

// A Transcript prints a transcript.
type Transcript struct {
	Path    string
	Printer show.Printer
	Out     io.Writer // where Printer prints

	file io.ReadCloser // nil until the transcript exists
}

// Read prints the new part. The error is [fs.ErrNotExist] if there is no transcript.
func (l *Transcript) Read() (err error) {
	if l.file == nil {
		if l.file, err = retention.Open(l.Path); err != nil {
			l.file = nil
			return err
		}
	}
	_, err = io.Copy(&l.Printer, l.file)
	return err
}

// Follow prints new parts until the session has ended, its output is not read any more, or ctx
// ends. While the database's server is away it waits for the end. It returns the session's last state.
func (l *Transcript) Follow(ctx context.Context, db *store.DB, s ralph.Session) (ralph.Session, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var changed <-chan struct{}
	for {
		if changed == nil {
			changed = db.Changed()
			now, err := store.Read(ctx, db, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(s.ID) })
			if ctx.Err() != nil {
				return s, nil
			}
			switch {
			case err == nil:
				s = now
			case !away(db, err):
				return s, err
			}
		}
		// Everything written before the end is read after the end was seen.
		err := l.Read()
		over := !s.CompletedAt.IsZero()
		if err != nil && (over || !errors.Is(err, fs.ErrNotExist)) || over {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, nil
		case <-changed:
			changed = nil
		case <-tick.C:
			if readerGone(l.Out) {
				return s, nil
			}
		}
	}
}

// End prints the session's last words and ralph's verdict.
func (l *Transcript) End(s ralph.Session) error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.Printer.End(s), l.file.Close())
}

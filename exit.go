package ralph

import "fmt"

// An ExitError is an error with an exit status of its own.
type ExitError struct {
	Status int
	Err    error // nil: what there is to say has been said
}

// Error is what there is to say.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap is what there is to say.
func (e *ExitError) Unwrap() error { return e.Err }

// Usage marks an error as one of usage or configuration; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{ExitUsage, err}
}

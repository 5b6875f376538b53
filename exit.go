package ralph

import "fmt"

// An ExitError is an error that sets the exit status.
type ExitError struct {
	Status int
	Err    error // nil if the message has already been printed
}

// Error returns the message.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Usage marks an error as a usage or configuration error; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{ExitUsage, err}
}

// ExitRemedy returns the command for a person after a run that ended early with a status; "" if it did not.
func ExitRemedy(status int) string {
	switch status {
	case ExitLimit:
		return "ralph run"
	case ExitAgent, ExitUsage, ExitFailure:
		return "ralph doctor"
	}
	return ""
}

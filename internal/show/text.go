package show

import "time"

// Minute is a moment for people, to the minute.
func Minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

package show

import "time"

// Minute formats a time to the minute.
func Minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

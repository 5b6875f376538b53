// What `make mutation` runs.
module ralph/internal/tools/mutation

go 1.26.0

require (
	github.com/bmatcuk/doublestar/v4 v4.10.4
	golang.org/x/sync v0.24.0
)

package notify

// Plain and Digests expose the functions.
var (
	Plain   = plain
	Digests = digests
)

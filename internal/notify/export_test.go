package notify

// Plain exposes plain.
var Plain = plain

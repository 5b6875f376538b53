//go:build !unix

package main

import "io"

// readerGone cannot be told here: a write will.
func readerGone(io.Writer) bool { return false }

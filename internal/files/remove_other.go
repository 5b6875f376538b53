//go:build !unix

package files

import "os"

// RemoveAll removes a file or a folder with everything in it.
func RemoveAll(path string) error { return os.RemoveAll(path) }

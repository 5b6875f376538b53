// Command used runs a command and prints its use: nanoseconds of the processors, and its largest resident memory in
// bytes. It is this small because a process begins with its parent's memory as its peak.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n%s", os.Args[1], err, out)
		os.Exit(1)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, usage.Utime.Nano()+usage.Stime.Nano(), usage.Maxrss*1024)
}

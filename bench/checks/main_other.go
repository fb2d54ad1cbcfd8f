//go:build !linux

// Command checks measures what health checks cost. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "checks: this command needs Linux")
	os.Exit(2)
}

//go:build !linux

// Command chaos makes faults around a router. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "chaos: this command needs Linux")
	os.Exit(2)
}

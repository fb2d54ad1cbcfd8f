//go:build !linux

// Command soak needs Linux: it reads the memory of a process as that tells it.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: needs Linux")
	os.Exit(2)
}

//go:build !linux

// Command run measures a running router, with what only Linux has.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench/run needs Linux")
	os.Exit(2)
}

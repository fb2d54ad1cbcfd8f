//go:build !linux

// Command streams needs Linux: it reads CPU times as that tells them.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "streams: needs Linux")
	os.Exit(2)
}

//go:build !linux

// Command fleet measures what many TLS clients cost. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "fleet: this command needs Linux")
	os.Exit(2)
}

//go:build !linux

// Command slow attacks a router with slowhttptest. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "slow: this command needs Linux")
	os.Exit(2)
}

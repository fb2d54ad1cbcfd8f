//go:build !linux

// Command adversary attacks a router over real sockets. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "adversary: this command needs Linux")
	os.Exit(2)
}

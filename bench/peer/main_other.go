//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "peer: measures with /proc and epoll, which only Linux has")
	os.Exit(2)
}

// Preflight says what is missing before anything is built that takes minutes.
package main

import (
	"fmt"
	"os"

	"turnout/test/kube/internal/sandbox"
)

func main() {
	if err := sandbox.Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

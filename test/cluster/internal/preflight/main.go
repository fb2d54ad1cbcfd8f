// Preflight says what is missing before anything is built that takes minutes.
package main

import (
	"fmt"
	"os"

	"turnout/test/cluster/sandbox"
)

func main() {
	if err := sandbox.Check(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

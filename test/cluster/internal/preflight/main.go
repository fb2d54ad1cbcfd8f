// Preflight says what is missing before anything is built that takes minutes. Arguments
// are further programs and the Debian package of each: PROGRAM=PACKAGE.
package main

import (
	"fmt"
	"os"
	"strings"

	"turnout/test/cluster/sandbox"
)

func main() {
	programs := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, pkg, _ := strings.Cut(argument, "=")
		programs[name] = pkg
	}
	if err := sandbox.Check(programs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Package kubectl runs kubectl, for tests of what its users do.
package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Config is the path of a kubeconfig.
type Config string

// Run runs kubectl with an input, and returns what it prints on standard output and standard error. The error has that, too.
func (c Config) Run(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", string(c)}, args...)...)
	command.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// Must is Run for what has to succeed: otherwise the test fails.
func (c Config) Must(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := c.Run(t.Context(), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

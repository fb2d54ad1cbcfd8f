package site

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is what a command of bench does: run, whose context ends when the command is interrupted or told to. It says on
// stderr what run failed by, and returns the exit code: 0 if run passed. run has said itself what did not pass.
func Main(name string, run func(context.Context) (passed bool, err error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := run(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	if err != nil || !passed {
		return 1
	}
	return 0
}

// Command echo is the image of the pods and of the clients of package origin: one static
// program, so that a container needs nothing else.
//
//	echo serve [-tls DIR]            answers with what arrived (package comment of serve.go)
//	echo get [flags] URL             asks, and prints the answer as it arrived
//	echo wait                        waits for a signal to stop: a pod to run get in
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("which: serve, get or wait?")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "serve":
		return serve(ctx, args[1:])
	case "get":
		return get(ctx, args[1:])
	case "wait":
		<-ctx.Done()
		return nil
	default:
		return fmt.Errorf("%s is none of serve, get and wait", args[0])
	}
}

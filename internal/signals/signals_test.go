package signals

import (
	"context"
	"os"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestSignals: SIGHUP ends nothing, the first signal ends the context, the same one again nothing more, another one the process.
func TestSignals(t *testing.T) {
	const first, later Stage = "beginning", "at work"
	core, logged := observer.New(zap.InfoLevel)
	c := Catch(first)
	defer c.Release()
	hung, exited := make(chan struct{}), make(chan struct{})
	go c.HangUps(func() { close(hung) })
	ctx := c.Context(context.Background(), zap.New(core), func() { close(exited) })
	send := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGHUP)
	<-hung
	if ctx.Err() != nil {
		t.Error("SIGHUP ended it")
	}
	c.Enter(later)
	send(syscall.SIGTERM)
	<-ctx.Done()
	send(syscall.SIGINT)
	<-exited
	lines := logged.All()
	if len(lines) != 2 || lines[0].ContextMap()["while"] != string(later) || lines[1].Message != "second signal: the process ends at once" {
		t.Errorf("logged %v", lines)
	}
}

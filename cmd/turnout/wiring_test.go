package main

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/controller"
	"turnout/controller/source/folder"
	"turnout/internal/server"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
)

// startInProcess runs a whole router in this process, fed by a folder, on ports of the
// system's choice. It returns when the first table is published and ends with the test.
//
// with changes how the request path is built.
func startInProcess(t *testing.T, dir string, opts controller.Options, with ...func(*server.Config)) (*server.Server, *routing.Store) {
	t.Helper()
	plane := newInProcess(t, with...)
	if err := plane.Listen(); err != nil {
		t.Fatal(err)
	}
	runInProcess(t, plane, dir, opts)
	return plane, plane.Store()
}

// newInProcess builds the request path of a router in this process.
func newInProcess(t *testing.T, with ...func(*server.Config)) *server.Server {
	t.Helper()
	data := server.Config{HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 2, Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts()}}
	for _, change := range with {
		change(&data)
	}
	plane, err := server.New(data)
	if err != nil {
		t.Fatal(err)
	}
	return plane
}

// runInProcess feeds a request path from a folder and runs both until the test ends. It returns when the first table is published.
func runInProcess(t *testing.T, plane *server.Server, dir string, opts controller.Options) {
	t.Helper()
	certificate, err := tlsmux.SelfSigned("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	opts.AllowLoopback = true
	ctl, err := controller.New(controller.Config{
		Store: plane.Store(), Routing: routing.Options{Registry: plane.Registry(), DefaultCertificate: certificate},
		Options: opts, HoldOff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	feeder, err := folder.New(folder.Config{Paths: []string{dir}, Sink: ctl.Sink("manifests"), Settle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{plane.Run, ctl.Run, feeder.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if n := plane.Stats().Panics; n > 0 && !strings.HasPrefix(t.Name(), "TestPanic") {
			t.Errorf("%d panics were recovered from", n)
		}
	})
	<-ctl.Ready()
}

// TestSchedulerSlots: while the request path runs, the Go scheduler has a slot for each loop and one for everything else.
func TestSchedulerSlots(t *testing.T) {
	const loops = 3
	data, _ := startInProcess(t, t.TempDir(), controller.Options{}, func(c *server.Config) { c.Loops, c.OwnsProcess = loops, true })
	<-data.Started()
	if got := runtime.GOMAXPROCS(0); got != loops+1 {
		t.Errorf("%d slots for %d loops, want one more", got, loops)
	}
}

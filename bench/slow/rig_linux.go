package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/bench/site"
)

const route = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: slow, namespace: bench, annotations: {haproxy.router.openshift.io/disable_cookies: "true"}}
spec: {host: localhost, to: {kind: Service, name: slow}}
`

// rig is a router in a process of its own, before a backend in this one.
type rig struct {
	router  *site.Router
	backend *site.Backend
	url     string
	apart   bool // the router has a core of its own; this process and the attackers share another
	ahead   bool // the attackers get only the time that router and this process leave
}

// startRig starts both and waits until requests are served.
func startRig(ctx context.Context, program string) (*rig, error) {
	apart, err := site.Apart()
	if err != nil {
		return nil, err
	}
	ahead := site.Ahead()
	backend, err := site.ServeHTTP(newHandler())
	if err != nil {
		return nil, err
	}
	router, err := site.Start(ctx, site.Config{
		Program: program, Manifests: route + site.Endpoints("bench", "slow", backend.Port()), Alone: apart,
	})
	if err != nil {
		backend.Close()
		return nil, err
	}
	url := "http://" + strings.Replace(router.HTTP, "127.0.0.1", "localhost", 1) + "/"
	return &rig{router: router, backend: backend, url: url, apart: apart, ahead: ahead}, nil
}

func (r *rig) stop() {
	r.router.Stop()
	r.backend.Close()
}

// largeBody is more than the router queues for one client. Much more would only fill
// the memory that the kernel has for all TCP connections of this machine, where
// attackers, router and backend live together.
const largeBody = 320 << 10

// hugeBody is more than the kernels of both sides take, too: the router must see that its client does not read.
const hugeBody = 32 << 20

// newHandler reads what is sent and answers /large with largeBody bytes, /huge with hugeBody bytes, everything else with few.
func newHandler() http.Handler {
	large := bytes.Repeat([]byte("x"), largeBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(large)
		case "/huge":
			w.Header().Set("Content-Length", strconv.Itoa(hugeBody))
			for sent := 0; sent < hugeBody; sent += len(large) {
				if _, err := w.Write(large[:min(len(large), hugeBody-sent)]); err != nil {
					return
				}
			}
		default:
			_, _ = w.Write([]byte("hello\n"))
		}
	})
}

// impact is what the client and the router's process saw in a span of time.
type impact struct {
	latency
	cpu      time.Duration // of the router, per second
	resident int64         // bytes, the most that was seen
}

// watch measures in windows, so that one hiccup of the machine is one of many: of 50th and 99th percentile the medians count.
func (r *rig) watch(ctx context.Context, d time.Duration) (impact, error) {
	const window = 2 * time.Second
	var p50, p99 []time.Duration
	var i impact
	before, err := r.router.CPU()
	if err != nil {
		return i, err
	}
	began := time.Now()
	for n := 0; n == 0 || time.Since(began) < d-window/2; n++ {
		if err := r.weigh(&i); err != nil {
			return i, err
		}
		l, err := measure(ctx, r.url, min(window, d))
		if err != nil {
			return i, err
		}
		p50, p99, i.max = append(p50, l.p50), append(p99, l.p99), max(i.max, l.max)
	}
	after, err := r.router.CPU()
	if err != nil {
		return i, err
	}
	i.p50, i.p99 = median(p50), median(p99)
	i.cpu = time.Duration(float64(after-before) / time.Since(began).Seconds())
	err = r.weigh(&i)
	return i, err
}

// weigh looks at the router's memory.
func (r *rig) weigh(i *impact) error {
	now, err := r.router.Resident()
	i.resident = max(i.resident, now)
	return err
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// under watches while an attack goes on: after a third of its time, when most of its connections stand, for so long. open
// is how many stood at the end.
func (r *rig) under(ctx context.Context, a attack, o options, measuring time.Duration) (i impact, open int, err error) {
	url := r.url
	if a.args[0] == "-X" {
		url += "large"
	}
	standing := time.Duration(o.seconds)*time.Second - measuring
	args := append([]string{"-c", strconv.Itoa(o.connections), "-r", strconv.Itoa(o.connections), "-l", strconv.Itoa(o.seconds), "-p", "3", "-u", url}, a.args...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := site.Behind(ctx, "slowhttptest", args...) // the client's latencies are not to wait for the attackers
	if err := cmd.Start(); err != nil {
		return i, 0, fmt.Errorf("cannot start slowhttptest (a Debian package): %w", err)
	}
	stands := time.NewTimer(standing * 3 / 4)
	defer stands.Stop()
	select {
	case <-ctx.Done():
		return i, 0, ctx.Err() //nolint:wrapcheck // interrupted
	case <-stands.C:
	}
	if i, err = r.watch(ctx, measuring); err == nil {
		open, err = r.open(ctx)
	}
	cancel()
	_ = cmd.Wait() // it was killed
	return i, open, err
}

// open asks the router how many client connections it has.
func (r *rig) open(ctx context.Context) (int, error) {
	n, err := r.router.Metric(ctx, "turnout_connections_open")
	return int(n), err
}

// until asks every second whether done, for as long as patience.
func until(ctx context.Context, patience time.Duration, done func() (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"

	"turnout/bench/site"
)

const route = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: streams, namespace: bench, annotations: {haproxy.router.openshift.io/disable_cookies: "true"}}
spec: {host: localhost, to: {kind: Service, name: streams}, tls: {termination: edge}}
`

// rig is a router in a process of its own, before a backend in this one.
type rig struct {
	router  *site.Router
	backend *site.Backend
	size    int64 // of a download
	apart   bool  // the router has a core of its own, with one loop; this process has another
}

// startRig starts both and waits until requests are served.
func startRig(ctx context.Context, program string, size int64) (*rig, error) {
	apart, err := site.Apart()
	if err != nil {
		return nil, err
	}
	backend, err := site.ServeConns(func(c net.Conn) { answer(c, size) })
	if err != nil {
		return nil, err
	}
	router, err := site.Start(ctx, site.Config{
		Program: program, Manifests: route + site.Endpoints("bench", "streams", backend.Port()), Alone: apart,
	})
	if err != nil {
		backend.Close()
		return nil, err
	}
	return &rig{router: router, backend: backend, size: size, apart: apart}, nil
}

func (r *rig) stop() {
	r.router.Stop()
	r.backend.Close()
}

// answer answers /large with size bytes, everything else with 128.
func answer(c net.Conn, size int64) {
	defer func() { _ = c.Close() }()
	chunk := bytes.Repeat([]byte("x"), 256<<10)
	small := append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"), chunk[:128]...)
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		for rest := line; rest != "\r\n"; {
			if rest, err = r.ReadString('\n'); err != nil {
				return
			}
		}
		if !strings.HasPrefix(line, "GET /large ") {
			if _, err := c.Write(small); err != nil {
				return
			}
			continue
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size); err != nil {
			return
		}
		for left := size; left > 0; left -= int64(len(chunk)) {
			if _, err := c.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
				return
			}
		}
	}
}

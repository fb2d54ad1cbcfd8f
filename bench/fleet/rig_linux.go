package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"turnout/bench/site"
)

// The hosts of the site. Each of the first two has a certificate of its own.
const (
	hostECDSA       = "ecdsa.fleet.test"
	hostRSA         = "rsa.fleet.test"
	hostPassthrough = "through.fleet.test"
)

// rig is a router in a process of its own, before backends in this one.
type rig struct {
	*site.Router
	plain, through *site.Backend
}

// startRig starts everything and waits until requests are served. The router has one loop, alone with a core of its own.
func startRig(ctx context.Context, o *options, alone bool) (*rig, error) {
	r := &rig{}
	if err := r.start(ctx, o, alone); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *rig) start(ctx context.Context, o *options, alone bool) (err error) {
	if r.plain, err = site.ServeHTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello\n")
	})); err != nil {
		return err
	}
	if r.through, err = site.ServeConns(echo); err != nil {
		return err
	}
	manifests, err := routes()
	if err != nil {
		return err
	}
	r.Router, err = site.Start(ctx, site.Config{
		Program: o.turnout, Args: []string{"--threads", "1"}, Alone: alone,
		Manifests: manifests + site.Endpoints(namespace, "plain", r.plain.Port()) + site.Endpoints(namespace, "through", r.through.Port()),
	})
	return err
}

func (r *rig) stop() {
	if r.Router != nil {
		r.Stop()
	}
	if r.plain != nil {
		r.plain.Close()
	}
	if r.through != nil {
		r.through.Close()
	}
}

// echo is the pod of the route that is passed through: it sends back what it gets. TLS would be the client's matter.
func echo(c net.Conn) {
	defer c.Close()
	var p [2 << 10]byte
	for {
		n, err := c.Read(p[:])
		if _, werr := c.Write(p[:n]); err != nil || werr != nil {
			return
		}
	}
}

const namespace = "fleet"

// routes is the manifest of a route for each host.
func routes() (string, error) {
	var text strings.Builder
	const options = "annotations: {haproxy.router.openshift.io/disable_cookies: \"true\"}"
	for _, host := range []string{hostECDSA, hostRSA} {
		pair, err := site.NewKeyPair(host, host == hostRSA)
		if err != nil {
			return "", err
		}
		name, _, _ := strings.Cut(host, ".")
		fmt.Fprintf(&text, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s, namespace: %s, %s}\nspec:\n"+
			"  host: %s\n  to: {kind: Service, name: plain}\n  tls:\n    termination: edge\n    insecureEdgeTerminationPolicy: Allow\n"+
			"    certificate: %q\n    key: %q\n---\n", name, namespace, options, host, pair.Certificate, pair.Key)
	}
	fmt.Fprintf(&text, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: through, namespace: %s}\nspec:\n"+
		"  host: %s\n  to: {kind: Service, name: through}\n  tls: {termination: passthrough}\n", namespace, hostPassthrough)
	return text.String(), nil
}

// clientTLS is the client's side. What it checks is not measured.
func clientTLS(host string, version uint16, protocols ...string) *tls.Config {
	return &tls.Config{
		ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: version, NextProtos: protocols,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
}

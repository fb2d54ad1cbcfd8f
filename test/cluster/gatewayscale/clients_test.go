package gatewayscale

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"turnout/test/cluster/load"
)

// client is one whose connections all lead to a Gateway.
func client(address string, fresh bool) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: fresh,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, "80"))
		},
	}}
}

// pace is between two requests of a client: the test is about what fails, and leaves the machine to others.
const pace = 5 * time.Millisecond

// startLoad has clients ask for a host until end, half of them on a new connection each time. No request may fail.
func startLoad(t *testing.T, address, host string) (end func() (asked, failed int64)) {
	ctx, stop := context.WithCancel(t.Context())
	clients := new(load.Clients)
	for i := range 6 {
		c := client(address, i%2 == 1)
		clients.Go(ctx, pace, func(ctx context.Context) error {
			_, err := load.Ask(ctx, c, host)
			return err
		})
	}
	return func() (asked, failed int64) {
		stop()
		return clients.Wait(t)
	}
}

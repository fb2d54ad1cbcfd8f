package peer

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"turnout/bench/load"
	"turnout/bench/site"
)

// TestFloorTLS asks by clients of net/http, on kept connections and on new ones, whose sessions are resumed.
func TestFloorTLS(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1<<16)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body)
	}))
	defer app.Close()
	t.Setenv(standIn, "serve")
	s := &layout{tls: true, pem: site.NewKeyPair(load.Host(0), false), upstreams: []netip.AddrPort{netip.MustParseAddrPort(app.Listener.Addr().String())}}
	p := startFloor(t.Context(), t.TempDir(), s, site.AnyCore)
	defer p.stop()
	for _, c := range []struct {
		name       string
		h2, closes bool
		proto      int
	}{{"HTTP/1.1", false, false, 1}, {"a connection per request", false, true, 1}, {"HTTP/2", true, false, 2}} {
		t.Run(c.name, func(t *testing.T) {
			protocols := &http.Protocols{}
			protocols.SetHTTP1(!c.h2)
			protocols.SetHTTP2(c.h2)
			transport := &http.Transport{Protocols: protocols, DisableKeepAlives: c.closes, TLSClientConfig: s.clientTLS()}
			transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 5 {
						resp, err := client.Get("https://" + p.addr.String() + "/items/0")
						if err != nil {
							t.Error(err)
							return
						}
						got, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != c.proto || string(got) != body {
							t.Errorf("%s %d, %d bytes, %v", resp.Proto, resp.StatusCode, len(got), err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

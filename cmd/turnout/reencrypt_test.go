package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/controller"
	"turnout/internal/server"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// securePod is an endpoint that speaks TLS. It answers with the protocol of the request and whether SNI came, and keeps what
// was offered.
type securePod struct {
	*httptest.Server
	mu     sync.Mutex
	offers [][]string // by ALPN, of each handshake
}

func startSecurePod(t *testing.T, ca *authority, name string, protocols ...string) *securePod {
	t.Helper()
	cert, key, _ := sign(t, ca, name)
	p := &securePod{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nupgraded")
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s sni=%q host=%s %s", r.Proto, r.TLS.ServerName, r.Host, body)
	}))}
	p.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		NextProtos:   protocols,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.offers = append(p.offers, slices.Clone(hello.SupportedProtos))
			return nil, nil
		},
	}
	p.EnableHTTP2 = slices.Contains(protocols, "h2")
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

// offered is what the last handshake offered, in text; "" = no ALPN.
func (p *securePod) offered() (text string, handshakes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.offers[len(p.offers)-1], ","), len(p.offers)
}

// browser is a client of a TLS port that speaks one protocol.
func browser(t *testing.T, https, protocol string) *http.Client {
	transport := &http.Transport{DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		name, _, _ := net.SplitHostPort(addr)
		d := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{protocol}}}
		return d.DialContext(ctx, network, https)
	}}
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(protocol == "http/1.1")
	transport.Protocols.SetHTTP2(protocol == "h2")
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// TestReencryptProtocols: both protocols in front, both behind, over TLS on both sides; the pod selects by ALPN and gets no
// server name. Without HTTP/2 nothing is offered.
func TestReencryptProtocols(t *testing.T) {
	ca := newAuthority(t, "pods")
	for _, pod := range []struct {
		protocols []string
		want      string
	}{{[]string{"http/1.1"}, "HTTP/1.1"}, {[]string{"h2", "http/1.1"}, "HTTP/2.0"}, {nil, "HTTP/1.1"}} {
		for _, disabled := range []string{"false", "true"} {
			for _, front := range []string{"http/1.1", "h2"} {
				t.Run(fmt.Sprintf("%s to %q, disabled %s", front, pod.protocols, disabled), func(t *testing.T) {
					p := startSecurePod(t, ca, "secure.default.svc", pod.protocols...)
					dir := t.TempDir()
					write(t, dir, "all.yaml", []byte(tlsRoute("app", "reencrypt", "destinationCACertificate", ca.pem)+slice("secure", p.Listener.Addr())))
					o := parse(t, envOf("ROUTER_DISABLE_HTTP2", disabled))
					opts := o.controllerOptions()
					plane, _ := startInProcess(t, dir, opts)
					client := browser(t, plane.HTTPS().String(), front)
					want, offer := pod.want, "h2,http/1.1"
					if disabled == "true" {
						want, offer = "HTTP/1.1", ""
					}
					for range 3 {
						resp, err := client.Post("https://app.test/", "text/plain", strings.NewReader(strings.Repeat("x", 70_000)))
						if err != nil {
							t.Fatal(err)
						}
						body, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						if text := fmt.Sprintf("%s sni=%q host=app.test ", want, ""); err != nil || resp.StatusCode != 200 || string(body) != text+strings.Repeat("x", 70_000) {
							t.Fatalf("%d %.80q %v, want %q", resp.StatusCode, body, err, text)
						}
					}
					if got, n := p.offered(); got != offer || n > 2 { // a loop of its own for a new connection of the client
						t.Errorf("offered %q in the last of %d handshakes, want %q", got, n, offer)
					}
				})
			}
		}
	}
}

// TestReencryptUpgrade: an upgrade goes to a pod that would rather speak HTTP/2 as HTTP/1.1, on a connection that offers
// nothing else.
func TestReencryptUpgrade(t *testing.T) {
	ca := newAuthority(t, "pods")
	p := startSecurePod(t, ca, "secure.default.svc", "h2", "http/1.1")
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(tlsRoute("app", "reencrypt", "destinationCACertificate", ca.pem)+slice("secure", p.Listener.Addr())))
	plane, _ := startInProcess(t, dir, controller.Options{UpstreamALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
	resp, err := browser(t, plane.HTTPS().String(), "http/1.1").Get("https://app.test/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.HasPrefix(string(body), "HTTP/2.0") {
		t.Fatalf("%q %v", body, err)
	}
	c, err := tls.Dial("tcp", plane.HTTPS().String(), &tls.Config{ServerName: "app.test", InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err = http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v %v", resp, err)
	}
	got := make([]byte, 8)
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "upgraded" {
		t.Errorf("%q %v", got, err)
	}
	if offer, _ := p.offered(); offer != "http/1.1" {
		t.Errorf("offered %q", offer)
	}
}

// lastRecord keeps what the access log was given last.
type lastRecord struct {
	mu  sync.Mutex
	rec proxy.Record
}

// Log implements proxy.AccessLog.
func (l *lastRecord) Log(r *proxy.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec = *r
}

func (l *lastRecord) take() proxy.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec
}

// TestReencryptVerification are the rows about re-encrypt routes: whose word a pod's certificate is taken on, and for which
// name. What fails is 503, and the access log says why.
func TestReencryptVerification(t *testing.T) {
	ca, other := newAuthority(t, "pods"), newAuthority(t, "strangers")
	for _, c := range []struct {
		id, own, router string
		signer          *authority
		name            string // in the pod's certificate
		status          int
		detail          string
	}{
		{"destination CA correct CA, default CA any, pod certificate signed by it, any name: 200", ca.pem, "", ca, "any.name", 200, ""},
		{"destination CA correct CA, default CA any, pod certificate signed by it, any name: 200, another CA of the router", ca.pem, other.pem, ca, "any.name", 200, ""},
		{"destination CA correct CA, default CA any, pod certificate signed by it, any name: 200, one of two CAs", other.pem + ca.pem, "", ca, "any.name", 200, ""},
		{"destination CA wrong CA, default CA any: 503", other.pem, "", ca, "secure.default.svc", 503, "tls-untrusted"},
		{"destination CA wrong CA, default CA any: 503, the CA of the router would do", other.pem, ca.pem, ca, "secure.default.svc", 503, "tls-untrusted"},
		{"destination CA none, default CA correct, cert name svc.ns.svc: 200", "", ca.pem, ca, "secure.default.svc", 200, ""},
		{"destination CA none, default CA correct, other name: 503", "", ca.pem, ca, "other.default.svc", 503, "tls-name"},
		{"destination CA none, default CA correct, other name: 503, name of another namespace", "", ca.pem, ca, "secure.other.svc", 503, "tls-name"},
		{"destination CA none, default CA correct, other name: 503, the route's host", "", ca.pem, ca, "app.test", 503, "tls-name"},
		{"CA of the router, pod of another", "", other.pem, ca, "secure.default.svc", 503, "tls-untrusted"},
		{"neither", "", "", ca, "any.name", 200, ""},
	} {
		t.Run(c.id, func(t *testing.T) {
			p := startSecurePod(t, c.signer, c.name, "h2", "http/1.1")
			dir := t.TempDir()
			fields := []string{}
			if c.own != "" {
				fields = []string{"destinationCACertificate", c.own}
			}
			write(t, dir, "all.yaml", []byte(tlsRoute("app", "reencrypt", fields...)+slice("secure", p.Listener.Addr())))
			records := &lastRecord{}
			plane, _ := startInProcess(t, dir, controller.Options{DefaultDestinationCA: []byte(c.router), UpstreamALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}},
				func(d *server.Config) { d.Proxy.AccessLog = records })
			resp, err := browser(t, plane.HTTPS().String(), "http/1.1").Get("https://app.test/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			reason := proxy.ReasonOK
			if c.status == 503 {
				reason = proxy.ReasonUpstreamTLS
			}
			if got := records.take(); got.Reason != reason || got.Detail != c.detail {
				t.Errorf("log %v %q, want %v %q", got.Reason, got.Detail, reason, c.detail)
			}
		})
	}
}

// TestReencryptServices: each service of a route is verified by its own name.
func TestReencryptServices(t *testing.T) {
	ca := newAuthority(t, "pods")
	dir := t.TempDir()
	route := func(name string, services ...string) string {
		return fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s}\nspec:\n  host: %s.test\n  to: {kind: Service, name: %s}\n  alternateBackends: [{kind: Service, name: %s}]\n  tls: {termination: reencrypt}\n---\n",
			name, name, services[0], services[1])
	}
	text := route("right", "one", "two") + route("crossed", "three", "four")
	for service, name := range map[string]string{"one": "one", "two": "two", "three": "four", "four": "three"} {
		text += slice(service, startSecurePod(t, ca, name+".default.svc", "h2").Listener.Addr())
	}
	write(t, dir, "all.yaml", []byte(text))
	plane, _ := startInProcess(t, dir, controller.Options{DefaultDestinationCA: []byte(ca.pem), UpstreamALPN: []protocol.Protocol{protocol.HTTP2}})
	client := browser(t, plane.HTTPS().String(), "h2")
	for host, status := range map[string]int{"right.test": 200, "crossed.test": 503} {
		for range 4 {
			resp, err := client.Get("https://" + host + "/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != status {
				t.Errorf("%s: status %d, want %d", host, resp.StatusCode, status)
			}
		}
	}
}

// TestChangedCA: neither a connection nor a session that the CA of before has verified is used for one request after the
// route has another.
func TestChangedCA(t *testing.T) {
	ca, other := newAuthority(t, "pods"), newAuthority(t, "strangers")
	for _, selected := range []string{"h2", "http/1.1"} {
		t.Run(selected, func(t *testing.T) {
			p := startSecurePod(t, ca, "secure.default.svc", selected)
			dir := t.TempDir()
			timeout := 30 // its change is a new table to wait for: that of endpoints is none
			publish := func(ca string) {
				timeout++
				route := strings.Replace(tlsRoute("app", "reencrypt", "destinationCACertificate", ca), "{name: app}",
					fmt.Sprintf("{name: app, annotations: {haproxy.router.openshift.io/timeout: %ds}}", timeout), 1)
				write(t, dir, "all.yaml", []byte(route+slice("secure", p.Listener.Addr())))
			}
			publish(ca.pem)
			plane, store := startInProcess(t, dir, controller.Options{UpstreamALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
			client := browser(t, plane.HTTPS().String(), "http/1.1")
			for i, step := range []struct {
				ca     string
				status int
			}{{"", 200}, {other.pem, 503}, {ca.pem, 200}, {other.pem + ca.pem, 200}, {other.pem, 503}} {
				if step.ca != "" {
					next := store.Load().Generation() + 1
					publish(step.ca)
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					if err := store.Wait(ctx, next); err != nil {
						t.Fatal(err)
					}
				}
				for range 4 {
					resp, err := client.Get("https://app.test/")
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if resp.StatusCode != step.status {
						t.Fatalf("step %d: status %d, want %d", i, resp.StatusCode, step.status)
					}
				}
			}
		})
	}
}

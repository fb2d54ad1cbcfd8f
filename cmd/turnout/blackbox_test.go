package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnout/controller"
	"turnout/internal/server"
)

// boxRoute is a route of the service secure to a host, with a tls section.
func boxRoute(name, host, termination string, fields ...string) string {
	return strings.Replace(tlsRoute(name, termination, fields...), "host: "+name+".test", "host: "+host, 1)
}

// boxPod is the service secure: a TLS pod that says which host it was asked for.
func boxPod(t *testing.T, ca *authority, name string) string {
	t.Helper()
	cert, key, _ := sign(t, ca, name)
	pod := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "pod "+r.Host) }))
	pod.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	pod.StartTLS()
	t.Cleanup(pod.Close)
	return slice("secure", pod.Listener.Addr())
}

// overTLS asks for a host over a connection with a server name, "" = none. It returns the status, the body, the name of the
// certificate that was shown and what ALPN agreed on.
func overTLS(addr, serverName, host string) (status int, body, shown, protocol string, err error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", addr,
		&tls.Config{ServerName: serverName, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		return 0, "", "", "", err
	}
	defer c.Close()
	state := c.ConnectionState()
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
		return 0, "", "", "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", "", "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), state.PeerCertificates[0].Subject.CommonName, state.NegotiatedProtocol, err
}

// TestBlackBoxTLS is the half of section AA that needs TLS or a whole router.
func TestBlackBoxTLS(t *testing.T) {
	ca, other := newAuthority(t, "pods"), newAuthority(t, "strangers")
	_, key, own := sign(t, ca, "one.custom.test")
	routes := boxRoute("one", "one.custom.test", "reencrypt", "certificate", own, "key", keyPEM(t, key), "destinationCACertificate", ca.pem) +
		boxRoute("edge", "edge.apps.test", "reencrypt", "destinationCACertificate", ca.pem) +
		boxRoute("wrong", "wrong.test", "reencrypt", "destinationCACertificate", other.pem) +
		boxRoute("default", "default.test", "reencrypt") + boxRoute("pt", "pt.apps.test", "passthrough")
	const router, alert = "openshift-router", "unrecognized name"
	for _, tc := range []struct {
		id, pod    string // name of the pod's certificate
		defaultCA  string
		strict     bool
		sni, host  string
		status     int
		shows      string // common name of the certificate, or the alert
		answersPod bool
	}{
		{id: "TLS sni one.custom.test: 200, own certificate, ALPN h2 if offered", sni: "one.custom.test", host: "one.custom.test", status: 200, shows: "one.custom.test"},
		{id: "TLS without SNI Host one.custom.test: 200, default certificate", sni: "", host: "one.custom.test", status: 200, shows: router},
		{id: "TLS sni PT.apps.test: passthrough", sni: "PT.apps.test", host: "pt.apps.test", status: 200, shows: "any.name"},
		{id: "TLS sni pt.apps.test Host one.custom.test: reaches the passthrough pod", sni: "pt.apps.test", host: "one.custom.test", status: 200, shows: "any.name"},
		{id: "strict SNI, sni nosuch.test: alert unrecognized_name", strict: true, sni: "nosuch.test", host: "nosuch.test", shows: alert},
		{id: "strict SNI, sni edge.apps.test not in default cert: alert", strict: true, sni: "edge.apps.test", host: "edge.apps.test", shows: alert},
		{id: "strict, with a certificate", strict: true, sni: "one.custom.test", host: "one.custom.test", status: 200, shows: "one.custom.test"},
		{id: "strict, without a name", strict: true, sni: "", host: "edge.apps.test", status: 200, shows: router},
		{id: "destination CA correct CA, default CA any, pod certificate signed by it, any name: 200", sni: "edge.apps.test", host: "edge.apps.test", status: 200, shows: router},
		{id: "destination CA wrong CA, default CA any: 503", sni: "wrong.test", host: "wrong.test", status: 503, shows: router},
		{id: "destination CA none, default CA correct, cert name svc.ns.svc: 200", pod: "secure.default.svc", defaultCA: ca.pem, sni: "default.test", host: "default.test", status: 200, shows: router},
		{id: "destination CA none, default CA correct, other name: 503", pod: "other.default.svc", defaultCA: ca.pem, sni: "default.test", host: "default.test", status: 503, shows: router},
	} {
		t.Run(tc.id, func(t *testing.T) {
			if tc.pod == "" {
				tc.pod = "any.name"
			}
			dir := t.TempDir()
			write(t, dir, "all.yaml", []byte(routes+boxPod(t, ca, tc.pod)))
			plane, _ := startInProcess(t, dir, controller.Options{DefaultDestinationCA: []byte(tc.defaultCA)}, func(c *server.Config) { c.StrictSNI = tc.strict })
			status, body, shown, protocol, err := overTLS(plane.HTTPS().String(), tc.sni, tc.host)
			if tc.status == 0 {
				if err == nil || !strings.Contains(err.Error(), tc.shows) {
					t.Errorf("status %d, error %v, want the alert", status, err)
				}
				return
			}
			if err != nil || status != tc.status || shown != tc.shows || (body == "pod "+tc.host) != (status == 200) {
				t.Errorf("status %d (want %d), certificate %q (want %q), body %.40q, %v", status, tc.status, shown, tc.shows, body, err)
			}
			if tc.shows != "any.name" && protocol != "http/1.1" {
				t.Errorf("ALPN agreed on %q", protocol)
			}
		})
	}
}

// TestBlackBoxOtherProtocol is what section AA says of bytes on the wrong port.
func TestBlackBoxOtherProtocol(t *testing.T) {
	plane, _ := startInProcess(t, t.TempDir(), controller.Options{})
	hello := []byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for _, tc := range []struct {
		id, to string
		send   []byte
		begins string // what comes back, "" = nothing
		stays  bool   // the connection goes on
	}{
		{"plain HTTP to 443: closed, no bytes", plane.HTTPS().String(), []byte("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"), "", false},
		{"TLS to 80: 400 in clear text", plane.HTTP().String(), hello, "HTTP/1.1 400 Bad Request\r\n", false},
		{"h2 preface on 80: SETTINGS frame", plane.HTTP().String(), []byte(preface), "\x00\x00", true},
	} {
		c, err := net.Dial("tcp", tc.to)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(tc.send); err != nil {
			t.Fatal(err)
		}
		if tc.stays { // the first frame is SETTINGS (RFC 9113 section 3.4)
			head := make([]byte, 9)
			if _, err := io.ReadFull(c, head); err != nil || head[3] != 4 || head[4] != 0 {
				t.Errorf("%s: frame %x, %v", tc.id, head, err)
			}
			c.Close()
			continue
		}
		got, err := io.ReadAll(c)
		var reset *net.OpError
		if errors.As(err, &reset) && !reset.Timeout() {
			err = nil // closed is closed
		}
		if err != nil || !strings.HasPrefix(string(got), tc.begins) || tc.begins == "" && len(got) > 0 {
			t.Errorf("%s: got %.100q, %v", tc.id, got, err)
		}
		c.Close()
	}
}

package server_test

import (
	"crypto/tls"
	"net/http"
	"testing"

	"turnout/internal/server"
	"turnout/internal/testkit/testcert"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// TestClientCertificatesOfAPort: each port asks its clients for what all of its listeners say, in each mode, and goes by other authorities as soon as
// there are others.
func TestClientCertificatesOfAPort(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-w.Started()
	others := testcert.Sign(t, authority("others"), nil)
	w.client("ours", w.authority)
	w.client("theirs", others)
	certificate := w.served("a.test", "b.test")
	names := []string{"none", "required", "optional", "unverified", "moved"}
	var ports []server.Port
	for _, name := range names {
		ports = append(ports, server.Port{Name: name, Addr: loopback, Kind: server.PortTLS})
	}
	w.set(ports...)
	serve := func(ask map[string]*routing.ClientAuthSpec) {
		var listeners []routing.ListenerSpec
		var rules []routing.RuleSpec
		for _, port := range names {
			for i, host := range []string{"a.test", "b.test"} {
				name := port + " " + host
				listeners = append(listeners, routing.ListenerSpec{Name: name, Port: port, Hostname: host, TLS: true, Certificates: []*routing.CertificateSpec{certificate}, ClientAuth: ask[port]})
				rules = append(rules, w.rule(name, port, host, edge, func(s *routing.RuleSpec) { s.RouteKey.Rule = i }))
			}
		}
		w.publish(listeners, rules...)
	}
	by := func(mode clientcert.Mode, ca *testcert.Pair) *routing.ClientAuthSpec {
		spec := &routing.ClientAuthSpec{Mode: mode}
		if ca != nil {
			spec.CA = ca.PEM()
		}
		return spec
	}
	serve(map[string]*routing.ClientAuthSpec{
		"required": by(clientcert.Required, w.authority), "optional": by(clientcert.Optional, w.authority), "unverified": by(clientcert.Unverified, nil), "moved": by(clientcert.Required, w.authority),
	})
	type row struct{ port, client, want string }
	check := func(rows []row) {
		t.Helper()
		for _, c := range rows {
			for _, version := range []string{"1.2", "1.3"} {
				args := []string{"--tls-max", version}
				if c.client != "" {
					args = append(args, "--cert", c.client+".pem")
				}
				got := w.ask(w.Port(c.port), "https://a.test/", args...)
				if got == "curl 35" || got == "curl 56" { // with TLS 1.3 the alert comes after the handshake
					got = "refused"
				}
				if got != c.want {
					t.Errorf("%s %s with %q: %s, want %s", c.port, version, c.client, got, c.want)
				}
			}
		}
	}
	served := func(port, cn string) string { return `HTTP/2 ` + port + ` a.test client="` + cn + `"` }
	check([]row{
		{"none", "", served("none", "")}, {"none", "ours", served("none", "")}, {"none", "theirs", served("none", "")},
		{"required", "", "refused"}, {"required", "ours", served("required", "ours")}, {"required", "theirs", "refused"},
		{"optional", "", served("optional", "")}, {"optional", "ours", served("optional", "ours")}, {"optional", "theirs", "refused"},
		{"unverified", "", served("unverified", "")}, {"unverified", "ours", served("unverified", "")}, {"unverified", "theirs", served("unverified", "")},
	})

	// A client that stays connected, and one that comes back with its session.
	pair, err := tls.LoadX509KeyPair(w.dir+"/ours.pem", w.dir+"/ours.pem")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, ServerName: "a.test", ClientSessionCache: tls.NewLRUClientSessionCache(4),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}}
	defer transport.CloseIdleConnections()
	visit := func() (status int) {
		request, err := http.NewRequest(http.MethodGet, "https://"+w.Port("moved").String()+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "a.test"
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := visit(); got != http.StatusOK {
		t.Fatal(got)
	}
	serve(map[string]*routing.ClientAuthSpec{
		"required": by(clientcert.Required, others), "optional": by(clientcert.Unverified, nil), "unverified": by(clientcert.Required, others), "moved": by(clientcert.Required, others),
	})
	if got := visit(); got == http.StatusOK {
		t.Errorf("a connection of before is served by authorities that count no more: %d", got)
	}
	transport.CloseIdleConnections()
	if got := visit(); got != 0 {
		t.Errorf("a session of before: %d", got)
	}
	check([]row{
		{"required", "ours", "refused"}, {"required", "theirs", served("required", "theirs")}, {"optional", "theirs", served("optional", "")}, {"optional", "ours", served("optional", "")},
		{"unverified", "", "refused"}, {"unverified", "theirs", served("unverified", "theirs")},
	})
}

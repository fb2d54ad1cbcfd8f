package server_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"turnout/controller"
	"turnout/controller/source"
	"turnout/internal/explain"
	"turnout/internal/server"
	"turnout/routing"
)

// know remembers ports, for explanations.
func (w *web) know(ports []server.Port) {
	for _, p := range ports {
		w.kinds[p.Name] = p.Kind
	}
}

// GatewayPorts implements explain.Gateways: each port is that of a Gateway of its own.
func (w *web) GatewayPorts() (list []controller.GatewayPort) {
	words := map[server.PortKind]string{server.PortHTTP: "HTTP", server.PortTLS: "TLS", server.PortTCP: "TCP", server.PortUDP: "UDP"}
	for name, kind := range w.kinds {
		if at := w.Port(name); at.IsValid() {
			list = append(list, controller.GatewayPort{Name: name, Gateway: source.Key{Namespace: "ns", Name: name}, Number: int32(at.Port()), Protocol: words[kind], Local: at.String()})
		}
	}
	return list
}

// GatewayOf implements explain.Gateways.
func (w *web) GatewayOf(string) (*controller.GatewayReport, bool) { return nil, false }

// GatewayReport implements explain.Gateways.
func (w *web) GatewayReport(_, _, _ string) (*controller.GatewayReport, bool) { return nil, false }

// GatewayClaims implements explain.Gateways.
func (w *web) GatewayClaims(source.Key, string) []controller.GatewayReport { return nil }

// explain is what explain says of a request of curl in its words, "" if that depends on certificates of clients, or curl does not say what it was answered.
func (w *web) explain(port netip.AddrPort, url string, args []string) string {
	w.t.Helper()
	known := slices.ContainsFunc(w.GatewayPorts(), func(p controller.GatewayPort) bool { return p.Number == int32(port.Port()) })
	if !known && port != w.HTTP() && port != w.HTTPS() {
		return "" // a test has opened it for itself
	}
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	q := explain.Query{URL: scheme + "://" + host + ":" + strconv.Itoa(int(port.Port())) + "/" + path, HTTP2: scheme == "https", Client: netip.MustParseAddr("127.0.0.1")}
	for i, arg := range args {
		switch arg {
		case "--cert", "--tls-max", "-w", "--tls-max 1.2":
			return ""
		case "--http1.1":
			q.HTTP2 = false
		case "--http2-prior-knowledge":
			q.HTTP2 = true
		case "-X":
			q.Method = args[i+1]
		case "-H":
			q.Header = append(q.Header, args[i+1])
		}
	}
	x, err := explain.New(explain.Config{Deciding: w.Deciding, Gateways: w})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := x.Explain(w.Store().Load(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	switch {
	case slices.ContainsFunc(a.Assumed, func(s string) bool { return strings.Contains(s, "certificate") }):
		return ""
	case a.TLS != nil && a.TLS.Refused:
		return "curl 35"
	case a.TLS != nil && a.TLS.Certificate != nil && !a.TLS.Certificate.Covers && !slices.Contains(args, "-k"):
		return "curl 60"
	case a.Outcome.By == explain.ByEndpoint && slices.ContainsFunc(a.Endpoints, func(e explain.Endpoint) bool { return e.TLS != "" }):
		return "" // nobody knows beforehand whether it is trusted
	case a.Outcome.By == explain.ByEndpoint:
		return "200"
	}
	return strconv.Itoa(a.Outcome.Status)
}

// TestExplained: what is said of requests to listeners before curl sends them is what it gets; most tests of listeners compare so.
func TestExplained(t *testing.T) {
	w := startWeb(t)
	w.publish([]routing.ListenerSpec{{Name: "any", Port: "web"}, {Name: "a", Port: "web", Hostname: "a.test"}}, w.rule("any", "any", "*"), w.rule("a", "a", "a.test"))
	for _, host := range []string{"a.test", "b.test"} {
		w.ask(w.Port("web"), "http://"+host+"/")
	}
	if w.explained != 2 {
		t.Errorf("%d requests were explained", w.explained)
	}
}

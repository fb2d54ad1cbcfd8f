package routing

import (
	"testing"
	"time"
)

// taken says where a connection to a TLS port goes by its server name.
func taken(t *Table, port, sni string) string {
	d := t.SNIAt(port, sni)
	switch {
	case d.Passthrough != nil:
		return "through " + d.Passthrough.Name()
	case d.Certificate == nil && d.Silent:
		return "closed"
	case d.Certificate == nil:
		return "alert"
	case d.Stream != nil:
		return "stream " + d.Stream.Name()
	}
	return "requests at " + d.Arrival.Listener
}

func through(s *RuleSpec)  { s.Termination = TermPassthrough }
func streamed(s *RuleSpec) { s.Termination = TermStream }

func created(at int64) func(*RuleSpec) {
	return func(s *RuleSpec) { s.Created = time.Unix(at, 0) }
}

// TestStreamsByServerName: on one port TLS passes through, ends for bytes, or ends for requests, by the name of the ClientHello.
func TestStreamsByServerName(t *testing.T) {
	certificates := []*CertificateSpec{newCertificateFor(t, "a.test")}
	table := listening(t,
		[]ListenerSpec{
			{Name: "pass", Port: "p", Hostname: "*.pass.test", TLS: true, Stream: true}, {Name: "end", Port: "p", Hostname: "end.test", TLS: true, Stream: true, Certificates: certificates},
			{Name: "bare", Port: "p", Hostname: "bare.test", TLS: true, Stream: true},
			{Name: "web", Port: "p", Hostname: "web.test", TLS: true, Certificates: certificates},
			{Name: "any", Port: "q", TLS: true, Stream: true}, {Name: "https", Port: "r", Hostname: "web.test", TLS: true, Certificates: certificates},
			{Name: "all", Port: "s", TLS: true, Stream: true, Certificates: certificates},
		},
		heard("pass", "deep", "*.pass.test", "", through), heard("pass", "deeper", "*.b.pass.test", "", through), heard("pass", "exact", "a.pass.test", "", through),
		heard("end", "ended", "end.test", "", streamed), heard("bare", "uncertified", "bare.test", "", streamed), heard("web", "web", "web.test", "/", overTLS),
		heard("any", "younger", "same.test", "", through, created(2)), heard("any", "older", "same.test", "", through, created(1)),
		heard("all", "everybody", "*", "", streamed),
	)
	for _, c := range []struct{ port, sni, want string }{
		{"p", "x.pass.test", "through deep"}, {"p", "x.y.pass.test", "through deep"}, {"p", "a.pass.test", "through exact"}, {"p", "A.Pass.Test", "through exact"},
		{"p", "x.b.pass.test", "through deeper"}, {"p", "b.pass.test", "through deep"}, {"p", "pass.test", "closed"},
		{"p", "end.test", "stream ended"}, {"p", "bare.test", "closed"}, {"p", "web.test", "requests at web"}, {"p", "nobody.test", "closed"}, {"p", "", "closed"},
		{"q", "same.test", "through older"}, {"q", "other.test", "closed"}, {"q", "", "closed"},
		{"r", "other.test", "alert"}, {"s", "x.y.test", "stream everybody"}, {"s", "", "stream everybody"},
	} {
		if got := taken(table, c.port, c.sni); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.port, c.sni, got, c.want)
		}
	}
	if got := heardBy(table, "p", "end.test", "end.test", "/"); got != "404" {
		t.Errorf("a request for what is a stream: %s", got)
	}
	table, _ = table.ApplyRules(nil, []RouteKey{{Namespace: "gw", Name: "older", UID: "u"}, {Namespace: "gw", Name: "ended", UID: "u"}})
	if got := taken(table, "q", "same.test") + ", " + taken(table, "p", "end.test"); got != "through younger, closed" {
		t.Errorf("without the older one: %s", got)
	}
}

// TestStreamOfAPort: all connections to a port belong to its oldest rule.
func TestStreamOfAPort(t *testing.T) {
	table := listening(t, []ListenerSpec{{Name: "l", Port: "tcp", Stream: true}, {Name: "m", Port: "none", Stream: true}, {Name: "http", Port: "http"}, {Name: "tls", Port: "tls", TLS: true, Stream: true}},
		heard("l", "younger", "*", "", streamed, created(2)), heard("l", "older", "*", "", streamed, created(1)), heard("http", "web", "*", "/"), heard("tls", "over", "*", "", streamed))
	for port, want := range map[string]string{"tcp": "older", "none": "", "http": "", "tls": "", "unknown": ""} {
		got := ""
		if r := table.Stream(port); r != nil {
			got = r.Name()
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", port, got, want)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { table.Stream("tcp") }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
	if _, rejected := table.ApplyListeners([]ListenerSpec{{Name: "n", Port: "tcp2", Hostname: "a.test", Stream: true}}, nil); len(rejected) != 1 {
		t.Error("a host name without TLS is accepted")
	}
	if TermStream.String() != "stream" || TermStream.Backend() != "be_tcp" || !TermStream.Relays() || TermEdge.Relays() {
		t.Error("words of TermStream")
	}
}

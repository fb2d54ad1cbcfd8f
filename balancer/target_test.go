package balancer

import (
	"crypto/x509"
	"net/netip"
	"testing"

	"turnout/internal/testkit/testcert"
	"turnout/internal/wire/protocol"
)

func TestServerID(t *testing.T) {
	for _, row := range []struct {
		id, pod, service, port, addr, want string
	}{
		{"2.2.2.2 port 8080 port, Pod pod-1 with UDP: pod:pod-1:test:port:2.2.2.2:8080", "pod-1", "test", "port", "2.2.2.2:8080", "pod:pod-1:test:port:2.2.2.2:8080"},
		{"1.1.1.1 TCP 345 tcp, UDP 346 udp, Pod pod-1: pod:pod-1:test:tcp:1.1.1.1:345", "pod-1", "test", "tcp", "1.1.1.1:345", "pod:pod-1:test:tcp:1.1.1.1:345"},
		{"2.2.2.2 TCP 8080, UDP 8081, no ref: ept:test:tcp:2.2.2.2:8080", "", "test", "tcp", "2.2.2.2:8080", "ept:test:tcp:2.2.2.2:8080"},
		{"targetRef kind Node: ept:... form", "", "test", "", "2.2.2.2:8080", "ept:test::2.2.2.2:8080"},
		{"2001:db8::1 port 80: id without brackets, dial address [2001:db8::1]:80", "", "test", "http", "[2001:db8::1]:80", "ept:test:http:2001:db8::1:80"},
	} {
		addr := netip.MustParseAddrPort(row.addr)
		if got := ServerID(row.pod, row.service, row.port, addr.Addr().String(), addr.Port()); got != row.want {
			t.Errorf("%s: %q, want %q", row.id, got, row.want)
		}
	}
}

func TestCookieValue(t *testing.T) {
	for id, c := range map[string][2]string{
		"pod:pod-a-0:a:http:127.0.0.1:20001: value 57557b53ff525de33780c89ab90ac8ca": {"pod:pod-a-0:a:http:127.0.0.1:20001", "57557b53ff525de33780c89ab90ac8ca"},
		"pod:pod-b-0:b:http:127.0.0.1:20002: value 13ed5626ce5997f71c35a4ac9dfcf95f": {"pod:pod-b-0:b:http:127.0.0.1:20002", "13ed5626ce5997f71c35a4ac9dfcf95f"},
	} {
		if got := CookieValue(c[0]); got != c[1] {
			t.Errorf("%s: %q: sessions of the HAProxy router are lost", id, got)
		}
	}
}

func TestNewTLSKey(t *testing.T) {
	var pairs [2][2]string
	for i := range pairs {
		pair := testcert.Sign(t, &x509.Certificate{}, nil)
		pairs[i] = [2]string{pair.PEM(), pair.KeyPEM(t)}
	}
	configs := []TLSConfig{
		{},
		{SNI: "a"},
		{ServerName: "a"},
		{ALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}},
		{ALPN: []protocol.Protocol{protocol.HTTP1, protocol.HTTP2}},
		{ALPN: []protocol.Protocol{protocol.HTTP2}},
		{Verify: true, CA: caA},
		{Verify: true, CA: caB},
		{Verify: true, CA: caA, ServerName: "a"},
		{Verify: true, CA: caA, ServerName: `a" sni="b`},
		{Verify: true, CA: caA, ServerName: "a", SNI: "b"},
		{Verify: true, CA: caA, System: true},
		{Verify: true, System: true},
		{Verify: true, CA: caA, SubjectAltNames: []SubjectAltName{{DNS: "a"}}},
		{Verify: true, CA: caA, SubjectAltNames: []SubjectAltName{{URI: "a"}}},
		{Verify: true, CA: caA, SubjectAltNames: []SubjectAltName{{DNS: "a"}, {URI: "a"}}},
		{Verify: true, CA: caA, SubjectAltNames: []SubjectAltName{{DNS: `a" uri="" dns="b`}}},
		{CertPEM: pairs[0][0], KeyPEM: pairs[0][1]},
		{CertPEM: pairs[1][0], KeyPEM: pairs[1][1]},
	}
	seen := make(map[string]int)
	for i, c := range configs {
		one, err := NewTLS(c)
		if err != nil {
			t.Fatal(err)
		}
		two, err := NewTLS(c)
		if err != nil {
			t.Fatal(err)
		}
		if one.Key != two.Key {
			t.Errorf("config %d has two keys", i)
		}
		if k, twice := seen[one.Key]; twice {
			t.Errorf("configs %d and %d share key %q", k, i, one.Key)
		}
		seen[one.Key] = i
		if (one.Roots != nil) != c.Verify {
			t.Errorf("config %d: roots are %v", i, one.Roots)
		}
	}
	for _, bad := range []TLSConfig{
		{Verify: true, CA: "no PEM"}, {Verify: true, CA: "no PEM", System: true}, {CertPEM: pairs[0][0]}, {KeyPEM: pairs[0][1]}, {CertPEM: pairs[0][0], KeyPEM: pairs[1][1]},
	} {
		if _, err := NewTLS(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

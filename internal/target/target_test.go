package target

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestHost judges addresses of EndpointSlices. with is the result where loopback is allowed.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		id, address string
		want, with  bool
	}{
		{"address 1.2.3.4 is kept", "1.2.3.4", true, true},
		{"address 23.206.60.92 is kept", "23.206.60.92", true, true},
		{"address 127.0.0.1 is left out", "127.0.0.1", false, true},
		{"address 127.127.127.222 is left out", "127.127.127.222", false, true},
		{"address ::1 is left out", "::1", false, true},
		{"address 169.254.1.1 is left out", "169.254.1.1", false, false},
		{"address 168.63.129.16 is left out", "168.63.129.16", false, false},
		{"address 2001:db8::1 is kept", "2001:db8::1", true, true},
		{"address fe80::1 is left out", "fe80::1", false, false},
		{"address :: is left out", "::", false, false},
		{"unspecified", "0.0.0.0", false, false},
		{"address fd00:ec2::254 is left out", "fd00:ec2::254", false, false},
		{"address ff02::1 is left out", "ff02::1", false, false},
		{"address 224.0.0.1 is left out", "224.0.0.1", false, false},
		{"address ::ffff:127.0.0.1 is left out", "::ffff:127.0.0.1", false, true},
		{"address ::ffff:169.254.169.254 is left out", "::ffff:169.254.169.254", false, false},
		{"address ::a9fe:a9fe is left out", "::a9fe:a9fe", false, false},
		{"address ::169.254.169.254 is left out", "::169.254.169.254", false, false},
		{"address ::7f00:1 is left out", "::7f00:1", false, true},
		{"address ::127.172.127.172 is left out", "::127.172.127.172", false, true},
		{"address evil.example.com is left out", "evil.example.com", false, false},
		{"address \"\" is left out", "", false, false},
		{"zone", "fe80::1%eth0", false, false},
		{"Alibaba Cloud", "100.100.100.200", false, false},
		{"Google Cloud", "fd20:ce::254", false, false},
		{"its neighbour", "fd20:ce::255", true, true},
		{"NAT64 of a metadata address", "64:ff9b::a9fe:a9fe", false, false},
		{"NAT64 of WireServer", "64:ff9b::168.63.129.16", false, false},
		{"NAT64 of loopback", "64:ff9b::7f00:1", false, true},
		{"NAT64 of a pod", "64:ff9b::10.0.0.1", true, true},
		{"local NAT64 of a metadata address", "64:ff9b:1::a9fe:a9fe", false, false},
		{"local NAT64 with 48 bits", "64:ff9b:1:a9fe:a9:fe00::", false, false},
		{"local NAT64 with 56 bits", "64:ff9b:1:a9:fe:a9fe::", false, false},
		{"local NAT64 with 64 bits", "64:ff9b:1:0:a9:fea9:fe00:0", false, false},
		{"local NAT64 of a pod with 48 bits", "64:ff9b:1:a00:0:100::", true, true},
		{"local NAT64 of a pod with 64 bits", "64:ff9b:1:0:a:0:100:0", true, true},
		{"local NAT64 of a pod with 96 bits", "64:ff9b:1::10.0.0.1", true, true},
		{"6to4 of a metadata address", "2002:a9fe:a9fe::1", false, false},
		{"translated metadata address", "::ffff:0:a9fe:a9fe", false, false},
		{"broadcast", "255.255.255.255", false, false},
	} {
		for allow, want := range map[bool]bool{false: c.want, true: c.with} {
			if h, err := NewPolicy(allow, nil).Host(c.address); (err == nil) != want || h.ip.IsValid() != want {
				t.Errorf("%s: loopback %v: %v, %v", c.address, allow, h.ip, err)
			}
		}
	}
}

// onNode returns the policy of a router on the network of its node, with its admin port at one
// address.
func onNode() *Own {
	return NewOwn(
		[]netip.AddrPort{netip.MustParseAddrPort("[::]:80"), netip.MustParseAddrPort("0.0.0.0:443"), netip.MustParseAddrPort("192.0.2.7:1936")},
		[]netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("fe80::7%eth0"), netip.MustParseAddr("::ffff:198.51.100.7"), netip.MustParseAddr("127.0.0.1")})
}

// TestOwn checks addresses of the router in every form in which they can be written.
func TestOwn(t *testing.T) {
	own := onNode()
	policy := NewPolicy(true, own)
	for at, want := range map[string]bool{
		"192.0.2.7:80": true, "192.0.2.7:443": true, "192.0.2.7:1936": true, "192.0.2.7:8080": false, "192.0.2.8:80": false,
		"[::ffff:192.0.2.7]:80": true, "[::192.0.2.7]:443": true, "[::ffff:192.0.2.7]:1936": true, "[::192.0.2.7]:8080": false,
		"[2001:db8::7]:443": true, "[2001:db8::7]:1936": false, "[2001:db8::8]:443": false,
		"198.51.100.7:80": true, "198.51.100.7:1936": false,
		"127.0.0.1:80": true, "127.8.8.8:443": true, "[::1]:80": true, "127.0.0.1:8080": false,
	} {
		if _, err := policy.Addr(netip.MustParseAddrPort(at)); errors.Is(err, ErrOwn) != want {
			t.Errorf("%s: %v", at, err)
		}
	}
	var nowhere *Own
	if !nowhere.Equal(nil) || nowhere.Equal(own) || !own.Equal(onNode()) {
		t.Error("an Own differs from itself, or equals another one")
	}
}

// TestNoPolicyAdmitsNothing checks that a missing policy refuses all addresses instead of admitting
// them.
func TestNoPolicyAdmitsNothing(t *testing.T) {
	var p *Policy
	if _, err := p.Addr(netip.MustParseAddrPort("10.0.0.1:80")); err == nil {
		t.Error("an address was admitted")
	}
	if _, err := NewPolicy(true, nil).At(Host{}, 80); err == nil {
		t.Error("the zero Host was admitted")
	}
	if (&Guard{}).Control("tcp4", "10.0.0.1:80", nil) == nil {
		t.Error("a guard without a policy admitted an address")
	}
}

// TestGuardJudgesResolvedAddresses checks that host names and redirects are judged by their address
// at the moment of the connect.
func TestGuardJudgesResolvedAddresses(t *testing.T) {
	var g Guard
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Control: g.Control}).DialContext}}
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	}))
	defer pod.Close()
	admin := httptest.NewServer(http.NotFoundHandler())
	defer admin.Close()
	own := NewOwn([]netip.AddrPort{netip.MustParseAddrPort(admin.Listener.Addr().String())}, nil)
	_, port, _ := net.SplitHostPort(admin.Listener.Addr().String())
	get := func(url string) error {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	for _, c := range []struct {
		loopback bool
		url, why string // "" = admitted
	}{
		{true, pod.URL, ""},
		{false, pod.URL, "loopback address"},
		{false, "http://localhost:" + port, "loopback address"},
		{true, admin.URL, ErrOwn.Error()},
		{true, "http://localhost:" + port, ErrOwn.Error()},
		{true, pod.URL + "?to=" + admin.URL, ErrOwn.Error()},
		{true, pod.URL + "?to=http://169.254.169.254/latest", "link-local"},
	} {
		g.Set(NewPolicy(c.loopback, own))
		err := get(c.url)
		if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, want %q", c.url, err, c.why)
		}
	}
}

// TestSketchesMeet checks that the sketches of two sets meet if the sets have an address in common,
// in every form of the address.
func TestSketchesMeet(t *testing.T) {
	cluster := netip.MustParseAddr("172.30.0.9")
	front := &Front{Hosts: []netip.Addr{cluster}, NodePorts: []uint16{30080}}
	before := onNode()
	after := before.WithFronts([]*Front{front})
	differ := before.Differs(after)
	for _, text := range []string{"172.30.0.9", "::ffff:172.30.0.9", "64:ff9b::172.30.0.9", "::172.30.0.9", "192.0.2.7", "2001:db8::7"} {
		if ip := netip.MustParseAddr(text); SketchOf(ip)&differ == 0 || SketchOf(ip)&after.Sketch() == 0 {
			t.Errorf("%s is missed", text)
		}
	}
	for at, want := range map[string]bool{"172.30.0.9:1": true, "192.0.2.7:30080": true, "192.0.2.8:30080": false, "[64:ff9b::172.30.0.9]:5": true, "127.0.0.1:80": false} {
		place := netip.MustParseAddrPort(at)
		if after.LeadsTo(place.Addr(), []uint16{place.Port()}) != want || before.LeadsTo(place.Addr(), []uint16{30080}) {
			t.Errorf("%s: want %t", at, want)
		}
	}
	if !before.Equal(onNode()) || differ == All || after.Differs(after) != 0 || before.Differs(before.With([]netip.AddrPort{netip.MustParseAddrPort("[::]:81")}, nil)) != All {
		t.Error("sets differ otherwise")
	}
}

package server

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

// knot is a secondary of others: Knot DNS.
type knot struct {
	t    *testing.T
	addr string
	dir  string
}

// program returns where a program of a server is, which need not be in the path of people.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if path := filepath.Join("/usr/sbin", name); exec.Command(path, "--version").Run() == nil {
		return path
	}
	return ""
}

// freePort is one that nobody uses, with UDP and TCP.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := netip.MustParseAddrPort(l.Addr().String())
		u, err := net.ListenPacket("udp", addr.String())
		_ = l.Close()
		if err == nil {
			_ = u.Close()
			return addr
		}
	}
}

// startKnot runs a secondary of a zone at addr until the test ends.
func startKnot(t *testing.T, addr netip.AddrPort, primary string) *knot {
	t.Helper()
	k := &knot{t: t, addr: addr.String(), dir: t.TempDir()}
	host, port, _ := net.SplitHostPort(primary)
	config := fmt.Sprintf(`
server:
  rundir: %[1]s
  listen: %[2]s@%[3]d
database:
  storage: %[1]s
log:
  - target: stderr
    any: debug
key:
  - id: secondary.example.com
    algorithm: hmac-sha256
    secret: c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0
remote:
  - id: primary
    address: %[4]s@%[5]s
    key: secondary.example.com
acl:
  - id: notified
    address: 127.0.0.1
    action: notify
    key: secondary.example.com
template:
  - id: default
    storage: %[1]s
    semantic-checks: on
zone:
  - domain: %[6]s
    master: primary
    acl: notified
`, k.dir, addr.Addr(), addr.Port(), host, port, origin)
	file := filepath.Join(k.dir, "knot.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	run := exec.Command(program("knotd"), "-c", file)
	run.Stdout, run.Stderr = &log, &log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		_ = run.Wait()
		if t.Failed() {
			t.Logf("knotd:\n%s", log.String())
		}
	})
	return k
}

// until asks until an answer is as it should be.
func (k *knot) until(what string, q *dns.Msg, good func(*dns.Msg) bool) {
	k.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		m, _, err := (&dns.Client{Timeout: time.Second}).Exchange(q, k.addr)
		if err == nil && good(m) {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("never: %s; %v, %v", what, m, err)
		}
		<-pause.C
	}
}

// TestKnot: a secondary that others wrote transfers the zone when it begins and when it is told of a change, finds nothing wrong with it, and
// then answers as the primary does.
func TestKnot(t *testing.T) {
	if program("knotd") == "" {
		t.Skip("knotd is not installed")
	}
	addr := freePort(t)
	r := start(t, Config{Keys: keys(t), Notify: []Secondary{{Addr: addr, Key: "secondary.example.com"}}})
	spec := shard1()
	for i := range 2000 {
		spec.Names = append(spec.Names, zone.Name{Name: fmt.Sprintf("app%d.%s", i, origin), Addresses: addresses("10.0.0.9")})
	}
	spec.Cuts = []zone.Cut{{Name: "child." + origin, Servers: []zone.Server{{Name: "ns.child." + origin, Addresses: addresses("192.0.2.53")}}}}
	r.Publish(setOf(t, 2, spec))
	k := startKnot(t, addr, r.Addr())
	serial := func(n uint32) func(*dns.Msg) bool {
		return func(m *dns.Msg) bool { return len(m.Answer) == 1 && m.Answer[0].(*dns.SOA).Serial == n }
	}
	k.until("it has the zone", question(origin, dns.TypeSOA), serial(2))
	r.wait(Transferred)
	for _, name := range []string{"", "a.", "app77.", "x.app77.", "x.y.z.", "child.", "x.child.", "ns1.", "*.", "moved."} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeNS, dns.TypeSOA, dns.TypeMX} {
			q := question(name+origin, kind)
			q.RecursionDesired = false
			theirs, _, err := (&dns.Client{}).Exchange(q, k.addr)
			if err != nil {
				t.Fatal(err)
			}
			if ours := r.ask("udp", q); said(ours) != said(theirs) {
				t.Errorf("%s%s %s:\nours\n%s\ntheirs\n%s", name, origin, dns.TypeToString[kind], said(ours), said(theirs))
			}
		}
	}
	spec.Addresses = addresses("10.0.0.77")
	r.Publish(setOf(t, 3, spec))
	k.until("it has the change", question("a."+origin, dns.TypeA), func(m *dns.Msg) bool {
		return len(m.Answer) == 1 && m.Answer[0].(*dns.A).A.String() == "10.0.0.77"
	})
	k.until("it has the serial", question(origin, dns.TypeSOA), serial(3))
}

// said is what an answer says, whatever the order of records. The names of servers in the authority section of an answer are not needed.
func said(m *dns.Msg) string {
	lines := []string{dns.RcodeToString[m.Rcode], fmt.Sprint("aa ", m.Authoritative)}
	for i, section := range [][]dns.RR{m.Answer, m.Ns} {
		for _, rr := range section {
			lines = append(lines, fmt.Sprint(i, " ", rr))
		}
	}
	slices.Sort(lines[2:])
	return strings.Join(lines, "\n")
}

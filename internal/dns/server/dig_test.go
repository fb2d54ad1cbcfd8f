package server

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dig runs dig and returns what it prints, with spaces made one.
func (r *running) dig(args ...string) string {
	r.t.Helper()
	addr := netip.MustParseAddrPort(r.Addr())
	all := append([]string{"@" + addr.Addr().String(), "-p", strings.Split(r.Addr(), ":")[1], "+norecurse", "+nocmd", "+nostats", "+tries=2", "+timeout=10"}, args...)
	out, err := exec.Command("dig", all...).CombinedOutput()
	if err != nil {
		r.t.Errorf("dig %q: %v\n%s", args, err, out)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestDig: what people see who look with dig, which complains about whatever is odd.
func TestDig(t *testing.T) {
	if _, err := exec.LookPath("dig"); err != nil {
		t.Skip("dig is not installed")
	}
	r := start(t, Config{Keys: keys(t)})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.SplitAfter(keyFile, "};")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	const soa = "shard1.apps.test. 5 IN SOA ns1.shard1.apps.test. hostmaster.shard1.apps.test. 1 3600 60 86400 5"
	for _, c := range []struct {
		args string
		want []string // all of them are printed
	}{
		{"myapp.shard1.apps.test A", []string{"status: NOERROR", "flags: qr aa;", "myapp.shard1.apps.test. 30 IN A 10.0.0.1", "myapp.shard1.apps.test. 30 IN A 10.0.0.2", "EDNS: version: 0, flags:; udp: 1232"}},
		{"myapp.shard1.apps.test AAAA +dnssec", []string{"IN AAAA 2001:db8::1", "flags: do;"}},
		{"MyApp.Shard1.apps.test A +noedns", []string{"MyApp.Shard1.apps.test. 30 IN A 10.0.0.1", "ADDITIONAL: 0"}},
		{"myapp.shard1.apps.test A +edns=1 +noednsnegotiation", []string{"status: BADVERS"}},
		{"myapp.shard1.apps.test MX", []string{"status: NOERROR", "ANSWER: 0", soa}},
		{"x.moved.shard1.apps.test A", []string{"status: NXDOMAIN", soa}},
		{"shard1.apps.test SOA +tcp", []string{soa, "flags: qr aa;"}},
		{"shard1.apps.test NS", []string{"shard1.apps.test. 3600 IN NS ns1.shard1.apps.test.", "ns1.shard1.apps.test. 3600 IN A 127.0.0.1"}},
		{"shard1.apps.test ANY +notcp", []string{`HINFO "RFC8482" ""`}},
		{"example.com A", []string{"status: REFUSED", "ANSWER: 0"}},
		{"version.bind CH TXT", []string{"status: REFUSED"}},
		{"myapp.shard1.apps.test A +opcode=update", []string{"status: NOTIMP"}},
		{"myapp.shard1.apps.test A +header-only", []string{"status: FORMERR"}},
		{"myapp.shard1.apps.test A +cookie=0123456789abcdef +nsid +subnet=192.0.2.0/24", []string{"status: NOERROR", "IN A 10.0.0.1"}},
		{"myapp.shard1.apps.test A +tcp +keepopen myapp.shard1.apps.test AAAA", []string{"IN A 10.0.0.1", "IN AAAA 2001:db8::1"}},
		{"shard1.apps.test AXFR", []string{"; Transfer failed."}},
		{"-k " + key + " shard1.apps.test AXFR", []string{soa, "*.shard1.apps.test. 30 IN A 10.0.0.2", "moved.shard1.apps.test. 30 IN A 10.0.0.9", "TSIG hmac-sha256."}},
		{"-k " + key + " shard1.apps.test IXFR=0", []string{soa, "moved.shard1.apps.test. 30 IN A 10.0.0.9"}},
		{"-k " + key + " myapp.shard1.apps.test A", []string{"IN A 10.0.0.1", "TSIG hmac-sha256.", "NOERROR 0"}},
		{"-y hmac-sha256:unknown:c2VjcmV0 myapp.shard1.apps.test A", []string{"status: NOTAUTH", "BADKEY"}},
		{"-y hmac-sha256:secondary.example.com:c2VjcmV0 myapp.shard1.apps.test A", []string{"status: NOTAUTH", "BADSIG"}},
	} {
		got := r.dig(strings.Fields(c.args)...)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("dig %s: no %q in\n%s", c.args, want, got)
			}
		}
		if wrong := strings.Contains(c.args, "-y"); strings.Contains(got, "WARNING") != wrong && strings.Contains(got, "WARNING") {
			t.Errorf("dig %s warns:\n%s", c.args, got)
		}
	}
}

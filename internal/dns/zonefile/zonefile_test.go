package zonefile

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

func addresses(list string) []netip.Addr {
	var all []netip.Addr
	for _, a := range strings.Fields(list) {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

func spec(name string) zone.Spec {
	origin := name + ".v3.rhcloud.com"
	return zone.Spec{
		Origin: origin, Refresh: 604800, Retry: 86400, Expire: 1206900, TTL: 30, ServerTTL: 3600, NegativeTTL: 300,
		Servers: []zone.Server{{Name: "ns1." + origin, Addresses: addresses("127.0.0.1 ::1")}, {Name: "ns2.example.com"}}, Addresses: addresses("10.245.2.2 10.245.2.3 2001:db8::2"),
		Names: []zone.Name{{Name: "moved." + origin, Addresses: addresses("10.245.2.4")}, {Name: "alias." + origin, Target: "x.example.com"}},
		Cuts:  []zone.Cut{{Name: "child." + origin, Servers: []zone.Server{{Name: "ns.child." + origin, Addresses: addresses("192.0.2.53")}}}},
	}
}

func made(t testing.TB, s zone.Spec, serial uint32) *zone.Zone {
	t.Helper()
	z, err := zone.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return z.WithSerial(serial)
}

func setOf(t testing.TB, zones ...*zone.Zone) *zone.Set {
	t.Helper()
	set, err := zone.NewSet(zones...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func open(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Dir) names(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, made(t, spec("shard1"), 2009092001)); err != nil {
		t.Fatal(err)
	}
	want := mark + `$ORIGIN shard1.v3.rhcloud.com.
@	300	IN SOA	ns1.shard1.v3.rhcloud.com. hostmaster.shard1.v3.rhcloud.com. (
			2009092001 ; serial
			604800 ; refresh
			86400 ; retry
			1206900 ; expire
			300 ) ; negative TTL
@	3600	IN NS	ns1.shard1.v3.rhcloud.com.
@	3600	IN NS	ns2.example.com.
@	30	IN A	10.245.2.2
@	30	IN A	10.245.2.3
@	30	IN AAAA	2001:db8::2
*	30	IN A	10.245.2.2
*	30	IN A	10.245.2.3
*	30	IN AAAA	2001:db8::2
ns1	3600	IN A	127.0.0.1
ns1	3600	IN AAAA	::1
alias	30	IN CNAME	x.example.com.
child	3600	IN NS	ns.child.shard1.v3.rhcloud.com.
ns.child	3600	IN A	192.0.2.53
moved	30	IN A	10.245.2.4
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestReadBack: who reads a file as the RFC has it finds the records of the zone.
func TestReadBack(t *testing.T) {
	z := made(t, spec("shard1"), 7)
	var b bytes.Buffer
	if err := Write(&b, z); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	parser := dns.NewZoneParser(&b, "", "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		got = append(got, rr.String())
	}
	for rr := range z.Records() {
		want = append(want, rr.String())
	}
	if err := parser.Err(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%q\n%q", err, got, want)
	}
}

// TestKnotAccepts: a server that others wrote finds nothing to complain about.
func TestKnotAccepts(t *testing.T) {
	knotc, err := exec.LookPath("knotc")
	if err != nil {
		knotc = "/usr/sbin/knotc"
	}
	if exec.Command(knotc, "--version").Run() != nil {
		t.Skip("knotc is not installed")
	}
	d := open(t)
	if err := d.Write(setOf(t, made(t, spec("shard1"), 1), made(t, spec("shard2"), 2))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "knot.conf")
	text := fmt.Sprintf("template:\n  - id: default\n    storage: %s\n    file: %%s.zone\n    semantic-checks: on\nzone:\n  - domain: shard1.v3.rhcloud.com\n  - domain: shard2.v3.rhcloud.com\n", d.path)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func() string {
		out, err := exec.Command(knotc, "-c", config, "zone-check").CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		return string(out)
	}
	if out := check(); out != "" {
		t.Errorf("knotc says:\n%s", out)
	}
	file := d.file("shard2.v3.rhcloud.com.")
	whole, _ := os.ReadFile(file)
	if err := os.WriteFile(file, append(whole, "alias 30 IN A 10.0.0.1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := check(); !strings.Contains(out, "CNAME") {
		t.Errorf("knotc finds nothing wrong with a zone that is:\n%s", out)
	}
}

func TestFollows(t *testing.T) {
	d := open(t)
	for name, text := range map[string]string{"other.zone": "; of others\n", "short.zone": ";", "gone.v3.rhcloud.com.zone": mark, "shard9.txt": mark, ".hidden.zone": mark} {
		if err := os.WriteFile(filepath.Join(d.path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := func(what, want string, zones ...*zone.Zone) {
		t.Helper()
		if err := d.Write(setOf(t, zones...)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := d.names(t); got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
	const others = ".hidden.zone other.zone"
	one, two := made(t, spec("shard1"), 1), made(t, spec("shard2"), 1)
	f("both", others+" shard1.v3.rhcloud.com.zone shard2.v3.rhcloud.com.zone shard9.txt short.zone", one, two)
	before, err := os.Stat(d.file(one.Origin()))
	if err != nil {
		t.Fatal(err)
	}
	f("one is gone", others+" shard1.v3.rhcloud.com.zone shard9.txt short.zone", made(t, spec("shard1"), 1))
	if after, err := os.Stat(d.file(one.Origin())); err != nil || !os.SameFile(before, after) {
		t.Error("what has not changed was written again")
	}
	f("another serial", others+" shard1.v3.rhcloud.com.zone shard9.txt short.zone", made(t, spec("shard1"), 2))
	if after, err := os.Stat(d.file(one.Origin())); err != nil || os.SameFile(before, after) || after.Mode().Perm() != 0o644 {
		t.Errorf("a change was not written: %v", err)
	}
	f("none", others+" shard9.txt short.zone")
	f("again", others+" shard1.v3.rhcloud.com.zone shard9.txt short.zone", one)
}

// TestSerials: they are known after a restart, and so is whether the zone has changed.
func TestSerials(t *testing.T) {
	d := open(t)
	one := made(t, spec("shard1"), 77)
	if _, known, _ := d.Last(one); known {
		t.Error("known before")
	}
	if err := d.Write(setOf(t, one)); err != nil {
		t.Fatal(err)
	}
	again, err := Open(d.path)
	if err != nil {
		t.Fatal(err)
	}
	changed := spec("shard1")
	changed.TTL++
	for _, c := range []struct {
		z    *zone.Zone
		same bool
	}{{made(t, spec("shard1"), 0), true}, {made(t, changed, 0), false}} {
		if serial, known, same := again.Last(c.z); serial != 77 || !known || same != c.same {
			t.Errorf("serial %d, known %v, same %v", serial, known, same)
		}
	}
	for _, text := range []string{"", "; of others\n$ORIGIN shard1.v3.rhcloud.com.\n@ 1 IN SOA a. b. 5 1 1 1 1\n", mark, mark + "@ 1 IN A 10.0.0.1\n", mark + "$INCLUDE /etc/passwd\n", mark + "x 1 IN SOA a. b. 5 1 1 1 1\n", mark + "(((("} {
		if err := os.WriteFile(d.file(one.Origin()), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if serial, known, _ := again.Last(one); known {
			t.Errorf("%q: serial %d", text, serial)
		}
	}
}

// TestReaders: who reads while files are written finds a whole one, always.
func TestReaders(t *testing.T) {
	d := open(t)
	long := spec("shard1")
	for i := range 2000 {
		long.Names = append(long.Names, zone.Name{Name: fmt.Sprintf("app%d.%s", i, long.Origin), Addresses: addresses("10.0.0.9")})
	}
	zones := []*zone.Zone{made(t, spec("shard1"), 1), made(t, long, 2)}
	var texts [2]string
	for i, z := range zones {
		var b bytes.Buffer
		if err := Write(&b, z); err != nil {
			t.Fatal(err)
		}
		texts[i] = b.String()
	}
	if err := d.Write(setOf(t, zones[0])); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if text, err := os.ReadFile(d.file(zones[0].Origin())); err != nil || string(text) != texts[0] && string(text) != texts[1] {
				t.Errorf("%d bytes: %v", len(text), err)
				return
			}
		}
	})
	for i := range 100 {
		if err := d.Write(setOf(t, zones[i%2])); err != nil {
			t.Error(err)
		}
	}
	close(done)
	reading.Wait()
}

func TestCannotWrite(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	d := open(t)
	z := made(t, spec("shard1"), 1)
	if err := os.Mkdir(d.file(z.Origin()), 0o700); err != nil { // cannot be renamed over
		t.Fatal(err)
	}
	other := made(t, spec("shard2"), 1)
	if err := d.Write(setOf(t, z, other)); err == nil || !strings.Contains(err.Error(), "shard1") {
		t.Error(err)
	}
	if got := d.names(t); got != "shard1.v3.rhcloud.com.zone shard2.v3.rhcloud.com.zone" {
		t.Errorf("the others are not written, or something is left: %s", got)
	}
	if err := os.Remove(d.file(z.Origin())); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(setOf(t, z, other)); err != nil {
		t.Error(err)
	}
	if _, known, same := d.Last(z); !known || !same {
		t.Error("not written later")
	}
	if err := os.RemoveAll(d.path); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(setOf(t)); err == nil {
		t.Error("no error without the folder")
	}
	if err := Write(broken{}, z); err == nil {
		t.Error("no error of the writer")
	}
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

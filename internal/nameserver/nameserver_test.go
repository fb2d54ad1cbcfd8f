package nameserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnout/internal/dns/server"
	"turnout/internal/option"
	"turnout/internal/option/kubectl"
)

func nothing(string) (string, bool) { return "", false }

// TestOptions: what is wrong in the command line is said before anything is asked.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--listen nowhere", "--listen"},
		{"--listen none", "names would go nowhere"},
		{"--listen none --zone-dir /tmp --notify 192.0.2.1", "need a server"},
		{"--notify 192.0.2.1", "nobody may have"},
		{"--notify host", "--notify"},
		{"--notify 192.0.2.1= --allow-transfer 192.0.2.1", "name of a key"},
		{"--allow-transfer everybody", "--allow-transfer"},
		{"--ns a..b", "--ns"},
		{"--ns ns1.example.com=", "at least one address"},
		{"--ns ns1.example.com=x", "--ns"},
		{"--negative-ttl 10ms", "whole seconds"},
		{"--negative-ttl x", "--negative-ttl"},
		{"--expire 100000d", "whole seconds"},
		{"--answers-per-second -1", "--answers-per-second"},
		{"--slip 9999999", "--slip"},
		{"--lost-after 0", "--lost-after"},
		{"--kubeconfig /nowhere/at/all", "/nowhere/at/all"},
		{"--server http://127.0.0.1:1 --admin-addr 127.0.0.1:0 --listen 127.0.0.1:0 --zone-dir /nowhere/at/all", "cannot write zone files"},
		{"--server http://127.0.0.1:1 --admin-addr 127.0.0.1:0 --listen 127.0.0.1:0 --tsig-key-file /nowhere/at/all", "/nowhere/at"},
		{"--server http://127.0.0.1:1 --admin-addr 127.0.0.1:0 --listen 192.0.2.1:53", "cannot make a DNS server"},
		{"--server http://127.0.0.1:1 --admin-addr 192.0.2.1:0 --listen 127.0.0.1:0", "cannot listen"},
		{"--server http://127.0.0.1:1 --admin-addr 127.0.0.1:0 --listen 127.0.0.1:0 --notify 192.0.2.1=k --allow-transfer 192.0.2.1", `no key "k"`},
	} {
		err := Run(context.Background(), strings.Fields(c.args), nothing, "test", io.Discard, func() {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", c.args, err, c.want)
		}
	}
	o := new(Options)
	args := "--ns ns1.example.com --ns ns2.example.com=192.0.2.1,2001:db8::1 --notify 192.0.2.2 --notify [2001:db8::2]:5353=key --hostmaster a.example.com --refresh 1h"
	if _, _, err := option.Parse(o.Table(), nil, strings.Fields(args), nothing); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(o.zones.Servers, o.server.Notify, o.zones.Mailbox, o.zones.Refresh, o.zones.NegativeTTL, o.zones.Expire, o.server.Rate, o.server.Addr); got != "[{ns1.example.com []} {ns2.example.com [192.0.2.1 2001:db8::1]}] [{192.0.2.2:53 } {[2001:db8::2]:5353 key}]a.example.com3600 30 1209600 1000:53" {
		t.Error(got)
	}
}

// lines are those of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// field returns what the first line with a message says in a field, "" without one.
func (l *lines) field(message, name string) string {
	for line := range strings.Lines(l.String()) {
		var all map[string]any
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if decoder.Decode(&all) == nil && all["msg"] == message {
			return fmt.Sprint(all[name])
		}
	}
	return ""
}

// until waits until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

// running is the command while it runs.
type running struct {
	t         *testing.T
	log       *lines
	dns, http string // addresses
	stop      func()
}

func run(t *testing.T, a *fakeAPI, args ...string) *running {
	t.Helper()
	r := &running{t: t, log: &lines{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	args = append([]string{"--server", a.url, "--admin-addr", "127.0.0.1:0", "--admin-open", "--shutdown-delay", "0s", "--log-format", "json", "--log-level", "debug"}, args...)
	go func() { ended <- Run(ctx, args, nothing, "turnout/v9", r.log, func() {}) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(r.log)
		}
	})
	t.Cleanup(r.stop)
	until(t, "it listens", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
		default:
		}
		r.dns, r.http = r.log.field("listening", "dns"), "http://"+r.log.field("listening", "admin")
		return r.http != "http://"
	})
	return r
}

// answers are the addresses that a name has, "REFUSED" and the like if there is no answer.
func (r *running) answers(name string) string {
	m, _, err := (&dns.Client{Timeout: 200 * time.Millisecond}).Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA), r.dns)
	if err != nil {
		return "nothing"
	}
	if m.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[m.Rcode]
	}
	var all []string
	for _, rr := range m.Answer {
		all = append(all, rr.(*dns.A).A.String())
	}
	return strings.Join(all, " ")
}

func (r *running) want(name, want string) {
	r.t.Helper()
	got := ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%s is %s", name, got)
		}
	}()
	until(r.t, name+" is "+want, func() bool {
		got = r.answers(name)
		return got == want
	})
}

func (r *running) get(path string) (int, string) {
	r.t.Helper()
	resp, err := http.Get(r.http + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (a *fakeAPI) router(name string, replicas ...string) {
	var all []string
	for i, address := range replicas {
		all = append(all, fmt.Sprintf(`{"name":"p%d","ready":true,"addresses":[%q],"renewed":"2026-01-01T00:00:00.000000Z"}`, i, address))
	}
	a.put("routers", "Router", name, fmt.Sprintf(`{"spec":{"dns":{"domain":"%s.test","ttlSeconds":20}},"status":{"replicas":[%s]}}`, name, strings.Join(all, ",")))
}

func (a *fakeAPI) binding(name, router, phase, dns string) {
	a.put("routebindings", "RouteBinding", "ns/"+name, fmt.Sprintf(`{"spec":{"routeNamespace":"ns","routeName":"r","routeUID":"u","router":%q,"dns":%q,"target":%q},"status":{"phase":%q}}`, router, dns, dns, phase))
}

// TestFollowsTheCluster: names are there as objects have them, in answers, files and DNSEndpoints, and so are metrics and problems.
func TestFollowsTheCluster(t *testing.T) {
	a, dir := startAPI(t), t.TempDir()
	a.router("one", "10.0.1.1")
	a.router("two", "10.0.2.1")
	a.binding("r.one", "one", "Serving", "ns-r.one.test")
	r := run(t, a, "--listen", "127.0.0.1:0", "--ns", "ns1.example.com", "--zone-dir", dir, "--dns-endpoints", "dns")
	r.want("ns-r.one.test", "10.0.1.1")
	r.want("ns-r.two.test", "10.0.2.1")
	r.want("example.com", "REFUSED")
	until(t, "ready", func() bool { code, _ := r.get("/healthz/ready"); return code == http.StatusOK })
	a.binding("r.two", "two", "Serving", "ns-r.one.test")
	a.binding("r.one", "one", "Leaving", "ns-r.one.test")
	r.want("ns-r.one.test", "10.0.2.1")
	r.want("ns-other.one.test", "10.0.1.1")
	file := func(name, want string) {
		t.Helper()
		until(t, name+" has "+want, func() bool {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			return strings.Contains(string(text), want)
		})
	}
	file("one.test.zone", "ns-r	20	IN A	10.0.2.1\n")
	file("two.test.zone", "*	20	IN A	10.0.2.1\n")
	a.endpoint(t, "one--0", `{"dnsName":"ns-r.one.test","recordTTL":20,"recordType":"A","targets":["10.0.2.1"]}`)
	a.put("routers", "Router", "zzz", `{"spec":{"dns":{"domain":"two.test"}}}`)
	until(t, "the conflict is told", func() bool {
		return strings.Contains(r.log.String(), "router two is older and has the domain two.test too")
	})
	if code, text := r.get("/problems"); code != http.StatusOK || !strings.Contains(text, "router zzz has no zone") {
		t.Errorf("problems: %d %s", code, text)
	}
	if code, text := r.get("/metrics"); code != http.StatusOK {
		t.Errorf("metrics: %d", code)
	} else {
		for _, want := range []string{`turnout_build_info{version="v9"} 1`, "turnout_dns_zones 2", "turnout_dns_routers 3", "turnout_dns_bindings 1", "turnout_dns_left_out 1", `turnout_problems{kind="rejected"} 1`, `turnout_dns_zone_names{zone="one.test."} 2`, `turnout_dns_write_errors_total{kind="file"} 0`} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("metrics have no %s", want)
			}
		}
	}
	a.remove("routers", "zzz")
	a.remove("routers", "two")
	r.want("x.two.test", "REFUSED")
	until(t, "the file is gone", func() bool {
		_, err := os.Stat(filepath.Join(dir, "two.test.zone"))
		return os.IsNotExist(err)
	})
	if _, text := r.get("/problems"); strings.Contains(text, "zzz") || !strings.Contains(r.log.String(), "a zone is gone") {
		t.Errorf("after it is gone: %s", text)
	}
}

// TestNothingBeforeItIsKnown: that there are no names is not said before they are known.
func TestNothingBeforeItIsKnown(t *testing.T) {
	a := startAPI(t)
	a.mu.Lock() // it does not answer
	r := run(t, a, "--listen", "127.0.0.1:0", "--ns", "ns1.example.com")
	if got := r.answers("x.one.test"); got != "nothing" {
		t.Errorf("answered %s", got)
	}
	if code, _ := r.get("/healthz/ready"); code == http.StatusOK {
		t.Error("ready")
	}
	a.mu.Unlock()
	a.router("one", "10.0.1.1")
	r.want("x.one.test", "10.0.1.1")
}

// TestRestart: the serial of a zone that has not changed stays, and that of one that has grows, though the clock says otherwise.
func TestRestart(t *testing.T) {
	a, dir := startAPI(t), t.TempDir()
	a.router("one", "10.0.1.1")
	serial := func() string {
		r := run(t, a, "--listen", "none", "--ns", "ns1.example.com", "--zone-dir", dir)
		defer r.stop()
		until(t, "written", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, "one.test.zone"))
			return err == nil && strings.Contains(string(text), "20	IN A	"+a.address()+"\n") && r.log.field("zone", "serial") != ""
		})
		return r.log.field("zone", "serial")
	}
	first := serial()
	file := filepath.Join(dir, "one.test.zone")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(first+" ; serial"), []byte("2100000000 ; serial"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != "2100000000" {
		t.Errorf("serial %s after a restart, %s before", got, first)
	}
	a.router("one", "10.0.1.9")
	if got := serial(); got != "2100000001" {
		t.Errorf("serial %s after a change", got)
	}
}

// address is that of Router one.
func (a *fakeAPI) address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, _ := json.Marshal(a.objects["routers/one"])
	_, rest, _ := strings.Cut(string(text), `"addresses":["`)
	address, _, _ := strings.Cut(rest, `"`)
	return address
}

// TestSecondaries: keys are read from a file, and again when it changes; a file that cannot be used leaves them as they are.
func TestSecondaries(t *testing.T) {
	a := startAPI(t)
	a.router("one", "10.0.1.1")
	file := filepath.Join(t.TempDir(), "keys")
	write := func(secret string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(`key "k" { algorithm hmac-sha256; secret "`+secret+`"; };`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("Zmlyc3Q=")
	r := run(t, a, "--listen", "127.0.0.1:0", "--ns", "ns1.example.com", "--tsig-key-file", file)
	fetched := func(secret string) bool {
		tr := &dns.Transfer{TsigSecret: map[string]string{"k.": secret}}
		q := new(dns.Msg).SetAxfr("one.test.")
		q.SetTsig("k.", dns.HmacSHA256, 300, time.Now().Unix())
		messages, err := tr.In(q, r.dns)
		if err != nil {
			return false
		}
		n := 0
		for m := range messages {
			if m.Error != nil {
				return false
			}
			n += len(m.RR)
		}
		return n == 5
	}
	until(t, "transferred", func() bool { return fetched("Zmlyc3Q=") })
	if fetched("c2Vjb25k") {
		t.Error("transferred with another secret")
	}
	write("!")
	until(t, "the log says that it cannot be read", func() bool { return strings.Contains(r.log.String(), "TSIG keys stay as they were") })
	if !fetched("Zmlyc3Q=") {
		t.Error("keys are gone")
	}
	write("c2Vjb25k")
	until(t, "the other key counts", func() bool { return fetched("c2Vjb25k") })
	plain := new(dns.Msg).SetAxfr("one.test.")
	if m, _, err := (&dns.Client{Net: "tcp"}).Exchange(plain, r.dns); err != nil || m.Rcode != dns.RcodeRefused {
		t.Errorf("without a key: %v, %v", m, err)
	}
	until(t, "the log says who was refused", func() bool { return strings.Contains(r.log.String(), "a transfer was refused") })
}

// TestFilesAgain: files that cannot be written are written later.
func TestFilesAgain(t *testing.T) {
	a, dir := startAPI(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "one.test.zone"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.router("one", "10.0.1.1")
	r := run(t, a, "--listen", "none", "--ns", "ns1.example.com", "--zone-dir", dir)
	until(t, "it is told", func() bool { return strings.Contains(r.log.String(), "zone files are not written") })
	if _, text := r.get("/problems"); !strings.Contains(text, "one.test.zone") {
		t.Error(text)
	}
	if err := os.Remove(filepath.Join(dir, "one.test.zone")); err != nil {
		t.Fatal(err)
	}
	a.router("one", "10.0.1.2")
	until(t, "written", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "one.test.zone"))
		return err == nil && strings.Contains(string(text), "10.0.1.2")
	})
}

// TestEvents: each kind has a line of its own, and what clients can repeat is logged once a second at most.
func TestEvents(t *testing.T) {
	core, logged := observer.New(zap.DebugLevel)
	e := &events{log: zap.New(core)}
	for range 3 {
		for kind := range server.Panicked + 1 {
			e.tell(server.Event{Kind: kind, Zone: "one.test.", Err: errors.New("why")})
		}
	}
	count := map[string]int{}
	for _, line := range logged.All() {
		count[line.Message]++
		if strings.HasPrefix(line.Message, "BUG: event") || line.ContextMap()["zone"] != "one.test." || line.ContextMap()["error"] != "why" {
			t.Errorf("%+v", line)
		}
	}
	if len(count) != int(server.Panicked)+1 || count["a transfer was refused: its client is not in --allow-transfer, or has not signed with a key of --tsig-key-file"] != 1 || count["zone was transferred"] != 3 {
		t.Errorf("%v", count)
	}
}

// TestOptionsAreDocumented: docs/dns.md has each option that is not one of reaching a cluster or of the admin port, with its default.
func TestOptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/dns.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range new(Options).Table() {
		if o.Group == kubectl.Group || o.Group == "Admin port" {
			continue
		}
		def := o.Def
		if def != "" {
			def = "`" + def + "`"
		}
		if !strings.Contains(string(text), "\n| `--"+o.Flag+"` | "+def) {
			t.Errorf("docs/dns.md has no row that begins with | `--%s` | %s", o.Flag, def)
		}
	}
}

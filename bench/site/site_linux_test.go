package site

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"turnout/internal/testkit/testhttp"
)

// standIn tells this program, started again, to be a router of which only the outside is there. Its value is how it behaves.
const standIn = "TURNOUT_SITE_STAND_IN"

func TestMain(m *testing.M) {
	if how := os.Getenv(standIn); how != "" {
		beRouter(how, os.Args)
		return
	}
	os.Exit(m.Run())
}

// beRouter says what a router says, serves its arguments and some metrics, and ends when it is told to.
func beRouter(how string, args []string) {
	if how == "ends" {
		fmt.Println("cannot serve: a reason")
		os.Exit(1)
	}
	if how == "ahead" {
		beRealTime()
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# HELP turnout_connections_open x\n"+
			"turnout_connections_open{port=\"http\"} 7\nturnout_connections_open{port=\"a b\"} 2\nturnout_connections_open_else 9\ngo_goroutines 1.5e+01\n")
	})
	mux.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Join(args[1:], " ")) })
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	fmt.Fprintf(os.Stderr, "not JSON\n{\"msg\":\"listening\",\"http\":\"127.0.0.1:1\",\"https\":\"127.0.0.1:2\",\"admin\":\"%s\"}\n", ln.Addr())
	fmt.Fprintf(os.Stderr, "{\"msg\":\"ready\"}\n{\"msg\":\"ready\"}\n")
	go func() { _ = http.Serve(ln, mux) }()
	<-interrupted
}

// startStandIn starts this program as a router that behaves in that way.
func startStandIn(t *testing.T, how string, c Config) (r *Router, err error) {
	t.Helper()
	defer Catch(&err)
	t.Setenv("TMPDIR", t.TempDir())
	if c.Program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	c.Env = append(c.Env, standIn+"="+how)
	return Start(t.Context(), c), nil
}

func TestRouter(t *testing.T) {
	r, err := startStandIn(t, "serves", Config{Manifests: "kind: Route\n", Args: []string{"--threads", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if r.HTTP != "127.0.0.1:1" || r.HTTPS != "127.0.0.1:2" {
		t.Errorf("addresses are %s, %s", r.HTTP, r.HTTPS)
	}
	args := get(t, "http://"+r.Admin+"/args")
	dir, ok := strings.CutPrefix(args, "run --manifests ")
	dir, rest, _ := strings.Cut(dir, " ")
	if !ok || !strings.HasSuffix(rest, " --threads 1") {
		t.Errorf("it runs with %s", args)
	}
	wantFile(t, filepath.Join(dir, "site.yaml"), "kind: Route\n")
	r.Write("more.yaml", "kind: Secret\n")
	wantFile(t, filepath.Join(dir, "more.yaml"), "kind: Secret\n")
	for name, want := range map[string]float64{"turnout_connections_open": 9, "go_goroutines": 15, "no_such": 0} {
		if n := r.Metric(t.Context(), name); n != want {
			t.Errorf("%s: %v, want %v", name, n, want)
		}
	}
	r.Stop()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of manifests is left: %v", err)
	}
	select {
	case <-r.Exited():
	default:
		t.Error("the process is left")
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v", filepath.Base(path), text, err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	_, body := testhttp.Page(t, url, "")
	return body
}

func TestRouterThatDoesNotStart(t *testing.T) {
	if _, err := startStandIn(t, "ends", Config{}); err == nil || !strings.Contains(err.Error(), "cannot serve: a reason") {
		t.Errorf("a router that ended: %v", err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 || err != nil {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestUsage(t *testing.T) {
	r, err := startStandIn(t, "serves", Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if n := r.CPU(); n <= 0 || n > time.Minute {
		t.Errorf("CPU time is %v", n)
	}
	if n := r.Resident(); n < 1<<20 || n > 1<<30 {
		t.Errorf("%d bytes are resident", n)
	}
	before := len(r.Descriptors())
	if before < 4 {
		t.Errorf("%d descriptors", before)
	}
	c, err := net.Dial("tcp", r.Admin)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = get(t, "http://"+r.Admin+"/args") // it is accepted after c
	if after := len(r.Descriptors()); after <= before {
		t.Errorf("%d descriptors with one connection more than at %d", after, before)
	}
	r.Kill()
	if err := Try(func() { r.CPU() }); err == nil {
		t.Error("a process that is gone uses CPU time")
	}
}

func TestProcessOnOneCore(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !set.IsSet(core) {
		core++
	}
	r, err := startStandIn(t, "serves", Config{Alone: true, Core: core})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if err := unix.SchedGetaffinity(r.PID(), &set); err != nil || set.Count() != 1 || !set.IsSet(core) {
		t.Errorf("it runs on %d cores, %v", set.Count(), err)
	}
}

// TestPipe: lines are handed out, those that are too long are not, the end is kept, and nobody reads while the gate is closed.
func TestPipe(t *testing.T) {
	lines := make(chan string, 10)
	p, to := newPipe(true, func(line []byte) { lines <- string(line) })
	for _, b := range []byte("one\n\ntwo\n") {
		if _, err := to.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		if _, err := to.WriteString(strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	p.Gate.Lock()
	_, _ = to.WriteString("y\nthree\n")
	for p.Waiting() < 2 { // what the reader has read when the gate closes it has, but no more
		_, _ = to.WriteString("z")
	}
	p.Gate.Unlock()
	to.Close()
	<-p.done
	close(lines)
	var got []string
	for line := range lines {
		got = append(got, strings.TrimSpace(line))
	}
	if strings.Join(got, "|") != "one||two|three" {
		t.Errorf("lines are %q", got)
	}
	if tail := p.Tail(); len(tail) > tailSize || !strings.Contains(tail, "y\nthree") || len(tail) < tailSize-3 {
		t.Errorf("%d bytes are kept: %.20q", len(tail), tail[max(len(tail)-20, 0):])
	}
}

func TestProcessThatEnds(t *testing.T) {
	p := StartProcess("echo", exec.Command("echo", "said"), AnyCore, nil)
	<-p.Exited()
	if err := p.Died(); !strings.Contains(err.Error(), "echo ended (exit status 0), its last words: said") {
		t.Error(err)
	}
	if err := Try(func() { StartProcess("nothing", exec.Command("/no/such/program"), AnyCore, nil) }); err == nil || !strings.Contains(err.Error(), "cannot start nothing") {
		t.Errorf("no program: %v", err)
	}
}

func TestOpenFiles(t *testing.T) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	if n := OpenFiles(1); n != now.Cur {
		t.Errorf("the limit went from %d to %d", now.Cur, n)
	}
	if n := OpenFiles(1 << 60); n < now.Cur || n >= 1<<60 {
		t.Errorf("more than a system allows: %d", n)
	}
}

func TestBackends(t *testing.T) {
	h := ServeHTTP(Loopback, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pod") }))
	if text := get(t, fmt.Sprintf("http://127.0.0.1:%d/", h.Port())); text != "pod" {
		t.Errorf("it answers %q", text)
	}
	c := ServeConns(Loopback, func(c net.Conn) { _, _ = io.WriteString(c, "raw") })
	for i := range 2 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port()))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); string(text) != "raw" || err != nil {
			t.Errorf("it says %q, %v", text, err)
		}
		conn.Close()
		if i == 0 { // it comes back where it was
			c.Down()
			c.Up()
		}
	}
	for _, b := range []*Backend{h, c} {
		b.Close()
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port())); err == nil {
			conn.Close()
			t.Error("it listens after Close")
		}
	}
}

// TestManifests: what is written is one document after the other, each with a name of its own.
func TestManifests(t *testing.T) {
	pair := NewKeyPair("a.test", false)
	text := Route{Host: "a.test", Service: "pods", Annotations: NoCookies, TLS: pair.EdgeTLS(), More: "alternateBackends: [{kind: Service, name: other, weight: 10}]"}.String() +
		Service{Name: "pods", Port: 1234}.String() + Service{Name: "pods", Port: 1235, Protocol: "h2c"}.String()
	names := map[string]bool{}
	for doc := range strings.SplitSeq(strings.TrimPrefix(text, "---\n"), "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct {
				Name, Namespace     string
				Labels, Annotations map[string]string
			}
			Spec struct {
				Host              string
				TLS               struct{ Termination, Certificate, Key string }
				AlternateBackends []any
			}
			Ports     []struct{ Port int }
			Endpoints []struct{ Addresses []string }
		}
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		names[object.Kind+" "+object.Metadata.Name] = true
		switch object.Kind {
		case "Route":
			if s := object.Spec; s.Host != "a.test" || s.TLS.Certificate != pair.Certificate || s.TLS.Key != pair.Key || len(s.AlternateBackends) != 1 || len(object.Metadata.Annotations) != 1 {
				t.Errorf("got %+v", object)
			}
		case "EndpointSlice":
			if object.Metadata.Labels["kubernetes.io/service-name"] != "pods" || object.Ports[0].Port/10 != 123 || object.Endpoints[0].Addresses[0] != "127.0.0.1" || object.Metadata.Namespace != "bench" {
				t.Errorf("got %+v", object)
			}
		}
	}
	if len(names) != 3 {
		t.Errorf("got %v", names)
	}
}

func TestKeyPair(t *testing.T) {
	for _, withRSA := range []bool{false, true} {
		c := NewKeyPair("a.test", withRSA).TLS()
		roots := x509.NewCertPool()
		roots.AddCert(c.Leaf)
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "a.test", Roots: roots}); err != nil {
			t.Error(err)
		}
		if isRSA := c.Leaf.PublicKeyAlgorithm == x509.RSA; isRSA != withRSA {
			t.Errorf("RSA: %v, want %v", isRSA, withRSA)
		}
	}
}

// beRealTime prints whether it got a real-time priority, how its children are scheduled, and how those with LowPriority.
func beRealTime() {
	fmt.Println(RealTime())
	for _, cmd := range []*exec.Cmd{exec.Command("cat", "/proc/self/stat"), LowPriority(exec.Command("cat", "/proc/self/stat"))} {
		stat, err := cmd.Output()
		if err != nil {
			panic(err)
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		fmt.Println(f[16], f[38]) // nice and policy, proc_pid_stat(5): the 17th and the 39th after the name
	}
}

func TestAhead(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), standIn+"=ahead")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 20 less the nice value, getpriority(2)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("true\n%d 2\n19 0\n", 20-priority) // SCHED_RR is 2
	if strings.HasPrefix(string(said), "false") {
		want = fmt.Sprintf("false\n%d 0\n19 0\n", 20-priority) // not permitted here
	}
	if string(said) != want {
		t.Errorf("got %q, want %q", said, want)
	}
}

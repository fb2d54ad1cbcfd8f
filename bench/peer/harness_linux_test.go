package peer

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/load"
	"turnout/bench/report"
	"turnout/bench/site"
)

// standIn, set in the environment, makes this test binary a proxy that understands the command lines of
// Turnout and HAProxy as far as the harness uses them. "mute" makes it exit before it serves.
const standIn = "TURNOUT_BENCH_STAND_IN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(standIn); mode != "" {
		if err := serveStandIn(mode, os.Args[1:]); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveStandIn(mode string, args []string) error {
	if mode == "mute" {
		return errors.New("the stand-in has nothing to say")
	}
	if traced := os.Getenv("OTEL_TRACES_SAMPLER_ARG") == "0.25"; mode == "traced" && traced != (len(args) > 0 && args[0] == "run") {
		return fmt.Errorf("traced is %v with %q", traced, args)
	}
	if args[0] == floorRole {
		return floor(context.Background(), args[1:])
	}
	if len(args) < 3 {
		return fmt.Errorf("bad arguments %q", args)
	}
	var ln net.Listener
	var text []byte
	var upstream *regexp.Regexp
	var err error
	if args[0] == "run" {
		text, err = os.ReadFile(filepath.Join(args[2], "site.yaml"))
		upstream = regexp.MustCompile(`kubernetes.io/service-name: s00(?s:.*?)port: (?P<port>\d+)(?s:.*?)addresses: \[(?P<ip>\S+)\]`)
		if err == nil {
			ln, err = net.Listen("tcp", "127.0.0.1:0")
		}
	} else {
		text, err = os.ReadFile(args[2])
		upstream = regexp.MustCompile(`server s00 (?P<ip>\S+):(?P<port>\d+)`)
		if err == nil {
			ln, err = net.FileListener(os.NewFile(3, "listener"))
		}
	}
	if err != nil {
		return err
	}
	m := upstream.FindSubmatch(text)
	if m == nil {
		return errors.New("no upstream found")
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: string(m[upstream.SubexpIndex("ip")]) + ":" + string(m[upstream.SubexpIndex("port")])})
	fmt.Printf(`{"level":"info","msg":"listening","http":"%[1]s","https":"%[1]s","admin":"%[1]s"}`+"\n"+`{"msg":"ready"}`+"\n", ln.Addr())
	return http.Serve(ln, proxy)
}

func testHarness(t *testing.T, mode string) (*harness, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(standIn, mode)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !set.IsSet(core) {
		core++
	}
	var progress bytes.Buffer
	return &harness{
		turnout: self, haproxy: self, rounds: 2, conns: 4, repeats: 2,
		measure: 150 * time.Millisecond, disturbed: 2, proxyCore: core, loadCore: core, progress: &progress,
	}, &progress
}

// plain is one comparison with the shortest configuration.
func plain(t *testing.T, peers ...kind) benchCase {
	t.Helper()
	cases, err := chooseCases("h1-64")
	if err != nil {
		t.Fatal(err)
	}
	cases[0].peers, cases[0].conns = peers, 4
	return cases[0]
}

func TestRunCaseMeasuresInTurn(t *testing.T) {
	h, progress := testHarness(t, "serve")
	h.paced = 100 * time.Millisecond
	c, err := h.runCase(t.Context(), plain(t, kindLeast))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sides) != 2 || c.Sides[0].Name != report.Turnout || c.Sides[1].Name != report.Least || c.Sides[0].Ratio != nil || c.Sides[1].Ratio == nil {
		t.Fatalf("sides are %+v", c.Sides)
	}
	for _, s := range c.Sides {
		if len(s.Samples) != 2 || s.Micros <= 0 || s.PerSec <= 0 || s.Resident <= 0 || s.Peak < s.Resident || s.Rate <= 0 || s.P99 < s.P50 || s.P50 <= 0 || s.Failures != 0 {
			t.Errorf("side is %+v", s)
		}
	}
	if rounds, paced := strings.Count(progress.String(), "h1-64 round"), strings.Count(progress.String(), "h1-64 at "); rounds != 2 || paced != 2 {
		t.Errorf("progress has %d rounds and %d at a fixed rate:\n%s", rounds, paced, progress)
	}
}

// TestFloor: a program that only makes the system calls does what clients ask for, on connections to the upstream that it keeps.
func TestFloor(t *testing.T) {
	h, progress := testHarness(t, "serve")
	h.floor, h.rounds, h.measure, h.only = true, 1, 200*time.Millisecond, []kind{kindLeast}
	cases, err := chooseCases("h1-1,h1-close,get-64k,put-64k,routes-100,ws-128")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !c.bare() {
				t.Error("it is not compared")
			}
			result, err := h.runCase(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if s := result.Sides[1]; s.Name != string(kindFloor) || s.Failures > 0 || s.Micros <= 0 || s.Connects > 100 {
				t.Errorf("%+v\n%s", s, progress)
			}
		})
	}
}

// TestFloorThreads: each thread has its share of the connections.
func TestFloorThreads(t *testing.T) {
	t.Setenv(standIn, "serve")
	rig, err := load.NewRig(1)
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close()
	p, addr := StartFloor(t.Context(), rig.Upstreams()[0], 2)
	defer p.Kill()
	traffic, err := load.NewTraffic(load.TrafficConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var watched []int // connections of each epoll instance
	res, err := rig.Drive(t.Context(), load.Profile{
		Span: load.Span{Measure: 100 * time.Millisecond, Mark: func(end bool) {
			if end {
				watched = epolls(t, p)
			}
		}},
		Addr: addr, Conns: 32, Traffic: traffic,
	})
	if err != nil || res.Failures > 0 || res.Requests == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(watched) != 2 || min(watched[0], watched[1]) < 3 {
		t.Errorf("the epoll instances watch %v descriptors", watched)
	}
}

// epolls is how many descriptors each epoll instance of a process watches.
func epolls(t *testing.T, p *site.Process) (watched []int) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/", p.PID())
	entries, err := os.ReadDir(folder + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, _ := os.Readlink(folder + "fd/" + e.Name()); target == "anon_inode:[eventpoll]" {
			watched = append(watched, strings.Count(p.Proc("fdinfo/"+e.Name()), "tfd:"))
		}
	}
	return watched
}

// TestTracesAreOfOneSide: only Turnout gets the variables by which it exports traces.
func TestTracesAreOfOneSide(t *testing.T) {
	h, _ := testHarness(t, "traced")
	h.env, h.measure, h.rounds = tracing(0.25, netip.MustParseAddrPort("127.0.0.1:4318")), 50*time.Millisecond, 1
	if _, err := h.runCase(t.Context(), plain(t, kindLeast)); err != nil {
		t.Error(err)
	}
	h.env = nil
	if _, err := h.runCase(t.Context(), plain(t, kindLeast)); err == nil {
		t.Error("nobody told Turnout to export traces, and it does")
	}
}

func TestRunCaseRepeatsDisturbedPairs(t *testing.T) {
	h, progress := testHarness(t, "serve")
	h.disturbed = -1 // every pair counts as disturbed
	c, err := h.runCase(t.Context(), plain(t, kindLeast))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sides[0].Samples) != 2 || len(c.Sides[1].Samples) != 2 {
		t.Errorf("sides are %+v, want 2 samples each in spite of the disturbance", c.Sides)
	}
	if n := strings.Count(progress.String(), "measured again"); n != 2 {
		t.Errorf("measured again %d times, want 2:\n%s", n, progress)
	}
}

func TestRunCaseRefusesUnequalWork(t *testing.T) {
	h, _ := testHarness(t, "serve")
	if _, err := h.runCase(t.Context(), plain(t, kindTemplate)); err == nil || !strings.Contains(err.Error(), "turnout does not do the expected work") {
		t.Errorf("a proxy without cookies was compared: %v", err)
	}
}

func TestRunCaseOfHandshakesRefusesAProxyWithoutTLS(t *testing.T) {
	h, _ := testHarness(t, "serve")
	for _, name := range []string{"handshake-ecdsa", "handshake-resumed"} {
		cases, err := chooseCases(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.runCase(t.Context(), cases[0]); err == nil {
			t.Errorf("%s was measured without TLS", name)
		}
	}
}

func TestCheckSignerWantsLibcrypto(t *testing.T) {
	dir := t.TempDir()
	for answer, fine := range map[string]bool{"v1 go1.26": false, "v1 go1.26, signatures by OpenSSL 3.0.19": true} {
		binary := filepath.Join(dir, "turnout")
		if err := os.WriteFile(binary, []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := checkSigner(t.Context(), binary); (err == nil) != fine {
			t.Errorf("%q: %v", answer, err)
		}
	}
	if err := checkSigner(t.Context(), filepath.Join(dir, "missing")); err == nil {
		t.Error("no binary was accepted")
	}
}

func TestRunCaseReportsADeadProxy(t *testing.T) {
	h, _ := testHarness(t, "mute")
	_, err := h.runCase(t.Context(), plain(t, kindLeast))
	if err == nil || !strings.Contains(err.Error(), "the stand-in has nothing to say") {
		t.Errorf("got %v, want the proxy's last words", err)
	}
}

func TestRunCaseEndsWithItsContextAndLeavesNoProcess(t *testing.T) {
	h, _ := testHarness(t, "serve")
	h.measure = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	if _, err := h.runCase(ctx, plain(t, kindLeast)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// Every child that was started has been waited for.
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("a process is left: %v", err)
	}
}

// The end of the context ends the proxies, and who looks at those first is not told that they died of themselves.
func TestTrialTellsThatItsContextEnded(t *testing.T) {
	h, _ := testHarness(t, "serve")
	ctx, cancel := context.WithCancel(t.Context())
	err := h.trial(ctx, plain(t, kindLeast), func(running *trial) {
		cancel()
		router := running.turns[0][0].proxy
		<-router.Exited()
		site.Check(router.Died())
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "ended (signal: killed)") {
		t.Errorf("got %v", err)
	}
}

func TestReadCPUCountsThisProcess(t *testing.T) {
	begin := readCPU(os.Getpid())
	// Busy until the coarse count has moved as well.
	end := begin
	for end.user+end.system < begin.user+begin.system+2*tick {
		end = readCPU(os.Getpid())
	}
	fine, coarse := end.sub(begin).total, end.sub(begin).user+end.sub(begin).system
	if fine <= 0 || (fine-coarse).Abs() > 2*tick {
		t.Errorf("clock says %v, /proc says %v", fine, coarse)
	}
	if site.Try(func() { readCPU(1 << 30) }) == nil {
		t.Error("a process that does not exist has CPU time")
	}
}

func TestChildRunsOnItsCore(t *testing.T) {
	h, _ := testHarness(t, "serve")
	rig, err := load.NewRig(1)
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close()
	var before, child, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	s := &layout{routes: 1, upstreams: rig.Upstreams()}
	p := startHAProxy(h.haproxy, t.TempDir(), s, kindLeast, h.proxyCore)
	defer p.stop()
	if err := unix.SchedGetaffinity(p.PID(), &child); err != nil {
		t.Fatal(err)
	}
	if child.Count() != 1 || !child.IsSet(h.proxyCore) {
		t.Errorf("child may use %d cores", child.Count())
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil {
		t.Fatal(err)
	}
	if after.Count() != before.Count() {
		t.Errorf("own affinity changed from %d to %d cores", before.Count(), after.Count())
	}
}

func TestRefusals(t *testing.T) {
	scenario := Scenario()
	for _, args := range [][]string{
		{"-pairs", "0"}, {"-seconds", "-1"}, {"-conns", "0"}, {"-peers", "squid"}, {"-nosuch"}, {"word"}, {"-seconds", "9999"}, {"-traces", "1.5"}, {"-cases", "nosuch"},
	} {
		if code, err := scenario.Run(t.Context(), args, io.Discard); code != 2 || err == nil {
			t.Errorf("%q: exit code %d, %v; want 2", args, code, err)
		}
	}
	f := flag.NewFlagSet("", flag.ContinueOnError)
	scenario.Flags(f)
	for name, want := range map[string]string{"pairs": "5", "seconds": "1.5", "conns": "64", "cases": "all"} {
		if got := f.Lookup(name).DefValue; got != want {
			t.Errorf("-%s is %s, want %s", name, got, want)
		}
	}
}

func TestChooseCores(t *testing.T) {
	if _, _, err := chooseCores(0, 0); err == nil {
		t.Error("one core for both was accepted")
	}
	if _, _, err := chooseCores(0, 1000); err == nil {
		t.Error("a core that does not exist was accepted")
	}
}

package live_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"turnout/balancer"
	"turnout/controller"
	"turnout/internal/live"
	"turnout/internal/problem"
	"turnout/internal/server"
	"turnout/internal/testkit/testcert"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// rig is a router that goes by a plan.
type rig struct {
	*testing.T

	keeper   *live.Keeper
	server   *server.Server
	problems *problem.List
	plan     live.Plan // as it was given last
	dir      string
}

// patience is how long the router may take for what it does by itself.
const patience = 10 * time.Second

func basic() live.Plan {
	return live.Plan{Server: server.Config{HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 1, Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts()}}}
}

// start runs a router, with change made to the plan that it begins with.
func start(t *testing.T, change func(dir string, plan *live.Plan)) *rig {
	t.Helper()
	r := &rig{T: t, problems: problem.NewList(), plan: basic(), dir: t.TempDir()}
	if change != nil {
		change(r.dir, &r.plan)
	}
	r.keeper = live.New(live.Config{Log: zap.NewNop(), Problems: r.problems, Stdout: io.Discard, Connected: func() (plain, secure int64) { return 0, 0 }})
	cfg, err := r.keeper.First(r.plan)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store, cfg.Registry = routing.NewStore(), balancer.NewRegistry()
	control, err := controller.New(controller.Config{Store: cfg.Store, Options: r.plan.Control, Routing: routing.Options{Registry: cfg.Registry, DefaultCertificate: r.keeper.Certificate()}})
	if err != nil {
		t.Fatal(err)
	}
	control.Sink("nothing").Synced()
	if r.server, err = server.New(cfg); err != nil {
		t.Fatal(err)
	}
	r.keeper.Attach(r.server, control)
	if err := r.server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{control.Run, r.server.Run, r.keeper.Run} {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { stop(); all.Wait(); r.keeper.Close() })
	<-control.Ready()
	<-r.server.Started()
	return r
}

// apply changes the plan and returns what of it cannot be used.
func (r *rig) apply(change func(*live.Plan)) string {
	r.Helper()
	change(&r.plan)
	var all []string
	for _, err := range r.keeper.Apply(r.plan) {
		all = append(all, err.Error())
	}
	return strings.Join(all, "\n")
}

// ask sends a request that no route is for.
func (r *rig) ask(path string) {
	r.Helper()
	conn, err := net.Dial("tcp", r.server.HTTP().String())
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n", path)
	if text, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") {
		r.Fatalf("%v, %.100q", err, text)
	}
}

// until waits until what is observed has want.
func (r *rig) until(what, want string, observe func() string) {
	r.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		if got = observe(); strings.Contains(got, want) {
			return
		}
	}
	r.Errorf("%s: %.300q, want %q", what, got, want)
}

// file is the content of a file in the rig's folder.
func (r *rig) file(name string) func() string {
	return func() string {
		text, _ := os.ReadFile(filepath.Join(r.dir, name))
		return string(text)
	}
}

// served is the name in the certificate that clients see, or why they see none.
func (r *rig) served() string {
	conn, err := tls.Dial("tcp", r.server.HTTPS().String(), &tls.Config{ServerName: "x.test", InsecureSkipVerify: true})
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// pair is a certificate and its key as PEM.
func pair(t *testing.T, name string) string {
	t.Helper()
	p := testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}}, nil)
	return p.PEM() + p.KeyPEM(t)
}

// authorities is a file of one authority.
func authorities(t *testing.T) string {
	t.Helper()
	form := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}
	testcert.Authority(form)
	return testcert.Sign(t, form, nil).PEM()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	next := path + ".next"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFirstRefuses: a start with what cannot be used fails, with the reason.
func TestFirstRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, change := range map[string]func(*live.Plan){
		"is a directory": func(p *live.Plan) { p.Logs.Access = dir },
		"no such file":   func(p *live.Plan) { p.Certificate.Path = dir + "/none.pem" },
		dir + "/none.pem": func(p *live.Plan) {
			p.Server.TLS.ClientAuth, p.Trust.Authorities = clientcert.Required, dir+"/none.pem"
		},
		"cannot use unique id format": func(p *live.Plan) { p.UniqueHeader, p.UniqueFormat = "X-Id", "%[" },
	} {
		plan := basic()
		change(&plan)
		k := live.New(live.Config{Log: zap.NewNop(), Stdout: io.Discard})
		if _, err := k.First(plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		k.Close()
	}
}

// TestLogMoves: what ends from now on is a line of the new log, the old one has all that ended before, and counters go on.
func TestLogMoves(t *testing.T) {
	r := start(t, func(dir string, p *live.Plan) { p.Logs.Access = filepath.Join(dir, "one") })
	r.ask("/first")
	r.until("the first log", "/first", r.file("one"))
	if failed := r.apply(func(p *live.Plan) { p.Logs.Access = filepath.Join(r.dir, "two") }); failed != "" {
		t.Error(failed)
	}
	r.ask("/second")
	r.until("the second log", "/second", r.file("two"))
	if got := r.file("one")(); strings.Contains(got, "/second") {
		t.Error("a line is in the log of before")
	}
	r.until("the lines of both", "2", func() string { return fmt.Sprint(r.keeper.LogStats().Written) })
	if failed := r.apply(func(p *live.Plan) { p.Logs.Access = "off" }); failed != "" {
		t.Error(failed)
	}
	r.ask("/third")
	if got := r.keeper.LogStats().Written; got != 2 {
		t.Errorf("%d lines without a log", got)
	}
	if failed := r.apply(func(p *live.Plan) { p.Logs.Access = filepath.Join(r.dir, "two") }); failed != "" {
		t.Error(failed)
	}
	r.ask("/fourth")
	r.until("the log that is there again", "/fourth", r.file("two"))
}

// TestLogStays: a change of something else keeps the log open, and what it has written is not written again.
func TestLogStays(t *testing.T) {
	r := start(t, func(dir string, p *live.Plan) { p.Logs.Access = filepath.Join(dir, "one") })
	before := r.server.Applied().Proxy.AccessLog
	if failed := r.apply(func(p *live.Plan) { p.Server.Proxy.Timeouts.Client = 7 * time.Second }); failed != "" {
		t.Error(failed)
	}
	if now := r.server.Applied().Proxy; now.AccessLog != before || now.Timeouts.Client != 7*time.Second {
		t.Errorf("another log: %v; the client timeout is %v", now.AccessLog != before, now.Timeouts.Client)
	}
}

// TestWhatCannotBeUsed: it is said, stays as it was and costs nothing else of the plan; and once it can be used it is.
func TestWhatCannotBeUsed(t *testing.T) {
	r := start(t, func(dir string, p *live.Plan) {
		p.Logs.Access = filepath.Join(dir, "one")
		p.Certificate.Path = write(t, dir, "first.pem", pair(t, "first"))
	})
	failed := r.apply(func(p *live.Plan) {
		p.Server.Proxy.Timeouts.Client = 7 * time.Second
		p.Logs.Access = r.dir
		p.Certificate.Path = filepath.Join(r.dir, "none.pem")
		p.Server.TLS.ClientAuth, p.Trust.Authorities = clientcert.Required, filepath.Join(r.dir, "none.pem")
	})
	for _, want := range []string{"what client certificates are judged by stays as it was: ", "the access log stays as it was: ", "the default certificate stays as it was: "} {
		if strings.Count(failed, want) != 1 {
			t.Errorf("no %q in %q", want, failed)
		}
	}
	if strings.Count(failed, "\n") != 2 {
		t.Errorf("something else failed: %q", failed)
	}
	if got := r.server.Applied(); got.Proxy.Timeouts.Client != 7*time.Second || got.TLS.ClientAuth != clientcert.None {
		t.Errorf("%v, %v", got.Proxy.Timeouts.Client, got.TLS.ClientAuth)
	}
	r.ask("/still")
	r.until("the log", "/still", r.file("one"))
	if got := r.served(); got != "first" {
		t.Errorf("clients see %q", got)
	}
	write(t, r.dir, "none.pem", pair(t, "second")+authorities(t))
	if failed := r.apply(func(p *live.Plan) { p.Logs.Access = filepath.Join(r.dir, "two") }); failed != "" {
		t.Errorf("what can be used now: %s", failed)
	}
	r.until("the certificate", "second", r.served)
	if got := r.server.Applied().TLS.ClientAuth; got != clientcert.Required {
		t.Errorf("clients are asked %v", got)
	}
}

// TestFilesAreFollowed: the files that the plan names are followed, those that it named before are not.
func TestFilesAreFollowed(t *testing.T) {
	r := start(t, func(dir string, p *live.Plan) { p.Certificate.Path = write(t, dir, "a/cert.pem", pair(t, "first")) })
	r.until("at the start", "first", r.served)
	write(t, r.dir, "a/cert.pem", pair(t, "second"))
	r.until("a new content", "second", r.served)
	if failed := r.apply(func(p *live.Plan) { p.Certificate.Path = write(t, r.dir, "b/cert.pem", pair(t, "third")) }); failed != "" {
		t.Error(failed)
	}
	r.until("another file", "third", r.served)
	write(t, r.dir, "a/cert.pem", pair(t, "forgotten"))
	write(t, r.dir, "b/cert.pem", pair(t, "fourth"))
	r.until("its new content", "fourth", r.served)
}

// TestTrustIsFollowed: authorities that the plan names from now on are judged by, also when their file changes later, and no more when it names none.
func TestTrustIsFollowed(t *testing.T) {
	r := start(t, nil)
	path := write(t, r.dir, "ca.pem", authorities(t))
	if failed := r.apply(func(p *live.Plan) { p.Server.TLS.ClientAuth, p.Trust.Authorities = clientcert.Optional, path }); failed != "" {
		t.Fatal(failed)
	}
	first := r.server.Policy().Trust()
	if first == nil {
		t.Fatal("nothing is trusted")
	}
	if failed := r.apply(func(p *live.Plan) { p.Server.Proxy.Timeouts.Client = 7 * time.Second }); failed != "" || r.server.Policy().Trust() != first {
		t.Errorf("a change of something else has the authorities read again: %q", failed)
	}
	write(t, r.dir, "ca.pem", authorities(t))
	r.until("a new content", "other", func() string {
		if r.server.Policy().Trust() == first {
			return "the same"
		}
		return "other"
	})
	if failed := r.apply(func(p *live.Plan) { p.Server.TLS.ClientAuth = clientcert.None }); failed != "" || r.server.Policy().Trust() != nil {
		t.Errorf("clients are asked for certificates: %q", failed)
	}
}

// TestUniqueIDsGoOn: a change of something else does not have unique ids begin anew, and another format does.
func TestUniqueIDsGoOn(t *testing.T) {
	r := start(t, func(_ string, p *live.Plan) { p.UniqueHeader, p.UniqueFormat = "X-Id", "%rt" })
	before := r.server.Applied().Proxy.UniqueID
	if failed := r.apply(func(p *live.Plan) { p.Server.Proxy.Timeouts.Client = 7 * time.Second }); failed != "" || r.server.Applied().Proxy.UniqueID != before {
		t.Errorf("ids begin anew: %q", failed)
	}
	if failed := r.apply(func(p *live.Plan) { p.UniqueFormat = "%rt-%ci" }); failed != "" || r.server.Applied().Proxy.UniqueID == before {
		t.Errorf("ids are as before: %q", failed)
	}
	before = r.server.Applied().Proxy.UniqueID
	if failed := r.apply(func(p *live.Plan) { p.UniqueFormat = "%[" }); !strings.HasPrefix(failed, "the unique id stays as it was: ") || r.server.Applied().Proxy.UniqueID != before {
		t.Errorf("a format that cannot be used: %q", failed)
	}
}

// TestPortsThatCannotBeOpened: the rest of a plan counts, and the port stays.
func TestPortsThatCannotBeOpened(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := start(t, nil)
	failed := r.apply(func(p *live.Plan) {
		p.Server.HTTPAddr, p.Server.Proxy.Timeouts.Client = taken.Addr().String(), 7*time.Second
	})
	if !strings.Contains(failed, "address already in use") || r.server.Applied().Proxy.Timeouts.Client != 7*time.Second {
		t.Errorf("%q, %v", failed, r.server.Applied().Proxy.Timeouts.Client)
	}
	r.ask("/")
}

// TestStdout: the log may go to the output of the program.
func TestStdout(t *testing.T) {
	var lines bytes.Buffer
	k := live.New(live.Config{Log: zap.NewNop(), Stdout: &lines})
	plan := basic()
	plan.Logs.Access = "stdout"
	cfg, err := k.First(plan)
	if err != nil || cfg.Proxy.AccessLog == nil {
		t.Fatalf("%v, %v", err, cfg.Proxy.AccessLog)
	}
	k.Close()
}

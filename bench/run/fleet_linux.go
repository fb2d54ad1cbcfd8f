package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/bench/site"
)

// The hosts of a fleet's router. Each of the first two has a certificate of its own.
const (
	hostECDSA   = "ecdsa.fleet.test"
	hostRSA     = "rsa.fleet.test"
	hostThrough = "through.fleet.test"
)

// fleet is a router with one loop before backends in this process, for many clients in another.
type fleet struct {
	*site.Router
	plain *site.Backend
}

// startFleet starts a router, alone with a core of its own or not.
func startFleet(t *site.T, alone bool) *fleet {
	plain := t.ServeHTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") }))
	through := t.ServeConns(func(c net.Conn) { // TLS would be the client's matter
		defer c.Close()
		_, _ = io.Copy(struct{ io.Writer }{c}, c)
	})
	text := site.Route{Host: hostThrough, Service: "through", TLS: "termination: passthrough"}.String()
	for _, host := range []string{hostECDSA, hostRSA} {
		pair := site.Must(site.NewKeyPair(host, host == hostRSA))
		name, _, _ := strings.Cut(host, ".")
		text += site.Route{Name: name, Host: host, Service: "plain", Annotations: site.NoCookies, TLS: pair.EdgeTLS()}.String()
	}
	text += site.Service{Name: "plain", Port: plain.Port()}.String() + site.Service{Name: "through", Port: through.Port()}.String()
	return &fleet{t.Start(site.Config{Args: []string{"--threads", "1"}, Alone: alone, Manifests: text}), plain}
}

// Descriptors that a router needs besides those of n connections: of its own, and the last eighth of all, which it keeps for
// connections to pods; for connections that are passed through, those to pods that are kept for the next client.
const (
	otherFiles = 200
	keptFiles  = 100
)

// roomFor is how many of n connections a process can hold with as many descriptors each. It raises the limit of open files of this
// process and its children so that all fit, and if the system does not allow that says so.
func roomFor(t *site.T, n, each int) int {
	return fits(t, n, n*each*8/7+otherFiles, func(limit int) int { return (limit - otherFiles) * 7 / 8 / each })
}

// roomForTunnels is the same for connections that are passed through: each has its connection to a pod.
func roomForTunnels(t *site.T, n int) int {
	return fits(t, n, 2*n+otherFiles+keptFiles, func(limit int) int { return (limit - otherFiles - keptFiles) / 2 })
}

func fits(t *site.T, n, need int, fit func(limit int) int) int {
	limit := int(site.Must(site.OpenFiles(uint64(need))))
	if limit >= need {
		return n
	}
	t.Printf("%d connections, because a process may open %d files (ulimit -Hn); %d need %d\n", fit(limit), limit, n, need)
	return fit(limit)
}

// chosen tells whether a list of names, separated by commas, has one; the empty list has all.
func chosen(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// fleetTLS is the client's side. What it checks is not measured.
func fleetTLS(host string, version uint16, protocols ...string) *tls.Config {
	return &tls.Config{
		ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: version, NextProtos: protocols,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
}

// holders are a process that holds connections until it is closed.
type holders struct {
	in  io.Closer
	end func() error
}

// The role of that process, and its line when all connections are open.
const (
	holderRole = "hold-connections"
	holdersAre = "open"
)

// startHolders waits until n connections of a kind are open.
func startHolders(t *site.T, r *fleet, kind string, n int) *holders {
	p := site.Must(site.StartTalker(site.Self(t.Context, holderRole, kind, r.HTTP, r.HTTPS, strconv.Itoa(n))))
	h := &holders{in: p.In, end: p.Wait}
	if line, _ := bufio.NewReader(p.Out).ReadString('\n'); line != holdersAre+"\n" {
		site.Check(errors.Join(errors.New("the clients could not open their connections"), h.close()))
	}
	return h
}

// close ends the clients and returns what they could not do.
func (h *holders) close() error {
	_ = h.in.Close()
	if err := h.end(); err != nil {
		return fmt.Errorf("the clients failed: %w", err)
	}
	return nil
}

// hold opens n connections, sends one request on each, says so, and holds them until its input ends. The arguments are the kind,
// the addresses of HTTP and of TLS, and n.
func hold(_ context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("cannot hold connections: four arguments are wanted")
	}
	n, err := strconv.Atoi(args[3])
	open := openers(args[1], args[2])[args[0]]
	if err != nil || open == nil {
		return fmt.Errorf("cannot hold connections: %q", args)
	}
	conns := make([]net.Conn, n)
	workers := make([]func() (struct{}, error), 16)
	for w := range workers {
		workers[w] = func() (_ struct{}, err error) {
			for i := w; i < n && err == nil; i += len(workers) {
				conns[i], err = open()
			}
			return struct{}{}, err
		}
	}
	if _, err := site.AtOnce(workers); err != nil {
		return err
	}
	fmt.Println(holdersAre)
	_, _ = io.Copy(io.Discard, os.Stdin)
	var failed error
	for _, c := range conns {
		if args[0] == "through" && failed == nil {
			failed = finishThrough(c)
		}
		_ = c.Close()
	}
	return failed
}

// openers open a connection of each kind and use it once.
func openers(plain, secure string) map[string]func() (net.Conn, error) {
	opener := func(addr string, cfg *tls.Config, use func(net.Conn) error) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			if err != nil {
				return nil, fmt.Errorf("cannot connect: %w", err)
			}
			if cfg != nil {
				c = tls.Client(c, cfg)
			}
			return c, use(c)
		}
	}
	through := hello(fleetTLS(hostThrough, tls.VersionTLS13))
	return map[string]func() (net.Conn, error){
		"plain":   opener(plain, nil, ask1),
		"tls13":   opener(secure, fleetTLS(hostECDSA, tls.VersionTLS13), ask1),
		"tls12":   opener(secure, fleetTLS(hostECDSA, tls.VersionTLS12), ask1),
		"h2":      opener(secure, fleetTLS(hostECDSA, tls.VersionTLS13, "h2"), ask2),
		"through": opener(secure, nil, func(c net.Conn) error { return echoed(c, through) }),
	}
}

// ask1 sends a request over HTTP/1.1 and reads its answer.
func ask1(c net.Conn) error {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+hostECDSA+"\r\n\r\n"); err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return readUntil(c, func(p []byte) bool { return bytes.HasSuffix(p, []byte("hello\n")) })
}

// readUntil reads until done is satisfied with what has come.
func readUntil(c net.Conn, done func([]byte) bool) error {
	var p [2 << 10]byte
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for n := 0; ; {
		k, err := c.Read(p[n:])
		if n += k; done(p[:n]) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read an answer: %w, got %q", err, p[:n])
		}
	}
}

// ask2 sends a request over HTTP/2 and reads its answer.
func ask2(c net.Conn) error {
	h := site.NewH2(c, 512)
	h.Scheme = "https"
	h.Get(hostECDSA, "/")
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for err := h.Flush(); ; {
		if err != nil {
			return err
		}
		f, more := h.Next()
		if site.Ends(f) {
			return nil
		}
		err = more
	}
}

// hello returns the ClientHello of a client, its records as they are sent.
func hello(cfg *tls.Config) []byte {
	var sent deaf
	_ = tls.Client(&sent, cfg).Handshake() // it fails once the hello is sent
	return sent.got
}

// deaf is a connection that keeps what is sent and answers nothing.
type deaf struct {
	net.Conn
	got []byte
}

func (d *deaf) Write(p []byte) (int, error) {
	d.got = append(d.got, p...)
	return len(p), nil
}

func (*deaf) Read([]byte) (int, error)         { return 0, io.EOF }
func (*deaf) Close() error                     { return nil }
func (*deaf) SetDeadline(time.Time) error      { return nil }
func (*deaf) SetWriteDeadline(time.Time) error { return nil }

func echoed(c net.Conn, p []byte) error {
	if _, err := c.Write(p); err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return readUntil(c, func(got []byte) bool { return bytes.Equal(got, p) })
}

// finishThrough uses a connection once more, ends its own direction and waits for the end of the other.
func finishThrough(c net.Conn) error {
	if err := echoed(c, slices.Repeat([]byte("x"), 1000)); err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return fmt.Errorf("cannot end a direction: %w", err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %d bytes and %w instead of the end", n, err)
	}
	return nil
}

package main

import (
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

	"turnout/bench/load"
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
	pairs []site.KeyPair // of hostECDSA and hostRSA
}

// startFleet starts a router, alone with a core of its own or not.
func startFleet(t *site.T, alone bool) *fleet {
	plain := t.ServeHTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") }))
	through := t.ServeConns(func(c net.Conn) { // TLS would be the client's matter
		_, _ = io.Copy(struct{ io.Writer }{c}, c)
	})
	text := site.Route{Host: hostThrough, Service: "through", TLS: "termination: passthrough"}.String()
	pairs := []site.KeyPair{site.NewKeyPair(hostECDSA, false), site.NewKeyPair(hostRSA, true)}
	for i, host := range []string{hostECDSA, hostRSA} {
		name, _, _ := strings.Cut(host, ".")
		text += site.Route{Name: name, Host: host, Service: "plain", Annotations: site.NoCookies, TLS: pairs[i].EdgeTLS()}.String()
	}
	text += site.Service{Name: "plain", Port: plain.Port()}.String() + site.Service{Name: "through", Port: through.Port()}.String()
	return &fleet{t.Start(site.Config{Args: []string{"--threads", "1"}, Alone: alone, Manifests: text}), plain, pairs}
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
	limit := int(site.OpenFiles(uint64(need)))
	if limit >= need {
		return n
	}
	t.Printf("%d connections, because a process may open %d files (ulimit -Hn); %d need %d\n", fit(limit), limit, n, need)
	return fit(limit)
}

// fleetTLS is the client's side. What it checks is not measured.
func fleetTLS(host string, version uint16, protocols ...string) *tls.Config {
	return &tls.Config{
		ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: version, NextProtos: protocols,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
}

// The role of a process that holds connections until its input ends, and its line when all are open.
const (
	holderRole = "hold-connections"
	holdersAre = "open"
)

// startHolders waits until n connections of a kind are open.
func startHolders(t *site.T, r *fleet, kind string, n int) *site.Process {
	cmd := site.Self(t.Context, holderRole, kind, r.HTTP, r.HTTPS, strconv.Itoa(n))
	p := site.StartProcess("the clients", cmd, site.AnyCore, func(line []byte) bool { return string(line) == holdersAre+"\n" })
	p.Await(t.Context)
	return p
}

// hold opens n connections, sends one request on each, says so, and holds them until its input ends. The arguments are the kind,
// the addresses of HTTP and of TLS, and n.
func hold(_ context.Context, args []string) (err error) {
	defer site.Catch(&err)
	if len(args) != 4 || openers(args[1], args[2])[args[0]] == nil {
		site.Stopf("cannot hold connections: %q", args)
	}
	open := openers(args[1], args[2])[args[0]]
	conns := make([]net.Conn, site.Must(strconv.Atoi(args[3])))
	site.Together(len(conns), 16, func(i int) { conns[i] = open() })
	fmt.Println(holdersAre)
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, c := range conns {
		if args[0] == "through" {
			finishThrough(c)
		}
		_ = c.Close()
	}
	return nil
}

// openers open a connection of each kind and use it once.
func openers(plain, secure string) map[string]func() net.Conn {
	opener := func(addr string, cfg *tls.Config, use func(net.Conn)) func() net.Conn {
		return func() net.Conn {
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			site.Checkf(err, "cannot connect")
			if cfg != nil {
				c = tls.Client(c, cfg)
			}
			use(c)
			return c
		}
	}
	through := load.ClientHello(fleetTLS(hostThrough, tls.VersionTLS13))
	return map[string]func() net.Conn{
		"plain":   opener(plain, nil, ask1),
		"tls13":   opener(secure, fleetTLS(hostECDSA, tls.VersionTLS13), ask1),
		"tls12":   opener(secure, fleetTLS(hostECDSA, tls.VersionTLS12), ask1),
		"h2":      opener(secure, fleetTLS(hostECDSA, tls.VersionTLS13, "h2"), ask2),
		"through": opener(secure, nil, func(c net.Conn) { echoed(c, through) }),
	}
}

// ask1 sends a request over HTTP/1.1 and reads its answer.
func ask1(c net.Conn) {
	exchanged(c, []byte("GET / HTTP/1.1\r\nHost: "+hostECDSA+"\r\n\r\n"), func(p []byte) bool { return bytes.HasSuffix(p, []byte("hello\n")) })
}

// exchanged sends p and reads until done is satisfied with what has come.
func exchanged(c net.Conn, p []byte, done func([]byte) bool) {
	_, err := c.Write(p)
	site.Checkf(err, "cannot send")
	var got [2 << 10]byte
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for n := 0; !done(got[:n]); {
		k, err := c.Read(got[n:])
		if n += k; err != nil && !done(got[:n]) {
			site.Stopf("cannot read an answer: %w, got %q", err, got[:n])
		}
	}
}

// ask2 sends a request over HTTP/2 and reads its answer.
func ask2(c net.Conn) {
	h := site.NewH2(c, 512)
	h.Scheme = "https"
	h.Get(hostECDSA, "/")
	h.Flush()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for !site.Ends(h.Next()) {
	}
}

// echoed has p sent back.
func echoed(c net.Conn, p []byte) {
	exchanged(c, p, func(got []byte) bool { return bytes.Equal(got, p) })
}

// finishThrough uses a connection once more, ends its own direction and waits for the end of the other.
func finishThrough(c net.Conn) {
	echoed(c, slices.Repeat([]byte("x"), 1000))
	site.Checkf(c.(*net.TCPConn).CloseWrite(), "cannot end a direction")
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		site.Stopf("read %d bytes and %w instead of the end", n, err)
	}
}

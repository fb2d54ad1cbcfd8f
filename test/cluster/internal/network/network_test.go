package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"turnout/test/cluster/sandbox"
)

func TestMain(m *testing.M) {
	dir := filepath.Join("..", "..", "bin", "run-network")
	os.Exit(sandbox.Run(sandbox.Config{Dir: dir}, func(string) int { return m.Run() }))
}

// fabric returns the one fabric of this sandbox and two nodes.
func fabric(t *testing.T) (*Fabric, *Network, *Network) {
	t.Helper()
	if shared == nil {
		f, err := NewFabric(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shared = f
	}
	one, err := shared.Node("one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := shared.Node("two")
	if err != nil {
		t.Fatal(err)
	}
	return shared, one, two
}

var shared *Fabric

func add(t *testing.T, n *Network, uid string) Pod {
	t.Helper()
	p, err := n.Add(uid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Remove(uid); err != nil {
			t.Error(err)
		}
	})
	return p
}

// answer makes p answer connections with the address that each comes from.
func answer(t *testing.T, p Pod) (port string) {
	t.Helper()
	l, err := p.Listen("tcp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	return answerOn(t, l)
}

func answerOn(t *testing.T, l net.Listener) (port string) {
	t.Helper()
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			_, _ = io.WriteString(conn, host)
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// source returns the address under which dial was seen.
func source(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), to netip.Addr, port string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := dial(ctx, "tcp", net.JoinHostPort(to.String(), port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Everybody reaches everybody, and is seen with the own address.
func TestEverybodyReachesEverybody(t *testing.T) {
	f, one, two := fabric(t)
	client, err := f.Client("visitor")
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]Pod{
		"first pod": add(t, one, "a"), "pod of the same node": add(t, one, "b"), "pod of another node": add(t, two, "c"),
		"node": one.HostNetwork(), "other node": two.HostNetwork(), "client": client,
	}
	for name, to := range ends {
		port := answer(t, to)
		for family, addr := range to.IPs {
			if got, want := source(t, (&net.Dialer{}).DialContext, addr, port), Outside[family].String(); got != want {
				t.Errorf("sandbox to %s: seen as %s, want %s", name, got, want)
			}
			for other, from := range ends {
				if got, want := source(t, from.Dial, addr, port), from.IPs[family].String(); got != want && from.Netns != to.Netns {
					t.Errorf("%s to %s: seen as %s, want %s", other, name, got, want)
				}
			}
		}
	}
}

func TestAddIsIdempotent(t *testing.T) {
	_, one, _ := fabric(t)
	p, again := add(t, one, "twice"), add(t, one, "twice")
	if p.Netns != again.Netns || p.IPs[0] != again.IPs[0] {
		t.Errorf("added twice: %v and %v", p, again)
	}
}

// A pod that is gone is not reached, and its address is not given to the next pod.
func TestRemove(t *testing.T) {
	_, one, _ := fabric(t)
	p, err := one.Add("short-lived")
	if err != nil {
		t.Fatal(err)
	}
	port := answer(t, p)
	if err := errors.Join(one.Remove("short-lived"), one.Remove("short-lived")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.Netns); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", p.Netns, err)
	}
	if conn, err := net.Dial("tcp", net.JoinHostPort(p.IPs[0].String(), port)); err == nil {
		_ = conn.Close()
		t.Error("the pod still answers")
	}
	if next := add(t, one, "next"); next.IPs[0] == p.IPs[0] {
		t.Errorf("the next pod has the same address %v", p.IPs[0])
	}
}

// A host port leads to its pod, from everywhere, and ends with it.
func TestHostPort(t *testing.T) {
	f, one, two := fabric(t)
	client, err := f.Client("visitor")
	if err != nil {
		t.Fatal(err)
	}
	const port = 9090
	p, err := one.Add("with host port", HostPort{HostPort: 8080, ContainerPort: port})
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Listen("tcp", fmt.Sprintf("[::]:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	answerOn(t, l)
	for family, node := range one.HostNetwork().IPs {
		if got, want := source(t, client.Dial, node, "8080"), client.IPs[family].String(); got != want {
			t.Errorf("client to %v: seen as %s, want %s", node, got, want)
		}
		if got, want := source(t, two.HostNetwork().Dial, node, "8080"), two.HostNetwork().IPs[family].String(); got != want {
			t.Errorf("node to %v: seen as %s, want %s", node, got, want)
		}
		// The pod cannot answer itself: it would not take an answer from its own address for one.
		if got, want := source(t, p.Dial, node, "8080"), node.String(); got != want {
			t.Errorf("the pod itself to %v: seen as %s, want %s", node, got, want)
		}
	}
	if err := one.Remove("with host port"); err != nil {
		t.Fatal(err)
	}
	conn, err := client.Dial(t.Context(), "tcp", net.JoinHostPort(one.HostNetwork().IPs[0].String(), "8080"))
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v after the pod was removed, want connection refused", err)
	}
}

func TestRangeAt(t *testing.T) {
	f := func(r Range, n int, want4, want6 string) {
		t.Helper()
		if got := r.At(n); got[0].String() != want4 || got[1].String() != want6 {
			t.Errorf("got %v, want %s and %s", got, want4, want6)
		}
	}
	f(Nodes, 1, "10.1.0.1", "fd00:1::1")
	f(Balancers, 300, "10.100.1.44", "fd00:100::12c")
	f(pods(2), 9, "10.244.2.9", "fd00:244:0:2::9")
}

package pulse

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
)

// answerer answers the first bytes of each connection.
type answerer struct{ text string }

func (*answerer) Connected(*reactor.Conn) {}
func (a *answerer) Data(c *reactor.Conn, p []byte) int {
	c.Write([]byte(a.text))
	c.Close()
	return len(p)
}
func (*answerer) EOF(c *reactor.Conn)         { c.Close() }
func (*answerer) Drained(*reactor.Conn)       {}
func (*answerer) Closed(*reactor.Conn, error) {}

const served = "HTTP/1.1 200 OK\r\n\r\n"

// start runs a group of two loops that answer with text.
func start(t *testing.T, text string, cfg reactor.Config) (*reactor.Group, *Pulse, *bound.Counts) {
	t.Helper()
	group, err := reactor.NewGroup(2, cfg)
	if err != nil {
		t.Fatal(err)
	}
	counts := new(bound.Counts)
	p, err := New(Config{Group: group, Bounds: counts, Accept: func(*reactor.Conn) reactor.Handler { return &answerer{text} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- group.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-group.Started()
	return group, p, counts
}

func TestLoopsAnswer(t *testing.T) {
	_, p, _ := start(t, served, reactor.Config{})
	if err := p.Serving(); err != nil {
		t.Error(err)
	}
	if err := p.Alive(); err != nil {
		t.Error(err)
	}
}

func TestLoopsAnswerSomethingElse(t *testing.T) {
	_, p, _ := start(t, "HTTP/1.1 503 No\r\n\r\n", reactor.Config{})
	if err := p.Serving(); err == nil || !strings.Contains(err.Error(), "loop 0") || !strings.Contains(err.Error(), "loop 1") {
		t.Errorf("%v", err)
	}
}

// TestLoopIsBusy: one loop that makes no progress is found, also when the others do, and when it lasts the process is not alive.
func TestLoopIsBusy(t *testing.T) {
	group, p, counts := start(t, served, reactor.Config{})
	now := time.Now()
	p.clock = func() time.Time { return now }
	release, held := make(chan struct{}), make(chan struct{})
	group.Loops()[1].Post(func() { close(held); <-release })
	<-held
	err := p.Serving()
	if err == nil || !strings.Contains(err.Error(), "event loop 1 does not answer") || strings.Contains(err.Error(), "loop 0") {
		t.Errorf("%v", err)
	}
	if counts.Of(bound.LoopTooBusy) != 1 {
		t.Errorf("counted %d times", counts.Of(bound.LoopTooBusy))
	}
	if err := p.Alive(); err != nil {
		t.Errorf("not alive at once: %v", err)
	}
	now = now.Add(lost + time.Second)
	if err := p.Alive(); err == nil {
		t.Error("alive for ever")
	}
	close(release)
	now = now.Add(time.Second)
	if err := p.Serving(); err != nil {
		t.Error(err)
	}
	if err := p.Alive(); err != nil {
		t.Error(err)
	}
}

// TestProbesShareAnAnswer: who asks at once after another gets the same answer, and nobody is asked.
func TestProbesShareAnAnswer(t *testing.T) {
	group, p, _ := start(t, served, reactor.Config{})
	now := time.Now()
	p.clock = func() time.Time { return now }
	if err := p.Serving(); err != nil {
		t.Fatal(err)
	}
	release, held := make(chan struct{}), make(chan struct{})
	group.Loops()[0].Post(func() { close(held); <-release })
	<-held
	if err := p.Serving(); err != nil {
		t.Error(err)
	}
	close(release)
	p.Stop()
	now = now.Add(time.Hour)
	if err := p.Serving(); err != nil {
		t.Error(err)
	}
}

// TestNobodyElseIsInTheWay: neither the bound of connections nor somebody who holds those of the loop's own port keeps it from answering.
func TestNobodyElseIsInTheWay(t *testing.T) {
	budget := reactor.NewBudget(reactor.BudgetConfig{Connections: 1})
	group, p, _ := start(t, served, reactor.Config{Budget: budget})
	addr, err := group.Listen("127.0.0.1:0", func(*reactor.Conn) reactor.Handler { return &answerer{served} })
	if err != nil {
		t.Fatal(err)
	}
	var open []net.Conn
	dial := func(addr string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range 5 {
		dial(addr.String())
	}
	for range 3 * visitors {
		dial(p.loops[0].String())
	}
	if err := p.Serving(); err != nil {
		t.Error(err)
	}
}

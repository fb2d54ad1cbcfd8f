package operator

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load are clients that ask for one page again and again, half of them on connections
// that they keep.
type load struct {
	stop    chan struct{}
	running sync.WaitGroup
	done    atomic.Int64

	mu     sync.Mutex
	failed []string
}

// newLoad starts n clients of plain HTTP at an address; pause is between two requests of each.
func newLoad(address string, n int, pause time.Duration) *load {
	l := &load{stop: make(chan struct{})}
	for i := range n {
		l.running.Go(func() { l.client(net.JoinHostPort(address, "80"), i%2 == 0, pause) })
	}
	return l
}

// client asks until the load ends.
func (l *load) client(address string, keep bool, pause time.Duration) {
	var (
		c net.Conn
		r *bufio.Reader
	)
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(pause):
		}
		fresh := c == nil
		if fresh {
			var err error
			if c, err = net.DialTimeout("tcp", address, 20*time.Second); err != nil {
				l.fail("dial", err)
				c = nil
				continue
			}
			r = bufio.NewReader(c)
		}
		reusable, err := ask(c, r, keep)
		if err != nil && !fresh && strings.HasPrefix(err.Error(), "closed") {
			// A kept connection may be closed between two requests (RFC 9112, 9.3.1): a
			// client asks again on another one. That must not fail.
			_ = c.Close()
			c = nil
			continue
		}
		if err != nil {
			l.fail("request", err)
		}
		l.done.Add(1)
		if err != nil || !reusable {
			_ = c.Close()
			c = nil
		}
	}
}

// ask makes one request, with "Connection: close" unless keep is set. Then the router has to
// close: the side that closes first holds the port for a minute (TIME_WAIT, RFC 9293, 3.6),
// and the clients have 28,000 of them. An error that begins with "closed" means that nothing
// of an answer came.
func ask(c net.Conn, r *bufio.Reader, keep bool) (reusable bool, err error) {
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return false, err
	}
	head := "GET / HTTP/1.1\r\nHost: " + plainHost + "\r\n"
	if !keep {
		head += "Connection: close\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		return false, fmt.Errorf("closed: %w", err)
	}
	if _, err := r.Peek(1); err != nil {
		return false, fmt.Errorf("closed: %w", err)
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != 200 || !strings.Contains(string(body), canaryBody)) {
		err = fmt.Errorf("%s %q", answer.Status, body)
	}
	if err == nil && !keep {
		if _, end := r.ReadByte(); !errors.Is(end, io.EOF) {
			err = fmt.Errorf("the connection is not closed after its answer: %v", end)
		}
	}
	return err == nil && keep && !answer.Close, err
}

func (l *load) fail(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) < 20 {
		l.failed = append(l.failed, time.Now().Format("15:04:05.000 ")+what+": "+err.Error())
	}
}

// end stops the clients; not one request may have failed.
func (l *load) end(t testing.TB, during string) {
	t.Helper()
	close(l.stop)
	l.running.Wait()
	if len(l.failed) > 0 || l.done.Load() < 100 {
		t.Errorf("%s: failures among %d requests:\n%s", during, l.done.Load(), strings.Join(l.failed, "\n"))
	}
	t.Logf("%s: %d requests, %d failed", during, l.done.Load(), len(l.failed))
}

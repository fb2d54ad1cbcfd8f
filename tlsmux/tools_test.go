package tlsmux

import (
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"turnout/internal/reactor"
)

// tool finds a program; without it there is nothing to compare with.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// hello answers the first request head with a small HTTP response.
func hello() *funcs {
	return &funcs{data: func(c *reactor.Conn, p []byte) int {
		if !bytes.Contains(p, []byte("\r\n\r\n")) {
			return 0
		}
		c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n"))
		c.Close()
		return len(p)
	}}
}

func TestCurl(t *testing.T) {
	curl := tool(t, "curl")
	s := serve(t, Config{Terminated: func(*reactor.Conn, Info) reactor.Handler { return hello() }})
	for _, args := range [][]string{{"--tls-max", "1.2"}, {"--tlsv1.3"}, {"--http1.1"}, {"--no-alpn"}} {
		args = append(args, "-sSk", "--max-time", "20", "--resolve", "shared.test:"+port(s)+":127.0.0.1", "https://shared.test:"+port(s)+"/")
		out, err := exec.Command(curl, args...).CombinedOutput()
		if err != nil || string(out) != "hi\n" {
			t.Errorf("curl %v: %q, %v", args, out, err)
		}
	}
}

func port(s *service) string {
	_, p, _ := strings.Cut(s.addr.String(), ":")
	return p
}

// transcript collects what a program prints.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// count waits until text was printed n times.
func (o *transcript) count(t *testing.T, text string, n int) {
	t.Helper()
	eventually(t, text, func() bool { return strings.Count(o.String(), text) >= n })
}

// openssl is s_client with a script for its standard input.
func openssl(t *testing.T, s *service, args ...string) (in io.WriteCloser, out *transcript, wait func() error) {
	t.Helper()
	if !slices.Contains(args, "-noservername") {
		args = append([]string{"-servername", "shared.test"}, args...) // a later one wins
	}
	cmd := exec.Command(tool(t, "openssl"), append([]string{"s_client", "-connect", s.addr.String()}, args...)...)
	in, err := cmd.StdinPipe()
	must(t, err)
	out = &transcript{}
	cmd.Stdout, cmd.Stderr = out, out
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return in, out, func() error { return get(t, "end of openssl", done) }
}

func TestOpenSSL(t *testing.T) {
	for _, args := range [][]string{{"-tls1_2"}, {"-tls1_3"}, {"-tls1_3", "-groups", "P-384"}, {"-split_send_frag", "1"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			s := serve(t, Config{Terminated: func(*reactor.Conn, Info) reactor.Handler { return hello() }})
			in, out, wait := openssl(t, s, append(args, "-quiet")...)
			if _, err := io.WriteString(in, "GET / HTTP/1.1\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			_ = wait() // its exit status varies with the version
			if !strings.HasSuffix(out.String(), "\r\n\r\nhi\n") {
				t.Errorf("openssl says %q", out)
			}
		})
	}
}

// TestKeyUpdate has the peer change its keys, and ask for ours to be changed, before data flows both ways.
func TestKeyUpdate(t *testing.T) {
	got := make(chan string, 10)
	s := serve(t, Config{Terminated: func(*reactor.Conn, Info) reactor.Handler {
		return &funcs{data: func(c *reactor.Conn, p []byte) int {
			got <- string(p)
			c.Write([]byte("answer\n"))
			return len(p)
		}}
	}})
	in, out, wait := openssl(t, s, "-tls1_3")
	updates := 0
	for _, line := range []string{"k\n", "one\n", "K\n", "two\n"} { // k: its keys, K: both
		if _, err := io.WriteString(in, line); err != nil {
			t.Fatal(err)
		}
		if len(line) == 2 {
			updates++
			out.count(t, "KEYUPDATE", updates)
			continue
		}
		if text := get(t, "data", got); text != line {
			t.Fatalf("got %q, want %q", text, line)
		}
		out.count(t, "answer\n", updates)
	}
	in.Close()
	_ = wait()
}

// TestKeyUpdateFlood has a peer do nothing but change keys.
func TestKeyUpdateFlood(t *testing.T) {
	closed := make(chan error, 1)
	s := serve(t, Config{Terminated: func(*reactor.Conn, Info) reactor.Handler {
		return &funcs{closed: func(_ *reactor.Conn, err error) { closed <- err }}
	}})
	in, out, _ := openssl(t, s, "-tls1_3")
	for n := 1; n <= 17; n++ { // crypto/tls allows 16 records in a row that say nothing
		if _, err := io.WriteString(in, "K\n"); err != nil {
			t.Fatal(err)
		}
		out.count(t, "KEYUPDATE", n)
	}
	if err := get(t, "end of the connection", closed); err == nil || !strings.Contains(err.Error(), "non-advancing") {
		t.Errorf("closed with %v", err)
	}
}

package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// glance is how long a connection is watched to see whether it stays open.
const glance = 500 * time.Millisecond

// hold is what the pod does on paths on which it does not answer at once; false on others.
func (r *ingressRig) hold(w http.ResponseWriter, q *http.Request) bool {
	switch q.URL.Path {
	case "/slow": // no answer
		r.entered <- q.URL.Path
		<-q.Context().Done()
	case "/late": // one when the test says so
		r.entered <- q.URL.Path
		<-r.answer
		return false
	case "/tunnel", "/half": // a tunnel of which nobody ends anything, or of which the pod ends its half
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			r.Error(err)
			return true
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
		if q.URL.Path == "/half" {
			_ = conn.(*net.TCPConn).CloseWrite()
			r.half <- watched(conn)
		}
		<-r.Context().Done()
	default:
		return false
	}
	return true
}

// watched says whether the other side closes a connection soon.
func watched(conn net.Conn) string {
	_ = conn.SetReadDeadline(time.Now().Add(glance))
	if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
		return "open"
	}
	return "closed"
}

// silent connects and never sends a byte.
func (r *ingressRig) silent(addr string) net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		r.Fatal(err)
	}
	return conn
}

// tunnel makes a tunnel to a path of the pod, ends the client's half if asked to, and says whether the router closes the other soon.
func (r *ingressRig) tunnel(path string, clientEnds bool) func() string {
	return func() string {
		conn := r.silent(r.plain)
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: r.test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n", path)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			return fmt.Sprint(answer, err)
		}
		if !clientEnds {
			return <-r.half
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		return watched(conn)
	}
}

// line sends a request and returns its line of the log, which begins with the client's port, and all lines that came before it and were not
// taken. Without a line it returns none.
func (r *ingressRig) line(fields ...string) string {
	conn := r.silent(r.plain)
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: r.test\r\nConnection: close\r\n%s\r\n", strings.Join(append(fields, ""), "\r\n"))
	_, _ = io.Copy(io.Discard, conn)
	var lines strings.Builder
	mine := fmt.Sprintf("[%d] ", conn.LocalAddr().(*net.TCPAddr).Port)
	for late := time.After(4 * glance); ; {
		for _, text := range r.logged.take() {
			lines.WriteString(text + "\n")
			if strings.Contains(text, mine) {
				return lines.String()
			}
		}
		select {
		case <-r.logged.came:
		case <-late:
			return ""
		}
	}
}

// packetLog is what has come in packets and was not taken yet.
type packetLog struct {
	mu    sync.Mutex
	lines []string
	came  chan struct{} // has an item after a packet
}

// collect adds packets as they come, until conn is closed: those that nobody takes at once are soon more than the system keeps, as clients
// ask all the time.
func (l *packetLog) collect(conn net.PacketConn) {
	buf := make([]byte, 8<<10)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.lines = append(l.lines, string(buf[:n]))
		l.mu.Unlock()
		select {
		case l.came <- struct{}{}:
		default:
		}
	}
}

// take returns what is there, and has it no longer.
func (l *packetLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// logs is a spec with an access log, with fields of it.
func (r *ingressRig) logs(fields string) string {
	return fmt.Sprintf("logging: {access: {destination: {type: Syslog, syslog: {address: 127.0.0.1, port: %d}}, httpLogFormat: '[%%cp] %%ST|%%hr|%%hs|%%CC'%s}}",
		r.packets.LocalAddr().(*net.UDPAddr).Port, fields)
}

// change has what the router does before and after a change of the object observed.
type change struct {
	name, first, before, spec, after string
	observe                          func() string
}

// each has the changes made, one after the other.
func (r *ingressRig) each(changes ...change) {
	r.Helper()
	for _, c := range changes {
		r.spec(c.first)
		r.until(c.name+", before", c.before, c.observe)
		r.spec(c.spec)
		r.until(c.name, c.after, c.observe)
	}
}

// TestIngressControllerOnTheWire: what clients and pods see of fields that are about connections, certificates and lines of the log changes while others use the router.
func TestIngressControllerOnTheWire(t *testing.T) {
	t.Parallel()
	r := newIngressRig(t, nil, anyDataPorts...)
	defer r.load(func() string { return r.plain })()
	write(t, r.dir, "others.yaml", []byte(configMap("ca", "ca-bundle.pem", r.authority.PEM())+`---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: queued, namespace: d, annotations: {haproxy.router.openshift.io/pod-concurrent-connections: "1"}}
spec: {host: queued.test, to: {kind: Service, name: s}}
`))
	own := issue(t, r.authority, "CN=client").tls()
	certified := func() string {
		status, _, err := present(r.tls, "e.test", own, nil)
		return fmt.Sprint(status, " ", err)
	}
	const trusted, nobody = "clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}}", "clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}, allowedSubjectPatterns: [^/CN=nobody$]}"
	r.until("the route with a queue", "200 OK", r.page("queued.test", "/"))
	defer dial(t, r.plain, "GET /slow HTTP/1.1\r\nHost: queued.test\r\n\r\n").Close()
	<-r.entered // the pod has as many requests of the route as it may
	queued := func() string {
		conn := r.silent(r.plain)
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: queued.test\r\n\r\n")
		_ = conn.(*net.TCPConn).CloseWrite()
		return watched(conn)
	}
	captured := func() string {
		all := r.line("X-Mark: one", "Cookie: other=x; sid=abcdef")
		return all[strings.LastIndex(strings.TrimSuffix(all, "\n"), "\n")+1:]
	}
	r.each(
		change{"tlsInspectDelay", "", "open", "tuningOptions: {tlsInspectDelay: 50ms}", "closed", func() string {
			conn := r.silent(r.tls)
			defer conn.Close()
			return watched(conn)
		}},
		change{"clientFinTimeout", "", "open", "tuningOptions: {clientFinTimeout: 50ms}", "closed", r.tunnel("/tunnel", true)},
		change{"clientFinTimeout is not the pod's", "tuningOptions: {serverFinTimeout: 50ms}", "closed", "tuningOptions: {clientFinTimeout: 50ms}", "open", r.tunnel("/half", false)},
		change{"serverFinTimeout", "", "open", "tuningOptions: {serverFinTimeout: 50ms}", "closed", r.tunnel("/half", false)},
		change{"serverFinTimeout is not the client's", "tuningOptions: {clientFinTimeout: 50ms}", "closed", "tuningOptions: {serverFinTimeout: 50ms}", "open", r.tunnel("/tunnel", true)},
		change{"closedClientConnectionPolicy", "", "open", "closedClientConnectionPolicy: Abort", "closed", queued},
		change{"closedClientConnectionPolicy again", "closedClientConnectionPolicy: Abort", "closed", "closedClientConnectionPolicy: Continue", "open", queued},
		change{"allowedSubjectPatterns", trusted, "200 <nil>", nobody, "403 <nil>", certified},
		change{"allowedSubjectPatterns, others", nobody, "403 <nil>", strings.Replace(nobody, "nobody", "client", 1), "200 <nil>", certified},
		change{"httpCaptureHeaders of requests", r.logs(""), "200|||-\n", r.logs(", httpCaptureHeaders: {request: [{name: X-Mark, maxLength: 20}]}"), "200|{one}||-\n", captured},
		change{"httpCaptureHeaders of responses", r.logs(""), "200|||-\n", r.logs(", httpCaptureHeaders: {response: [{name: Content-Type, maxLength: 4}]}"), "200||{text}|-\n", captured},
		change{"httpCaptureCookies", r.logs(""), "200|||-\n", r.logs(", httpCaptureCookies: [{matchType: Exact, name: sid, maxLength: 7}]"), "200|||sid=abc\n", captured},
		change{
			"httpCaptureCookies by a prefix", r.logs(", httpCaptureCookies: [{matchType: Exact, name: sid, maxLength: 7}]"), "200|||sid=abc\n",
			r.logs(", httpCaptureCookies: [{matchType: Prefix, namePrefix: ot, maxLength: 20}]"), "200|||other=x\n", captured,
		},
	)
}

// TestIngressControllerAsksEarlierClients: a client that connected before certificates were required gets one more answer, and has to
// connect again.
func TestIngressControllerAsksEarlierClients(t *testing.T) {
	r := newIngressRig(t, nil, anyDataPorts...)
	defer r.load(func() string { return r.plain })()
	write(t, r.dir, "others.yaml", []byte(configMap("ca", "ca-bundle.pem", r.authority.PEM())))
	conn, err := tls.Dial("tcp", r.tls, &tls.Config{ServerName: "e.test", InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const page = "GET / HTTP/1.1\r\nHost: e.test\r\n\r\n"
	if answer := ask(t, conn, page); answer.StatusCode != http.StatusOK || answer.Close {
		t.Errorf("before: %d, closed %v", answer.StatusCode, answer.Close)
	}
	r.spec("clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}}")
	r.until("a new connection", "certificate required", r.shake(nil))
	if answer := ask(t, conn, page); answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("after: %d, closed %v", answer.StatusCode, answer.Close)
	}
	if got := watched(conn); got != "closed" {
		t.Error("the connection stays open")
	}
}

// TestIngressControllerSilence: what becomes of connections that never send a byte changes while others use the router.
func TestIngressControllerSilence(t *testing.T) {
	t.Parallel()
	r := newIngressRig(t, []string{"ROUTER_SLOWLORIS_TIMEOUT=1s"}, anyDataPorts...)
	defer r.load(func() string { return r.plain })()
	lines := func() string { // of three connections
		written := 0
		var conns [3]net.Conn
		for i := range conns {
			conns[i] = r.silent(r.plain)
			defer conns[i].Close()
		}
		for _, c := range conns {
			_, _ = io.Copy(io.Discard, c)
		}
		all := r.line()
		if all == "" {
			return "no line"
		}
		for _, c := range conns {
			if strings.Contains(all, fmt.Sprintf("[%d] 408", c.LocalAddr().(*net.TCPAddr).Port)) {
				written++
			}
		}
		return fmt.Sprint(written)
	}
	r.each(
		change{"httpEmptyRequestsPolicy", "", "HTTP/1.1 408 ", "httpEmptyRequestsPolicy: Ignore", "without an answer", func() string {
			conn := r.silent(r.plain)
			defer conn.Close()
			if all, err := io.ReadAll(conn); len(all) > 0 || err != nil {
				return fmt.Sprint(string(all), err)
			}
			return "without an answer"
		}},
		change{"logEmptyRequests", r.logs(""), "3", r.logs(", logEmptyRequests: Ignore"), "0", lines},
		change{"logEmptyRequests again", r.logs(", logEmptyRequests: Ignore"), "0", r.logs(", logEmptyRequests: Log"), "3", lines},
	)
}

// set waits until the router goes by a value of an option.
func (r *ingressRig) set(flag, value string) {
	r.Helper()
	r.until("--"+flag, "as wanted", func() string {
		_, rest, _ := strings.Cut(r.shown("/view/settings")(), `"flag":"`+flag+`"`)
		if got, _, _ := strings.Cut(rest, "}"); !strings.Contains(got, `"value":"`+value+`"`) {
			return got
		}
		return "as wanted"
	})
}

// terminate tells the router to stop and waits until it accepts nothing any more. What it returns waits until it has ended.
func (r *ingressRig) terminate() (ended <-chan time.Duration) {
	r.Helper()
	begin := time.Now()
	if err := r.p.Process.Signal(syscall.SIGTERM); err != nil {
		r.Fatal(err)
	}
	over := make(chan time.Duration, 1)
	go func() {
		_ = r.p.Wait()
		over <- time.Since(begin)
	}()
	r.until("end of the port", "refused", func() string {
		conn, err := net.Dial("tcp", r.plain)
		if err != nil {
			return err.Error()
		}
		conn.Close()
		return "open"
	})
	return over
}

// TestIngressControllerIdleConnections: what becomes of idle connections when the router stops is what the object says by then.
func TestIngressControllerIdleConnections(t *testing.T) { //nolint:tparallel // beside other tests; its own parts follow each other
	t.Parallel()
	for policy, want := range map[string]string{"Deferred": "200", "Immediate": "closed"} {
		t.Run(policy, func(t *testing.T) {
			first := map[string]string{"Deferred": "Immediate", "Immediate": "Deferred"}[policy]
			r := startIngressRig(t, "idleConnectionTerminationPolicy: "+first, nil, anyDataPorts...)
			end := r.load(func() string { return r.plain })
			conn := r.silent(r.plain)
			defer conn.Close()
			if answer := ask(t, conn, "GET / HTTP/1.1\r\nHost: r.test\r\n\r\n"); answer.StatusCode != http.StatusOK {
				t.Fatal(answer.Status)
			}
			r.spec("idleConnectionTerminationPolicy: " + policy)
			r.set("idle-close-on-response", fmt.Sprint(policy == "Deferred"))
			end()
			ended := r.terminate()
			got := "closed"
			_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: r.test\r\n\r\n")
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				got = fmt.Sprint(answer.StatusCode)
				_ = answer.Body.Close()
			}
			if got != want {
				t.Errorf("an idle connection: %s, want %s", got, want)
			}
			<-ended
		})
	}
}

const hardStop = "\n---\n, annotations: {ingress.operator.openshift.io/hard-stop-after: %s}"

// TestIngressControllerHardStop: how long running requests get when the router stops is what the object says by then, not what it said at the start.
func TestIngressControllerHardStop(t *testing.T) { //nolint:tparallel // beside other tests; its own parts follow each other
	t.Parallel()
	t.Run("set", func(t *testing.T) {
		r := newIngressRig(t, nil, anyDataPorts...)
		end := r.load(func() string { return r.plain })
		r.spec(fmt.Sprintf(hardStop, "200ms"))
		r.set("hard-stop-after", "200ms")
		end()
		conn := dial(t, r.plain, "GET /slow HTTP/1.1\r\nHost: r.test\r\n\r\n")
		<-r.entered
		ended := r.terminate()
		if all, _ := io.ReadAll(conn); len(all) > 0 {
			t.Errorf("the request got %.100q", all)
		}
		if took := <-ended; took > stopBound { // --max-shutdown-timeout is 30 s
			t.Errorf("the router took %v", took)
		}
	})
	t.Run("withdrawn", func(t *testing.T) {
		r := startIngressRig(t, fmt.Sprintf(hardStop, "1ms"), nil, anyDataPorts...)
		end := r.load(func() string { return r.plain })
		r.set("hard-stop-after", "1ms")
		r.spec("")
		r.set("hard-stop-after", "")
		end()
		conn := dial(t, r.plain, "GET /late HTTP/1.1\r\nHost: r.test\r\n\r\n")
		<-r.entered
		ended := r.terminate()
		select { // longer than the router would wait for requests with the first object, and for what takes its time besides
		case <-time.After(stopPatience + time.Second):
		case took := <-ended:
			t.Errorf("the router ended after %v", took)
		}
		close(r.answer)
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("the request got %v, %v", answer, err)
		}
	})
}

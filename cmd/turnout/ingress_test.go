package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ingressRig is a router that follows an IngressController of its folder, a pod that tells what it got, and clients that never stop.
type ingressRig struct {
	*testing.T

	p          *process
	dir        string
	plain, tls string // addresses of the ports
	authority  *identityPair
	packets    net.PacketConn
	logged     packetLog
	entered    chan string // paths of requests that a pod holds
	half       chan string // what became of tunnels of which a pod has ended its half, see halfOpen
	answer     chan struct{}
	sent       atomic.Int64
	stop       chan struct{}
	clients    sync.WaitGroup
}

const ingressSite = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: r, namespace: d, labels: {type: public}}
spec: {host: r.test, to: {kind: Service, name: s}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: internal, namespace: d, labels: {type: internal}}
spec: {host: internal.test, to: {kind: Service, name: s}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: e, namespace: d, labels: {type: public}, annotations: {haproxy.router.openshift.io/h1-adjust-case: "true"}}
spec: {host: e.test, to: {kind: Service, name: s}, tls: {termination: edge}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wild, namespace: d, labels: {type: public}}
spec: {host: www.wild.test, wildcardPolicy: Subdomain, to: {kind: Service, name: s}}
---
apiVersion: v1
kind: Namespace
metadata: {name: d, labels: {env: prod}}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: d}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1, namespace: d, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
ports: [{name: http, port: %d, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`

// newIngressRig starts the router with an object that says nothing. env is its environment.
func newIngressRig(t *testing.T, env []string, args ...string) *ingressRig {
	t.Helper()
	return startIngressRig(t, "", env, args...)
}

// startIngressRig starts the router with an object as spec writes it.
func startIngressRig(t *testing.T, fields string, env []string, args ...string) *ingressRig {
	t.Helper()
	r := &ingressRig{
		T: t, dir: t.TempDir(), authority: issue(t, nil, "CN=clients"), packets: listenPackets(t), stop: make(chan struct{}),
		entered: make(chan string, 100), half: make(chan string, 100), answer: make(chan struct{}), logged: packetLog{came: make(chan struct{}, 1)},
	}
	go r.logged.collect(r.packets)
	pod := backend(t, func(w http.ResponseWriter, q *http.Request) {
		if r.hold(w, q) {
			return
		}
		w.Header().Set("X-Pod", "yes")
		w.Header().Set("Content-Type", "text/html")
		for _, name := range []string{"X-Added", "X-Forwarded-For", "X-Id", "X-Ssl-Client-Cn"} {
			fmt.Fprintf(w, "%s=%d ", name, len(q.Header.Values(name)))
		}
	})
	write(t, r.dir, "site.yaml", fmt.Appendf(nil, ingressSite, pod.(*net.TCPAddr).Port))
	r.spec(fields)
	c := turnout(t, "turnout", append(env, "ROUTER_IP_V4_V6_MODE=v4"), append([]string{"--manifests", r.dir, "--ingress-controller", "openshift-ingress-operator/web", "--admin-addr", "127.0.0.1:0"}, args...)...)
	r.p = startProcess(t, c)
	r.p.line("ready")
	r.plain, r.tls = loopback(r.p.http), loopback(r.p.https)
	go func() { _, _ = io.Copy(io.Discard, r.p.logs) }()
	return r
}

// anyDataPorts are flags for a router whose ports matter to no test: by default it listens on 80 and 443.
var anyDataPorts = []string{"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0"}

// loopback is an address of all as one of loopback.
func loopback(addr string) string { return strings.Replace(addr, "0.0.0.0", "127.0.0.1", 1) }

// ports are two that nobody listens on.
func ports(t *testing.T) (all [2]int) {
	t.Helper()
	for i := range all {
		ln, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		all[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return all
}

// spec writes the IngressController, with fields of its spec and, after a line ---, of its metadata.
func (r *ingressRig) spec(fields string) {
	r.Helper()
	spec, metadata, _ := strings.Cut(fields, "\n---\n")
	text := "apiVersion: operator.openshift.io/v1\nkind: IngressController\nmetadata: {namespace: openshift-ingress-operator, name: web" + metadata + "}\nspec:\n  domain: apps.test\n"
	for line := range strings.SplitSeq(spec, "\n") {
		text += "  " + line + "\n"
	}
	write(r.T, r.dir, "controller.yaml", []byte(text))
}

// until asks the router, which is another process, until it answers as wanted.
func (r *ingressRig) until(step, want string, observe func() string) {
	r.Helper()
	got := ""
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if got = observe(); strings.Contains(got, want) {
			return
		}
	}
	r.Errorf("%s: %.500q, want %q", step, got, want)
}

// load sends requests, over kept connections and new ones, until the result is called, before the router ends. It fails the test for each that
// fails.
func (r *ingressRig) load(addr func() string) (end func()) {
	const pause = time.Millisecond // the machine is there for what is observed as well
	for worker := range 3 {
		r.clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: worker == 0}}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-r.stop:
					return
				case <-time.After(pause):
				}
				at := addr()
				req, _ := http.NewRequest(http.MethodGet, "http://"+at+"/", http.NoBody)
				req.Host = "r.test"
				answer, err := client.Do(req)
				if err != nil && strings.Contains(err.Error(), "refused") && r.moved(addr, at) {
					continue // nobody is connected to a port that has gone
				}
				if err != nil || answer.StatusCode != http.StatusOK {
					r.Errorf("a request failed: %v, %v", answer, err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				r.sent.Add(1)
			}
		})
	}
	return func() {
		close(r.stop)
		r.clients.Wait()
		if r.sent.Load() == 0 {
			r.Error("no request was sent")
		}
		r.Logf("%d requests", r.sent.Load())
	}
}

// moved reports whether addr returns another address than from, at once or within 5 s: the router closes a port a moment before that.
func (r *ingressRig) moved(addr func() string, from string) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		if addr() != from {
			return true
		}
	}
	return false
}

// page is the answer to a request on a new connection: status, fields and body.
func (r *ingressRig) page(host, path string, fields ...string) func() string {
	return func() string {
		conn, err := net.Dial("tcp", r.plain)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", path, host, strings.Join(append(fields, ""), "\r\n"))
		all, _ := io.ReadAll(conn)
		return string(all)
	}
}

// shake is what a handshake with the TLS port agrees on, or why it fails, also by TLS 1.3, where the server says so later.
func (r *ingressRig) shake(change func(*tls.Config)) func() string {
	return func() string {
		cfg := &tls.Config{ServerName: "e.test", InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}
		if change != nil {
			change(cfg)
		}
		conn, err := tls.Dial("tcp", r.tls, cfg)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		s := conn.ConnectionState()
		if s.NegotiatedProtocol == "h2" {
			return "h2"
		}
		if _, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: e.test\r\nConnection: close\r\n\r\n"); err == nil {
			_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		}
		return fmt.Sprintf("%s %v %s", s.NegotiatedProtocol, err, s.PeerCertificates[0].Subject.CommonName)
	}
}

// shown is a page of the admin port.
func (r *ingressRig) shown(path string) func() string {
	return func() string {
		_, text := get(r.T, "http://"+r.p.admin+path, "")
		return strings.Join(strings.Fields(text), " ")
	}
}

// TestIngressController: each field of an IngressController that changes while clients use the router has its effect, and none of their requests fails.
func TestIngressController(t *testing.T) {
	ports := ports(t)
	r := newIngressRig(t, []string{fmt.Sprintf("ROUTER_SERVICE_HTTP_PORT=%d", ports[0]), fmt.Sprintf("ROUTER_SERVICE_HTTPS_PORT=%d", ports[1])})
	defer r.load(func() string { return r.plain })()
	other := issue(t, r.authority, "CN=server.test")
	write(t, r.dir, "others.yaml", []byte(configMap("ca", "ca-bundle.pem", r.authority.PEM())+configMap("pages", "error-page-503.http", "HTTP/1.1 503 Gone\r\n\r\nown page", "error-page-404.http", "HTTP/1.1 404 Not Found\r\n\r\nnot here")+
		"---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {namespace: openshift-ingress, name: cert}\nstringData:\n"+block("tls.crt", other.PEM())+block("tls.key", other.KeyPEM(t))))
	plain := r.page("r.test", "/", "X-SSL-Client-CN: me", "Accept-Encoding: gzip")
	long := r.page("r.test", "/", "X-Long: "+strings.Repeat("a", 30<<10))
	certified := r.shake(func(c *tls.Config) { c.Certificates = issue(t, r.authority, "CN=client").tls() })
	syslog := func() string {
		plain()
		select {
		case <-r.logged.came:
		case <-time.After(50 * time.Millisecond):
		}
		return strings.Join(r.logged.take(), "\n") + "|"
	}
	for _, step := range []struct {
		name, before, spec, after string
		observe                   func() string
	}{
		{"wildcardPolicy", "503", "routeAdmission: {wildcardPolicy: WildcardsAllowed}", "200 OK", r.page("any.wild.test", "/")},
		{"wildcardPolicy again", "200 OK", "routeAdmission: {wildcardPolicy: WildcardsDisallowed}", "503", r.page("any.wild.test", "/")},
		{"routeSelector", "200 OK", "routeSelector: {matchLabels: {type: public}}", "503", r.page("internal.test", "/")},
		{"namespaceSelector", "200 OK", "routeSelector: {matchLabels: {type: public}}\nnamespaceSelector: {matchLabels: {env: prod}}", "200 OK", plain},
		{"actions.request", "X-Added=0", "httpHeaders: {actions: {request: [{name: X-Added, action: {type: Set, set: {value: one}}}]}}", "X-Added=1", plain},
		{"actions.response", "x-pod: yes", "httpHeaders: {actions: {response: [{name: X-Pod, action: {type: Set, set: {value: 'no'}}}]}}", "no\r\n", plain},
		{"forwardedHeaderPolicy", "X-Forwarded-For=1", "httpHeaders: {forwardedHeaderPolicy: Never}", "X-Forwarded-For=0", plain},
		{"uniqueId", "X-Id=0", "httpHeaders: {uniqueId: {name: X-Id}}", "X-Id=1", plain},
		{"headerNameCaseAdjustments", "x-pod: yes", "httpHeaders: {headerNameCaseAdjustments: [X-POD]}", "X-POD: ", plain},
		{"mutualTLSHeaderFilter", "X-Ssl-Client-Cn=0", "unsupportedConfigOverrides: {mutualTLSHeaderFilter: false}", "X-Ssl-Client-Cn=1", plain},
		{"loadBalancingAlgorithm", `"value": "random"`, "unsupportedConfigOverrides: {loadBalancingAlgorithm: leastconn}", `"value": "leastconn", "from": "IngressController openshift-ingress-operator/web, spec.unsupportedConfigOverrides.loadBalancingAlgorithm and`, r.shown("/routes/d/r")},
		{"httpCompression", "X-Added=0", "httpCompression: {mimeTypes: [text/html]}", "content-encoding: gzip", plain},
		{"httpErrorCodePages", "503 Service Unavailable", "httpErrorCodePages: {name: pages}", "not here", r.page("nobody.test", "/")},
		{"serverTimeout", `"value": "30s"`, "tuningOptions: {serverTimeout: 200ms}", "504 Gateway", func() string {
			if _, text := get(t, "http://"+r.p.admin+"/routes/d/r", ""); strings.Contains(text, `"value": "200ms"`) {
				return r.page("r.test", "/slow")()
			}
			return `"value": "30s"`
		}},
		{"connectTimeout, tunnelTimeout and healthCheckInterval", `"value": "1h0m0s"`, "tuningOptions: {connectTimeout: 7s, tunnelTimeout: 2h, healthCheckInterval: 9s}", `"value": "2h0m0s"`, r.shown("/routes/d/r")},
		{"httpKeepAliveTimeout and clientTimeout", "open", "tuningOptions: {httpKeepAliveTimeout: 100ms, clientTimeout: 20s}", "closed", func() string {
			conn, err := net.Dial("tcp", r.plain)
			if err != nil {
				return err.Error()
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: r.test\r\n\r\n")
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
				return err.Error()
			}
			_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				return "open"
			}
			return "closed"
		}},
		{"headerBufferBytes", "HTTP/1.1 4", "tuningOptions: {headerBufferBytes: 49152, headerBufferMaxRewriteBytes: 4096}", "200 OK", long},
		{"maxConnections", "haproxy_max_connections ", "tuningOptions: {maxConnections: 4000}", "haproxy_max_connections 4000", r.shown("/metrics")},
		{"default-enable-http2", "http/1.1 <nil>", "\n---\n, annotations: {ingress.operator.openshift.io/default-enable-http2: 'true'}", "h2", r.shake(nil)},
		{"tlsSecurityProfile", "http/1.1 <nil>", "tlsSecurityProfile: {type: Modern}", "protocol version", r.shake(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })},
		{"defaultCertificate", "<nil>", "defaultCertificate: {name: cert}", "server.test", r.shake(nil)},
		{"clientTLS, without a certificate", "<nil>", "clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}}", "certificate required", r.shake(nil)},
		{"clientTLS, with one", "<nil>", "clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}}", "http/1.1 <nil>", certified},
		{"clientTLS, whose authorities are gone", "<nil>", "clientTLS: {clientCertificatePolicy: Required, clientCA: {name: nowhere}}", "tls: ", certified},
		{"logging", "|", "logging: {access: {destination: {type: Syslog, syslog: {address: 127.0.0.1, port: " + fmt.Sprint(r.packets.LocalAddr().(*net.UDPAddr).Port) + "}}, httpLogFormat: 'was here %ST %hr', httpCaptureHeaders: {request: [{name: Host, maxLength: 20}]}}}", "was here 200 {r.test}", syslog},
	} {
		r.spec("")
		r.until(step.name+", before", step.before, step.observe)
		r.spec(step.spec)
		r.until(step.name, step.after, step.observe)
	}
}

// configMap is a ConfigMap in openshift-config with pairs of a key and a text.
func configMap(name string, pairs ...string) string {
	text := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: openshift-config, name: " + name + "}\ndata:\n"
	for pair := range slices.Chunk(pairs, 2) {
		text += block(pair[0], pair[1])
	}
	return text
}

// block is a key with a text of several lines.
func block(key, text string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "  %s: |\n", key)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		fmt.Fprintf(&b, "    %s\n", strings.TrimSuffix(line, "\r"))
	}
	return b.String()
}

// TestIngressControllerPorts: ports move without a request that fails, and what comes with a PROXY header is asked for on new connections only.
func TestIngressControllerPorts(t *testing.T) {
	first, second := ports(t), ports(t)
	r := newIngressRig(t, []string{fmt.Sprintf("ROUTER_SERVICE_HTTPS_PORT=%d", first[1])}, "--service-http-port", fmt.Sprint(first[0]))
	r.spec("endpointPublishingStrategy: {type: Private, private: {protocol: PROXY}}")
	kept := dial(t, r.plain, "")
	proxied := r.page("r.test", "/")
	r.until("without a PROXY header", "reset", func() string {
		if got := proxied(); got != "" {
			return got
		}
		return "reset"
	})
	if answer := ask(t, kept, "GET / HTTP/1.1\r\nHost: r.test\r\n\r\n"); answer.StatusCode != http.StatusOK {
		t.Errorf("a connection of before: %d", answer.StatusCode)
	}
	r.spec("")
	r.until("without the PROXY protocol", "200 OK", proxied)
	defer r.load(func() string { return r.plain })()
	// A flag says where plain HTTP is served, a variable where TLS is: the object has no say in either, and in where nothing else does it has.
	r.spec(fmt.Sprintf("tuningOptions: {serverTimeout: 9s}\nendpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: %d, httpsPort: %d}}", second[0], second[1]))
	r.until("what a field decides", `"value":"9s","from":"IngressController openshift-ingress-operator/web, spec.tuningOptions.serverTimeout"`, r.shown("/view/settings"))
	for _, want := range []string{
		fmt.Sprintf(`"flag":"service-http-port","env":"ROUTER_SERVICE_HTTP_PORT","value":"%d","from":"flag"`, first[0]),
		fmt.Sprintf(`"flag":"service-https-port","env":"ROUTER_SERVICE_HTTPS_PORT","value":"%d","from":"environment"`, first[1]),
		`"flag":"cookie-name","env":"ROUTER_COOKIE_NAME","value":"","from":"default"`,
	} {
		if got := r.shown("/view/settings")(); !strings.Contains(got, want) {
			t.Errorf("there is no %s in %.500s", want, got)
		}
	}
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", second[0])); err == nil {
		conn.Close()
		t.Error("the object wins over a flag")
	}
}

// TestIngressControllerMovesPorts: where neither flag nor variable says where the ports are, they follow the object.
func TestIngressControllerMovesPorts(t *testing.T) {
	first, second := ports(t), ports(t)
	dir := t.TempDir()
	r := &ingressRig{T: t, dir: dir, stop: make(chan struct{})}
	pod := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pod") })
	write(t, dir, "site.yaml", fmt.Appendf(nil, ingressSite, pod.(*net.TCPAddr).Port))
	at := func(ports [2]int) string {
		return fmt.Sprintf("endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: %d, httpsPort: %d}}", ports[0], ports[1])
	}
	r.spec(at(first))
	r.p = startProcess(t, turnout(t, "turnout", nil, "--manifests", dir, "--ingress-controller", "openshift-ingress-operator/web", "--admin-addr", "127.0.0.1:0"))
	r.p.line("ready")
	go func() { _, _ = io.Copy(io.Discard, r.p.logs) }()
	var plain atomic.Value
	plain.Store(loopback(r.p.http))
	if want := fmt.Sprintf("127.0.0.1:%d", first[0]); plain.Load() != want {
		t.Errorf("plain HTTP is served on %v, want %s", plain.Load(), want)
	}
	kept := dial(t, loopback(r.p.http), "")
	defer r.load(func() string { return plain.Load().(string) })()
	next := fmt.Sprintf("127.0.0.1:%d", second[0])
	r.plain = next
	r.spec(at(second))
	r.until("the new port", "200 OK", func() string { // open before the old one is closed, so that clients can be sent there
		text := r.page("r.test", "/")()
		if strings.Contains(text, "200 OK") {
			plain.Store(next)
		}
		return text
	})
	if answer := ask(t, kept, "GET / HTTP/1.1\r\nHost: r.test\r\n\r\n"); answer.StatusCode != http.StatusOK {
		t.Errorf("a connection to the old port: %d", answer.StatusCode)
	}
}

package convert

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"turnout/balancer"
	"turnout/controller"
	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/gateway/convert"
	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/internal/demo"
	"turnout/internal/server"
	"turnout/internal/testkit/testcert"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

// rig is a router that serves manifests twice: as they are, and converted.
type rig struct {
	*testing.T
	server *server.Server
	report *convert.Result
	items  []convert.Item
}

// class is the IngressClass of the router.
const class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: turnout}\nspec: {controller: turnout.router/ingress}\n"

// start serves the manifests of a folder, with pods for their Services, and what they are converted into.
func start(t *testing.T, manifests fs.FS, options convert.Options) *rig {
	t.Helper()
	d, err := demo.Start(demo.Config{Manifests: manifests, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := os.WriteFile(filepath.Join(d.Dir(), "class.yaml"), []byte(class), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t}
	of := controller.Options{
		Ingress: true, AllowLoopback: true, Domain: "apps.example.com", HostTemplate: "${name}-${namespace}.router.test", AllowWildcard: true,
		Gateways: controller.GatewayOptions{Controller: "turnout.router/gateway"}, UpstreamALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1},
	}
	before := load(t, d.Dir())
	options.Gateway = source.Key{Namespace: "gateways", Name: "public"}
	validated, in, err := controller.Convertible(of, before, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range validated.Findings(nil) {
		if f.Severity == "error" { // a Route that is rejected is served on neither side
			t.Fatal(f.String())
		}
	}
	r.report, r.items = convert.Convert(*in, options), in.Items
	var text bytes.Buffer
	if err := r.report.PrintYAML(&text); err != nil {
		t.Fatal(err)
	}
	certificate := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"localhost"}}, nil)
	converted := t.TempDir()
	for name, content := range map[string]string{"converted.yaml": text.String(), "certificate.yaml": secretOf(t, certificate)} {
		if err := os.WriteFile(filepath.Join(converted, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := certificate.TLS()
	r.serve(of, &own, append(before.Events, load(t, converted).Events...))
	return r
}

// load reads a folder in which nothing is wrong.
func load(t *testing.T, dir string) *folder.Content {
	t.Helper()
	content, err := folder.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range content.Problems {
		t.Fatal(p)
	}
	return content
}

// secretOf is the Secret that the listener for hosts without a certificate refers to.
func secretOf(t *testing.T, certificate *testcert.Pair) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": map[string]string{"namespace": "gateways", "name": convert.DefaultCertificate},
		"stringData": map[string]string{"tls.crt": certificate.PEM(), "tls.key": certificate.KeyPEM(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serve starts a router with the objects.
func (r *rig) serve(options controller.Options, certificate *tls.Certificate, events []source.Event) {
	r.Helper()
	registry := balancer.NewRegistry()
	cfg := server.Config{HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 1, Registry: registry, Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts()}}
	cfg.Proxy.Timeouts.Drain = time.Millisecond
	cfg.Panicked = func(where string, v any, stack []byte) { r.Errorf("%s: %v\n%s", where, v, stack) }
	var err error
	if r.server, err = server.New(cfg); err != nil {
		r.Fatal(err)
	}
	if err := r.server.Listen(); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- r.server.Run(ctx) }()
	control, err := controller.New(controller.Config{
		Store: r.server.Store(), Routing: routing.Options{Registry: registry, DefaultCertificate: certificate}, Options: options, Sockets: sockets{r.server}, HoldOff: time.Millisecond,
	})
	if err != nil {
		r.Fatal(err)
	}
	go func() { ended <- control.Run(ctx) }()
	r.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				r.Error(err)
			}
		}
	})
	sink := control.Sink("manifests")
	sink.Event(events...)
	sink.Synced()
	patience, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	if err := control.Wait(patience); err != nil {
		r.Fatal(err)
	}
}

// sockets opens the ports of Gateways on loopback, at numbers of the system's choice.
type sockets struct{ server *server.Server }

func (s sockets) Set(list []expose.Socket) map[string]error {
	ports := make([]server.Port, len(list))
	for i, p := range list {
		ports[i] = server.Port{Name: p.Name, Addr: "127.0.0.1:0", Kind: map[gateway.PortKind]server.PortKind{gateway.PortHTTP: server.PortHTTP, gateway.PortTLS: server.PortTLS}[p.Kind]}
	}
	failed := make(map[string]error)
	for i, err := range s.server.SetPorts(ports) {
		if err != nil {
			failed[list[i].Name] = err
		}
	}
	return failed
}

// got is an answer, and what the pod says that it saw, in a form that can be compared.
type got struct {
	Status  int
	Header  string // of the answer
	Service string // "" = no pod has answered
	Path    string
	TLS     bool   // the pod was spoken to over TLS
	Seen    string // fields that the pod saw
	Refused bool   // the connection was, or the handshake
	Subject string // of the certificate that the client saw
}

// request is what is asked.
type request struct {
	method, scheme, host, path string
	fields                     []string // "Name: value"
}

func (q *request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s://%s%s %s", q.method, q.scheme, q.host, q.path, strings.Join(q.fields, ", ")))
}

// before asks the ports of Routes, after those of the Gateway.
func (r *rig) before(q *request) got {
	if q.scheme == "https" {
		return r.ask(r.server.HTTPS(), q)
	}
	return r.ask(r.server.HTTP(), q)
}

func (r *rig) after(q *request) got {
	if q.scheme == "https" {
		return r.ask(r.server.Port("gateways/public:443"), q)
	}
	return r.ask(r.server.Port("gateways/public:80"), q)
}

// ask sends a request on a connection of its own, without following redirects.
func (r *rig) ask(at netip.AddrPort, q *request) (g got) {
	r.Helper()
	if !at.IsValid() {
		return got{Refused: true}
	}
	conn, err := net.DialTimeout("tcp", at.String(), time.Minute)
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if q.scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: q.host, InsecureSkipVerify: true}) //nolint:gosec // it is looked at
		if err := secure.Handshake(); err != nil {
			return got{Refused: true}
		}
		leaf := secure.ConnectionState().PeerCertificates[0]
		g.Subject = leaf.Subject.String() + " " + leaf.SerialNumber.String()
		conn = secure
	}
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nUser-Agent: test\r\n", q.method, q.path, q.host)
	for _, f := range q.fields {
		text += f + "\r\n"
	}
	if _, err := conn.Write([]byte(text + "\r\n")); err != nil {
		r.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: q.method})
	if err != nil {
		return got{Refused: true, Subject: g.Subject}
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		r.Fatalf("%s: %v", q, err)
	}
	g.Status = a.StatusCode
	a.Header.Del("Date")
	a.Header.Del("Content-Length")
	g.Header = spell(a.Header)
	var said struct {
		Service, Path string
		TLS           bool
		Headers       map[string]string
	}
	if a.Header.Get("Server") == "turnout-demo-pod" && json.Unmarshal(body, &said) == nil {
		g.Service, g.Path, g.TLS = said.Service, said.Path, said.TLS
		seen := http.Header{}
		for name, value := range said.Headers {
			seen.Set(name, value)
		}
		g.Seen = spell(seen)
	}
	return g
}

// spell is a header as text, in the order of the names.
func spell(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %s; ", name, strings.Join(h[name], " | "))
	}
	return b.String()
}

// decode reads a manifest.
func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

package ingress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"turnout/controller"
	"turnout/controller/source"
	"turnout/controller/status"
	"turnout/internal/testkit"
	"turnout/internal/testkit/testcert"
	"turnout/proxy"
	"turnout/routing"
)

// rig is a router, a controller, and the API server that status is written to.
type rig struct {
	*testing.T
	router  *testkit.Router
	control *controller.Controller
	sink    source.Sink
	api     *api
	ca      *testcert.Pair
}

// class is the IngressClass of the router, in every test.
const class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: turnout}\nspec: {controller: turnout.router/ingress}\n"

// start returns a rig to which the manifests, with class, are given.
func start(t *testing.T, options controller.Options, manifests ...string) *rig {
	t.Helper()
	r := &rig{T: t, api: &api{written: map[string][]networkingv1.IngressLoadBalancerIngress{}, changed: make(chan struct{})}}
	r.router = testkit.StartRouter(t, 2, nil, func(c *proxy.Config) { c.NotFoundOfHosts = proxy.DefaultNotFound() })
	form := &x509.Certificate{}
	testcert.Authority(form)
	r.ca = testcert.Sign(t, form, nil)
	writer, err := status.NewIngressWriter(status.IngressWriterConfig{API: r.api, Addresses: []string{"router.test"}})
	if err != nil {
		t.Fatal(err)
	}
	options.Ingress, options.AllowLoopback = true, true
	r.control, err = controller.New(controller.Config{
		Store: r.router.Store, Routing: routing.Options{Registry: r.router.Registry, DefaultCertificate: r.router.Certificate}, Options: options,
		Ingresses: writer, HoldOff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.sink = r.control.Sink("manifests")
	r.api.sink = r.sink
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.control.Run(ctx) })
	running.Go(func() { _ = writer.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	r.sink.Synced()
	r.apply(append([]string{class}, manifests...)...)
	return r
}

// apply gives manifests to the controller and waits until they are served.
func (r *rig) apply(manifests ...string) {
	r.Helper()
	var events []source.Event
	for _, text := range manifests {
		for _, doc := range source.Split([]byte(text), false) {
			objects, findings := source.Decode(doc)
			if len(findings) > 0 {
				r.Fatalf("%v in\n%s", findings, text)
			}
			for _, o := range objects {
				if in, ok := o.Object.(*networkingv1.Ingress); ok {
					in.ResourceVersion = "1"
				}
				events = append(events, source.Event{Kind: o.Kind, Key: o.Key, Object: o.Object})
			}
		}
	}
	r.sink.Event(events...)
	r.settle()
}

// remove deletes an object of the default namespace.
func (r *rig) remove(kind source.Kind, name string) {
	r.Helper()
	r.sink.Event(source.Event{Kind: kind, Key: source.Key{Namespace: "default", Name: name}})
	r.settle()
}

func (r *rig) settle() {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.control.Wait(ctx); err != nil {
		r.Fatal(err)
	}
}

// said is what a pod has seen of a request.
type said struct {
	Service, Pod, Method, Host, Path, Proto string
	Header                                  http.Header
}

// service returns the manifests of a Service with pods that say what they see. Its port 8080 is called http; each pod has a port of its own.
func (r *rig) service(name string, pods int) string {
	r.Helper()
	return r.serviceIn("default", name, pods)
}

func (r *rig) serviceIn(namespace, name string, pods int) string {
	r.Helper()
	handlers := make([]http.HandlerFunc, pods)
	for i := range handlers {
		handlers[i] = r.telling(name, fmt.Sprint(name, "-", i), 200)
	}
	return r.served(namespace, name, handlers...)
}

// telling answers with what a pod sees.
func (r *rig) telling(service, pod string, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Server", "pod")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(said{service, pod, q.Method, q.Host, q.RequestURI, q.Proto, q.Header}); err != nil {
			r.Error(err)
		}
	}
}

// served returns the manifests of a Service whose pods are these.
func (r *rig) served(namespace, name string, pods ...http.HandlerFunc) string {
	r.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {namespace: %s, name: %s}\nspec: {ports: [{name: http, port: 8080, targetPort: web}, {name: other, port: 9090}]}\n", namespace, name)
	for i, handler := range pods {
		pod := httptest.NewServer(handler)
		r.Cleanup(pod.Close)
		_, port, _ := net.SplitHostPort(pod.Listener.Addr().String())
		text += fmt.Sprintf("---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: %s, name: %s-%d, labels: {kubernetes.io/service-name: %s}}\n"+
			"addressType: IPv4\nports: [{name: http, port: %s}]\nendpoints: [{addresses: [127.0.0.1]}]\n", namespace, name, i, name, port)
	}
	return text
}

// secret returns the manifest of a Secret with a certificate for names.
func (r *rig) secret(name string, names ...string) string {
	r.Helper()
	pair := testcert.Sign(r, &x509.Certificate{DNSNames: names}, r.ca)
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: %s}\ndata: {tls.crt: %s, tls.key: %s}\n", name, encoded(pair.PEM()), encoded(pair.KeyPEM(r)))
}

// ingress returns the manifest of an Ingress of the class turnout.
func ingress(name, spec string, annotations ...string) string {
	text := "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: " + name + "\n  annotations:\n"
	for i := 0; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    %s: %q\n", annotations[i], annotations[i+1])
	}
	return text + "spec:\n  ingressClassName: turnout\n" + indented(spec)
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// path is an entry of paths: "Type /path service port".
func path(text string) string {
	f := strings.Fields(text)
	port := "name: " + f[3]
	if f[3][0] <= '9' {
		port = "number: " + f[3]
	}
	return fmt.Sprintf("{pathType: %s, path: %s, backend: {service: {name: %s, port: {%s}}}}", f[0], f[1], f[2], port)
}

// rule is an entry of rules.
func rule(host string, paths ...string) string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = path(p)
	}
	return fmt.Sprintf("- host: %q\n  http: {paths: [%s]}\n", host, strings.Join(all, ", "))
}

// got is an answer, and what the pod said if it is from one.
type got struct {
	status int
	header http.Header
	proto  string
	said
}

// ask sends a request without following redirects: "METHOD http://host/path", with fields "name: value". Without a host it is the address of
// the router, as clients do it.
func (r *rig) ask(request string, fields ...string) got {
	r.Helper()
	method, url, _ := strings.Cut(request, " ")
	scheme, rest, _ := strings.Cut(url, "://")
	host, target, _ := strings.Cut(rest, "/")
	at := r.router.Addr
	if scheme == "https" {
		at = r.router.SecureAddr
	}
	conn, err := net.DialTimeout("tcp", at.String(), time.Minute)
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	if host == "" {
		host = at.String()
	}
	name, _, _ := strings.Cut(host, ":")
	if scheme == "https" {
		roots := x509.NewCertPool()
		roots.AddCert(r.ca.Cert)
		roots.AddCert(r.router.Certificate.Leaf)
		secure := tls.Client(conn, &tls.Config{ServerName: name, RootCAs: roots, InsecureSkipVerify: true}) //nolint:gosec // tests look at the certificate themselves
		if err := secure.Handshake(); err != nil {
			r.Fatal(err)
		}
		conn = secure
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	text := fmt.Sprintf("%s /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, target, host)
	for _, f := range fields {
		text += f + "\r\n"
	}
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		text += "Content-Length: 0\r\n"
	}
	if _, err := conn.Write([]byte(text + "\r\n")); err != nil {
		r.Fatal(err)
	}
	return r.answer(conn, method, request)
}

func (r *rig) answer(conn net.Conn, method, request string) (g got) {
	r.Helper()
	a, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		r.Fatalf("%s: %v", request, err)
	}
	return r.read(a, request)
}

// read reads an answer to its end.
func (r *rig) read(a *http.Response, request string) (g got) {
	r.Helper()
	defer a.Body.Close()
	g = got{status: a.StatusCode, header: a.Header, proto: a.Proto}
	var body bytes.Buffer
	if _, err := body.ReadFrom(a.Body); err != nil {
		r.Fatalf("%s: %v", request, err)
	}
	if a.Header.Get("Server") == "pod" {
		if err := json.Unmarshal(body.Bytes(), &g.said); err != nil {
			r.Fatalf("%s: %v", request, err)
		}
	}
	return g
}

// by is what an answer comes from: the name of a Service, or a status.
func (g *got) by() string {
	if g.Service != "" {
		return g.Service
	}
	return fmt.Sprint(g.status)
}

// wantBy asks, and says what answered instead of what should.
func (r *rig) wantBy(request, want string) {
	r.Helper()
	if g := r.ask(request); g.by() != want {
		r.Errorf("%s: by %s, want %s", request, g.by(), want)
	}
}

// certificate returns whom the certificate for a server name is for.
func (r *rig) certificate(name string) string {
	r.Helper()
	conn, err := tls.Dial("tcp", r.router.SecureAddr.String(), &tls.Config{ServerName: name, InsecureSkipVerify: true}) //nolint:gosec // it is looked at here
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	return strings.Join(conn.ConnectionState().PeerCertificates[0].DNSNames, " ")
}

// api is the API server as far as status and Events go.
type api struct {
	mu      sync.Mutex
	written map[string][]networkingv1.IngressLoadBalancerIngress
	events  []string // "INGRESS REASON: MESSAGE"
	changed chan struct{}
	sink    source.Sink
}

func (a *api) WriteIngress(_ context.Context, o *networkingv1.Ingress, list []networkingv1.IngressLoadBalancerIngress) (*networkingv1.Ingress, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written[o.Name] = list
	a.note()
	out := o.DeepCopy()
	out.Status.LoadBalancer.Ingress = list
	a.sink.Event(source.Event{Kind: source.Ingress, Key: source.Key{Namespace: o.Namespace, Name: o.Name}, Object: out}) // as a watch does
	return out, nil
}

func (a *api) CreateEvent(_ context.Context, e *corev1.Event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := e.InvolvedObject.Name + " " + e.Reason + ": " + e.Message
	for _, old := range a.events {
		if old == text {
			return apierrors.NewAlreadyExists(corev1.Resource("events"), e.Name)
		}
	}
	a.events = append(a.events, text)
	a.note()
	return nil
}

// note tells who waits that something changed. a.mu is held.
func (a *api) note() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// until waits until what was written to the API server is as it should be.
func (r *rig) until(what string, is func(*api) bool) {
	r.Helper()
	late := time.After(time.Minute)
	for {
		r.api.mu.Lock()
		ok, changed := is(r.api), r.api.changed
		r.api.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			r.Fatalf("%s: never; statuses %v, events %q", what, r.api.written, r.api.events)
		}
	}
}

// wantAddress waits until the status of an Ingress has the router's address.
func (r *rig) wantAddress(name string) {
	r.Helper()
	r.until("address of "+name, func(a *api) bool { return len(a.written[name]) == 1 && a.written[name][0].Hostname == "router.test" })
}

// wantEvent waits for an Event whose text, as in api, begins so.
func (r *rig) wantEvent(text string) {
	r.Helper()
	r.until("event "+text, func(a *api) bool {
		for _, e := range a.events {
			if strings.HasPrefix(e, text) {
				return true
			}
		}
		return false
	})
}

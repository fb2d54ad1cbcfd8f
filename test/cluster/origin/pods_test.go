package origin

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRouter is test/extended/router/router.go of origin.
func TestRouter(t *testing.T) {
	t.Parallel()
	it(t, "should respond with 503 to unrecognized hosts", unknownHosts)
	it(t, "should serve routes that were created from an ingress", fromIngress)
}

// unknownHosts: 503 over plain HTTP and over TLS.
func unknownHosts(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	for _, scheme := range []string{"http", "https"} {
		if got := n.got(r, scheme+"://www.example.test/"); got.Code != 503 {
			t.Errorf("%s: %d", scheme, got.Code)
		}
	}
}

// fromIngress: routes as the ingress-to-route controller makes them of an Ingress with three
// hosts, two paths and a certificate are served; that controller is another program.
func fromIngress(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	n.echo("ingress-endpoint-1")
	n.echo("ingress-endpoint-2")
	own := issue(t, n.host("3"), nil, false)
	ofIngress := func(name, host, path, service string) *routev1.Route {
		route := n.newRoute(r, name)
		route.Spec.Host, route.Spec.Path, route.Spec.To.Name = n.host(host), path, service
		owner := true
		route.OwnerReferences = []metav1.OwnerReference{{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "test", UID: "00000000-0000-0000-0000-000000000001", Controller: &owner}}
		return route
	}
	third := edge(ofIngress("test-3", "3", "/", "ingress-endpoint-1"), routev1.InsecureEdgeTerminationPolicyRedirect)
	third.Spec.TLS.Certificate, third.Spec.TLS.Key = own.pem(), own.keyPEM(t)
	// The owner does not exist; the collector of garbage would remove what names it.
	for _, route := range []*routev1.Route{ofIngress("test-1", "1", "/test", "ingress-endpoint-1"), ofIngress("test-2", "1", "/other", "ingress-endpoint-2"), third, ofIngress("test-4", "2", "/", "ingress-endpoint-1")} {
		route.OwnerReferences = nil
		n.create(route)
	}
	one, two, three := n.host("1"), n.host("2"), n.host("3")
	n.answers(r, "http://"+one+"/test", 200)
	if got := n.answers(r, "http://"+one+"/other/deep", 200); got.from() != "ingress-endpoint-2" {
		t.Errorf("/other/deep: %s", got.from())
	}
	n.answers(r, "http://"+one+"/", 503)
	n.answers(r, "http://"+two+"/", 200)
	n.answers(r, "https://"+three+"/", 200)
	n.shows(r, three, own)
	if got := n.answers(r, "http://"+three+"/", 302); got.Get("Location") != "https://"+three+"/" {
		t.Errorf("redirect to %s", got.Get("Location"))
	}
}

// TestIdle is test/extended/router/idle.go of origin.
func TestIdle(t *testing.T) {
	t.Parallel()
	it(t, "should be able to connect to a service that is idled because a GET on the route will unidle it", unidles)
}

// unidles: a route to an idled service, which has no pods, sends requests to the service's own
// address, where something wakes it up: a request waits there and is answered by the pod that
// comes. What idles and wakes is OpenShift's; a pod of the test stands in for it behind the
// address until the service is awake, when pods are asked directly again.
func unidles(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	service := n.service("idle-test", "idle-test")
	n.start(pod{name: "idle-test"})
	route := n.newRoute(r, "idle-test")
	n.create(route)
	at := "http://" + route.Spec.Host + "/"
	n.answers(r, at, 200)
	// Idle: the annotation is there and the pod gone.
	services := shared.core.CoreV1().Services(n.name)
	change := func(change func(*corev1.Service)) {
		eventually(t, "change of the service", func() error {
			s, err := services.Get(t.Context(), "idle-test", metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(s)
			_, err = services.Update(t.Context(), s, metav1.UpdateOptions{})
			return err
		})
	}
	change(func(s *corev1.Service) {
		s.Annotations = map[string]string{
			"idling.alpha.openshift.io/idled-at":       time.Now().UTC().Format(time.RFC3339),
			"idling.alpha.openshift.io/unidle-targets": `[{"kind":"Deployment","group":"apps","name":"idle-test","replicas":1}]`,
		}
	})
	if err := shared.core.CoreV1().Pods(n.name).Delete(t.Context(), "idle-test", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service's address is what the router asks", func() error {
		servers := n.family(r, "haproxy_server_up", map[string]string{"namespace": n.name})
		for _, s := range servers {
			if strings.HasPrefix(s.labels["server"], service.Spec.ClusterIP+":") {
				return nil
			}
		}
		return fmt.Errorf("servers %v, the address is %s", servers, service.Spec.ClusterIP)
	})
	// Wake: a new pod gets what comes to the address.
	n.start(pod{name: "idle-test-2", labels: map[string]string{"app": "idle-test"}})
	if got := n.answers(r, at, 200); got.from() != "idle-test-2" {
		t.Errorf("%s answers", got.from())
	}
	change(func(s *corev1.Service) { s.Annotations = nil })
	address := n.running("idle-test-2").Status.PodIP
	eventually(t, "the pod is what the router asks", func() error {
		servers := n.family(r, "haproxy_server_up", map[string]string{"namespace": n.name})
		if len(servers) != 1 || !strings.HasPrefix(servers[0].labels["server"], address+":") {
			return fmt.Errorf("servers %v, the pod is %s", servers, address)
		}
		return nil
	})
	n.answers(r, at, 200)
}

// TestServiceFamily is test/extended/router/service-family.go of origin.
func TestServiceFamily(t *testing.T) {
	t.Parallel()
	it(t, "should serve a basic route using a service with ipFamily set to IPV4 on a single stack ipv4 cluster", func(t *testing.T) {
		servesFamily(t, corev1.IPv4Protocol)
	})
	it(t, "should serve a basic route using a service with ipFamily set to IPV6 on a single stack ipv6 cluster", func(t *testing.T) {
		servesFamily(t, corev1.IPv6Protocol)
	})
}

// servesFamily: the endpoints of a service of one family are of that family, and the router
// reaches them; a path without a route is 503.
func servesFamily(t *testing.T, family corev1.IPFamily) {
	t.Helper()
	n := newNamespace(t, nil)
	r := with(t, settings{})
	n.start(pod{name: "endpoint"})
	single := corev1.IPFamilyPolicySingleStack
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "endpoint"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "endpoint"}, Ports: echoPorts(), IPFamilies: []corev1.IPFamily{family}, IPFamilyPolicy: &single,
		},
	}
	must[*corev1.Service](t)(shared.core.CoreV1().Services(n.name).Create(t.Context(), service, metav1.CreateOptions{}))
	route := n.newRoute(r, "endpoint")
	route.Spec.Path = "/test"
	n.create(route)
	n.answers(r, "http://"+route.Spec.Host+"/test", 200)
	n.answers(r, "http://"+route.Spec.Host+"/foo", 503)
	for _, s := range n.family(r, "haproxy_server_up", map[string]string{"namespace": n.name}) {
		address := net.ParseIP(strings.TrimSuffix(s.labels["server"], ":8080"))
		if is4 := address.To4() != nil; address == nil || is4 != (family == corev1.IPv4Protocol) {
			t.Errorf("server %s of a service of family %s", s.labels["server"], family)
		}
	}
}

// TestDualStack is test/extended/router/dualstack.go of origin.
func TestDualStack(t *testing.T) {
	t.Parallel()
	it(t, "should be reachable via IPv4 and IPv6 through a dual-stack ingress controller", func(t *testing.T) {
		reachableBy(t, "v4v6", true)
	})
	it(t, "should be reachable via IPv4 through a Classic LB ingress controller on a dual-stack cluster", func(t *testing.T) {
		reachableBy(t, "v4", false)
	})
}

// reachableBy: a router that listens on both families is reached by both addresses of its pod, and
// the pods behind it receive the client's address of that family; one that listens on IPv4 only
// by that one.
func reachableBy(t *testing.T, mode string, both bool) {
	t.Helper()
	n := newNamespace(t, nil)
	r := with(t, env("ROUTER_IP_V4_V6_MODE", mode))
	host := n.served(r, "dualstack", func(route *routev1.Route) { edge(route, routev1.InsecureEdgeTerminationPolicyRedirect) })
	if len(r.pods[0].Status.PodIPs) != 2 {
		t.Fatalf("the router's addresses are %v", r.pods[0].Status.PodIPs)
	}
	for _, address := range r.pods[0].Status.PodIPs {
		is4 := net.ParseIP(address.IP).To4() != nil
		by := &router{name: r.name, ip: address.IP, ports: r.ports}
		got, err := by.get("https://" + host + "/")
		if want := is4 || both; (err == nil) != want {
			t.Errorf("by %s: %v", address.IP, err)
		} else if from := net.ParseIP(got.heard("X-Forwarded-For")); want && (got.Code != 200 || (from.To4() != nil) != is4) {
			t.Errorf("by %s: %d, the pod received %q", address.IP, got.Code, from)
		}
	}
}

// TestConfigManager is test/extended/router/config_manager.go of origin.
func TestConfigManager(t *testing.T) {
	t.Parallel()
	it(t, "should serve the correct routes when running with the haproxy config manager", manyRoutes)
}

// manyRoutes: routes of each kind are made, served and deleted one after the other.
func manyRoutes(t *testing.T) {
	n := newNamespace(t, nil)
	s := env()
	s.Args = []string{"--haproxy-config-manager=true", "--blueprint-route-labels=select=hapcm-blueprint"}
	r := with(t, s)
	tlsSecret(t, n.name, "cert", issue(t, "secure."+n.name+".svc", nil, false))
	n.start(pod{name: "secure", tls: "cert"})
	n.service("secure", "secure")
	authority := must[*corev1.Secret](t)(shared.core.CoreV1().Secrets(n.name).Get(t.Context(), "cert", metav1.GetOptions{}))
	for i := range 16 {
		for _, kind := range []routev1.TLSTerminationType{"", routev1.TLSTerminationEdge, routev1.TLSTerminationReencrypt, routev1.TLSTerminationPassthrough} {
			route := n.newRoute(r, strings.Trim(fmt.Sprintf("stress-%d-%s", i, kind), "-"))
			if route.Spec.To.Name = "secure"; kind != "" {
				route.Spec.TLS = &routev1.TLSConfig{Termination: kind}
			}
			if kind == routev1.TLSTerminationReencrypt || kind == routev1.TLSTerminationPassthrough {
				route.Spec.Port.TargetPort.StrVal = "https"
			}
			if kind == routev1.TLSTerminationReencrypt {
				route.Spec.TLS.DestinationCACertificate = string(authority.Data[corev1.TLSCertKey])
			}
			n.create(route)
			n.answers(r, schemeOf(route)+"://"+route.Spec.Host+"/", 200)
			if err := shared.routes.RouteV1().Routes(n.name).Delete(t.Context(), route.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestConfigManagerIngress is test/extended/router/config_manager_ingress.go of origin, where the
// router changes HAProxy without a reload when it can.
func TestConfigManagerIngress(t *testing.T) {
	t.Parallel()
	it(t, "should work on basic functionalities", func(t *testing.T) {
		n := newNamespace(t, nil)
		host := n.served(with(t, settings{}), "echo")
		if got := n.got(with(t, settings{}), "http://"+host+"/"); got.from() != "echo" {
			t.Errorf("%s answers", got.from())
		}
	})
	it(t, "should handle scale-out operations", scalesOut)
	it(t, "should handle scale-in operations", scalesIn)
	it(t, "should handle various route updates", routeUpdates)
	it(t, "should maintain proper balancing after scale-out and scale-in operations", balanceKeeps)
	it(t, "should report accurate metrics after scale-out and scale-in operations", countersKeep)
	it(t, "should maintain steady memory and PID usage after scale-out and scale-in operations", memoryKeeps)
}

// scaled makes a Deployment of echo pods with a service and a route of its name.
func (n namespace) scaled(r *router, name string, replicas int32) string {
	n.Helper()
	template := pod{name: name}.object()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
	must[*appsv1.Deployment](n)(shared.core.AppsV1().Deployments(n.name).Create(n.Context(), d, metav1.CreateOptions{}))
	n.service(name, name)
	return "http://" + n.create(n.newRoute(r, name)).Spec.Host + "/"
}

// scale changes the number of pods, waits until there are so many, and returns their names and
// addresses.
func (n namespace) scale(name string, replicas int32) (names, addresses []string) {
	n.Helper()
	eventually(n, "scale", func() error {
		d, err := shared.core.AppsV1().Deployments(n.name).Get(n.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Replicas = &replicas
		_, err = shared.core.AppsV1().Deployments(n.name).Update(n.Context(), d, metav1.UpdateOptions{})
		return err
	})
	eventually(n, "pods", func() error {
		list, err := shared.core.CoreV1().Pods(n.name).List(n.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		names, addresses = nil, nil
		for i := range list.Items {
			if err := isReady(&list.Items[i]); err != nil {
				return err
			}
			names, addresses = append(names, list.Items[i].Name), append(addresses, list.Items[i].Status.PodIP)
		}
		if len(names) != int(replicas) {
			return fmt.Errorf("%d pods, want %d", len(names), replicas)
		}
		return nil
	})
	return names, addresses
}

// scalesOut: of one, two, three and four pods each is asked.
func scalesOut(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	at := n.scaled(r, "echo", 1)
	for replicas := int32(1); replicas <= 4; replicas++ {
		names, _ := n.scale("echo", replicas)
		n.reaches(r, at, names...)
	}
}

// scalesIn: pods that are no endpoints any more are not asked, although they would answer.
func scalesIn(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	for i := range 4 {
		n.start(pod{name: fmt.Sprint("echo-", i)})
	}
	var names, addresses []string
	for i := range 4 {
		p := n.running(fmt.Sprint("echo-", i))
		names, addresses = append(names, p.Name), append(addresses, p.Status.PodIP)
	}
	n.detached("echo", addresses...)
	at := "http://" + n.create(n.newRoute(r, "echo")).Spec.Host + "/"
	n.reaches(r, at, names...)
	for left := 3; left >= 1; left-- {
		n.endpoints("echo", addresses[:left]...)
		eventually(t, "fewer servers", func() error {
			if got := n.family(r, "haproxy_server_up", map[string]string{"namespace": n.name}); len(got) != left {
				return fmt.Errorf("%d, want %d", len(got), left)
			}
			return nil
		})
		for range 5 * left {
			if got := n.got(r, at); !slices.Contains(names[:left], got.from()) {
				t.Errorf("%s answers, of %v", got.from(), names[:left])
			}
		}
	}
}

// routeUpdates: a change of path, of termination and of an annotation is served. There it is
// planned.
func routeUpdates(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	host := n.served(r, "echo")
	n.change("echo", func(route *routev1.Route) { route.Spec.Path = "/sub" })
	n.answers(r, "http://"+host+"/", 503)
	n.answers(r, "http://"+host+"/sub/x", 200)
	n.change("echo", func(route *routev1.Route) {
		route.Annotations = map[string]string{"haproxy.router.openshift.io/rewrite-target": "/"}
	})
	eventually(t, "rewritten path", func() error {
		got, err := r.get("http://" + host + "/sub/x")
		if err == nil && !strings.HasPrefix(got.Body, "GET /x ") {
			err = fmt.Errorf("the pod got %.40q", got.Body)
		}
		return err
	})
	n.change("echo", func(route *routev1.Route) { edge(route, routev1.InsecureEdgeTerminationPolicyRedirect) })
	n.answers(r, "https://"+host+"/sub/x", 200)
	n.answers(r, "http://"+host+"/sub/x", 302)
}

// balanceKeeps: round robin gives each pod its share after every change of their number. There it
// is planned.
func balanceKeeps(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	at := n.scaled(r, "echo", 2)
	n.change("echo", func(route *routev1.Route) {
		route.Annotations = map[string]string{"haproxy.router.openshift.io/balance": "roundrobin"}
	})
	for _, replicas := range []int32{2, 4, 3} {
		names, _ := n.scale("echo", replicas)
		n.onlyServers(r, len(names))
		count := map[string]int{}
		c := r.client(dials{})
		for range 20 * len(names) {
			count[must[response](t)(c.get(at)).from()]++
		}
		for _, name := range names {
			if count[name] < 18 || count[name] > 22 {
				t.Errorf("with %d pods: %v requests, want 20 each", replicas, count)
			}
		}
	}
}

// onlyServers waits until the router has so many servers in the namespace.
func (n namespace) onlyServers(r *router, want int) {
	n.Helper()
	eventually(n, "number of servers", func() error {
		if got := n.family(r, "haproxy_server_up", map[string]string{"namespace": n.name}); len(got) != want {
			return fmt.Errorf("%d, want %d", len(got), want)
		}
		return nil
	})
}

// countersKeep: what a connection transfers that was open before pods came and went is counted,
// and counters never go back. There it is planned.
func countersKeep(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	at := n.scaled(r, "echo", 1)
	names, _ := n.scale("echo", 1)
	n.reaches(r, at, names...)
	host := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	c := n.tunnel(r, host)
	in := func() float64 {
		return n.metric(r, "haproxy_backend_bytes_in_total", map[string]string{"namespace": n.name, "route": "echo"})
	}
	n.scale("echo", 3)
	n.onlyServers(r, 3)
	before := in()
	c.say(strings.Repeat("a", 100000))
	if line, err := c.read.ReadString('\n'); err != nil || len(line) != 100002 {
		t.Fatalf("%d bytes came back, %v", len(line), err)
	}
	eventually(t, "bytes of the tunnel", func() error {
		if got := in() - before; got < 100000 {
			return fmt.Errorf("%v more", got)
		}
		return nil
	})
}

// memoryKeeps: the process is the same after every change of the number of pods, and its memory
// stays below twice of what it was.
func memoryKeeps(t *testing.T) {
	n := newNamespace(t, nil)
	r := alone(t, settings{})
	at := n.scaled(r, "echo", 3)
	names, _ := n.scale("echo", 3)
	n.reaches(r, at, names...)
	memory := func() (started, resident float64) {
		return n.metric(r, "process_start_time_seconds", nil), n.metric(r, "process_resident_memory_bytes", nil)
	}
	started, resident := memory()
	for _, replicas := range []int32{6, 5, 1, 2, 3, 4} {
		names, _ := n.scale("echo", replicas)
		n.reaches(r, at, names...)
		n.onlyServers(r, len(names))
	}
	again, now := memory()
	if again != started || now > 2*resident {
		t.Errorf("started %v, then %v; memory %v, then %v", started, again, resident, now)
	}
}

package origin

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCustomErrorpages: pages of a ConfigMap are what clients get for unknown hosts (404) and
// for routes without pods (503), and those of a changed ConfigMap soon after the change.
func TestCustomErrorpages(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	pages := func(text string) map[string]string {
		data := map[string]string{}
		for _, code := range []string{"404 Not Found", "503 Service Unavailable"} {
			body := "<p>" + text + " " + code + "</p>"
			data["error-page-"+code[:3]+".http"] = fmt.Sprintf("HTTP/1.0 %s\r\nConnection: close\r\nContent-Type: text/html\r\n\r\n%s", code, body)
		}
		return data
	}
	n.configured(n.name, pages("first"))
	r := with(t, controlled("httpErrorCodePages: {name: "+n.name+"}"))
	n.detached("empty")
	route := n.create(n.newRoute(r, "empty"))
	look := func(text string) {
		t.Helper()
		for url, code := range map[string]int{"http://" + route.Spec.Host + "/": 503, "http://unknown." + n.name + ".test/": 404} {
			eventually(t, url, func() error {
				got, err := r.get(url)
				if want := fmt.Sprintf("<p>%s %d ", text, code); err == nil && (got.Code != code || !strings.HasPrefix(got.Body, want)) {
					err = fmt.Errorf("%d %q, want %s", got.Code, got.Body, want)
				}
				return err
			})
		}
	}
	look("first")
	n.configured(n.name, pages("second"))
	look("second")
}

// TestProxyProtocolAPI: the router takes a PROXY header from every connection, plain or TLS, or
// none, as the protocol of the endpoint publishing strategy says; the address in it is the
// client's.
func TestProxyProtocolAPI(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	spec := "endpointPublishingStrategy: {type: Private, private: {protocol: %s}}"
	r := alone(t, controlled(fmt.Sprintf(spec, "TCP")))
	host := n.served(r, "echo", func(route *routev1.Route) { edge(route, routev1.InsecureEdgeTerminationPolicyAllow) })
	header := "PROXY TCP4 192.0.2.7 198.51.100.1 50123 443\r\n"
	r.change(t, controlled(fmt.Sprintf(spec, "PROXY")))
	c := r.client(dials{fresh: true, proxy: header})
	for _, scheme := range []string{"http", "https"} {
		eventually(t, scheme+" with a header", func() error {
			got, err := c.get(scheme + "://" + host + "/")
			if err == nil && (got.Code != 200 || got.heard("X-Forwarded-For") != "192.0.2.7" || got.heard("X-Forwarded-Port") != "443") {
				err = fmt.Errorf("%d, the pod got %s", got.Code, got.Body)
			}
			return err
		})
	}
	if got, err := r.get("http://" + host + "/"); err == nil {
		t.Errorf("without a header: %d", got.Code)
	}
	r.change(t, controlled(fmt.Sprintf(spec, "TCP")))
	n.answers(r, "http://"+host+"/", 200)
	if got, err := c.get("http://" + host + "/"); err == nil && got.Code == 200 {
		t.Error("a header is taken that is not expected")
	}
}

// TestProxyProtocolOnAWS: what a classic load balancer and a network load balancer of that cloud
// send, versions 1 and 2, is understood. Whether a controller has one is the operator's to know.
func TestProxyProtocolOnAWS(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, env("ROUTER_USE_PROXY_PROTOCOL", "true"))
	n.echo("echo")
	host := n.create(n.newRoute(r, "echo")).Spec.Host
	// Version 2, PROXY over TCP4, 192.0.2.7:50123 to 198.51.100.1:80 (section 2.2 of the
	// specification), and a TLV of Amazon's, 0xEA, with the id of an endpoint.
	tlv := "\xEA\x00\x0B\x01vpce-12345"
	second := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00" + string(rune(12+len(tlv))) + "\xC0\x00\x02\x07\xC6\x33\x64\x01\xC3\xCB\x00\x50" + tlv
	for version, header := range []string{"PROXY TCP4 192.0.2.7 198.51.100.1 50123 80\r\n", second} {
		c := r.client(dials{fresh: true, proxy: header})
		eventually(t, fmt.Sprint("version ", version+1), func() error {
			got, err := c.get("http://" + host + "/")
			if err == nil && (got.Code != 200 || got.heard("X-Forwarded-For") != "192.0.2.7") {
				err = fmt.Errorf("%d, the pod got %s", got.Code, got.Body)
			}
			return err
		})
	}
}

// cut starts a long answer, deletes the router's pod, and returns how long the answer went on.
func (n namespace) cut(r *router, host string) time.Duration {
	n.Helper()
	c := n.tunnel(r, host)
	begin := time.Now()
	if err := shared.core.CoreV1().Pods(routerNamespace).Delete(n.Context(), r.pods[0].Name, metav1.DeleteOptions{}); err != nil {
		n.Fatal(err)
	}
	c.ends()
	return time.Since(begin)
}

// hardStop are the settings of a router that would let tunnels go on for long when it stops.
func hardStop(after string) settings {
	s := env("ROUTER_MAX_SHUTDOWN_TIMEOUT", "600")
	s.Seconds = 3600
	if after != "" {
		s.Env["ROUTER_HARD_STOP_AFTER"] = after
	}
	return s
}

// TestRouteHardStopAfterEnableOnIngressController: a router that is stopped ends what still runs
// after the time of its IngressController's annotation, which is the variable. There the variable
// is all that is looked at.
func TestRouteHardStopAfterEnableOnIngressController(t *testing.T) {
	t.Parallel()
	hardStops(t, "2s")
}

// TestRouteHardStopAfterEnableOnIngressConfig: the same for the annotation of the cluster's
// configuration, which becomes the same variable.
func TestRouteHardStopAfterEnableOnIngressConfig(t *testing.T) {
	t.Parallel()
	hardStops(t, "2000ms")
}

func hardStops(t *testing.T, after string) {
	t.Helper()
	n := newNamespace(t, nil)
	r := alone(t, hardStop(after))
	host := n.served(r, "echo")
	between(t, "end of a tunnel", n.cut(r, host), 1900*time.Millisecond, 20*time.Second)
}

// TestRouteHardStopAfterEnableOnIngressControllerHasPriorityOverIngressConfig: of both annotations
// that of the IngressController counts; without it the one of the cluster's configuration does.
func TestRouteHardStopAfterEnableOnIngressControllerHasPriorityOverIngressConfig(t *testing.T) {
	t.Parallel()
	clusterConfig(t, "hard-stop-after", "400m")
	n := newNamespace(t, nil)
	r := alone(t, controlled("{}", "hard-stop-after", "500m"))
	n.served(r, "echo")
	n.setting(r, "hard-stop-after", "500m")
	r.change(t, controlled("{}"))
	n.setting(r, "hard-stop-after", "400m")
}

// TestRouteHardStopAfterTestInvalidDuration: what is no time has no effect, and the log says so.
func TestRouteHardStopAfterTestInvalidDuration(t *testing.T) {
	t.Parallel()
	r := with(t, hardStop("mañana"))
	r.logged(t, "ROUTER_HARD_STOP_AFTER=")
}

// TestRouteHardStopAfterTestZeroLengthDuration: an empty text is no setting, and no mistake.
func TestRouteHardStopAfterTestZeroLengthDuration(t *testing.T) {
	t.Parallel()
	s := hardStop("")
	s.Env["ROUTER_HARD_STOP_AFTER"] = ""
	if text := with(t, s).log(t); strings.Contains(text, "ROUTER_HARD_STOP_AFTER") {
		t.Errorf("the log speaks of it: %s", text)
	}
}

// TestRouteHardStopAfterTestOneDayDuration: a day is a time.
func TestRouteHardStopAfterTestOneDayDuration(t *testing.T) {
	t.Parallel()
	if text := with(t, hardStop("1d")).log(t); strings.Contains(text, "ROUTER_HARD_STOP_AFTER") {
		t.Errorf("the log speaks of it: %s", text)
	}
}

// TestTunableMaxConnectionsValidValues: a number is the limit, -1 (which the operator hands on as
// auto) makes it what descriptors allow, 0 leaves the default, 2,000,000 is not too many.
func TestTunableMaxConnectionsValidValues(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	auto := n.metric(with(t, env("ROUTER_MAX_CONNECTIONS", "auto")), "haproxy_max_connections", nil)
	for value, want := range map[string]float64{"12345": 12345, "": 50000, "2000000": 2000000} {
		s := env()
		if value != "" {
			s.Env["ROUTER_MAX_CONNECTIONS"] = value
		}
		if got := n.metric(with(t, s), "haproxy_max_connections", nil); got != min(want, auto) {
			t.Errorf("ROUTER_MAX_CONNECTIONS=%q: %v, want %v or as many as descriptors allow, %v", value, got, want, auto)
		}
	}
}

// TestTunableMaxConnectionsInvalidValues: what is no number leaves the default, and the log says
// so. Numbers out of the field's range are refused by the API server.
func TestTunableMaxConnectionsInvalidValues(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, env("ROUTER_MAX_CONNECTIONS", "1999 and more"))
	r.logged(t, "ROUTER_MAX_CONNECTIONS=")
	auto := n.metric(with(t, env("ROUTER_MAX_CONNECTIONS", "auto")), "haproxy_max_connections", nil)
	if got := n.metric(r, "haproxy_max_connections", nil); got != min(50000, auto) {
		t.Errorf("the limit is %v of %v that descriptors allow", got, auto)
	}
	for _, number := range []string{"-2", "1999", "2000001"} {
		with(t, controlled("{}")).refuses(t, "tuningOptions: {maxConnections: "+number+"}")
	}
}

// TestMaxConnectionsMetric: the metric says the default, 50000, and another number once that is
// set; as many connections are accepted.
func TestMaxConnectionsMetric(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := alone(t, controlled("{}"))
	auto := n.metric(with(t, env("ROUTER_MAX_CONNECTIONS", "auto")), "haproxy_max_connections", nil)
	if got := n.metric(r, "haproxy_max_connections", nil); got != min(50000, auto) {
		t.Errorf("by default %v of %v that descriptors allow", got, auto)
	}
	r.change(t, controlled("tuningOptions: {maxConnections: 10000}"))
	eventually(t, "the metric", func() error {
		if got := n.metric(r, "haproxy_max_connections", nil); got != 10000 {
			return fmt.Errorf("%v, want 10000", got)
		}
		return nil
	})
}

// TestRouteNbthreadIngressController: there are as many event loops as the number of threads
// says, and they serve.
func TestRouteNbthreadIngressController(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	for threads, want := range map[string]float64{"1": 2, "4": 5} {
		r := with(t, env("ROUTER_THREADS", threads))
		n.served(r, "echo-"+threads)
		if got := n.metric(r, "go_sched_gomaxprocs_threads", nil); got != want {
			t.Errorf("ROUTER_THREADS=%s: %v threads run Go code, want one for each event loop and one more", threads, got)
		}
	}
}

// TestReloadInterval: the interval of reloads is accepted and delays nothing, as there are none:
// with one of two minutes a new route is served within seconds.
func TestReloadInterval(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("tuningOptions: {reloadInterval: 2m}"))
	host := n.served(r, "echo")
	second := n.newRoute(r, "second")
	second.Spec.To.Name = "echo"
	begin := time.Now()
	n.create(second)
	n.answers(r, "http://"+second.Spec.Host+"/", 200)
	between(t, "new route", time.Since(begin), 0, 20*time.Second)
	n.got(r, "http://"+host+"/")
}

// TestHealthCheckIntervalIngressController: pods are checked as often as is set: one that
// accepts no connections counts as down, and of the other that is not said.
func TestHealthCheckIntervalIngressController(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("tuningOptions: {healthCheckInterval: 1s}"))
	n.start(pod{name: "good"})
	n.start(pod{name: "idle", args: []string{"wait"}})
	good, idle := n.running("good").Status.PodIP, n.running("idle").Status.PodIP
	n.detached("both", good, idle)
	host := n.create(n.newRoute(r, "both")).Spec.Host
	n.answers(r, "http://"+host+"/", 200)
	eventually(t, "health of the pods", func() error {
		up := map[string]float64{}
		for _, m := range n.family(r, "haproxy_server_up", map[string]string{"namespace": n.name}) {
			up[m.labels["server"]] = m.value
		}
		if up[good+":8080"] != 1 || up[idle+":8080"] != 0 || len(up) != 2 {
			return fmt.Errorf("haproxy_server_up: %v", up)
		}
		return nil
	})
	if got := n.answers(r, "http://"+host+"/", 200); got.from() != "good" {
		t.Errorf("%s answers", got.from())
	}
}

// TestLoadBalancingAlgorithmUnsupportedConfigOverride: with leastconn, requests go to the pod
// that has fewer under way.
func TestLoadBalancingAlgorithmUnsupportedConfigOverride(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("unsupportedConfigOverrides: {loadBalancingAlgorithm: leastconn}"))
	n.start(pod{name: "one", labels: map[string]string{"app": "echo"}})
	n.start(pod{name: "two", labels: map[string]string{"app": "echo"}})
	n.service("echo", "echo")
	host := n.create(n.newRoute(r, "echo")).Spec.Host
	n.reaches(r, "http://"+host+"/", "one", "two")
	for range 2 {
		n.tunnel(r, host)
	}
	eventually(t, "a session on each pod", func() error {
		sessions := n.family(r, "haproxy_server_current_sessions", map[string]string{"namespace": n.name})
		for _, m := range sessions {
			if m.value != 1 {
				return fmt.Errorf("%s has %v of two tunnels", m.labels["pod"], m.value)
			}
		}
		if len(sessions) != 2 {
			return fmt.Errorf("%d servers", len(sessions))
		}
		return nil
	})
}

// reaches asks until all of these pods have answered, and no other does.
func (n namespace) reaches(r *router, url string, pods ...string) {
	n.Helper()
	missing := map[string]bool{}
	for _, p := range pods {
		missing[p] = true
	}
	all := fmt.Sprint(pods)
	eventually(n, "answers of "+all, func() error {
		got, err := r.get(url)
		if err != nil {
			return err
		}
		if delete(missing, got.from()); len(missing) > 0 {
			return fmt.Errorf("none of %v", missing)
		}
		return nil
	})
}

// TestUnsupportedConfigOverride: variables that the operator makes of overrides for HAProxy alone
// are accepted, named in the log as without effect, and the router serves.
func TestUnsupportedConfigOverride(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	s := env("ROUTER_HAPROXY_CONFIG_MANAGER", "true", "ROUTER_MAX_DYNAMIC_SERVERS", "7", "ROUTER_HAPROXY_CONTSTATS", "true", "ROUTER_BLUEPRINT_ROUTE_POOL_SIZE", "0")
	r := with(t, s)
	n.served(r, "echo")
	for name := range s.Env {
		r.logged(t, name)
	}
}

// TestTunableRouterKubeletProbesForCustomIngressController: probes with another timeout than the
// operator's are answered as well: the pod becomes ready and is not restarted.
func TestTunableRouterKubeletProbesForCustomIngressController(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	s := env()
	s.Alive = 1
	r := with(t, s)
	n.served(r, "echo")
	p := must[*corev1.Pod](t)(shared.core.CoreV1().Pods(routerNamespace).Get(t.Context(), r.pods[0].Name, metav1.GetOptions{}))
	if st := p.Status.ContainerStatuses[0]; !st.Ready || st.RestartCount != 0 {
		t.Errorf("status %s", asJSON(st))
	}
}

// TestHostNetworkEndpointPublishingStrategy: a router on its node's network serves on the node's
// address.
func TestHostNetworkEndpointPublishingStrategy(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := hostNetwork(t, 80, 443, 1936)
	if r.ip != r.pods[0].Status.HostIP {
		t.Errorf("the pod's address is %s, its node's %s", r.ip, r.pods[0].Status.HostIP)
	}
	n.served(r, "echo")
}

// TestHostNetworkPortBinding: two controllers are on one node, with ports of their own; each
// serves its routes and not the other's.
func TestHostNetworkPortBinding(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	first, second := hostNetwork(t, 80, 443, 1936), hostNetwork(t, 9080, 9443, 9936)
	if first.ip != second.ip {
		t.Errorf("they are on %s and %s", first.ip, second.ip)
	}
	one, two := n.served(first, "one"), n.served(second, "two")
	n.answers(first, "http://"+two+"/", 503)
	n.answers(second, "http://"+one+"/", 503)
	for _, port := range []int{80, 443, 1936, 9080, 9443, 9936} {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(first.ip, fmt.Sprint(port)), 10*time.Second)
		if err != nil {
			t.Error(err)
			continue
		}
		c.Close()
	}
}

// hostNetwork returns the router with these ports of the node.
func hostNetwork(t *testing.T, ports ...int) *router {
	t.Helper()
	s := env("ROUTER_SERVICE_HTTP_PORT", fmt.Sprint(ports[0]), "ROUTER_SERVICE_HTTPS_PORT", fmt.Sprint(ports[1]), "STATS_PORT", fmt.Sprint(ports[2]))
	s.Host, s.Ports = true, [3]int(ports)
	return with(t, s)
}

// TestCanaryRoute: what the operator's canary does: it asks for its route by plain HTTP, follows
// the redirect, and finds the body and the port that it expects; a change of the route's port is
// followed.
func TestCanaryRoute(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, env("ROUTER_DOMAIN", "apps.test"))
	n.echo("ingress-canary")
	route := edge(n.newRoute(r, "ingress-canary"), routev1.InsecureEdgeTerminationPolicyRedirect)
	route.Spec.Host, route.Spec.Subdomain = "", "canary-"+n.name
	n.create(route)
	host := "canary-" + n.name + ".apps.test"
	n.answers(r, "http://"+host+"/", 302)
	n.answers(r, "https://"+host+"/", 200) // a redirect needs no endpoint
	n.start(pod{name: "canary-route-check", args: []string{"wait"}})
	n.running("canary-route-check")
	got := n.exec("canary-route-check", echoProgram, "get", "-address", r.ip, "https://"+host+"/?text=Healthcheck+requested&field=x-request-port:8080")
	if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(strings.ToLower(got), "\r\nx-request-port: 8080\r\n") || !strings.HasSuffix(got, "Healthcheck requested") {
		t.Errorf("the canary got %q", got)
	}
}

// TestCanaryWithMTLS: where clients must have a certificate, the canary, which has none, reaches
// its route all the same, as that is passed through.
func TestCanaryWithMTLS(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	ca := issue(t, "client authority", nil, true)
	configMap(t, n.name, map[string]string{"ca-bundle.pem": ca.pem()})
	r := with(t, mutual(n.name, "required"))
	tlsSecret(t, n.name, "canary-serving-cert", issue(t, "ingress-canary."+n.name+".svc", nil, false))
	n.start(pod{name: "ingress-canary", tls: "canary-serving-cert"})
	n.service("ingress-canary", "ingress-canary")
	route := n.newRoute(r, "ingress-canary")
	route.Spec.Port.TargetPort.StrVal = "https"
	route.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}
	n.create(route)
	n.answers(r, "https://"+route.Spec.Host+"/", 200)
	n.echo("edge")
	other := n.create(edge(n.newRoute(r, "edge"), ""))
	n.says(r, "edge", "True")
	if got, err := r.get("https://" + other.Spec.Host + "/"); err == nil {
		t.Errorf("a client without certificate got %d of another route", got.Code)
	}
}

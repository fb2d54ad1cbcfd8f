package ingress

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"turnout/controller"
	"turnout/controller/source"
)

// kinds are the hosts of the objects of both.
var kinds = []string{"route.test", "ingress.test"}

// both returns the manifests of a Route and an Ingress of a Service with the same annotations, turnout.router/NAME followed by its value, for the hosts of kinds.
// What else the Route has in its spec comes first.
func both(more, service string, annotations ...string) string {
	text := "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: route\n  namespace: default\n  annotations:\n    haproxy.router.openshift.io/balance: roundrobin\n"
	full := []string{"haproxy.router.openshift.io/balance", "roundrobin"}
	for i := 0; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    turnout.router/%s: %q\n", annotations[i], annotations[i+1])
		full = append(full, "turnout.router/"+annotations[i], annotations[i+1])
	}
	return text + "spec: {host: route.test, to: {kind: Service, name: " + service + ", weight: 100}, wildcardPolicy: None, port: {targetPort: http}" + more + "}\n---\n" +
		ingress("ingress", "rules:\n"+rule("ingress.test", "Prefix / "+service+" 8080"), full...)
}

// TestCORS: a preflight of an origin that is named is answered by the router, and answers to its pages say that they may be read.
func TestCORS(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), both("", "s", "cors-allow-origin", "https://app.test https://*.more.test", "cors-allow-methods", "PUT", "cors-allow-headers", "X-A",
		"cors-expose-headers", "X-Total", "cors-allow-credentials", "true", "cors-max-age", "600"))
	for _, host := range kinds {
		g := r.ask("OPTIONS http://"+host+"/", "Origin: https://a.more.test", "Access-Control-Request-Method: PUT")
		for name, want := range map[string]string{"Origin": "https://a.more.test", "Methods": "PUT", "Headers": "X-A", "Credentials": "true"} {
			if got := g.header.Get("Access-Control-Allow-" + name); got != want {
				t.Errorf("%s: preflight: Access-Control-Allow-%s: %s, want %s", host, name, got, want)
			}
		}
		if g.Service != "" || g.status != 200 || g.header.Get("Access-Control-Max-Age") != "600" {
			t.Errorf("%s: preflight: %d by %s, %v", host, g.status, g.by(), g.header)
		}
		if g = r.ask("GET http://"+host+"/", "Origin: https://app.test"); g.by() != "s" || g.header.Get("Access-Control-Allow-Origin") != "https://app.test" || g.header.Get("Access-Control-Expose-Headers") != "X-Total" {
			t.Errorf("%s: %d, %v", host, g.status, g.header)
		}
		if g = r.ask("GET http://"+host+"/", "Origin: https://more.test"); g.by() != "s" || g.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: another origin: %d, %v", host, g.status, g.header)
		}
	}
}

// TestDeadlines: a pod that does not answer in time is given up, after which the client gets 504.
func TestDeadlines(t *testing.T) {
	r := start(t, controller.Options{})
	for _, name := range []string{"request-timeout", "attempt-timeout"} {
		never := func(w http.ResponseWriter, q *http.Request) { <-q.Context().Done() }
		r.apply(r.served("default", name, never), both("", name, name, "20ms"))
		for _, host := range kinds {
			if g := r.ask("GET http://" + host + "/"); g.status != 504 {
				t.Errorf("%s, %s: %d, want 504", name, host, g.status)
			}
		}
	}
}

// TestRetryOn: an answer of one of the statuses is asked for again, of another one it is passed on, and nothing is that may have been acted on.
func TestRetryOn(t *testing.T) {
	r := start(t, controller.Options{})
	var asked atomic.Int64
	failing := func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		status := 503
		if strings.HasPrefix(q.URL.Path, "/other") {
			status = 502
		}
		r.telling("s", "failing", status)(w, q)
	}
	r.apply(r.served("default", "s", failing), both("", "s", "retry-on", "503", "retry-attempts", "2", "retry-backoff", "1ms"))
	for _, host := range kinds {
		for request, want := range map[string]int64{"GET http://" + host + "/": 3, "GET http://" + host + "/other": 1, "POST http://" + host + "/": 1} {
			asked.Store(0)
			if g := r.ask(request); g.Pod != "failing" || asked.Load() != want {
				t.Errorf("%s: %d, asked %d times, want %d", request, g.status, asked.Load(), want)
			}
		}
	}
}

// TestRedirectTo: requests are answered with another address, whether or not there is a pod.
func TestRedirectTo(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 0), both("", "s", "redirect-to", "https://new.test:8443", "redirect-status", "308"))
	for _, host := range kinds {
		if g := r.ask("POST http://" + host + "/a%20b?c=d"); g.status != 308 || g.header.Get("Location") != "https://new.test:8443/a%20b?c=d" {
			t.Errorf("%s: %d to %s", host, g.status, g.header.Get("Location"))
		}
	}
}

// TestUpstreamHost: pods get another host, and the one that was asked for in X-Forwarded-Host.
func TestUpstreamHost(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), both("", "s", "upstream-host", "in.test:8443"))
	for _, host := range kinds {
		if g := r.ask("GET http://" + host + "/a"); g.Host != "in.test:8443" || g.Path != "/a" || g.Header.Get("X-Forwarded-Host") != host {
			t.Errorf("%s: pods get host %s, path %s, %v", host, g.Host, g.Path, g.Header)
		}
	}
}

// TestMirror: copies of requests go to another service, whose answers nobody sees.
func TestMirror(t *testing.T) {
	r := start(t, controller.Options{})
	copied := make(chan string, 8)
	mirror := func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		copied <- q.Method + " " + q.Host + q.RequestURI + " " + string(body)
		w.WriteHeader(500)
	}
	r.apply(r.service("s", 1), r.served("default", "m", mirror), both("", "s", "mirror", "m:http"))
	for _, host := range kinds {
		if g := r.ask("GET http://" + host + "/a?b"); g.by() != "s" {
			t.Errorf("%s: by %s", host, g.by())
		}
		if got, want := <-copied, "GET "+host+"/a?b "; got != want {
			t.Errorf("%s: the mirror got %q, want %q", host, got, want)
		}
	}
	r.apply(r.served("default", "m2", mirror), both("", "s", "mirror", "m2")) // another one
	r.ask("GET http://route.test/n")
	if got := <-copied; got != "GET route.test/n " {
		t.Errorf("the other mirror got %q", got)
	}
}

// TestCanary: requests that ask for the canary by a header or a cookie go there, and a share of the others.
func TestCanary(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), r.service("c", 1), both("", "s", "canary", "c", "canary-by-header", "X-Canary", "canary-by-header-value", "blue", "canary-by-cookie", "canary"))
	for _, host := range kinds {
		for field, want := range map[string]string{
			"X-Other: blue": "s", "X-Canary: blue": "c", "x-canary: BLUE": "s", "X-Canary: always": "s", "Cookie: canary=always": "c", "Cookie: a=b; canary=always; c=d": "c",
			"Cookie: canary=never": "s", "Cookie: xcanary=always": "s", "Cookie: canary=always2": "s",
		} {
			if g := r.ask("GET http://"+host+"/", field); g.by() != want {
				t.Errorf("%s, %s: by %s, want %s", host, field, g.by(), want)
			}
		}
	}
	r.apply(both("", "s", "canary", "c", "canary-weight", "50"))
	for _, host := range kinds {
		counts := map[string]int{}
		for range 20 {
			g := r.ask("GET http://"+host+"/", "X-Canary: blue")
			counts[g.by()]++
		}
		if counts["s"] != 10 || counts["c"] != 10 {
			t.Errorf("%s: %v, want 10 of each", host, counts)
		}
	}
	r.apply(both("", "s"))
	for _, host := range kinds {
		if g := r.ask("GET http://"+host+"/", "X-Canary: blue"); g.by() != "s" {
			t.Errorf("%s, without the annotations: by %s", host, g.by())
		}
	}
}

// TestCanaryFollowsItsPods: endpoints of the canary come and go without another table.
func TestCanaryFollowsItsPods(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), r.service("c", 0), both("", "s", "canary", "c", "canary-by-header", "X-Canary"))
	ask := func(want string) {
		t.Helper()
		for _, host := range kinds {
			if g := r.ask("GET http://"+host+"/", "X-Canary: always"); g.by() != want {
				t.Errorf("%s: by %s, want %s", host, g.by(), want)
			}
		}
	}
	ask("503")
	before := r.router.Store.Load().Generation()
	r.apply(r.service("c", 1))
	ask("c")
	r.remove(source.EndpointSlice, "c-0")
	ask("503")
	if now := r.router.Store.Load().Generation(); now != before {
		t.Errorf("%d tables were made for endpoints", now-before)
	}
	r.remove(source.Route, "route")
	if n := r.router.Store.Load().Len(); n != 2 {
		t.Errorf("the table has %d rules when the Route is gone, want the two of the Ingress", n)
	}
}

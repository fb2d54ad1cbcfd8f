package origin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestForwardedHeaderPolicyAppend: by default, and when the policy is append, the router adds
// one X-Forwarded-For line to those of the client: none becomes one, two become three.
func TestForwardedHeaderPolicyAppend(t *testing.T) {
	t.Parallel()
	forwarded(t, settings{}, 1, 3)
	forwarded(t, env("ROUTER_SET_FORWARDED_HEADERS", "append"), 1, 3)
}

// TestForwardedHeaderPolicyReplace: there is exactly one X-Forwarded-For line, whatever the
// client sends.
func TestForwardedHeaderPolicyReplace(t *testing.T) {
	t.Parallel()
	forwarded(t, controlled("httpHeaders: {forwardedHeaderPolicy: Replace}"), 1, 1)
}

// TestForwardedHeaderPolicyNever: there are as many X-Forwarded-For lines as the client sends.
func TestForwardedHeaderPolicyNever(t *testing.T) {
	t.Parallel()
	forwarded(t, controlled("httpHeaders: {forwardedHeaderPolicy: Never}"), 0, 2)
}

// TestForwardedHeaderPolicyIfNone: the router's X-Forwarded-For line is there if the client
// sends none.
func TestForwardedHeaderPolicyIfNone(t *testing.T) {
	t.Parallel()
	forwarded(t, controlled("httpHeaders: {forwardedHeaderPolicy: IfNone}"), 1, 2)
}

// forwarded compares how many X-Forwarded-For lines a pod gets when the client sends none, and
// when it sends two.
func forwarded(t *testing.T, s settings, none, two int) {
	t.Helper()
	n := newNamespace(t, nil)
	r := with(t, s)
	host := n.served(r, "echo")
	if got := n.got(r, "http://"+host+"/"); got.count("x-forwarded-for:") != none {
		t.Errorf("%v: %d lines without the client's own, want %d: %s", s.Env, got.count("x-forwarded-for:"), none, got.Body)
	}
	got := n.got(r, "http://"+host+"/", "x-forwarded-for: foo", "x-forwarded-for: bar")
	if got.count("x-forwarded-for:") != two {
		t.Errorf("%v: %d lines beside two of the client, want %d: %s", s.Env, got.count("x-forwarded-for:"), two, got.Body)
	}
}

// TestHeaders is test/extended/router/headers.go of origin.
func TestHeaders(t *testing.T) {
	t.Parallel()
	it(t, "should set Forwarded headers appropriately", forwardedFromPod)
}

// forwardedFromPod: the pod finds the address of the pod that asks in the fields, and how it asked.
func forwardedFromPod(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	host := n.served(r, "echo")
	n.start(pod{name: "execpod", args: []string{"wait"}})
	from := n.running("execpod").Status.PodIP
	got := n.exec("execpod", echoProgram, "get", "-address", r.ip, "http://"+host+"/")
	_, body, _ := strings.Cut(got, "\r\n\r\n")
	request := response{Body: body}
	for name, want := range map[string]string{
		"X-Forwarded-For": from, "X-Forwarded-Host": host, "X-Forwarded-Port": "80", "X-Forwarded-Proto": "http",
		"Forwarded": "for=" + from + ";host=" + host + ";proto=http",
	} {
		if request.heard(name) != want {
			t.Errorf("%s: %q, want %q in %s", name, request.heard(name), want, got)
		}
	}
}

// TestSecureRedirectCorrectness: a request over plain HTTP for an edge route that redirects is
// sent to https with its host, path and query; a port that the client names is left out.
func TestSecureRedirectCorrectness(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, settings{})
	host := n.served(r, "echo", func(route *routev1.Route) { edge(route, routev1.InsecureEdgeTerminationPolicyRedirect) })
	for _, path := range []string{"/", "/testpath", "/testpath?foo=bar&x=1"} {
		for _, as := range []string{host, host + ":80", host + ":8080"} {
			got := n.got(r, "http://"+host+path, "Host: "+as)
			if want := "https://" + host + path; got.Code != 302 || got.Get("Location") != want {
				t.Errorf("%s as %s: %d to %q, want 302 to %q", path, as, got.Code, got.Get("Location"), want)
			}
		}
	}
}

// TestHTTPHeaderBufferSize: with buffers of 65536 bytes, 16384 of them for rewrites, a head of
// 47 KiB reaches the pod; with 16384 and 4096 it is refused with 400 or 431.
func TestHTTPHeaderBufferSize(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := alone(t, controlled("tuningOptions: {headerBufferBytes: 65536, headerBufferMaxRewriteBytes: 16384}"))
	host := n.served(r, "echo")
	long := "X-Long: " + strings.Repeat("a", 47<<10)
	if got := n.got(r, "http://"+host+"/", long); got.Code != 200 || len(got.heard("X-Long")) != 47<<10 {
		t.Errorf("with large buffers: %d, the pod got %d bytes", got.Code, len(got.heard("X-Long")))
	}
	r.change(t, controlled("tuningOptions: {headerBufferBytes: 16384, headerBufferMaxRewriteBytes: 4096}"))
	eventually(t, "with small buffers", func() error {
		got, err := r.get("http://"+host+"/", long)
		if err == nil && got.Code != 400 && got.Code != 431 {
			err = fmt.Errorf("%d, want 400 or 431", got.Code)
		}
		return err
	})
}

// TestHeaderNameCaseAdjustment: names of the list are written as the list has them, in requests
// of a route with the annotation and in answers.
func TestHeaderNameCaseAdjustment(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("httpHeaders: {headerNameCaseAdjustments: [X-Forwarded-For, Cache-Control]}"))
	host := n.served(r, "echo", func(route *routev1.Route) {
		route.Annotations = map[string]string{"haproxy.router.openshift.io/h1-adjust-case": "true"}
	})
	c := n.dial(r, "80")
	c.say("GET /?field=cache-control:private HTTP/1.1", "Host: "+host, "")
	head, body := c.hear()
	if !strings.Contains(head, "\r\nCache-Control: private\r\n") {
		t.Errorf("answer without Cache-Control: %q", head)
	}
	if !strings.Contains(body, "\r\nX-Forwarded-For: ") {
		t.Errorf("request without X-Forwarded-For: %q", body)
	}
}

// TestSetIngressControllerResponseHeaders: fields that the router shall set in all answers are
// there over plain HTTP and over TLS, those that it shall delete are not.
func TestSetIngressControllerResponseHeaders(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled(`httpHeaders:
  actions:
    response: [{name: x-frame-options, action: {type: Set, set: {value: DENY}}}, {name: x-powered-by, action: {type: Delete}}]
    request: [{name: x-from, action: {type: Set, set: {value: "%[req.hdr(host)]"}}}, {name: x-secret, action: {type: Delete}}]
`))
	n.actions(r, func(*routev1.Route) {})
}

// TestSetRouteResponseHeaders: the same from the actions of a route.
func TestSetRouteResponseHeaders(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	set := func(name, value string) routev1.RouteHTTPHeader {
		return routev1.RouteHTTPHeader{Name: name, Action: routev1.RouteHTTPHeaderActionUnion{
			Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: value},
		}}
	}
	remove := func(name string) routev1.RouteHTTPHeader {
		return routev1.RouteHTTPHeader{Name: name, Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Delete}}
	}
	n.actions(with(t, settings{}), func(route *routev1.Route) {
		route.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{
			Response: []routev1.RouteHTTPHeader{set("x-frame-options", "DENY"), remove("x-powered-by")},
			Request:  []routev1.RouteHTTPHeader{set("x-from", "%[req.hdr(host)]"), remove("x-secret")},
		}}
	})
}

// actions makes a plain and an edge route, and looks at what header actions did.
func (n namespace) actions(r *router, change func(*routev1.Route)) {
	n.Helper()
	hosts := []string{
		"http://" + n.served(r, "clear", change),
		"https://" + n.served(r, "edge", func(route *routev1.Route) { change(edge(route, "")) }),
	}
	for _, at := range hosts {
		got := n.got(r, at+"/?field=x-powered-by:echo", "x-secret: 1")
		if got.Get("X-Frame-Options") != "DENY" || got.Get("X-Powered-By") != "" {
			n.Errorf("answer of %s: %v", at, got.Header)
		}
		if _, host, _ := strings.Cut(at, "://"); got.heard("x-from") != host || got.count("x-secret:") != 0 {
			n.Errorf("request to %s: %s", at, got.Body)
		}
	}
}

// TestHstsPolicyWorks: a valid annotation is the field of answers over TLS, an invalid one is
// none. That a policy of the cluster requires one is decided when routes are created, by
// OpenShift's API server.
func TestHstsPolicyWorks(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, settings{})
	annotation := "haproxy.router.openshift.io/hsts_header"
	host := n.served(r, "echo", func(route *routev1.Route) {
		edge(route, "").Annotations = map[string]string{annotation: "max-age=31536000;preload;includeSubDomains"}
	})
	if got := n.got(r, "https://"+host+"/").Get("Strict-Transport-Security"); got != "max-age=31536000;preload;includeSubDomains" {
		t.Errorf("the field is %q", got)
	}
	n.change("echo", func(route *routev1.Route) { route.Annotations[annotation] = "max-age=99999999;" })
	eventually(t, "no field for an invalid annotation", func() error {
		got, err := r.get("https://" + host + "/")
		if err == nil && got.Get("Strict-Transport-Security") != "" {
			err = fmt.Errorf("it is %q", got.Get("Strict-Transport-Security"))
		}
		return err
	})
}

// TestRouterCompressionOperation: an answer of a type of the list is compressed for a client
// that takes gzip, and for no other.
func TestRouterCompressionOperation(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("httpCompression: {mimeTypes: [text/html; charset=utf-8]}"))
	host := n.served(r, "echo", func(route *routev1.Route) { edge(route, routev1.InsecureEdgeTerminationPolicyRedirect) })
	at := "https://" + host + "/?text=Hello&field=content-type:" + url.QueryEscape("text/html; charset=utf-8")
	if got := n.got(r, at); got.Get("Content-Encoding") != "" || got.Body != "Hello" {
		t.Errorf("without Accept-Encoding: %v %q", got.Header, got.Body)
	}
	if got := n.got(r, at, "Accept-Encoding: gzip"); got.Get("Content-Encoding") != "gzip" {
		t.Errorf("with Accept-Encoding: %v", got.Header)
	}
}

// TestRouterCompressionParsing: each form of list that the operator hands on compresses the
// types of it, also custom ones, those with parameters, and none with an empty list.
func TestRouterCompressionParsing(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	for _, c := range []struct {
		list   string
		yes    []string
		no     []string
		enable string
	}{
		{"text/html application/json x-custom/allow-custom", []string{"text/html", "application/json", "x-custom/allow-custom"}, []string{"text/css"}, "true"},
		{"", []string{"text/html", "text/plain", "text/css"}, []string{"application/json"}, "true"},
		{`"text/html; v=\"keepquoted\"" "x-custom/allow-custom; specialChar='"`, []string{`text/html; v="keepquoted"`}, []string{"text/css"}, "true"},
		{"text/html", nil, []string{"text/html"}, "false"},
	} {
		r := with(t, env("ROUTER_ENABLE_COMPRESSION", c.enable, "ROUTER_COMPRESSION_MIME", c.list))
		name := "echo-" + r.name
		host := n.served(r, name)
		for _, kind := range slices.Concat(c.yes, c.no) {
			got := n.got(r, "http://"+host+"/?text=Hello&field=content-type:"+url.QueryEscape(kind), "Accept-Encoding: gzip")
			if zipped := got.Get("Content-Encoding") == "gzip"; zipped != slices.Contains(c.yes, kind) {
				t.Errorf("list %q, type %q: compressed %t", c.list, kind, zipped)
			}
		}
	}
	// What is no type is refused by the API server.
	with(t, controlled("{}")).refuses(t, "httpCompression: {mimeTypes: [text/, x- /value, //]}")
}

// TestUniqueIdHeader: each of many requests reaches the pod with another id in the field.
func TestUniqueIdHeader(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("httpHeaders: {uniqueId: {name: x-unique-id}}"))
	host := n.served(r, "echo")
	c, seen := r.client(dials{}), map[string]bool{}
	for range 20 {
		got := must[response](t)(c.get("http://" + host + "/"))
		if id := got.heard("x-unique-id"); id == "" || seen[id] {
			t.Errorf("id %q after %d others", id, len(seen))
		} else {
			seen[id] = true
		}
	}
}

// exec runs a command in a pod and returns what it writes.
func (n namespace) exec(pod string, command ...string) string {
	n.Helper()
	var out string
	eventually(n, fmt.Sprint("command ", command), func() error {
		text, err := execute(context.Background(), n.name, pod, command)
		out = text
		return err
	})
	return out
}

// asJSON is for messages of failures.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

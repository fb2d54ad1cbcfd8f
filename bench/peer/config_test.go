package peer

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"turnout/bench/load"
	"turnout/bench/site"
)

func testSite(t *testing.T, routes int, tls, cookie bool) *layout {
	t.Helper()
	s := &layout{routes: routes, tls: tls, cookie: cookie, upstreams: []netip.AddrPort{
		netip.MustParseAddrPort("127.0.1.1:8001"), netip.MustParseAddrPort("127.0.1.2:8001"),
	}}
	if tls {
		s.pem, s.fallback = site.NewKeyPair(load.Host(0), false), site.NewKeyPair("default.bench.test", false)
	}
	return s
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHAProxyAcceptsEveryConfiguration(t *testing.T) {
	binary, err := find("haproxy", "haproxy")
	if err != nil {
		t.Skip("needs HAProxy, which is not installed: nothing else can tell whether it accepts a configuration")
	}
	for _, c := range allCases() {
		for _, k := range c.peers {
			if k == kindNginx {
				continue
			}
			t.Run(c.name+" "+string(k), func(t *testing.T) {
				site := testSite(t, min(max(c.routes, 2), 40), c.tls, k == kindTemplate)
				site.rules, site.through, site.h2c = c.rules, c.work == workBulk, c.h2c
				config := peerConfig(t.TempDir(), site, k, "fd@3")
				ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
				if err != nil {
					t.Fatal(err)
				}
				defer ln.Close()
				listener, err := ln.File()
				if err != nil {
					t.Fatal(err)
				}
				defer listener.Close()
				cmd := exec.Command(binary, "-c", "-dW", "-f", config) // -dW: warnings are errors
				cmd.ExtraFiles = []*os.File{listener}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

func TestNginxAcceptsItsConfiguration(t *testing.T) {
	binary, err := find("nginx", "nginx-light")
	if err != nil {
		t.Skip("needs nginx, which is not installed: nothing else can tell whether it accepts a configuration")
	}
	for _, secure := range []bool{false, true} {
		for _, routes := range []int{1, 40} {
			dir := t.TempDir()
			s := testSite(t, routes, secure, false)
			s.upgrades = secure
			config := peerConfig(dir, s, kindNginx, "127.0.0.1:8443")
			if out, err := exec.Command(binary, "-t", "-q", "-p", dir, "-e", "stderr", "-c", config).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("TLS %v, %d routes: %v: %s", secure, routes, err, out)
			}
		}
	}
}

func TestPassedThroughIsInTheTCPStage(t *testing.T) {
	for k, options := range map[kind]int{kindTemplate: 0, kindSplice: 3} {
		dir := t.TempDir()
		s := testSite(t, 2, false, true)
		s.through = true
		config := peerConfig(dir, s, k, "fd@3")
		text := readText(t, config)
		// In the front end and in both backends.
		if n := strings.Count(text, "option splice-response"); n != options || n != strings.Count(text, "option splice-request") {
			t.Errorf("%s: %d times splice-response, want %d:\n%s", k, n, options, text)
		}
		for _, want := range []string{"req.ssl_hello_type 1", "tune.bufsize 32768", "\nbackend be_tcp:bench:r00001", "server ept:s00:https:127.0.1.1:8001"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in:\n%s", k, want, text)
			}
		}
		if strings.Contains(text, " ssl ") {
			t.Errorf("%s: TLS is terminated:\n%s", k, text)
		}
		routes, _ := objects(t, s)
		if tls := routes[0].Spec.TLS; tls == nil || tls.Termination != routev1.TLSTerminationPassthrough || tls.Certificate != "" {
			t.Errorf("route has %+v", tls)
		}
	}
}

func TestTemplateMapsAreInTheRoutersOrder(t *testing.T) {
	dir := t.TempDir()
	peerConfig(dir, testSite(t, 3, false, true), kindTemplate, "fd@3")
	want := `^r00002\.bench\.test\.?(:[0-9]+)?(/.*)?$ be_http:bench:r00000
^r00001\.bench\.test\.?(:[0-9]+)?(/.*)?$ be_http:bench:r00001
^r00000\.bench\.test\.?(:[0-9]+)?(/.*)?$ be_http:bench:r00000
`
	if got := readText(t, filepath.Join(dir, "http.map")); got != want {
		t.Errorf("http.map:\n%swant\n%s", got, want)
	}
}

func TestTemplateDoesTheRoutersWork(t *testing.T) {
	for _, tls := range []bool{false, true} {
		config := peerConfig(t.TempDir(), testSite(t, 3, tls, true), kindTemplate, "fd@3")
		text := readText(t, config)
		wants := map[string]int{
			"\nbackend be_http:bench:":          3, // one per route, whatever the maps lead to
			"\n  option forwardfor":             3,
			"\n  http-reuse always":             1,
			"\n  http-request del-header Proxy": 1,
			"map_reg(":                          2, // redirects and routes
			"send-proxy":                        0,
			"cookie " + md5Hex(" bench:r00002") + " insert indirect nocache httponly": 1,
			" cookie " + md5Hex("ept:s00:http:127.0.1.1:8001") + " weight 1":          2,
		}
		if tls {
			delete(wants, "\nbackend be_http:bench:")
			wants["\nbackend be_edge_http:bench:"] = 3
			wants["\n  http-request del-header Proxy"] = 2 // with and without SNI
			wants["map_reg("] = 3                          // passthrough switch, routes twice
			wants["send-proxy"] = 2
		}
		for want, n := range wants {
			if got := strings.Count(text, want); got != n {
				t.Errorf("tls %v: %d times %q, want %d", tls, got, want, n)
			}
		}
	}
}

// objects decodes the documents of the manifests strictly and returns them by kind.
func objects(t *testing.T, l *layout) (routes []routev1.Route, slices []discoveryv1.EndpointSlice) {
	t.Helper()
	for doc := range strings.SplitSeq(strings.TrimPrefix(l.manifests(), "---\n"), "\n---\n") {
		var err error
		if strings.Contains(doc, "kind: Route\n") {
			var r routev1.Route
			err = yaml.UnmarshalStrict([]byte(doc), &r)
			routes = append(routes, r)
		} else {
			var s discoveryv1.EndpointSlice
			err = yaml.UnmarshalStrict([]byte(doc), &s)
			slices = append(slices, s)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
	}
	return routes, slices
}

func TestManifestsAreTheSite(t *testing.T) {
	s := testSite(t, 1001, true, false)
	routes, slices := objects(t, s)
	if len(routes) != 1001 || len(slices) != 2 {
		t.Fatalf("%d routes, %d slices", len(routes), len(slices))
	}
	r := routes[1000]
	if r.Name != "r01000" || r.Namespace != "bench" || r.Spec.Host != load.Host(1000) || r.Spec.To.Name != "s00" ||
		r.Annotations["haproxy.router.openshift.io/disable_cookies"] != "true" ||
		r.Annotations["haproxy.router.openshift.io/set-forwarded-headers"] != "append" {
		t.Errorf("route is %+v", r)
	}
	if r.Spec.TLS == nil || r.Spec.TLS.Certificate != s.pem.Certificate || r.Spec.TLS.Key != s.pem.Key ||
		r.Spec.TLS.Termination != routev1.TLSTerminationEdge {
		t.Errorf("route's tls is %+v", r.Spec.TLS)
	}
	if r.Spec.HTTPHeaders != nil {
		t.Errorf("a site without rules has %+v", r.Spec.HTTPHeaders)
	}
	e := slices[1]
	if e.Labels["kubernetes.io/service-name"] != serviceName(1) || e.Endpoints[0].Addresses[0] != "127.0.1.2" || *e.Ports[0].Port != 8001 || *e.Ports[0].Name != "http" {
		t.Errorf("slice is %+v", e)
	}
}

func TestManifestsOfASiteWithRules(t *testing.T) {
	s := testSite(t, 1, false, true)
	s.rules = true
	routes, _ := objects(t, s)
	r := routes[0]
	if r.Annotations["haproxy.router.openshift.io/hsts_header"] != hsts || r.Spec.TLS == nil || r.Spec.TLS.InsecureEdgeTerminationPolicy != routev1.InsecureEdgeTerminationPolicyAllow ||
		r.Spec.HTTPHeaders == nil || r.Spec.HTTPHeaders.Actions.Request[0].Action.Set.Value != "%[req.hdr(User-Agent),lower]" || r.Spec.HTTPHeaders.Actions.Response[0].Name != "X-Frame-Options" {
		t.Errorf("route is %+v", r)
	}
}

// TestReencryptedSites: both proxies verify the pods against the same authority and offer them both protocols.
func TestReencryptedSites(t *testing.T) {
	s := testSite(t, 1, true, true)
	s.pods = site.NewKeyPair("pods.bench.test", false)
	for _, k := range []kind{kindLeast, kindTemplate} {
		dir := t.TempDir()
		config := peerConfig(dir, s, k, "fd@3")
		want := " ssl alpn h2,http/1.1 verify required ca-file " + filepath.Join(dir, "pods.pem") + "\n"
		servers := regexp.MustCompile(`(?m)^  server (s0|ept:)`)
		if text := readText(t, config); strings.Count(text, want) == 0 || strings.Count(text, want) != len(servers.FindAllString(text, -1)) {
			t.Errorf("%s: want every server of pods with %q\n%s", k, want, text)
		}
		if readText(t, filepath.Join(dir, "pods.pem")) != s.pods.Certificate {
			t.Errorf("%s: another authority", k)
		}
	}
	routes, _ := objects(t, s)
	if tls := routes[0].Spec.TLS; tls.Termination != routev1.TLSTerminationReencrypt || tls.DestinationCACertificate != s.pods.Certificate {
		t.Errorf("route has %+v", tls)
	}
}

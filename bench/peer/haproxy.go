package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"turnout/bench/load"
)

// haproxyConfig writes HAProxy's configuration for s into dir and returns the path of its main file. The
// listener is descriptor listenFD, which the process inherits.
func haproxyConfig(dir string, s *layout, k kind, listenFD int) (string, error) {
	w := &configWriter{dir: dir, layout: s, bind: fmt.Sprintf("fd@%d", listenFD)}
	if s.tls {
		w.file("site.pem", s.pem.Certificate+s.pem.Key)
	}
	w.common(k)
	switch {
	case s.through:
		w.templateTLS(k == kindSplice)
	case k == kindTemplate && s.tls:
		w.templateTLS(false)
	case k == kindTemplate:
		w.templateHTTP()
	default:
		w.least(k == kindMapStr)
	}
	main := w.file("haproxy.cfg", w.text.String())
	return main, w.err
}

// configWriter collects the main file and keeps the first error.
type configWriter struct {
	dir    string
	layout *layout
	bind   string
	text   strings.Builder
	err    error
}

func (w *configWriter) linef(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

// file writes a file next to the main one and returns its path.
func (w *configWriter) file(name, content string) string {
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil && w.err == nil {
		w.err = fmt.Errorf("cannot write HAProxy's configuration: %w", err)
	}
	return path
}

// common writes what all configurations share: one thread, no logs, the router's timeouts, and upstream
// connections reused as freely as HAProxy can, because what "http-reuse safe" holds back is a policy and
// no cost of HAProxy.
func (w *configWriter) common(k kind) {
	w.linef("global")
	w.linef("  nbthread 1")
	w.linef("  maxconn 5000")
	if k == kindTemplate || k == kindSplice {
		w.linef("  tune.bufsize 32768")
		w.linef("  tune.maxrewrite 8192")
	}
	w.linef("defaults")
	w.linef("  mode http")
	w.linef("  maxconn 5000")
	w.linef("  http-reuse always")
	w.linef("  timeout connect 5s")
	w.linef("  timeout client 30s")
	w.linef("  timeout client-fin 1s")
	w.linef("  timeout server 30s")
	w.linef("  timeout server-fin 1s")
	w.linef("  timeout http-request 10s")
	w.linef("  timeout http-keep-alive 300s")
	w.linef("  timeout tunnel 1h")
}

// sslOptions pin the cipher and the group that the client and Turnout use.
const sslOptions = "ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256 curves X25519"

// least is the least HAProxy: one stage, X-Forwarded-For, with hosts an exact map of them.
func (w *configWriter) least(hosts bool) {
	s := w.layout
	w.linef("frontend public")
	if s.tls {
		w.linef("  bind %s ssl crt %s alpn h2,http/1.1 %s", w.bind, filepath.Join(w.dir, "site.pem"), sslOptions)
	} else {
		w.linef("  bind %s", w.bind)
	}
	w.linef("  option forwardfor")
	w.linef("  option http-ignore-probes") // who leaves behind the handshake gets no 400
	if hosts {
		var lines strings.Builder
		for i := range s.routes {
			fmt.Fprintf(&lines, "%s be_%s\n", load.Host(i), serviceName(i%len(s.upstreams)))
		}
		w.linef("  use_backend %%[req.hdr(host),lower,map_str(%s)]", w.file("hosts.map", lines.String()))
	} else {
		w.linef("  default_backend be_%s", serviceName(0))
	}
	for k, addr := range s.upstreams {
		w.linef("backend be_%s", serviceName(k))
		w.linef("  server %s %s%s", serviceName(k), addr, w.toPods())
	}
}

// toPods is how a server of a site with pods behind TLS is reached, as the template says it for a destinationCACertificate.
func (w *configWriter) toPods() string {
	if w.layout.pods.Certificate == "" {
		return ""
	}
	return " ssl alpn h2,http/1.1 verify required ca-file " + w.file("pods.pem", w.layout.pods.Certificate)
}

// templateHTTP is the plain front end of the router's template.
func (w *configWriter) templateHTTP() {
	w.linef("frontend public")
	w.linef("  bind %s", w.bind)
	w.linef("  tcp-request inspect-delay 5s")
	w.linef("  tcp-request content accept if HTTP")
	w.linef("  monitor-uri /_______internal_router_healthz")
	w.scrub()
	w.linef("  acl secure_redirect base,map_reg(%s) -m int 1", w.patterns("redirect.map", func(int) string { return "0" }))
	w.linef("  http-request redirect scheme https code 302 if secure_redirect")
	w.linef("  use_backend %%[base,map_reg(%s)]", w.patterns("http.map", w.backendOf))
	w.linef("  default_backend openshift_default")
	w.templateBackends()
}

// templateTLS is the TLS entry of the router's template: a TCP stage that reads the server name and hands
// terminated connections on to a second stage through a UNIX socket, with a PROXY header. What it passes through
// goes to the endpoint from there; with splice by the kernel.
func (w *configWriter) templateTLS(splice bool) {
	switchMap := w.file("sni_passthrough.map", "")
	if w.layout.through {
		switchMap = w.patterns("sni_passthrough.map", func(int) string { return "1" })
	}
	w.linef("frontend public_ssl")
	w.linef("  mode tcp")
	w.linef("  bind %s", w.bind)
	w.linef("  tcp-request inspect-delay 5s")
	w.linef("  tcp-request content accept if { req.ssl_hello_type 1 }")
	w.linef("  acl sni req.ssl_sni -m found")
	w.linef("  acl sni_passthrough req.ssl_sni,lower,map_reg(%s) -m found", switchMap)
	if w.layout.through {
		w.tunnels(splice)
		return
	}
	w.linef("  use_backend be_tcp if sni sni_passthrough")
	w.linef("  use_backend be_sni if sni")
	w.linef("  default_backend be_no_sni")
	w.linef("backend be_tcp")
	w.linef("  mode tcp")
	edge := w.patterns("edge_reencrypt.map", w.backendOf)
	// The default certificate is another one: HAProxy takes what it was told first of a certificate's names.
	fallback := w.file("default.pem", w.layout.fallback.Certificate+w.layout.fallback.Key)
	list := w.file("certificates.list", fmt.Sprintf("%s [alpn h2,http/1.1] %s\n", filepath.Join(w.dir, "site.pem"), load.Host(0)))
	for _, stage := range []struct{ name, crt string }{
		{"sni", "crt " + fallback + " crt-list " + list}, {"no_sni", "crt " + fallback},
	} {
		socket := filepath.Join(w.dir, stage.name+".sock")
		w.linef("backend be_%s", stage.name)
		w.linef("  mode tcp")
		w.linef("  server fe_%s unix@%s weight 1 send-proxy", stage.name, socket)
		w.linef("frontend fe_%s", stage.name)
		w.linef("  bind unix@%s ssl %s accept-proxy %s", socket, stage.crt, sslOptions)
		w.scrub()
		w.linef("  use_backend %%[base,map_reg(%s)]", edge)
		w.linef("  default_backend openshift_default")
	}
	w.templateBackends()
}

// tunnels ends the TCP stage of a site that is passed through, and writes its backends.
func (w *configWriter) tunnels(splice bool) {
	forced := func() {
		if splice {
			w.linef("  option splice-request")
			w.linef("  option splice-response")
		}
	}
	name := func(i int) string { return "be_tcp:" + namespace + ":" + routeName(i) }
	forced()
	w.linef("  use_backend %%[req.ssl_sni,lower,map_reg(%s)] if sni sni_passthrough", w.patterns("tcp_be.map", name))
	for i := range w.layout.routes {
		addr := w.layout.upstreams[i%len(w.layout.upstreams)]
		w.linef("backend %s", name(i))
		w.linef("  mode tcp")
		forced()
		w.linef("  balance source")
		w.linef("  hash-type consistent")
		w.linef("  server ept:%s:https:%s %s weight 1", serviceName(i%len(w.layout.upstreams)), addr, addr)
	}
}

// scrub is what the template does to every request before it looks for the route.
func (w *configWriter) scrub() {
	w.linef("  http-request deny deny_status 403 if { hdr_len(content-length) 0 }")
	w.linef("  http-request del-header Proxy")
	for _, name := range []string{
		"", "-Client-CN", "-Client-DER", "-Client-DN", "-Client-NotAfter", "-Client-NotBefore", "-Client-SHA1",
		"-Client-Serial", "-Client-Subject", "-Client-Verify", "-Client-Version",
	} {
		w.linef("  http-request del-header X-SSL%s", name)
	}
	w.linef("  http-request del-header X-SSL-Issuer")
	w.linef("  http-request set-header Host %%[req.hdr(Host),lower]")
}

// patterns writes a map of one regular expression per route, in the template's order: descending.
func (w *configWriter) patterns(name string, value func(i int) string) string {
	lines := make([]string, w.layout.routes)
	for i := range lines {
		host := strings.ReplaceAll(load.Host(i), ".", `\.`)
		lines[i] = fmt.Sprintf(`^%s\.?(:[0-9]+)?(/.*)?$ %s`, host, value(i))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	return w.file(name, strings.Join(lines, "\n")+"\n")
}

func (w *configWriter) backendName(i int) string {
	if w.layout.tls {
		return "be_edge_http:" + namespace + ":" + routeName(i)
	}
	return "be_http:" + namespace + ":" + routeName(i)
}

// backendOf is the backend that serves route i in the maps. All backends are configured, as the template
// does it, but the maps lead to as many as there are upstreams: HAProxy pools connections per backend, and
// with a route of its own for every request it would measure connects, which Turnout, pooling per
// endpoint, does not make. The choice is in HAProxy's favour.
func (w *configWriter) backendOf(i int) string { return w.backendName(i % len(w.layout.upstreams)) }

// hsts is the header of sites with rules.
const hsts = "max-age=31536000"

// templateBackends writes one backend per route: forwarded headers in append mode, sticky cookie, and
// what the route asks for.
func (w *configWriter) templateBackends() {
	s := w.layout
	attributes := ""
	if s.tls {
		attributes = " secure attr SameSite=None"
	}
	for i := range s.routes {
		k := i % len(s.upstreams)
		w.linef("backend %s", w.backendName(i))
		w.linef("  option redispatch")
		w.linef("  option forwardfor")
		w.linef("  balance random")
		w.linef("  http-request add-header X-Forwarded-Host %%[req.hdr(host)]")
		w.linef("  http-request add-header X-Forwarded-Port %%[dst_port]")
		w.linef("  http-request add-header X-Forwarded-Proto http if !{ ssl_fc }")
		w.linef("  http-request add-header X-Forwarded-Proto https if { ssl_fc }")
		w.linef("  http-request add-header X-Forwarded-Proto-Version h2 if { ssl_fc_alpn -i h2 }")
		w.linef("  http-request add-header Forwarded for=%%[src];host=%%[req.hdr(host)];proto=%%[req.hdr(X-Forwarded-Proto)]")
		if s.cookie {
			w.linef("  cookie %s insert indirect nocache httponly%s", cookieName(i), attributes)
		}
		if s.rules {
			w.linef("  http-response set-header Strict-Transport-Security '%s'", hsts)
			w.linef("  http-request set-header X-Agent '%%[req.hdr(User-Agent),lower]'")
			w.linef("  http-response set-header X-Frame-Options 'DENY'")
		}
		w.linef("  server ept:%s:http:%s %s cookie %s weight 1%s", serviceName(k), s.upstreams[k], s.upstreams[k], s.cookieValue(k), w.toPods())
	}
	w.linef("backend openshift_default")
}

// findHAProxy also looks where Debian puts it, which is not in everybody's PATH.
func findHAProxy(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && name == "haproxy" {
		path, err = exec.LookPath("/usr/sbin/haproxy")
	}
	if err != nil {
		return "", fmt.Errorf("cannot find HAProxy, install Debian's haproxy: %w", err)
	}
	return path, nil
}

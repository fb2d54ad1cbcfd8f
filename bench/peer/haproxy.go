package peer

import (
	"embed"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"turnout/bench/load"
	"turnout/bench/site"
)

// templates are the configurations of the peers.
//
//go:embed *.tmpl
var templates embed.FS

// page is what the templates are filled with.
type page struct {
	Dir, Bind                                      string
	Buffers, TCP, Template, Exact, Through, Splice bool
	SSL, Cookie, Rules, Pods, H2C, Upgrades        bool
	HSTS                                           string
	Upstreams, Routes                              []server
	Stages                                         map[string]string // the second stages, and more of what they listen with
}

// server is an upstream, or the one that serves a route.
type server struct {
	Service                     string
	Addr                        netip.AddrPort
	Backend, TCPBackend, Cookie string // of a route
	CookieValue                 string
}

// peerConfig writes the configuration of a peer for s into dir and returns the path of its main file. bind is where it listens.
func peerConfig(dir string, s *layout, k kind, bind string) string {
	p := &page{
		Dir: dir, Bind: bind, Buffers: k == kindTemplate || k == kindSplice, TCP: s.through || s.tls && k == kindTemplate, Template: k == kindTemplate,
		Exact: s.routes > 1 && k != kindTemplate, Upgrades: s.upgrades, Through: s.through, Splice: k == kindSplice, SSL: s.tls, Cookie: s.cookie, Rules: s.rules, Pods: s.pods.Certificate != "", H2C: s.h2c, HSTS: hsts,
		Stages: map[string]string{"sni": " crt-list " + filepath.Join(dir, "certificates.list"), "no_sni": ""},
	}
	for i, addr := range s.upstreams {
		p.Upstreams = append(p.Upstreams, server{Service: serviceName(i), Addr: addr, CookieValue: s.cookieValue(i)})
	}
	for i := range s.routes {
		one := p.Upstreams[i%len(p.Upstreams)]
		one.Backend, one.TCPBackend, one.Cookie = s.backendName(i), "be_tcp:"+namespace+":"+routeName(i), cookieName(i)
		p.Routes = append(p.Routes, one)
	}
	p.files(s)
	name, main := "haproxy.cfg", "haproxy.cfg.tmpl"
	if k == kindNginx {
		name, main = "nginx.conf", "nginx.conf.tmpl"
	}
	var text strings.Builder
	site.Check(template.Must(template.ParseFS(templates, main)).Execute(&text, p))
	return p.file(name, text.String())
}

// file writes a file next to the main one and returns its path.
func (p *page) file(name, content string) string {
	path := filepath.Join(p.Dir, name)
	site.Checkf(os.WriteFile(path, []byte(content), 0o600), "cannot write a configuration")
	return path
}

// files writes the files that configurations refer to.
func (p *page) files(s *layout) {
	p.file("site.pem", s.pem.Certificate+s.pem.Key)
	p.file("default.pem", s.fallback.Certificate+s.fallback.Key)
	p.file("pods.pem", s.pods.Certificate)
	p.file("certificates.list", fmt.Sprintf("%s [alpn h2,http/1.1] %s\n", filepath.Join(p.Dir, "site.pem"), load.Host(0)))
	var hosts strings.Builder
	for i := range s.routes {
		fmt.Fprintf(&hosts, "%s be_%s\n", load.Host(i), p.Routes[i].Service)
	}
	p.file("hosts.map", hosts.String())
	p.file("nginx.map", strings.ReplaceAll(strings.ReplaceAll(hosts.String(), " be_", " "), "\n", ";\n"))
	p.patterns("redirect.map", func(int) string { return "0" })
	// All backends are configured, as the template does it, but the maps lead to as many as there are upstreams: HAProxy pools connections
	// per backend, and with a route of its own for every request it would measure connects, which Turnout, pooling per endpoint, does not
	// make. The choice is in HAProxy's favour.
	p.patterns("http.map", func(i int) string { return p.Routes[i%len(s.upstreams)].Backend })
	if p.file("sni_passthrough.map", ""); s.through {
		p.patterns("sni_passthrough.map", func(int) string { return "1" })
		p.patterns("tcp_be.map", func(i int) string { return p.Routes[i].TCPBackend })
	}
}

// patterns writes a map of one regular expression per route, in the template's order: descending.
func (p *page) patterns(name string, value func(i int) string) {
	lines := make([]string, len(p.Routes))
	for i := range lines {
		host := strings.ReplaceAll(load.Host(i), ".", `\.`)
		lines[i] = fmt.Sprintf(`^%s\.?(:[0-9]+)?(/.*)?$ %s`, host, value(i))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	p.file(name, strings.Join(lines, "\n")+"\n")
}

// find also looks for a program where Debian puts it, which is not in everybody's PATH.
func find(name, debian string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && filepath.Base(name) == name {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return "", fmt.Errorf("cannot find %s, install Debian's %s: %w", name, debian, err)
	}
	return path, nil
}

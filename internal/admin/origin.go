package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// What every answer asks of browsers: to take it as what it is, to run and load nothing, to show it in nobody's frame, to keep no copy, and to
// give it to no other site. A handler that needs less strict words sets its own.
var answerHeaders = [...][2]string{
	{"X-Content-Type-Options", "nosniff"},
	{"Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
}

func setAnswerHeaders(h http.Header) {
	for _, f := range answerHeaders {
		h.Set(f[0], f[1])
	}
}

// knownHost reports whether a Host field (RFC 9110 section 7.2) has a name of this machine that no
// other party can claim. It defends against DNS rebinding: a web page points the name of its own
// site at this address to read pages that need no login. Its requests carry the name of that site.
//
// It compares whole hosts. It accepts addresses, names of one label and of localhost, names of
// pods, and Services of the router's own namespace. No foreign DNS server resolves names of one
// label, and names of pods contain the address. Other Services may belong to a tenant.
func (c *Config) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true // without a Host field it is no browser
	}
	labels := strings.Split(host, ".")
	if slices.Contains(labels, "") || strings.ContainsAny(host, ":[]") {
		return false
	}
	if n := len(labels); n > 2 && labels[n-2] == "cluster" && labels[n-1] == "local" {
		labels = labels[:n-2]
		if len(labels) == 3 && labels[2] == "pod" {
			_, err := netip.ParseAddr(strings.ReplaceAll(labels[0], "-", "."))
			return err == nil
		}
		if labels[len(labels)-1] != "svc" {
			return slices.Contains(c.Hosts, host)
		}
	}
	switch n := len(labels); {
	case n == 1, labels[n-1] == "localhost":
		return true
	case n == 3 && labels[2] == "svc" && c.Namespace != "" && labels[1] == c.Namespace:
		return true
	}
	return slices.Contains(c.Hosts, host)
}

// foreign reports whether a page of another site made a browser send the request. A link to a page of this server is none: it is followed by a
// person, and the site learns nothing of the answer.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") { // browsers send it to addresses that they trust, such as that of localhost
	case "", "none", "same-origin":
		return false
	}
	return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

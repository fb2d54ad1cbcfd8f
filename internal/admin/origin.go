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

// knownHost reports whether a Host field (RFC 9110 section 7.2) names this machine in a way that nobody outside can claim. A web page whose
// author points the name of its site at this address once it is loaded (DNS rebinding) names that site: it must not read what is open to
// those who come from here. An address is no name, and a name of one label, of localhost or of a cluster's services belongs to nobody outside.
func knownHost(host string, more []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "" {
		return true // without a Host field it is no browser
	}
	for _, end := range [...]string{".localhost", ".svc", ".svc.cluster.local", ".pod.cluster.local"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return !strings.Contains(host, ".") || slices.Contains(more, host)
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

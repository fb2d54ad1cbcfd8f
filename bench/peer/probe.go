package peer

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"turnout/bench/load"
)

// probeRequest asks for route 0 with everything that the router has to clean or to append to.
func probeRequest() []byte {
	return []byte("GET /probe HTTP/1.1\r\nHost: " + strings.ToUpper(load.Host(0)) +
		"\r\nProxy: forged\r\nX-SSL-Client-DN: forged\r\nX-Forwarded-For: 192.0.2.1\r\nUser-Agent: Probe\r\n\r\n")
}

// checkWork tells whether a proxy at addr did to the probe request what its case compares: with full work
// the router's header pipeline and cookie, otherwise X-Forwarded-For and no cookie. The error lists
// everything that differs.
func checkWork(x load.Exchange, s *layout, addr netip.AddrPort, full bool) error {
	var wrong []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	got, answer := fields(x.Request), fields(x.Answer)
	expect(bytes.HasPrefix(x.Answer, []byte("HTTP/1.1 200 ")), "answer is %.60q", x.Answer)
	expect(bytes.Equal(x.Body, load.Body(0)), "body is not that of upstream 0: %.60q", x.Body)
	// The router adds a line of its own; others append to the client's.
	sources := strings.ReplaceAll(strings.Join(got["x-forwarded-for"], ","), " ", "")
	expect(sources == "192.0.2.1,127.0.0.1", "upstream got x-forwarded-for %q", sources)
	if !full {
		expect(len(answer["set-cookie"]) == 0, "answer has set-cookie %q, want none", answer["set-cookie"])
		return errors.Join(wrong...)
	}
	proto, cookie := "http", cookieName(0)+"="+s.cookieValue(0)+"; path=/; HttpOnly"
	if s.tls {
		proto, cookie = "https", cookie+"; Secure; SameSite=None"
	}
	host := load.Host(0)
	for name, want := range map[string]string{
		"host":              host,
		"proxy":             "",
		"x-ssl-client-dn":   "",
		"x-forwarded-host":  host,
		"x-forwarded-port":  fmt.Sprint(addr.Port()),
		"x-forwarded-proto": proto,
		"forwarded":         "for=127.0.0.1;host=" + host + ";proto=" + proto,
	} {
		value := strings.Join(got[name], " | ")
		expect(value == want, "upstream got %s %q, want %q", name, value, want)
	}
	value := strings.Join(answer["set-cookie"], " | ")
	expect(value == cookie, "answer has set-cookie %q, want %q", value, cookie)
	if s.rules {
		agent, policy, frames := strings.Join(got["x-agent"], " | "), strings.Join(answer["strict-transport-security"], " | "), strings.Join(answer["x-frame-options"], " | ")
		expect(agent == "probe", "upstream got x-agent %q", agent)
		expect(policy == hsts && frames == "DENY", "answer has strict-transport-security %q and x-frame-options %q", policy, frames)
	}
	return errors.Join(wrong...)
}

// fields returns the fields of a head, names in lower case, without its first line.
func fields(head []byte) map[string][]string {
	m := map[string][]string{}
	_, rest, _ := strings.Cut(string(head), "\r\n")
	for line := range strings.SplitSeq(rest, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		name = strings.ToLower(name)
		m[name] = append(m[name], strings.TrimSpace(value))
	}
	return m
}

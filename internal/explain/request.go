package explain

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"turnout/controller/source"
	"turnout/internal/wire/field"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/proxy/h2"
)

// Query is what is asked about a request. URL or Head is required.
type Query struct {
	URL     string     // http://HOST[:PORT][/PATH][?QUERY] or https://...; without a scheme it is http. tls://, tcp:// and udp://HOST:PORT are connections to ports of Gateways
	Method  string     // "" = GET
	Header  []string   // fields "Name: value", in their order; "Host: ..." replaces that of URL
	Cookies []string   // "name=value"
	Client  netip.Addr // not valid = 127.0.0.1
	HTTP2   bool       // the client speaks HTTP/2
	// Gateway is whose port the client connects to, NAMESPACE/NAME or NAMESPACE/NAME:PORT; "" = what fits: a port of that number where the host is served.
	Gateway string
	// ServerName is what the client's ClientHello names; "" = the host of URL.
	ServerName string
	// Head is a request head as it is sent, instead of what URL, Method, Header and Cookies make; nil = there is none. With HTTP2 it is a line
	// "name: value" for each field, pseudo-fields first, or List. Secure says that it comes over TLS, Unended that a body follows in HTTP/2.
	Head            []byte
	List            []field.Field
	Secure, Unended bool
}

// mostQuery bounds a request that is asked about, in bytes.
const mostQuery = 256 << 10

// received is a Query as the router gets it.
type received struct {
	request Request
	scheme  string
	host    string // that the URL names, or the server name
	gateway source.Key
	secure  bool
	http2   bool
	name    string // server name
	port    uint16 // that the client connects to; 0 = the usual one
	client  netip.AddrPort
	raw     []byte        // of HTTP/1.1
	body    bool          // of HTTP/2: one follows
	fields  []field.Field // of HTTP/2, pseudo-fields first
	assumed []string
}

// Schemes of URLs.
const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
	schemeTLS   = "tls" // what is spoken over it is not looked at
	schemeTCP   = "tcp"
	schemeUDP   = "udp"
)

var schemes = []string{schemeHTTP, schemeHTTPS, schemeTLS, schemeTCP, schemeUDP}

// receive checks a query. Errors name what is wrong with it.
func (q *Query) receive() (_ *received, err error) {
	r := &received{secure: q.Secure, http2: q.HTTP2, name: q.ServerName, raw: q.Head}
	client := q.Client.Unmap()
	if !client.IsValid() {
		client = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		r.assumed = append(r.assumed, "the client has the address 127.0.0.1; --client says another one")
	}
	r.client = netip.AddrPortFrom(client, 50000)
	r.request = Request{Method: q.Method, Client: client.String(), Protocol: "HTTP/1.1"}
	if q.HTTP2 {
		r.request.Protocol = "HTTP/2"
	}
	if r.scheme, r.host = schemeHTTP, r.name; r.secure {
		r.scheme = schemeHTTPS
	}
	if q.Gateway != "" {
		if r.gateway, r.port, err = parsePlace(q.Gateway); err != nil {
			return nil, err
		}
	}
	if q.HTTP2 && q.Head != nil {
		if q.List, err = parseList(string(q.Head)); err != nil {
			return nil, err
		}
	}
	if q.List != nil {
		r.http2, r.fields, r.body = true, q.List, q.Unended
		r.request.Protocol, r.request.ServerName = "HTTP/2", r.name
		return r, nil
	}
	if q.Head != nil {
		if len(q.Head) > mostQuery {
			return nil, fmt.Errorf("the request head has %d bytes; allowed: %d", len(q.Head), mostQuery)
		}
		r.request.ServerName = r.name
		return r, nil
	}
	return r, r.parse(q)
}

// connection reports that nothing is known of what is spoken on the connection, if anything is.
func (r *received) connection() bool { return r.scheme != schemeHTTP && r.scheme != schemeHTTPS }

// parse reads what the URL and the rest of a query say.
func (r *received) parse(q *Query) error {
	u, err := parseURL(q.URL)
	if err != nil {
		return err
	}
	r.scheme, r.secure = u.Scheme, u.Scheme == schemeHTTPS || u.Scheme == schemeTLS
	r.host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && r.port == 0 {
		n, _ := strconv.ParseUint(port, 10, 16) // parseURL has looked
		r.port = uint16(n)
	}
	if r.secure && r.name == "" {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil {
			r.name = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		}
	}
	r.request.URL, r.request.ServerName = redacted(u.Redacted()), r.name
	if r.connection() {
		r.request.Method, r.request.Protocol = "", strings.ToUpper(r.scheme)
		return nil
	}
	if r.request.Method == "" {
		r.request.Method = "GET"
	}
	return r.write(q, u)
}

// parseList reads a header list of HTTP/2 that somebody wrote down.
func parseList(text string) (list []field.Field, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		colon := strings.IndexByte(line[1:], ':') + 1
		if colon == 0 {
			return nil, fmt.Errorf("the line %q of the head has no colon; allowed: 'name: value'", line)
		}
		list = append(list, field.Field{Name: []byte(line[:colon]), Value: []byte(strings.TrimPrefix(line[colon+1:], " "))})
	}
	if list == nil {
		return nil, errors.New("the head has no field")
	}
	return list, nil
}

// parseURL reads the address that somebody typed.
func parseURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("no URL is given; allowed: http://HOST/PATH or https://HOST/PATH")
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the URL: %w", errors.Unwrap(err))
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("the URL has the scheme %q; allowed: %s", u.Scheme, strings.Join(schemes, ", "))
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the URL %q names no host", text)
	}
	if u.Port() == "" && (u.Scheme == schemeTCP || u.Scheme == schemeUDP) {
		return nil, fmt.Errorf("the URL %q names no port", text)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("the URL has the port %q; allowed: 1 to 65535", port)
		}
	}
	return u, nil
}

// write makes what the client sends.
func (r *received) write(q *Query, u *url.URL) error {
	target, host := u.RequestURI(), u.Host
	var fields []field.Field
	for _, line := range q.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("the header %q has no colon; allowed: 'Name: value'", line)
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "host" {
			host = value
			continue
		}
		fields = append(fields, field.Field{Name: []byte(name), Value: []byte(value)})
	}
	if len(q.Cookies) > 0 {
		fields = append(fields, field.Field{Name: []byte("cookie"), Value: []byte(strings.Join(q.Cookies, "; "))})
	}
	size := len(target) + len(host) + len(r.request.Method)
	for _, f := range fields {
		size += len(f.Name) + len(f.Value)
		r.request.Fields = append(r.request.Fields, shown(f))
	}
	if size > mostQuery {
		return fmt.Errorf("the request has %d bytes; allowed: %d", size, mostQuery)
	}
	if q.HTTP2 {
		scheme := u.Scheme
		r.fields = []field.Field{
			{Name: []byte(":method"), Value: []byte(r.request.Method)}, {Name: []byte(":scheme"), Value: []byte(scheme)},
			{Name: []byte(":authority"), Value: []byte(host)}, {Name: []byte(":path"), Value: []byte(target)},
		}
		r.fields = append(r.fields, fields...)
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.request.Method, target, host)
	for _, f := range fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	b.WriteString("\r\n")
	r.raw = []byte(b.String())
	return nil
}

// refusal is what a request is answered that never becomes an exchange.
type refusal struct {
	status int // 0 = its connection or stream ends
	detail string
}

// head has the codec read the request. none says that it has no body.
func (r *received) head(d *Deciding) (h *proxy.Head, none bool, refused *refusal) {
	var status int
	var detail string
	if r.http2 {
		h, status, detail = h2.ReadHead(r.fields, !r.body)
		none = !r.body
	} else {
		h, none, status, detail = h1.ReadHead(r.raw, d.Heads)
	}
	if h == nil {
		return nil, false, &refusal{status, detail}
	}
	return h, none, nil
}

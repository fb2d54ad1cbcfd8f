package main

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/testkit/testcert"
)

// identity is a certificate of a client or an authority, with its key.
type identityPair struct {
	*testcert.Pair

	pem string
}

// issue makes a certificate for a subject such as "C=US O=Org CN=x", signed by issuer or, without one, by itself.
func issue(t *testing.T, issuer *identityPair, subject string, change ...func(*x509.Certificate)) *identityPair {
	t.Helper()
	kinds := map[string]asn1.ObjectIdentifier{"C": {2, 5, 4, 6}, "O": {2, 5, 4, 10}, "CN": {2, 5, 4, 3}}
	var name pkix.RDNSequence
	for item := range strings.SplitSeq(subject, " ") {
		kind, value, _ := strings.Cut(item, "=")
		name = append(name, pkix.RelativeDistinguishedNameSET{{Type: kinds[kind], Value: value}})
	}
	raw, err := asn1.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{RawSubject: raw, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	var parent *testcert.Pair
	if issuer == nil {
		authorities(form)
	} else {
		parent = issuer.Pair
	}
	for _, c := range change {
		c(form)
	}
	pair := testcert.Sign(t, form, parent)
	return &identityPair{pair, pair.PEM()}
}

// authorities makes a certificate that of one.
func authorities(c *x509.Certificate) {
	c.ExtKeyUsage = nil
	testcert.Authority(c)
}

// points names where the list is that a certificate would be on.
func points(urls ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.CRLDistributionPoints = urls }
}

// tls is the pair as crypto/tls has it, with more of its chain.
func (p *identityPair) tls(chain ...*identityPair) []tls.Certificate {
	var more []*testcert.Pair
	for _, c := range chain {
		more = append(more, c.Pair)
	}
	return []tls.Certificate{p.TLS(more...)}
}

// revoke makes the pair's list of certificates, current for an hour.
func (p *identityPair) revoke(t *testing.T, certs ...*identityPair) []byte {
	t.Helper()
	var revoked []*x509.Certificate
	for _, c := range certs {
		revoked = append(revoked, c.Cert)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: p.Revoke(t, &x509.RevocationList{}, revoked...)})
}

// echoSite is a folder of manifests with two edge routes, a passthrough route and a plain one to a pod that answers with
// the X-SSL fields it got.
func echoSite(t *testing.T) string {
	t.Helper()
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if strings.HasPrefix(strings.ToUpper(strings.ReplaceAll(name, "_", "-")), "X-SSL") || name == "X-Der" {
				for _, value := range r.Header[name] {
					fmt.Fprintf(w, "%s: %s\n", name, value)
				}
			}
		}
	})
	pod := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "through") }))
	pod.StartTLS()
	t.Cleanup(pod.Close)
	dir := t.TempDir()
	own := newAuthority(t, "servers")
	_, key, text := sign(t, own, "one.test")
	write(t, dir, "all.yaml", []byte(slice("secure", addr)+slice("behind", pod.Listener.Addr())+
		tlsRoute("one", "edge", "certificate", text, "key", keyPEM(t, key))+tlsRoute("two", "edge")+
		strings.Replace(tlsRoute("through", "passthrough"), "name: secure", "name: behind", 1)+
		"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: plain}\nspec: {host: plain.test, to: {kind: Service, name: secure}}\n"))
	return dir
}

// fields are what a pod is sent about a client, sorted.
func fields(p *identityPair, issuer string) string {
	value := func(s string) string { return s }
	if p == nil {
		return "X-Ssl: 1\nX-Ssl-Client-Cn: \nX-Ssl-Client-Der: \nX-Ssl-Client-Dn: \nX-Ssl-Client-Notafter: \nX-Ssl-Client-Notbefore: \n" +
			"X-Ssl-Client-Serial: \nX-Ssl-Client-Sha1: \nX-Ssl-Client-Verify: 0\nX-Ssl-Client-Version: \nX-Ssl-Issuer: \n"
	}
	const moment = "060102150405Z"
	sum := sha1.Sum(p.Cert.Raw)
	subject := ""
	for _, a := range p.Cert.Subject.Names {
		subject += "/" + map[string]string{"2.5.4.6": "C", "2.5.4.10": "O", "2.5.4.3": "CN"}[a.Type.String()] + "=" + fmt.Sprint(a.Value)
	}
	return "X-Ssl: 1\nX-Ssl-Client-Cn: " + p.Cert.Subject.CommonName + "\nX-Ssl-Client-Der: " + base64.StdEncoding.EncodeToString(p.Cert.Raw) +
		"\nX-Ssl-Client-Dn: " + subject + "\nX-Ssl-Client-Notafter: " + p.Cert.NotAfter.UTC().Format(moment) +
		"\nX-Ssl-Client-Notbefore: " + p.Cert.NotBefore.UTC().Format(moment) + fmt.Sprintf("\nX-Ssl-Client-Serial: %X", p.Cert.SerialNumber.Bytes()) +
		fmt.Sprintf("\nX-Ssl-Client-Sha1: %X", sum) + "\nX-Ssl-Client-Verify: 0\nX-Ssl-Client-Version: 3\nX-Ssl-Issuer: " + value(issuer) + "\n"
}

// present sends one request over TLS. The error is that of the handshake, which of TLS 1.3 comes with the first bytes.
func present(addr, name string, certs []tls.Certificate, change func(*tls.Config), extra ...string) (status int, body string, err error) {
	cfg := &tls.Config{ServerName: name, InsecureSkipVerify: true}
	if len(certs) > 0 { // whatever authorities the router asks for
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certs[0], nil }
	}
	if change != nil {
		change(cfg)
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", addr, cfg)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return 0, "", err
	}
	if name == "" {
		name = "two.test"
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+name+"\r\nConnection: close\r\n"+strings.Join(extra, "\r\n")+strings.Repeat("\r\n", min(len(extra), 1))+"\r\n"); err != nil {
		return 0, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

func onlyVersion(v uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = v, v }
}

// TestClientCertificates: who gets in without a certificate, with a good one and with one that the filter does not let in, for each mode,
// over both versions of TLS, with and without a server name.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ca, foreignCA := issue(t, nil, "O=Org CN=clients"), issue(t, nil, "O=Org CN=strangers")
	between := issue(t, ca, "O=Org CN=between", authorities)
	ok, other := issue(t, ca, "C=US O=Org CN=ok"), issue(t, ca, "C=US O=Org CN=other")
	deep := issue(t, between, "CN=deep")
	foreign := issue(t, foreignCA, "C=US O=Org CN=ok")
	old := issue(t, ca, "CN=ok", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	early := issue(t, ca, "CN=ok", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
	server := issue(t, ca, "CN=ok", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	dir := echoSite(t)
	bundle := write(t, t.TempDir(), "ca.pem", []byte(ca.pem))
	const (
		bad                = "bad certificate" // for every fault of a certificate
		needed12, needed13 = "handshake failure", "certificate required"
	)
	for _, site := range []struct {
		mode, filter string
		cases        []struct {
			what   string
			certs  []tls.Certificate
			alert  string // "" = an answer
			status int
			body   string
		}
	}{
		{"required", "", []struct {
			what   string
			certs  []tls.Certificate
			alert  string
			status int
			body   string
		}{
			{"client certificate required, none given: handshake failure none", nil, needed12 + "|" + needed13, 0, ""},
			{"client certificate required, valid given: 200, X-SSL 1, Verify 0, subject /C=.../CN=... valid", ok.tls(), "", 200, fields(ok, "/O=Org/CN=clients")},
			{"by an authority in between", deep.tls(between), "", 200, fields(deep, "/O=Org/CN=between")},
			{"untrusted", foreign.tls(), bad, 0, ""},
			{"chain not sent", deep.tls(), bad, 0, ""},
			{"expired", old.tls(), bad, 0, ""},
			{"not valid yet", early.tls(), bad, 0, ""},
			{"not for clients", server.tls(), bad, 0, ""},
		}},
		{"optional", "", []struct {
			what   string
			certs  []tls.Certificate
			alert  string
			status int
			body   string
		}{
			{"client certificate optional, none given: 200, X-SSL headers present and empty except X-SSL 1 and Verify 0 none", nil, "", 200, fields(nil, "")},
			{"valid", ok.tls(), "", 200, fields(ok, "/O=Org/CN=clients")},
			{"untrusted", foreign.tls(), bad, 0, ""},
			{"expired", old.tls(), bad, 0, ""},
		}},
		{"optional", "CN=ok", []struct {
			what   string
			certs  []tls.Certificate
			alert  string
			status int
			body   string
		}{
			{"client certificate optional, none given, filter CN=ok: 403 none", nil, "", 403, ""},
			{"client certificate optional, valid, CN ok given, filter CN=ok: 200 CN ok", ok.tls(), "", 200, fields(ok, "/O=Org/CN=clients")},
			{"client certificate optional, valid, CN other given, filter CN=ok: 403 CN other", other.tls(), "", 403, ""},
			{"the subject counts, not who signed it", foreign.tls(), bad, 0, ""},
		}},
		{"none", "CN=ok", []struct {
			what   string
			certs  []tls.Certificate
			alert  string
			status int
			body   string
		}{
			{"client certificates not asked for, a client sends X-SSL-Client-CN: removed", nil, "", 200, ""},
			{"not asked for", foreign.tls(), "", 200, ""},
		}},
	} {
		env := []string{"ROUTER_MUTUAL_TLS_AUTH=" + site.mode, "ROUTER_MUTUAL_TLS_AUTH_CA=" + bundle, "ROUTER_MUTUAL_TLS_AUTH_FILTER=" + site.filter}
		p := startRouter(t, env, "run", "--manifests", dir, "--access-log", "stdout")
		for _, c := range site.cases {
			for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				for _, name := range []string{"one.test", "two.test", ""} {
					status, body, err := present(p.https, name, c.certs, onlyVersion(v), "X-SSL-Client-CN: admin", "X_SSL_Client-Cn: admin", "X-SSL-Client-Subject: admin")
					if status == 403 && strings.Contains(body, "403 Forbidden") {
						body = ""
					}
					refused := err != nil && slices.ContainsFunc(strings.Split(c.alert, "|"), func(s string) bool { return s != "" && strings.Contains(err.Error(), s) })
					if refused != (c.alert != "") || status != c.status || body != c.body {
						t.Errorf("%s %s, %s, %s, %q: %d, %v, want %d, alert %q\n%s", site.mode, site.filter, c.what, tls.VersionName(v), name, status, err, c.status, c.alert, body)
					}
				}
			}
		}
		// What TLS does not end for, and what has none, goes as ever.
		if status, body, err := present(p.https, "through.test", nil, nil); status != 200 || body != "through" {
			t.Errorf("%s: passthrough: %d %q %v", site.mode, status, body, err)
		}
		if status, body := get(t, "http://"+p.http+"/", "plain.test"); status != 200 || body != "" {
			t.Errorf("%s: plain HTTP: %d %q", site.mode, status, body)
		}
	}
}

// TestClientCertificatesOverHTTP2: the certificate belongs to the connection, so to all hosts that are asked for on it.
func TestClientCertificatesOverHTTP2(t *testing.T) {
	ca := issue(t, nil, "CN=clients")
	ok, other := issue(t, ca, "CN=ok"), issue(t, ca, "CN=other")
	env := []string{"ROUTER_MUTUAL_TLS_AUTH=optional", "ROUTER_MUTUAL_TLS_AUTH_CA=" + write(t, t.TempDir(), "ca.pem", []byte(ca.pem)), "ROUTER_MUTUAL_TLS_AUTH_FILTER=CN=ok$",
		"ROUTER_HTTP_REQUEST_HEADERS=X-Der:%25%5Bssl_c_der%2Cbase64%5D:Set"}
	p := startRouter(t, env, "run", "--manifests", echoSite(t))
	for _, c := range []struct {
		what   string
		certs  []tls.Certificate
		alpn   []string
		status int
		body   string
	}{
		{"ok", ok.tls(), []string{"h2"}, 200, "X-Der: " + base64.StdEncoding.EncodeToString(ok.Cert.Raw) + "\n" + fields(ok, "/CN=clients")},
		{"prior knowledge", ok.tls(), nil, 200, "X-Der: " + base64.StdEncoding.EncodeToString(ok.Cert.Raw) + "\n" + fields(ok, "/CN=clients")},
		{"other", other.tls(), []string{"h2"}, 403, ""},
		{"none", nil, []string{"h2"}, 403, ""},
	} {
		// Without a server name no certificate limits the hosts of the connection.
		conn, err := tls.Dial("tcp", p.https, &tls.Config{InsecureSkipVerify: true, Certificates: c.certs, NextProtos: c.alpn})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client, err := new(http2.Transport).NewClientConn(conn)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"one.test", "two.test", "one.test"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Ssl-Client-Cn", "admin")
			resp, err := client.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.what, host, err)
			}
			body, err := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || c.body != "" && string(body) != c.body || err != nil {
				t.Errorf("%s, %s: %d %v\n%s\nwant\n%s", c.what, host, resp.StatusCode, err, body, c.body)
			}
			resp.Body.Close()
		}
	}
}

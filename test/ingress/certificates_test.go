package ingress

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnout/controller"
	"turnout/controller/source"
	"turnout/internal/testkit/testcert"
)

// over opens one connection by a server name, with a certificate unless it is nil, and asks for each host there. What answers is as by says; "refused" is no answer.
func (r *rig) over(name string, client *testcert.Pair, hosts ...string) (by string, last got) {
	r.Helper()
	cfg := &tls.Config{ServerName: name, InsecureSkipVerify: true} //nolint:gosec // whom the router is does not matter here
	if client != nil {
		pair := client.TLS()
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	conn, err := tls.Dial("tcp", r.router.SecureAddr.String(), cfg)
	if err != nil {
		return "refused", last
	}
	defer conn.Close()
	var all []string
	reader := bufio.NewReader(conn)
	for _, host := range hosts {
		last = got{}
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
			return "refused", last
		}
		a, err := http.ReadResponse(reader, nil)
		if err != nil {
			return "refused", last // with TLS 1.3 the alert comes after the handshake
		}
		last = r.read(a, host)
		all = append(all, last.by())
	}
	return strings.Join(all, " "), last
}

// authority returns one, and the manifest of a Secret with it.
func (r *rig) authority(secret string) (*testcert.Pair, string) {
	form := &x509.Certificate{}
	testcert.Authority(form)
	ca := testcert.Sign(r, form, nil)
	return ca, fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: Opaque\nmetadata: {name: %s, namespace: default}\ndata: {ca.crt: %s}\n", secret, base64.StdEncoding.EncodeToString([]byte(ca.PEM())))
}

const edge = ", tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}"

// TestClientCA: the hosts of a Route or an Ingress that names authorities are for clients with a certificate of theirs, on connections of their own, and never by
// plain HTTP.
func TestClientCA(t *testing.T) {
	r := start(t, controller.Options{})
	ca, secret := r.authority("clients")
	others, _ := r.authority("others")
	mine, theirs := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"me"}}, ca), testcert.Sign(t, &x509.Certificate{}, others)
	r.apply(r.service("s", 1), secret, both(edge, "s", "client-ca", "clients"), ingress("open", "rules:\n"+rule("open.test", "Prefix / s 8080")))
	for _, host := range kinds {
		for _, c := range []struct {
			name   string
			client *testcert.Pair
			hosts  []string
			want   string
		}{
			{host, nil, []string{host}, "refused"},
			{host, theirs, []string{host}, "refused"},
			{host, mine, []string{host}, "s"},
			{host, mine, []string{host, host, "open.test"}, "s s 421"},
			{"open.test", nil, []string{"open.test", host}, "s 421"},
			{"open.test", mine, []string{host}, "421"},
			{"", nil, []string{host}, "421"},
		} {
			by, last := r.over(c.name, c.client, c.hosts...)
			if by != c.want {
				t.Errorf("server name %q, certificate %v, hosts %q: %s, want %s", c.name, c.client != nil, c.hosts, by, c.want)
			}
			if host == c.name && by == "s" && last.Header.Get("X-Ssl-Client-Verify") != "0" {
				t.Errorf("%s: pods are not told of the certificate: %v", host, last.Header)
			}
		}
		if g := r.ask("GET http://" + host + "/"); g.Service != "" {
			t.Errorf("%s: plain HTTP is served without a certificate", host)
		}
	}
	r.apply(both(edge, "s", "client-ca", "clients", "client-auth", "optional"))
	for _, host := range kinds {
		for client, want := range map[*testcert.Pair]string{nil: "s", mine: "s", theirs: "refused"} {
			if by, _ := r.over(host, client, host); by != want {
				t.Errorf("%s, optional: %s, want %s", host, by, want)
			}
		}
	}
	r.remove(source.Secret, "clients")
	for _, host := range kinds {
		if by, _ := r.over(host, nil, host); by == "s" {
			t.Errorf("%s is served although nobody knows what to judge clients by", host)
		}
	}
	r.wantEvent("ingress InvalidClientAuth: host ingress.test, path / is not served: annotation turnout.router/client-ca: secret \"clients\" does not exist")
}

// TestPodsAskForACertificate: pods of re-encrypt routes get the certificate of the Secret, and are recognised by the names of the annotation.
func TestPodsAskForACertificate(t *testing.T) {
	form := &x509.Certificate{}
	testcert.Authority(form)
	ca := testcert.Sign(t, form, nil)
	r := start(t, controller.Options{DefaultDestinationCA: []byte(ca.PEM())})
	client := testcert.Sign(t, &x509.Certificate{}, ca)
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: router, namespace: default}\ndata: {tls.crt: %s, tls.key: %s}\n", encoded(client.PEM()), encoded(client.KeyPEM(t)))
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	asked := make(chan string, 1)
	pod := httptest.NewUnstartedServer(r.telling("s", "s-0", 200))
	pod.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, Certificates: []tls.Certificate{testcert.Sign(t, &x509.Certificate{DNSNames: []string{"pod.test"}}, ca).TLS()},
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			select {
			case asked <- h.ServerName:
			default:
			}
			return nil, nil
		}}
	pod.StartTLS()
	t.Cleanup(pod.Close)
	_, port, _ := net.SplitHostPort(pod.Listener.Addr().String())
	manifests := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {namespace: default, name: s}\nspec: {ports: [{name: http, port: 8080}]}\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n"+
		"metadata: {namespace: default, name: s-0, labels: {kubernetes.io/service-name: s}}\naddressType: IPv4\nports: [{name: http, port: %s}]\nendpoints: [{addresses: [127.0.0.1]}]\n", port)
	reencrypt := func(annotations ...string) string {
		return strings.Replace(both(", tls: {termination: reencrypt}", "s", annotations...), "kind: Ingress\nmetadata:\n  name: ingress\n  annotations:\n",
			"kind: Ingress\nmetadata:\n  name: ingress\n  annotations:\n    route.openshift.io/termination: reencrypt\n", 1)
	}
	for _, c := range []struct {
		annotations []string
		want        string
	}{
		{[]string{"backend-client-certificate", "router", "backend-names", "pod.test"}, "s"},
		{[]string{"backend-client-certificate", "router", "backend-names", "other.test pod.test"}, "s"},
		{[]string{"backend-client-certificate", "router", "backend-names", "other.test"}, "503"},
		{[]string{"backend-client-certificate", "router"}, "503"}, // it is not s.default.svc
		{[]string{"backend-client-certificate", "none", "backend-names", "pod.test"}, "503"},
		{[]string{"backend-names", "pod.test"}, "502"},
	} {
		r.apply(manifests, secret, reencrypt(c.annotations...))
		for _, host := range kinds {
			if g := r.ask("GET https://" + host + "/"); g.by() != c.want {
				t.Errorf("%s, %q: by %s, want %s", host, c.annotations, g.by(), c.want)
			}
		}
	}
	if name := <-asked; name != "pod.test" {
		t.Errorf("pods are asked for %q", name)
	}
}

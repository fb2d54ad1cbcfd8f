package origin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// identity is a certificate with its key.
type identity struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pem is the certificate as files have it.
func (i identity) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw}))
}

// keyPEM is the key as files have it.
func (i identity) keyPEM(t testing.TB) string {
	t.Helper()
	der := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(i.key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// tls is the certificate as a client shows it.
func (i identity) tls() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{i.cert.Raw}, PrivateKey: i.key, Leaf: i.cert}
}

// issue makes a certificate signed by an authority, or by itself when that is nil. points are
// where lists of what it revoked are to be had.
func issue(t testing.TB, name string, authority *identity, isCA bool, points ...string) identity {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: must[*big.Int](t)(rand.Int(rand.Reader, big.NewInt(1<<62))), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), CRLDistributionPoints: points,
		KeyUsage: x509.KeyUsageDigitalSignature, IsCA: isCA, BasicConstraintsValid: true,
	}
	if isCA {
		template.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	} else {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		template.DNSNames = []string{name}
	}
	signer := identity{template, key}
	if authority != nil {
		signer = *authority
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, signer.cert, &key.PublicKey, signer.key))
	return identity{must[*x509.Certificate](t)(x509.ParseCertificate(der)), key}
}

// issueFor makes a server certificate for several hosts.
func issueFor(t testing.TB, authority identity, hosts ...string) identity {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: must[*big.Int](t)(rand.Int(rand.Reader, big.NewInt(1<<62))), Subject: pkix.Name{CommonName: "shared"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, authority.cert, &key.PublicKey, authority.key))
	return identity{must[*x509.Certificate](t)(x509.ParseCertificate(der)), key}
}

// revoked makes a revocation list that is good until next.
func revoked(t testing.TB, authority identity, number int64, next time.Time, serials ...*big.Int) string {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: next}
	for _, s := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: s, RevocationTime: time.Now()})
	}
	der := must[[]byte](t)(x509.CreateRevocationList(rand.Reader, list, authority.cert, authority.key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// publisher serves revocation lists.
type publisher struct {
	address string

	mu    sync.Mutex
	lists map[string]func() string // by path: what makes the list for who asks
}

// publish starts a publisher on an address that pods reach.
func publish(address string) (*publisher, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, err
	}
	p := &publisher{address: listener.Addr().String(), lists: map[string]func() string{}}
	go http.Serve(listener, p) // ends with the process
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	list, ok := p.lists[r.URL.Path]
	p.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Write([]byte(list())) // if it fails the router asks again
}

// at publishes a list, or another one in its place.
func (p *publisher) at(path, list string) { p.made(path, func() string { return list }) }

// made publishes lists that are made when somebody asks.
func (p *publisher) made(path string, list func() string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists[path] = list
}

// url is where a list is to be had.
func (p *publisher) url(path string) string { return "http://" + p.address + path }

// mutual are the settings of a router that asks for certificates of an authority in a ConfigMap.
func mutual(name, policy string, pairs ...string) settings {
	s := env(append([]string{
		"ROUTER_MUTUAL_TLS_AUTH", policy, "ROUTER_MUTUAL_TLS_AUTH_CA", "/etc/pki/tls/client-ca/ca-bundle.pem",
	}, pairs...)...)
	s.Files = map[string]string{"/etc/pki/tls/client-ca/ca-bundle.pem": "configmap/" + name + "/ca-bundle.pem"}
	return s
}

// tries asks with each certificate and compares whether it was let in.
func (n namespace) tries(r *router, host, what string, accepted, refused map[string]*tls.Certificate) {
	n.Helper()
	ask := func(cert *tls.Certificate) error {
		got, err := r.client(dials{fresh: true, certificate: cert}).get("https://" + host + "/")
		if err == nil && got.Code != 200 {
			err = fmt.Errorf("status %d", got.Code)
		}
		return err
	}
	for name, cert := range accepted {
		if err := ask(cert); err != nil {
			n.Errorf("%s: %s: %v", what, name, err)
		}
	}
	for name, cert := range refused {
		if err := ask(cert); err == nil {
			n.Errorf("%s: %s is let in", what, name)
		}
	}
}

// TestClientTLS: where a client certificate is optional, clients without one and those with one
// of the authority are let in, others are refused; where it is required and its subject must
// match, only who has such a one is let in.
func TestClientTLS(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	ca, other := issue(t, "client authority", nil, true), issue(t, "other authority", nil, true)
	allowed, disallowed := issue(t, "allowed", &ca, false), issue(t, "disallowed", &ca, false)
	foreign := issue(t, "allowed", &other, false)
	n.configured(n.name, map[string]string{"ca-bundle.pem": ca.pem()})
	spec := "clientTLS: {clientCertificatePolicy: %s, clientCA: {name: " + n.name + "}, allowedSubjectPatterns: [%s]}"
	r := alone(t, controlled(fmt.Sprintf(spec, "Optional", "")))
	host := n.served(r, "echo", func(route *routev1.Route) { edge(route, routev1.InsecureEdgeTerminationPolicyRedirect) })
	n.tries(r, host, "optional",
		map[string]*tls.Certificate{"no certificate": {}, "allowed": allowed.tls(), "disallowed": disallowed.tls()},
		map[string]*tls.Certificate{"of another authority": foreign.tls()})
	r.change(t, controlled(fmt.Sprintf(spec, "Required", "/CN=allowed")))
	eventually(t, "the change", func() error {
		_, without := r.client(dials{fresh: true}).get("https://" + host + "/")
		got, err := r.client(dials{fresh: true, certificate: disallowed.tls()}).get("https://" + host + "/")
		if without == nil || err == nil && got.Code == 200 {
			return fmt.Errorf("clients are let in that must not be: %w, %d", without, got.Code)
		}
		return nil
	})
	n.tries(r, host, "required",
		map[string]*tls.Certificate{"allowed": allowed.tls()},
		map[string]*tls.Certificate{"no certificate": {}, "disallowed": disallowed.tls(), "of another authority": foreign.tls()})
}

// chain are the certificates of one case of TestMTLSWithCRLs: a root, authorities below it, each
// signed by the one before, and clients of each.
type chain struct {
	authorities []identity
	clients     []identity // one of each authority
	revoked     []identity // one more of each, on its list
}

// newChain makes a chain of authorities. points is where the list of an authority's issuer is to
// be had, or its own.
func newChain(t testing.TB, depth int, points func(i int) (authority, client []string)) chain {
	t.Helper()
	var c chain
	for i := range depth {
		var issuer *identity
		if i > 0 {
			issuer = &c.authorities[i-1]
		}
		own, leaf := points(i)
		ca := issue(t, fmt.Sprintf("authority %d", i), issuer, true, own...)
		c.authorities = append(c.authorities, ca)
		c.clients = append(c.clients, issue(t, fmt.Sprintf("client of %d", i), &ca, false, leaf...))
		c.revoked = append(c.revoked, issue(t, fmt.Sprintf("revoked by %d", i), &ca, false, leaf...))
	}
	return c
}

// TestMTLSWithCRLs: lists are fetched from where the certificates of the bundle say; clients on
// a list are refused, and so are those of an authority whose list nobody names.
func TestMTLSWithCRLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		depth  int
		own    bool // authorities name their own list, else that of their issuer
		leaf   bool // a client's certificate is in the bundle too, which names the last list
		extra  int  // further entries of each list
		refuse []int
	}{
		{name: "certificate-distributes-its-own-crl", depth: 2, own: true},
		{name: "certificate-distributes-its-signers-crl", depth: 2, refuse: []int{1}},
		{name: "certificate-distributes-its-signers-crl-with-workaround", depth: 2, leaf: true},
		{name: "large-crl", depth: 2, own: true, extra: 25000},
		{name: "multiple-intermediate-ca", depth: 3, own: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t, nil)
			at := func(i int) []string { return []string{shared.lists.url(fmt.Sprintf("/%s/%d.crl", n.name, i))} }
			made := newChain(t, c.depth, func(i int) (authority, client []string) {
				switch {
				case c.own:
					return at(i), nil
				case i == 0:
					return nil, at(0)
				default:
					return at(i - 1), at(i)
				}
			})
			var bundle strings.Builder
			if c.leaf {
				bundle.WriteString(made.revoked[c.depth-1].pem())
			}
			accepted, refused := map[string]*tls.Certificate{}, map[string]*tls.Certificate{}
			for i, ca := range made.authorities {
				bundle.WriteString(ca.pem())
				serials := []*big.Int{made.revoked[i].cert.SerialNumber}
				for s := range c.extra {
					serials = append(serials, big.NewInt(int64(s)+1))
				}
				shared.lists.at(fmt.Sprintf("/%s/%d.crl", n.name, i), revoked(t, ca, 1, time.Now().Add(time.Hour), serials...))
				if slices.Contains(c.refuse, i) {
					refused[fmt.Sprintf("client of %d", i)] = made.clients[i].tls()
				} else {
					accepted[fmt.Sprintf("client of %d", i)] = made.clients[i].tls()
				}
				refused[fmt.Sprintf("revoked by %d", i)] = made.revoked[i].tls()
			}
			self := issue(t, "self signed", nil, false)
			refused["self signed"] = self.tls()
			configMap(t, n.name, map[string]string{"ca-bundle.pem": bundle.String()})
			r := with(t, mutual(n.name, "required"))
			n.echo("echo")
			route := edge(n.newRoute(r, "echo"), "")
			n.create(route)
			n.letIn(r, route.Spec.Host, made.clients[0].tls())
			n.tries(r, route.Spec.Host, c.name, accepted, refused)
		})
	}
}

// letIn waits until a client with a certificate is served.
func (n namespace) letIn(r *router, host string, cert *tls.Certificate) {
	n.Helper()
	eventually(n, "a client with a certificate", func() error {
		got, err := r.client(dials{fresh: true, certificate: cert}).get("https://" + host + "/")
		if err == nil && got.Code != 200 {
			err = fmt.Errorf("status %d", got.Code)
		}
		return err
	})
}

// TestCRLUpdate: when a list ends, the next one is fetched, and who is on it is refused from then
// on.
func TestCRLUpdate(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	path := "/" + n.name + "/root.crl"
	ca := issue(t, "authority", nil, true, shared.lists.url(path))
	stays, goes := issue(t, "stays", &ca, false), issue(t, "goes", &ca, false)
	configMap(t, n.name, map[string]string{"ca-bundle.pem": ca.pem()})
	var ends atomic.Int64 // of the list that was asked for last, in nanoseconds since 1970
	shared.lists.made(path, func() string {
		next := time.Now().Add(10 * time.Second)
		ends.Store(next.UnixNano())
		return revoked(t, ca, 1, next, big.NewInt(1))
	})
	r := with(t, mutual(n.name, "required"))
	n.echo("echo")
	route := edge(n.newRoute(r, "echo"), "")
	n.create(route)
	n.letIn(r, route.Spec.Host, goes.tls())
	shared.lists.at(path, revoked(t, ca, 2, time.Now().Add(time.Hour), goes.cert.SerialNumber))
	eventually(t, "the new list", func() error {
		if _, err := r.client(dials{fresh: true, certificate: goes.tls()}).get("https://" + route.Spec.Host + "/"); err != nil {
			return nil //nolint:nilerr // being refused is what is waited for
		}
		return fmt.Errorf("a client on it is let in")
	})
	if early := time.Until(time.Unix(0, ends.Load())); early > time.Second {
		t.Errorf("it was fetched %s before the old one ended", early)
	}
	n.letIn(r, route.Spec.Host, stays.tls())
}

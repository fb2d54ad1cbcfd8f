package tlsmux

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
	"turnout/tlsmux/clientcert"
)

// clientPair is a certificate of a client or an authority.
type clientPair = testcert.Pair

// issueClient makes an authority, or with an issuer the certificate of a client.
func issueClient(t testing.TB, issuer *clientPair, name string, change ...func(*x509.Certificate)) *clientPair {
	t.Helper()
	form := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	if issuer == nil {
		testcert.Authority(form)
	}
	for _, c := range change {
		c(form)
	}
	return testcert.Sign(t, form, issuer)
}

func bundleOf(t testing.TB, authorities ...*clientPair) *clientcert.Bundle {
	t.Helper()
	var text []byte
	for _, a := range authorities {
		text = append(text, a.PEM()...)
	}
	b, err := clientcert.ParseBundle(text)
	must(t, err)
	return b
}

// revoking is a fresh list of an authority.
func revoking(t testing.TB, ca *clientPair, clients ...*clientPair) []*clientcert.List {
	t.Helper()
	var revoked []*x509.Certificate
	for _, c := range clients {
		revoked = append(revoked, c.Cert)
	}
	lists, err := clientcert.ParseLists(ca.Revoke(t, &x509.RevocationList{}, revoked...), nil)
	must(t, err)
	return lists
}

func policyWith(t testing.TB, cfg PolicyConfig) *Policy {
	t.Helper()
	p, err := NewPolicy(cfg)
	must(t, err)
	return p
}

// arrive connects with a certificate, nil = none, and says what the router saw of it. The error is that of the handshake.
func arrive(t testing.TB, s *service, version uint16, cache tls.ClientSessionCache, with *clientPair) (Info, error) {
	t.Helper()
	cfg := &tls.Config{ServerName: "shared.test", InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, ClientSessionCache: cache}
	if with != nil {
		own := &tls.Certificate{Certificate: [][]byte{with.Cert.Raw}, PrivateKey: with.Key}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	c := tls.Client(s.dial(t), cfg)
	defer c.Close()
	if err := c.Handshake(); err != nil {
		return Info{}, err
	}
	if _, err := io.WriteString(c, "x"); err != nil {
		return Info{}, err
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // TLS 1.3 refuses here; a ticket comes first
		return Info{}, err
	}
	return get(t, "end of the handshake", s.infos), nil
}

var bothVersions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// TestSessionsAreJudgedAgain: what has changed since a session began counts when it is resumed.
func TestSessionsAreJudgedAgain(t *testing.T) {
	ca, other := issueClient(t, nil, "ca"), issueClient(t, nil, "other")
	client, second := issueClient(t, ca, "client"), issueClient(t, ca, "second")
	trust := clientcert.NewTrust
	for _, c := range []struct {
		what          string
		before, after *clientcert.Trust
		resumed       bool
		alert         string
	}{
		{"nothing", trust(bundleOf(t, ca), nil), nil, true, ""},
		{"published again", trust(bundleOf(t, ca), nil), trust(bundleOf(t, ca), nil), true, ""},
		{"another list", trust(bundleOf(t, ca), revoking(t, ca)), trust(bundleOf(t, ca), revoking(t, ca, second)), true, ""},
		{"revoked", trust(bundleOf(t, ca), revoking(t, ca)), trust(bundleOf(t, ca), revoking(t, ca, client)), false, "bad certificate"},
		{"revoked, lists are new", trust(bundleOf(t, ca), nil), trust(bundleOf(t, ca), revoking(t, ca, client)), false, "bad certificate"},
		{"no lists yet", trust(bundleOf(t, ca), nil), trust(bundleOf(t, ca), []*clientcert.List{}), false, "bad certificate"},
		{"another authority too", trust(bundleOf(t, ca), nil), trust(bundleOf(t, ca, other), nil), false, ""},
		{"one authority less", trust(bundleOf(t, ca, other), nil), trust(bundleOf(t, ca), nil), false, ""},
		{"another authority", trust(bundleOf(t, ca), nil), trust(bundleOf(t, other), nil), false, "bad certificate"},
	} {
		for _, mode := range []clientcert.Mode{clientcert.Optional, clientcert.Required} {
			for _, version := range bothVersions {
				policy := policyWith(t, PolicyConfig{ClientAuth: mode, Trust: c.before})
				s := serve(t, Config{Policy: policy})
				cache := tls.NewLRUClientSessionCache(1)
				if i, err := arrive(t, s, version, cache, client); err != nil || i.Resumed || i.Client == nil || !i.Client.Equal(client.Cert) {
					t.Fatalf("%s: first: %+v, %v", c.what, i, err)
				}
				if c.after != nil {
					must(t, policy.SetTrust(c.after))
				}
				i, err := arrive(t, s, version, cache, client)
				switch {
				case c.alert != "":
					if err == nil || !strings.Contains(err.Error(), c.alert) {
						t.Errorf("%s, %v, %s: %v, want %q", c.what, mode, tls.VersionName(version), err, c.alert)
					}
				case err != nil || i.Resumed != c.resumed || !i.Client.Equal(client.Cert):
					t.Errorf("%s, %v, %s: resumed %v, %v", c.what, mode, tls.VersionName(version), i.Resumed, err)
				}
			}
		}
	}
}

// TestTicketsDoNotCrossPolicies: routers that share secrets resume sessions of the same policy, and no other.
func TestTicketsDoNotCrossPolicies(t *testing.T) {
	ca, other := issueClient(t, nil, "ca"), issueClient(t, nil, "other")
	client := issueClient(t, ca, "client")
	secret := [][]byte{[]byte(strings.Repeat("secret", 8))}
	with := func(mode clientcert.Mode, authorities ...*clientPair) PolicyConfig {
		return PolicyConfig{ClientAuth: mode, Trust: clientcert.NewTrust(bundleOf(t, authorities...), nil)}
	}
	open := PolicyConfig{}
	strict := open
	strict.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	for _, c := range []struct {
		what        string
		from, to    PolicyConfig
		alone       bool // secrets are not shared
		certificate *clientPair
		resumed     bool
		alert       string
	}{
		{"same", open, open, false, nil, true, ""},
		{"same, not shared", open, open, true, nil, false, ""},
		{"same with certificate", with(clientcert.Required, ca), with(clientcert.Required, ca), false, client, true, ""},
		{"same without certificate", with(clientcert.Optional, ca), with(clientcert.Optional, ca), false, nil, true, ""},
		{"from none to required", open, with(clientcert.Required, ca), false, nil, false, "certificate required|handshake failure"},
		{"from optional to required, without", with(clientcert.Optional, ca), with(clientcert.Required, ca), false, nil, false, "certificate required|handshake failure"},
		{"from optional to required, with", with(clientcert.Optional, ca), with(clientcert.Required, ca), false, client, false, ""},
		{"from required to none", with(clientcert.Required, ca), open, false, client, false, ""},
		{"to another authority", with(clientcert.Required, ca), with(clientcert.Required, other), false, client, false, "bad certificate"},
		{"to one more authority", with(clientcert.Required, ca), with(clientcert.Required, ca, other), false, client, false, ""},
		{"to other suites", open, strict, false, nil, false, ""},
	} {
		for _, version := range bothVersions {
			var services [2]*service
			for i, cfg := range []PolicyConfig{c.from, c.to} {
				policy := policyWith(t, cfg)
				if !c.alone {
					must(t, policy.ShareTickets(secret))
				}
				services[i] = serve(t, Config{Policy: policy})
			}
			cache := tls.NewLRUClientSessionCache(1)
			if _, err := arrive(t, services[0], version, cache, c.certificate); err != nil {
				t.Fatalf("%s: first: %v", c.what, err)
			}
			i, err := arrive(t, services[1], version, cache, c.certificate)
			if c.alert != "" {
				if err == nil || !strings.Contains(c.alert, err.Error()[strings.LastIndex(err.Error(), ": ")+2:]) {
					t.Errorf("%s, %s: %v, want %s", c.what, tls.VersionName(version), err, c.alert)
				}
			} else if err != nil || i.Resumed != c.resumed {
				t.Errorf("%s, %s: resumed %v, %v", c.what, tls.VersionName(version), i.Resumed, err)
			}
		}
	}
}

// TestSharedSecretsRotate: the first secret makes new tickets, all of them count.
func TestSharedSecretsRotate(t *testing.T) {
	old, current, next := []byte(strings.Repeat("o", 32)), []byte(strings.Repeat("c", 32)), []byte(strings.Repeat("n", 32))
	policy := policyWith(t, PolicyConfig{})
	s := serve(t, Config{Policy: policy})
	cache := tls.NewLRUClientSessionCache(1)
	for i, step := range []struct {
		secrets [][]byte
		resumed bool
	}{
		{[][]byte{old}, false}, {[][]byte{old}, true}, {[][]byte{current, old}, true},
		{[][]byte{current}, true}, // the last ticket was made with it
		{[][]byte{next}, false}, {[][]byte{current, next}, true},
	} {
		must(t, policy.ShareTickets(step.secrets))
		if info, err := arrive(t, s, tls.VersionTLS13, cache, nil); err != nil || info.Resumed != step.resumed {
			t.Errorf("step %d: resumed %v, %v", i, info.Resumed, err)
		}
	}
	for _, bad := range [][][]byte{nil, {}, {old, []byte("short")}} {
		if policy.ShareTickets(bad) == nil {
			t.Errorf("%q is shared", bad)
		}
	}
}

// TestOwnSecretsRotate: every twelve hours, and two iterations later old tickets are of no use.
func TestOwnSecretsRotate(t *testing.T) {
	policy := policyWith(t, PolicyConfig{})
	s := serve(t, Config{Policy: policy})
	cache := tls.NewLRUClientSessionCache(1)
	arrived := func() bool {
		i, err := arrive(t, s, tls.VersionTLS13, cache, nil)
		must(t, err)
		return i.Resumed
	}
	if arrived() || !arrived() {
		t.Fatal("no resumption at all")
	}
	turn := func() {
		first := policy.tickets.secrets[0]
		policy.tickets.due.Store(time.Now().UnixNano())
		policy.config(new(Hello), nil, true)
		if string(policy.tickets.secrets[0]) == string(first) || len(policy.tickets.secrets) > ticketSecrets {
			t.Error("no new secret, or too many")
		}
	}
	turn()
	turn()
	if !arrived() {
		t.Error("a ticket of yesterday is refused")
	}
	for range ticketSecrets {
		turn()
	}
	if arrived() {
		t.Error("an old ticket is taken")
	}
	if policy.tickets.renew(time.Now()) {
		t.Error("a new secret before its time")
	}
	must(t, policy.ShareTickets([][]byte{make([]byte, 32)}))
	if policy.tickets.renew(time.Now().Add(1000 * time.Hour)) {
		t.Error("shared secrets are replaced")
	}
}

func TestSetTrustRefuses(t *testing.T) {
	trust := clientcert.NewTrust(bundleOf(t, issueClient(t, nil, "ca")), nil)
	if err := policyWith(t, PolicyConfig{}).SetTrust(trust); err == nil {
		t.Error("nobody is asked for a certificate, and trust is set")
	}
	if err := policyWith(t, PolicyConfig{ClientAuth: clientcert.Optional, Trust: trust}).SetTrust(nil); err == nil {
		t.Error("no trust is set")
	}
	if _, err := NewPolicy(PolicyConfig{ClientAuth: clientcert.Required}); err == nil {
		t.Error("a policy without trust")
	}
}

// TestTrustChangesUnderLoad: handshakes while what they are judged by is replaced.
func TestTrustChangesUnderLoad(t *testing.T) {
	ca := issueClient(t, nil, "ca")
	client := issueClient(t, ca, "client")
	trust := clientcert.NewTrust(bundleOf(t, ca), revoking(t, ca))
	policy := policyWith(t, PolicyConfig{ClientAuth: clientcert.Required, Trust: trust})
	s := serve(t, Config{Policy: policy})
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = policy.SetTrust(trust), policy.ShareTickets([][]byte{make([]byte, 32)})
			}
		}
	})
	cache := tls.NewLRUClientSessionCache(1)
	for range 20 {
		if i, err := arrive(t, s, tls.VersionTLS13, cache, client); err != nil || i.Client == nil {
			t.Errorf("%+v %v", i, err)
		}
	}
	close(stop)
	changes.Wait()
}

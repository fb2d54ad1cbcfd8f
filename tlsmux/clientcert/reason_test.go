package clientcert

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

// TestReasonOf: whatever is wrong with a certificate has a word, however the error is wrapped; what is wrong with a handshake
// otherwise has none.
func TestReasonOf(t *testing.T) {
	ca, foreign := issue(t, nil, "ca"), issue(t, nil, "foreign")
	for _, tt := range []struct {
		name   string
		client *pair
		lists  []*List // nil = not looked at
		want   string  // "" = served
	}{
		{"good", issue(t, ca, "a"), nil, ""},
		{"of another authority", issue(t, foreign, "a"), nil, "unknown-authority"},
		{"over", issue(t, ca, "a", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), nil, "expired"},
		{"not yet", issue(t, ca, "a", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), nil, "expired"},
		{"for servers", issue(t, ca, "a", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), nil, "unusable"},
		{"says what nobody understands", issue(t, ca, "a", func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
		}), nil, "unusable"},
		{"no list", issue(t, ca, "a"), []*List{}, "no-list"},
		{"list over", issue(t, ca, "a"), []*List{parsed(t, list(t, ca, func(l *x509.RevocationList) { l.NextUpdate = time.Now().Add(-time.Minute) }))}, "list-expired"},
	} {
		check(t, tt.name, judge(t, NewTrust(bundle(t, ca), tt.lists), tt.client), tt.want)
	}
	bad := issue(t, ca, "bad")
	check(t, "revoked", judge(t, NewTrust(bundle(t, ca), []*List{parsed(t, list(t, ca, nil, bad))}), bad), "revoked")
	for _, err := range []error{nil, io.EOF, errors.New("tls: client didn't provide a certificate"), tls.AlertError(42)} {
		check(t, fmt.Sprint(err), err, "")
	}
	if got := Reasons.String(); got != "unknown" {
		t.Errorf("no reason is called %q", got)
	}
}

func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	got := ""
	if reason, ok := ReasonOf(fmt.Errorf("cannot shake hands: %w", err)); ok {
		got = reason.String()
	}
	if got != want {
		t.Errorf("%s: %v is %q, want %q", name, err, got, want)
	}
}

// TestListEnds: a list that another has replaced says nothing of when an issuer's lists end; one of a part of its
// certificates does.
func TestListEnds(t *testing.T) {
	ca, other := issue(t, nil, "ca"), issue(t, nil, "other")
	now := time.Now().Truncate(time.Second).UTC()
	lasting := func(from, until time.Duration, more ...func(*x509.RevocationList)) func(*x509.RevocationList) {
		return func(l *x509.RevocationList) {
			l.ThisUpdate, l.NextUpdate = now.Add(from), now.Add(until)
			for _, change := range more {
				change(l)
			}
		}
	}
	lists := []*List{
		parsed(t, list(t, ca, lasting(-3*time.Hour, -time.Hour))),
		parsed(t, list(t, ca, lasting(-time.Hour, 5*time.Hour))),
		parsed(t, list(t, ca, lasting(-time.Hour, 2*time.Hour, scoped(t, flag(1))))), // of end entities only
		parsed(t, list(t, other, lasting(-time.Hour, 3*time.Hour))),
	}
	got := NewTrust(bundle(t, ca), lists).ListEnds()
	if want := []ListEnd{{"CN=ca", now.Add(2 * time.Hour)}, {"CN=other", now.Add(3 * time.Hour)}}; !slices.EqualFunc(got, want, func(a, b ListEnd) bool { return a.Issuer == b.Issuer && a.At.Equal(b.At) }) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := NewTrust(bundle(t, ca), nil).ListEnds(); len(got) != 0 {
		t.Errorf("without lists %v", got)
	}
}

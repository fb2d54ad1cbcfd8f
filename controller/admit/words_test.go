package admit

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestTLSWords: the whole text of what is wrong, which programs that were made for the older router compare.
func TestTLSWords(t *testing.T) {
	c := makeChains(t)
	good, goodKey, ca := c.good.pem, c.good.keyPEM(t), c.ca.pem
	const (
		cert      = `spec.tls.certificate: Invalid value: "redacted certificate data": `
		key       = `spec.tls.key: Invalid value: "redacted key data": `
		cas       = `spec.tls.caCertificate: Invalid value: "redacted ca certificate data": `
		dest      = `spec.tls.destinationCACertificate: Invalid value: "redacted destination ca certificate data": `
		noKey     = `spec.tls.key: Invalid value: "": no key specified`
		noneValid = "data does not contain any valid RSA or ECDSA certificates"
		malformed = "x509: malformed certificate"
		unknown   = "error verifying certificate: x509: certificate signed by unknown authority"
		through   = "passthrough termination does not support certificates"
		noPEM     = "tls: failed to find any PEM data in key input"
	)
	broken := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	bag := block("UNRECOGNIZED", []byte("x"))
	public := block("PUBLIC KEY", []byte("x"))
	for _, r := range []struct {
		id                          string
		termination                 routev1.TLSTerminationType
		policy                      routev1.InsecureEdgeTerminationPolicyType
		cert, key, cas, destination string
		want                        []string
	}{
		{"\"\" (tls present): 1 error", "", "", "", "", "", "", []string{`spec.tls.termination: Unsupported value: "": supported values: "edge", "passthrough", "reencrypt"`}},
		{"invalid: 1 error", "invalid", "bogus", "", "", "", "abc", []string{
			`spec.tls.termination: Unsupported value: "invalid": supported values: "edge", "passthrough", "reencrypt"`,
			dest + "failed to parse destination CA certificate: " + noneValid}},
		{"passthrough, certificate test: 3 errors", "passthrough", "", "test", "", "", "", []string{cert + through, cert + noneValid, noKey}},
		{"passthrough, caCertificate test: 2 errors", "passthrough", "", "", "", "test", "", []string{cas + through, cas + "failed to parse CA certificate: " + noneValid}},
		{"passthrough, destinationCACertificate test: 2 errors", "passthrough", "", "", "", "", "test", []string{dest + through, dest + "failed to parse destination CA certificate: " + noneValid}},
		{"reencrypt, certificate def, key ghi, caCertificate jkl, destinationCACertificate abc: 4 errors", "reencrypt", "", "def", "ghi", "jkl", "abc", []string{
			cas + "failed to parse CA certificate: " + noneValid, cert + noneValid, noKey, dest + "failed to parse destination CA certificate: " + noneValid}},
		{"edge, certificate abc, key abc, caCertificate abc: 3 errors", "edge", "", "abc", "abc", "abc", "", []string{cas + "failed to parse CA certificate: " + noneValid, cert + noneValid, noKey}},
		{"edge, certificate good, key key of another cert, caCertificate CA: 1 error", "edge", "", good, c.other.keyPEM(t), ca, "", []string{key + "tls: private key does not match public key"}},
		{"edge, certificate cert of unrelated CA, key other key, caCertificate CA: 2 errors", "edge", "", c.unrelated.pem, c.other.keyPEM(t), ca, "", []string{cert + unknown, key + "tls: private key does not match public key"}},
		{"edge, certificate expired, no key anywhere: 1 error", "edge", "", c.expired.pem, "", "", "", []string{noKey}},
		{"a key without PEM", "edge", "", good, "ghi", "", "", []string{noKey}},
		{"edge, certificate good, key good, caCertificate CSR block instead of cert: 2 errors", "edge", "", good, goodKey, block("CERTIFICATE REQUEST", []byte("x")), "", []string{cas + "failed to parse CA certificate: " + noneValid, cert + unknown}},
		{"edge, certificate good, key good, caCertificate private key instead of cert: 2 errors", "edge", "", good, goodKey, goodKey, "", []string{cas + "failed to parse CA certificate: " + noneValid, cert + unknown}},
		{"edge, certificate good, key good, caCertificate malformed certificate: 2 errors", "edge", "", good, goodKey, broken, "", []string{cas + "failed to parse CA certificate: " + malformed, cert + unknown}},
		{"reencrypt, certificate self-signed, key its key, destinationCACertificate malformed: 1 error", "reencrypt", "", c.self.pem, c.self.keyPEM(t), "", broken, []string{dest + "failed to parse destination CA certificate: " + malformed}},
		{"a broken certificate", "edge", "", broken, goodKey, "", "", []string{cert + malformed}},
		{"edge, certificate SHA1 RSA, CA-signed, key its key: 1 error", "edge", "", c.weak.pem, c.weak.keyPEM(t), "", "", []string{cert + "router does not support CA-signed certs using SHA1"}},
		{"reencrypt, destinationCACertificate SHA1 self-signed root + SHA1 intermediate: 1 error", "reencrypt", "", "", "", "", c.weakRoot.pem + c.weakMiddle.pem, []string{dest + "router does not support CA-signed certs using SHA1"}},
		{"edge, certificate SHA256, key its key, caCertificate SHA1 root + SHA1 intermediate: 1 error", "edge", "", good, goodKey, ca + c.weakRoot.pem + c.weakMiddle.pem, "", []string{cas + "router does not support CA-signed certs using SHA1"}},
		{"edge, certificate leaf + chain, key key with header word XYZ: 3 errors", "edge", "", good + ca, strings.ReplaceAll(goodKey, "EC PRIVATE", "XYZ PRIVATE"), "", "", []string{key + "unrecognized PEM block XYZ PRIVATE KEY", noKey, key + noPEM}},
		{"key = one UNRECOGNIZED block: error unrecognized PEM block UNRECOGNIZED, 1 error", "edge", "", "", bag, "", "", []string{key + "unrecognized PEM block UNRECOGNIZED"}},
		{"key = CERTIFICATE block with empty body: 1 error", "edge", "", "", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "", "", []string{key + malformed}},
		{"an authority and more", "edge", "", good, goodKey, ca + bag, "", []string{cas + "unrecognized PEM block UNRECOGNIZED"}},
		{"an authority and its key", "edge", "", good, goodKey, ca + goodKey, "", []string{cas + "field contains invalid types PRIVATE KEY, expecting only CERTIFICATE"}},
		{"a certificate and more", "edge", "", good + bag, goodKey, "", "", []string{cert + "unrecognized PEM block UNRECOGNIZED"}},
		{"a public key", "edge", "", good + public, goodKey, "", "", []string{cert + "field contains invalid types PUBLIC KEY, expecting only CERTIFICATE"}},
		{"a certificate as key", "edge", "", good, goodKey + ca, "", "", []string{key + "field contains invalid types CERTIFICATE, expecting only PRIVATE KEY"}},
		{"a key that is none", "edge", "", "", block("RSA PRIVATE KEY", []byte("x")), "", "", []string{key + "block RSA PRIVATE KEY is not valid"}},
		{"a key of another kind", "edge", "", "", block("DSA PRIVATE KEY", []byte("x")), "", "", []string{key + "unrecognized PEM block DSA PRIVATE KEY"}},
		{"edge with a destination", "edge", "", "", "", "", ca, []string{dest + "edge termination does not support destination certificates"}},
		{"policy", "edge", "hsts", "", "", "", "", []string{`spec.tls.insecureEdgeTerminationPolicy: Invalid value: "hsts": ` +
			"invalid value for InsecureEdgeTerminationPolicy option, acceptable values are None, Allow, Redirect, or empty"}},
		{"policy of passthrough", "passthrough", "Allow", "", "", "", "", []string{`spec.tls.insecureEdgeTerminationPolicy: Invalid value: "Allow": ` +
			"invalid value for InsecureEdgeTerminationPolicy option, acceptable values are None, Redirect, or empty"}},
	} {
		_, _, v := TLS(&routev1.TLSConfig{
			Termination: r.termination, InsecureEdgeTerminationPolicy: r.policy, Certificate: r.cert, Key: r.key,
			CACertificate: r.cas, DestinationCACertificate: r.destination,
		}, tlsNow, nil)
		want := r.want[0]
		if len(r.want) > 1 {
			want = "[" + strings.Join(r.want, ", ") + "]"
		}
		if v.Message != want || v.Reason != ReasonInvalid || v.Admitted {
			t.Errorf("%s: %s\n%s\nwant\n%s", r.id, v.Reason, v.Message, want)
		}
	}
}

// TestInvalidHostComesFirst: a host that is none is said to be that, whatever else keeps the route out.
func TestInvalidHostComesFirst(t *testing.T) {
	for _, r := range []struct {
		what, host, policy string
		options            Options
		reason             string
	}{
		{"a denied domain", "A.block.it", "None", Options{DeniedDomains: []string{"block.it"}}, ReasonInvalidHost},
		{"outside of the allowed domains", "a_b.other.it", "None", Options{AllowedDomains: []string{"allow.it"}}, ReasonInvalidHost},
		{"a wildcard that is not allowed", "a..b", "Subdomain", Options{}, ReasonInvalidHost},
		{"an unknown policy", "www.example.test.", "nono", Options{}, ReasonInvalidHost},
		{"no host, and an unknown policy", "", "nono", Options{AllowedDomains: []string{"allow.it"}}, ReasonNoHost},
		{"a good host", "a.block.it", "None", Options{DeniedDomains: []string{"block.it"}}, ReasonNotAdmitted},
		{"a good host and an unknown policy", "a.block.it", "nono", Options{}, ReasonNotAdmitted},
	} {
		if v := r.options.Check(r.host, r.policy); v.Reason != r.reason || v.Admitted {
			t.Errorf("%s: %+v, want %s", r.what, v, r.reason)
		}
	}
}

package admit

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"turnout/internal/certchain"
	"turnout/internal/keypair"
)

// TLS judges the tls section of a route, nil included, and returns it as it is to be
// used: PEM fields hold nothing but their blocks, and keys found in the certificate
// field stand in the key field. The argument is not changed. All that is wrong is in
// one message; values are not shown in it, because they may be secret.
//
// parsed is the certificate with its chain and its key; nil without one. It shares the
// certificates of authorities with others for which known was given; nil = with none.
func TLS(config *routev1.TLSConfig, now time.Time, known *Authorities) (out *routev1.TLSConfig, parsed *tls.Certificate, v Verdict) {
	if config == nil {
		return nil, nil, Verdict{Admitted: true}
	}
	c := checkTLS(config, now, known)
	if len(c.errs) > 0 {
		v = rejected(ReasonInvalid, c.errs.ToAggregate().Error())
		v.LongChain = c.longChain
		return nil, nil, v
	}
	return c.out, c.parsed, Verdict{Admitted: true}
}

// tlsCheck is one examination of a tls section.
type tlsCheck struct {
	path   *field.Path
	out    *routev1.TLSConfig
	parsed *tls.Certificate // nil = there is no certificate, or it cannot be used
	errs   field.ErrorList
	known  *Authorities

	longChain bool // one of errs is about the length of the chain
}

// fail notes that a field is wrong, without its value.
func (c *tlsCheck) fail(name, shown string, err error) {
	c.errs = append(c.errs, field.Invalid(c.path.Child(name), "redacted "+shown+" data", err.Error()))
}

func checkTLS(config *routev1.TLSConfig, now time.Time, known *Authorities) *tlsCheck {
	if known == nil {
		known = new(Authorities)
	}
	out := *config
	c := &tlsCheck{path: field.NewPath("spec", "tls"), out: &out, known: known}
	switch config.Termination {
	case routev1.TLSTerminationEdge:
		if config.DestinationCACertificate != "" {
			c.fail("destinationCACertificate", "destination ca certificate", errors.New("edge termination does not support destination certificates"))
		}
	case routev1.TLSTerminationReencrypt:
	case routev1.TLSTerminationPassthrough:
		for _, f := range [...]struct{ name, shown, text string }{
			{"certificate", "certificate", config.Certificate}, {"key", "key", config.Key},
			{"caCertificate", "ca certificate", config.CACertificate},
			{"destinationCACertificate", "destination ca certificate", config.DestinationCACertificate},
		} {
			if f.text != "" {
				c.fail(f.name, f.shown, errors.New("passthrough termination does not support certificates"))
			}
		}
	default:
		c.errs = append(c.errs, field.NotSupported(c.path.Child("termination"), config.Termination,
			[]routev1.TLSTerminationType{routev1.TLSTerminationEdge, routev1.TLSTerminationPassthrough, routev1.TLSTerminationReencrypt}))
	}
	c.policy(config)
	cas := c.authorities("caCertificate", "ca certificate", "CA certificate", &out.CACertificate)
	c.pair(config, cas, now)
	c.authorities("destinationCACertificate", "destination ca certificate", "destination CA certificate", &out.DestinationCACertificate)
	return c
}

func (c *tlsCheck) policy(config *routev1.TLSConfig) {
	allowed := "None, Allow, Redirect, or empty"
	switch p := config.InsecureEdgeTerminationPolicy; {
	case p == "" || p == routev1.InsecureEdgeTerminationPolicyNone || p == routev1.InsecureEdgeTerminationPolicyRedirect:
		return
	case config.Termination == routev1.TLSTerminationPassthrough:
		allowed = "None, Redirect, or empty"
	case config.Termination != routev1.TLSTerminationEdge && config.Termination != routev1.TLSTerminationReencrypt:
		return
	case p == routev1.InsecureEdgeTerminationPolicyAllow:
		return
	}
	c.errs = append(c.errs, field.Invalid(c.path.Child("insecureEdgeTerminationPolicy"), config.InsecureEdgeTerminationPolicy,
		"invalid value for InsecureEdgeTerminationPolicy option, acceptable values are "+allowed))
}

// authorities checks a field of CA certificates and cleans it. It returns nil for an
// empty field.
func (c *tlsCheck) authorities(name, shown, called string, text *string) *bundle {
	if *text == "" {
		return nil
	}
	read := c.known.read(authoritiesKey{*text, called})
	if read.err != nil {
		c.fail(name, shown, read.err)
	}
	*text = read.clean
	return read
}

// cleaned returns blocks as text: text itself if it is that, so that a certificate is not
// kept twice because it was clean.
func cleaned(text string, blocks []byte) string {
	if text == string(blocks) {
		return text
	}
	return string(blocks)
}

func weak(hash string) error {
	return errors.New("router does not support CA-signed certs using " + hash)
}

// wrongKinds says which blocks do not belong into a field.
func wrongKinds(read *pemText, want string) error {
	types := read.others
	if want == certificateBlock && len(read.keys) > 0 {
		types = append([]string{"PRIVATE KEY"}, types...)
	}
	if want != certificateBlock && len(read.certificates) > 0 {
		types = append([]string{certificateBlock}, types...)
	}
	return fmt.Errorf("field contains invalid types %s, expecting only %s", strings.Join(types, ", "), want)
}

// pair checks certificate and key and cleans both.
func (c *tlsCheck) pair(config *routev1.TLSConfig, cas *bundle, now time.Time) {
	cert, key := readPEM(config.Certificate), readPEM(config.Key)
	if config.Certificate != "" {
		c.certificate(&cert, cas, now)
	}
	switch {
	case key.err != nil:
		c.fail("key", "key", key.err)
	case key.bad != nil:
		c.fail("key", "key", key.bad)
	case len(key.certificates) > 0 || len(key.others) > 0:
		c.fail("key", "key", wrongKinds(&key, "PRIVATE KEY"))
	}
	c.out.Certificate = cleaned(config.Certificate, cert.blocks)
	c.out.Key = cleaned(config.Key, append(cert.keys, key.keys...))
	if config.Certificate == "" {
		return
	}
	some := len(cert.keys) > 0 || len(key.keys) > 0
	if !some {
		c.errs = append(c.errs, field.Invalid(c.path.Child("key"), "", "no key specified"))
	}
	unusable := key.err != nil || key.bad != nil || len(key.certificates) > 0 || len(key.others) > 0
	if len(cert.certificates) == 0 || !some && !unusable || c.join(&cert, &key, cas) {
		return
	}
	// crypto/tls has words for what is wrong
	if _, err := tls.X509KeyPair([]byte(c.out.Certificate), []byte(c.out.Key)); err != nil {
		c.fail("key", "key", err)
	}
}

// join puts certificate, chain and key together as they are sent. It returns false if
// they do not belong together, and notes a key that TLS cannot be spoken with.
func (c *tlsCheck) join(cert, key *pemText, cas *bundle) bool {
	private := cert.private // the first key counts, and the certificate field comes first
	if private == nil {
		private = key.private
	}
	if len(cert.certificates) == 0 || !keypair.Belongs(private, cert.certificates[0]) {
		return false
	}
	if err := keypair.Usable(cert.certificates[0]); err != nil {
		c.fail("certificate", "certificate", err)
		return true
	}
	c.parsed = &tls.Certificate{PrivateKey: private, Leaf: cert.certificates[0]}
	for _, part := range cert.certificates {
		c.parsed.Certificate = append(c.parsed.Certificate, part.Raw)
	}
	if cas != nil {
		for _, part := range cas.certificates {
			c.parsed.Certificate = append(c.parsed.Certificate, part.Raw)
		}
	}
	if err := keypair.Bounded(c.parsed.Certificate); err != nil {
		c.parsed, c.longChain = nil, true
		c.fail("certificate", "certificate", err)
	}
	return true
}

// certificate checks the certificate field.
func (c *tlsCheck) certificate(cert *pemText, cas *bundle, now time.Time) {
	const name, shown = "certificate", "certificate"
	if err := cert.parse(); err != nil {
		c.fail(name, shown, err)
		return
	}
	if hash := weakSigner(cert.certificates); hash != "" {
		c.fail(name, shown, weak(hash))
		return
	}
	if err := verify(cert.certificates[0], cas, now); err != nil {
		c.fail(name, shown, err)
		return
	}
	switch {
	case cert.err != nil:
		c.fail(name, shown, cert.err)
	case len(cert.others) > 0:
		c.fail(name, shown, wrongKinds(&pemText{others: cert.others}, certificateBlock))
	}
}

// verify fails if a certificate is not signed by one of the authorities of the route, whether or not it is valid now. nil = it names none.
func verify(leaf *x509.Certificate, cas *bundle, now time.Time) error {
	if cas == nil {
		return nil
	}
	work := 0
	seen := make(map[string]struct{}) // a pool holds each certificate once
	for _, ca := range cas.certificates {
		if !bytes.Equal(ca.RawSubject, leaf.RawIssuer) {
			continue
		}
		if _, again := seen[string(ca.Raw)]; !again {
			seen[string(ca.Raw)] = struct{}{}
			work += certchain.Cost(ca)
		}
	}
	if work > certchain.MaxWork {
		return fmt.Errorf("error verifying certificate: %w: the CA certificates of its issuer's name cost %d units; allowed: %d", certchain.ErrWork, work, certchain.MaxWork)
	}
	// Every one of them is trusted, so a chain that passes through one to another passes by ending at it too: naming them as
	// intermediates would do nothing but check the signature of each certificate twice.
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: cas.pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	var invalid x509.CertificateInvalidError
	if err != nil && !(errors.As(err, &invalid) && invalid.Reason == x509.Expired) {
		return fmt.Errorf("error verifying certificate: %w", err)
	}
	return nil
}

package balancer

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"turnout/internal/certchain"
	"turnout/internal/wire/protocol"
)

// TLS is how an endpoint is reached over TLS. It is made by NewTLS, shared by many
// targets and read-only.
type TLS struct {
	Key        string         // the full identity of all other fields, canonical
	ServerName string         // name the certificate must be valid for; "" = the name is not checked
	Roots      *certchain.Set // accepted roots; nil only when Verify is false
	Verify     bool           // false: any certificate is accepted
	SNI        string         // server name sent; "" = none

	// Names, if there are any, take the place of ServerName: the certificate must be valid for one of them.
	Names []SubjectAltName
	// Certificate is shown to endpoints that ask for one; nil = none.
	Certificate *tls.Certificate

	// ALPN are the protocols offered, in order; nil = no ALPN. The endpoint selects in the handshake.
	ALPN []protocol.Protocol
}

// SubjectAltName is a name in a certificate (RFC 5280 section 4.2.1.6): exactly one of the fields is set.
type SubjectAltName struct {
	DNS string // a host name, or a wildcard that stands in the certificate as it is
	URI string // such as a SPIFFE ID, compared byte by byte
}

// Offers says that the endpoint may select p in the handshake. A nil TLS, which is none, offers nothing.
func (t *TLS) Offers(p protocol.Protocol) bool { return t != nil && slices.Contains(t.ALPN, p) }

// TLSConfig is the input of NewTLS.
type TLSConfig struct {
	CA         string // PEM roots; with Verify they or System are needed
	System     bool   // with Verify: the roots of the system count too
	Verify     bool   // verify the chain of the endpoint against CA
	ServerName string // with Verify: the name the certificate must be valid for, "" = not checked
	SNI        string // server name to send, "" = none

	// SubjectAltNames, with Verify and if there are any, take the place of ServerName: one of them must be in the certificate.
	SubjectAltNames []SubjectAltName
	// CertPEM and KeyPEM are the certificate, with its chain, and the private key that are shown to endpoints which ask for one; "" = none.
	CertPEM, KeyPEM string

	ALPN []protocol.Protocol // protocols offered, in order
	// Roots are the roots of CA and System, parsed by the caller; nil = NewTLS parses them.
	Roots *certchain.Set
}

// NewTLS returns the TLS identity of cfg. Two equal configurations have equal keys.
// It fails when verification is asked for and there are no roots, and when certificate and private key cannot be used.
func NewTLS(cfg TLSConfig) (*TLS, error) {
	t := &TLS{
		ServerName: cfg.ServerName, Verify: cfg.Verify, ALPN: slices.Clone(cfg.ALPN), SNI: cfg.SNI, Names: slices.Clone(cfg.SubjectAltNames),
	}
	if cfg.Verify {
		var err error
		if t.Roots = cfg.Roots; t.Roots == nil {
			if t.Roots, err = certchain.ParseRoots(cfg.CA, cfg.System); err != nil {
				return nil, fmt.Errorf("cannot verify endpoints: %w", err)
			}
		}
	}
	if cfg.CertPEM != "" || cfg.KeyPEM != "" {
		pair, err := tls.X509KeyPair([]byte(cfg.CertPEM), []byte(cfg.KeyPEM))
		if err != nil {
			return nil, fmt.Errorf("cannot show endpoints a certificate: %w", err)
		}
		t.Certificate = &pair
	}
	t.Key = cfg.key()
	return t, nil
}

// key returns the identity of cfg. Quoted texts keep different configurations apart.
func (cfg *TLSConfig) key() string {
	var b strings.Builder
	ca := ""
	if cfg.Verify {
		ca = digest(cfg.CA)
	}
	fmt.Fprintf(&b, "verify=%t ca=%s name=%q sni=%q alpn=%q", cfg.Verify, ca, cfg.ServerName, cfg.SNI, cfg.ALPN)
	if cfg.Verify && cfg.System {
		b.WriteString(" system")
	}
	for _, name := range cfg.SubjectAltNames {
		fmt.Fprintf(&b, " dns=%q uri=%q", name.DNS, name.URI)
	}
	if cfg.CertPEM != "" {
		fmt.Fprintf(&b, " cert=%s key=%s", digest(cfg.CertPEM), digest(cfg.KeyPEM))
	}
	return b.String()
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

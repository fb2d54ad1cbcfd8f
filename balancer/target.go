package balancer

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"turnout/internal/wire/protocol"
)

// TLS is how an endpoint is reached over TLS. It is made by NewTLS, shared by many
// targets and read-only.
type TLS struct {
	Key        string         // the full identity of all other fields, canonical
	ServerName string         // name the certificate must be valid for; "" = the name is not checked
	RootCAs    *x509.CertPool // accepted roots; nil only when Verify is false
	Verify     bool           // false: any certificate is accepted
	SNI        string         // server name sent; "" = none

	// ALPN are the protocols offered, in order; nil = no ALPN. The endpoint selects in the handshake.
	ALPN []protocol.Protocol
}

// Offers says that the endpoint may select p in the handshake. A nil TLS, which is none, offers nothing.
func (t *TLS) Offers(p protocol.Protocol) bool { return t != nil && slices.Contains(t.ALPN, p) }

// TLSConfig is the input of NewTLS.
type TLSConfig struct {
	CA         string // PEM roots; needed when Verify is true
	Verify     bool   // verify the chain of the endpoint against CA
	ServerName string // with Verify: the name the certificate must be valid for, "" = not checked
	SNI        string // server name to send, "" = none

	ALPN []protocol.Protocol // protocols offered, in order
}

// NewTLS returns the TLS identity of cfg. Two equal configurations have equal keys.
// It fails when verification is asked for and CA holds no certificate.
func NewTLS(cfg TLSConfig) (*TLS, error) {
	t := &TLS{
		ServerName: cfg.ServerName, Verify: cfg.Verify, ALPN: slices.Clone(cfg.ALPN), SNI: cfg.SNI,
	}
	ca := ""
	if cfg.Verify {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM([]byte(cfg.CA)) {
			return nil, fmt.Errorf("cannot verify endpoints: %w", errNoRoots)
		}
		sum := sha256.Sum256([]byte(cfg.CA))
		ca = hex.EncodeToString(sum[:])
	}
	// Quoted texts keep different configurations apart.
	var b strings.Builder
	fmt.Fprintf(&b, "verify=%t ca=%s name=%q sni=%q alpn=%q", cfg.Verify, ca, cfg.ServerName, cfg.SNI, cfg.ALPN)
	t.Key = b.String()
	return t, nil
}

var errNoRoots = errors.New("the CA text holds no certificate")

// Target is one server of a route as the configuration wants it.
type Target struct {
	ID       string            // server identity, see ServerID; unique in a pool
	Addr     netip.AddrPort    // where to connect
	Weight   int               // 0..256, see Weights; 0 = only by a valid sticky cookie
	Protocol protocol.Protocol // without TLS by prior knowledge; with TLS.ALPN the endpoint selects instead
	TLS      *TLS              // nil = plain
	NoCheck  bool              // never health checked (placeholder of an idled service)
	Pod      string            // name of the pod, "" = not a pod
	Service  string            // name of the service
}

// key returns the identity of the endpoint of t for a namespace.
func (t *Target) key(namespace string) endpointKey {
	k := endpointKey{addr: t.Addr, protocol: t.Protocol, namespace: namespace}
	if t.TLS != nil {
		k.tls, k.secure = t.TLS.Key, true
	}
	return k
}

// ServerID returns the identity of a server, from which its sticky cookie value is
// derived: "pod:POD:SERVICE:PORT:IP:NUMBER", or "ept:SERVICE:PORT:IP:NUMBER" when
// pod is empty. port is the name of the endpoint port, ip is its address as it
// is written, not bracketed.
func ServerID(pod, service, port, ip string, number uint16) string {
	tail := service + ":" + port + ":" + ip + ":" + strconv.Itoa(int(number))
	if pod == "" {
		return "ept:" + tail
	}
	return "pod:" + pod + ":" + tail
}

// CookieValue returns the sticky cookie value of a server identity: its MD5 in
// lower-case hex. MD5 is not used for security here: sessions of the HAProxy router carry this value.
func CookieValue(id string) string {
	sum := md5.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

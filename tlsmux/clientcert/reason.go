package clientcert

import (
	"crypto/x509"
	"errors"

	"turnout/internal/certchain"
)

// Reason is why a certificate that a client showed was refused.
type Reason uint8

// The reasons.
const (
	Revoked          Reason = iota // ErrRevoked
	NoList                         // ErrNoList
	ListExpired                    // ErrListExpired
	UnknownAuthority               // no chain to an authority
	Expired                        // or not valid yet
	Unusable                       // not for clients, or its chain breaks another rule of RFC 5280
	Costly                         // its chain costs too much to verify
	Reasons
)

// String returns the word for it in logs and metrics.
func (r Reason) String() string {
	return [...]string{"revoked", "no-list", "list-expired", "unknown-authority", "expired", "unusable", "chain-work", "unknown"}[min(r, Reasons)]
}

// ReasonOf tells why a handshake failed, if that was the certificate of the client. The bool is false for everything else,
// also when there was no certificate where one is required.
func ReasonOf(err error) (Reason, bool) {
	for r, is := range []error{Revoked: ErrRevoked, NoList: ErrNoList, ListExpired: ErrListExpired, Costly: certchain.ErrWork} {
		if is != nil && errors.Is(err, is) {
			return Reason(r), true
		}
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var critical x509.UnhandledCriticalExtension
	switch {
	case errors.As(err, &unknown):
		return UnknownAuthority, true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Expired, true
	case invalid.Cert != nil, errors.As(err, &critical):
		return Unusable, true
	}
	return 0, false
}

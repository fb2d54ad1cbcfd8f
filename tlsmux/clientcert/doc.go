// Package clientcert decides which certificates of TLS clients are trusted.
//
//	bundle of authorities ─┐
//	                       ├─► Trust ─► one handshake: chain, validity
//	revocation lists ──────┘
//
// crypto/tls builds the chains, against Bundle.Pool. Trust.Verify does the rest, in full handshakes and in resumed ones:
// chains are completed to a root, and with revocation lists every certificate of a chain needs one of its issuer that is
// current and does not name it. A Trust never changes; a newer one is published whole.
//
// An Updater fetches the lists that the bundle's certificates name, on a goroutine of its own.
package clientcert

import "errors"

// Mode says whether clients are asked for a certificate. The zero value asks nobody.
type Mode uint8

// What becomes of a client without a certificate. One whose certificate is not trusted is refused by Optional and Required.
const (
	None       Mode = iota // it is not asked
	Optional               // it is served
	Required               // it is refused
	Unverified             // it is served, and so is one with any certificate: that says nothing of who the client is
)

// ParseMode reads "none", "optional" or "required"; "" is none.
func ParseMode(text string) (Mode, error) {
	switch text {
	case "", "none":
		return None, nil
	case "optional":
		return Optional, nil
	case "required":
		return Required, nil
	}
	return None, errors.New("allowed: none, optional, required")
}

// String is what ParseMode reads, or "unverified", which is no mode for the whole router.
func (m Mode) String() string {
	switch m {
	case Optional:
		return "optional"
	case Required:
		return "required"
	case Unverified:
		return "unverified"
	}
	return "none"
}

package tlsmux

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"

	"turnout/internal/certchain"
	"turnout/internal/reactor"
)

// EndpointError says why TLS with an endpoint did not come about. Err is an error of crypto/tls or crypto/x509, of the
// connection, or one of this package.
type EndpointError struct{ Err error }

// Error implements error.
func (e *EndpointError) Error() string {
	return "cannot complete TLS handshake with endpoint: " + e.Err.Error()
}

// Unwrap is Err.
func (e *EndpointError) Unwrap() error { return e.Err }

// Detail is a stable word for the access log. docs/access-log.md lists them.
func (e *EndpointError) Detail() string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		remote    *net.OpError
		system    syscall.Errno
	)
	switch {
	case errors.Is(e.Err, ErrHandshakeTimeout):
		return "tls-timeout"
	case errors.As(e.Err, &authority):
		return "tls-untrusted"
	case errors.As(e.Err, &name), errors.Is(e.Err, errNoName):
		return "tls-name"
	case errors.As(e.Err, &invalid) && invalid.Reason == x509.Expired:
		return "tls-expired"
	case errors.As(e.Err, &invalid), errors.Is(e.Err, certchain.ErrWork):
		return "tls-certificate"
	case errors.As(e.Err, &record):
		return "tls-none"
	case errors.As(e.Err, &remote) && remote.Op == "remote error":
		return "tls-alert"
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF), errors.Is(e.Err, reactor.ErrClosed), errors.As(e.Err, &system):
		return "tls-closed"
	}
	return "tls-handshake"
}

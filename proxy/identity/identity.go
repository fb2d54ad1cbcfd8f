// Package identity says to endpoints who the client of a TLS connection is: the X-SSL-* fields, made once per connection
// from the certificate that the handshake verified, and the verdict of the subject filter.
//
// The texts are those of HAProxy, which the HAProxy router is made of: ssl_c_s_dn, ssl_c_serial and the like.
package identity

import (
	"crypto/sha1" //nolint:gosec // a name for the certificate, not a proof of anything
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"turnout/internal/expression"
	"turnout/internal/wire/field"
)

// Identity is what is known of the client of one connection. It is shared by all requests of the connection; nobody
// changes it or what it points to.
type Identity struct {
	// Fields are what requests say of the client, names in lower case, in the order they are sent. Without a certificate
	// all but the first two are empty.
	Fields []field.Field
	// Certificate is the client's in DER, nil without one.
	Certificate []byte
	// Refused: the subject filter does not let the client in.
	Refused bool
	// Undecided: matching the subject takes more than subjectWork.
	Undecided bool
}

// Rules makes identities. The zero value refuses nobody. It may be used by any goroutine.
type Rules struct {
	// Filter is what the one-line subject has to match somewhere; nil = anything. A client without a certificate has no
	// subject, which matches nothing.
	Filter *expression.Expression
}

// names of the fields, in their order.
var names = [...]string{
	"x-ssl", "x-ssl-client-verify", "x-ssl-client-serial", "x-ssl-client-version", "x-ssl-client-sha1", "x-ssl-client-dn",
	"x-ssl-client-cn", "x-ssl-issuer", "x-ssl-client-notbefore", "x-ssl-client-notafter", "x-ssl-client-der",
}

// Of returns the identity of a client that proved to have cert, which the handshake has verified; nil: it showed none.
func (r *Rules) Of(cert *x509.Certificate) *Identity {
	if cert == nil {
		return &Identity{Fields: fields(nil), Refused: r.Filter != nil}
	}
	subject := oneLine(cert.RawSubject)
	sum := sha1.Sum(cert.Raw) //nolint:gosec // as above
	id := &Identity{Certificate: cert.Raw, Fields: fields([]string{
		serial(cert), strconv.Itoa(cert.Version), strings.ToUpper(hex.EncodeToString(sum[:])), subject,
		commonName(cert.RawSubject), oneLine(cert.RawIssuer), moment(cert.NotBefore), moment(cert.NotAfter),
		base64.StdEncoding.EncodeToString(cert.Raw),
	})}
	if r.Filter != nil {
		work := subjectWork
		result := r.Filter.Match(new(expression.Machine), []byte(subject), &work)
		id.Refused, id.Undecided = result != expression.Yes, result == expression.Undecided
	}
	return id
}

// subjectWork is the number of steps that a filter may take to match the subject of one
// certificate: half a millisecond.
const subjectWork = 64 << 10

// fields returns "1", TLS is spoken, "0", no error of verification, and then the values. All values share one piece of memory.
func fields(values []string) []field.Field {
	all := make([]field.Field, len(names))
	memory := []byte(strings.Join(names[:], "") + "10" + strings.Join(values, ""))
	take := func(n int) []byte {
		b := memory[:n:n]
		memory = memory[n:]
		return b
	}
	for i := range all {
		all[i].Name = take(len(names[i]))
	}
	all[0].Value, all[1].Value = take(1), take(1)
	for i := range values {
		all[2+i].Value = take(len(values[i]))
	}
	return all
}

// serial is the number in whole bytes of upper-case hexadecimal digits.
func serial(cert *x509.Certificate) string {
	n := cert.SerialNumber.Bytes()
	if len(n) == 0 {
		n = []byte{0}
	}
	return strings.ToUpper(hex.EncodeToString(n))
}

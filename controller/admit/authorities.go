package admit

import (
	"crypto/x509"
	"fmt"
)

// Authorities remembers fields of CA certificates: thousands of routes have the same one, which is read once and whose
// certificates they share. The zero value is empty. It is for one goroutine at a time.
type Authorities struct {
	known map[authoritiesKey]*bundle
	size  int // bytes of the fields
}

// authoritiesKey is a field and what errors call it.
type authoritiesKey struct{ text, called string }

// knownAuthorities is how many different fields are remembered at a time, and knownBytes how large they are together: what is read
// of a field takes several times its size.
const (
	knownAuthorities = 256
	knownBytes       = 2 << 20
)

// bundle is one field, read. It does not change any more.
type bundle struct {
	certificates []*x509.Certificate
	pool         *x509.CertPool
	clean        string // the field without what is not a certificate
	err          error  // what is wrong; it names no field
}

// read returns what a field holds that is not empty.
func (a *Authorities) read(key authoritiesKey) *bundle {
	got := a.known[key]
	if got != nil {
		return got
	}
	got = readBundle(key.text, key.called)
	if len(key.text) > knownBytes {
		return got
	}
	if a.size += len(key.text); a.known == nil || len(a.known) >= knownAuthorities || a.size > knownBytes {
		a.known, a.size = map[authoritiesKey]*bundle{}, len(key.text)
	}
	a.known[key] = got
	return got
}

func readBundle(text, called string) *bundle {
	read := readPEM(text)
	got := &bundle{certificates: read.certificates, pool: x509.NewCertPool(), clean: cleaned(text, read.blocks)}
	for _, ca := range read.certificates {
		got.pool.AddCert(ca)
	}
	switch err := read.parse(); {
	case err != nil:
		got.err = fmt.Errorf("failed to parse %s: %w", called, err)
	case read.err != nil:
		got.err = read.err
	case len(read.keys) > 0 || len(read.others) > 0:
		got.err = wrongKinds(&read, certificateBlock)
	default:
		if hash := weakSigner(read.certificates); hash != "" {
			got.err = weak(hash)
		}
	}
	return got
}

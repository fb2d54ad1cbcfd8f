package admit

import (
	"crypto/x509"
	"fmt"
)

// Authorities remembers fields of CA certificates: thousands of routes have the same one, which is read once and whose
// certificates they share. The zero value is empty. It is for one goroutine at a time.
type Authorities struct {
	known map[authoritiesKey]*bundle
}

// authoritiesKey is a field and what errors call it.
type authoritiesKey struct{ text, called string }

// knownAuthorities is how many different fields are remembered at a time.
const knownAuthorities = 256

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
	if a.known == nil || len(a.known) >= knownAuthorities {
		a.known = map[authoritiesKey]*bundle{}
	}
	got = readBundle(key.text, key.called)
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

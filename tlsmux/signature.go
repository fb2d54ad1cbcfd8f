package tlsmux

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
)

// A handshake that a loop computes itself has a good ticket and needs no private key. Clients may still come to need one:
// by offering, with the ticket, cipher suites that it is not for. The loop does not pay for that: what is done with
// a private key is done by Workers also then.

// lend returns cert with a key that is used elsewhere.
func (h *handshake) lend(cert *tls.Certificate) *tls.Certificate {
	key, ok := cert.PrivateKey.(crypto.Signer)
	if !ok {
		return cert
	}
	lent := *cert
	signer := lentSigner{key, h, workOf(cert)}
	if _, ok := key.(crypto.Decrypter); ok {
		lent.PrivateKey = lentDecrypter{signer}
	} else {
		lent.PrivateKey = signer
	}
	return &lent
}

// lentSigner is a private key. It is used by the coroutine of h only.
type lentSigner struct {
	key  crypto.Signer
	h    *handshake
	work Work
}

// Public implements crypto.Signer.
func (s lentSigner) Public() crypto.PublicKey { return s.key.Public() }

// Sign implements crypto.Signer.
func (s lentSigner) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.h.elsewhere(s.work, func() ([]byte, error) { return s.key.Sign(rand.Reader, digest, opts) })
}

// lentDecrypter is one of RSA, which TLS 1.2 can also decrypt with.
type lentDecrypter struct{ lentSigner }

// Decrypt implements crypto.Decrypter.
func (s lentDecrypter) Decrypt(_ io.Reader, msg []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	return s.h.elsewhere(s.work, func() ([]byte, error) {
		key, ok := s.key.(crypto.Decrypter)
		if !ok {
			return nil, errors.New("the key cannot decrypt")
		}
		return key.Decrypt(rand.Reader, msg, opts)
	})
}

// signature is a use of a private key.
type signature struct {
	job
	h      *handshake
	make   func() ([]byte, error)
	result []byte
	err    error
}

// elsewhere has workers use a key and waits. Called by the coroutine.
func (h *handshake) elsewhere(work Work, use func() ([]byte, error)) ([]byte, error) {
	s := &signature{h: h, make: use}
	s.job = job{use: s.compute, kind: work, share: h.share}
	if h.asked = s; !h.await() {
		return nil, errGivenUp
	}
	return s.result, s.err
}

// compute uses the key.
func (s *signature) compute() {
	s.result, s.err = s.computed()
	s.h.conn.Post(s.signed)
}

func (s *signature) computed() (result []byte, err error) {
	defer s.h.workers.recovered(&err)
	return s.make()
}

// signed goes on with the handshake, unless that is over.
func (s *signature) signed() {
	if h := s.h; !h.over {
		h.asked = nil
		h.submit()
	}
}

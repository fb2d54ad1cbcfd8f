package keypair

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
)

// shortCert and shortKey are of 768 bits, which crypto/rsa neither makes nor signs with.
const shortCert = `-----BEGIN CERTIFICATE-----
MIIB2jCCAWSgAwIBAgIUOc8V4+gINfPoCy7/4ElXX7lJsREwDQYJKoZIhvcNAQEL
BQAwFTETMBEGA1UEAwwKc2hvcnQudGVzdDAgFw0yNjExMjIwMDA2NDFaGA8yMTI2
MTAyOTAwMDY0MVowFTETMBEGA1UEAwwKc2hvcnQudGVzdDB8MA0GCSqGSIb3DQEB
AQUAA2sAMGgCYQDjds4wTpSoIChA8SeOmD69iXz+kxc+7sA+OJg+ME2rfyYSqodv
MaZYts5FXkQd2LXh665a3+PxSVValefET9n66DmDK4JlvDB3qspYvaIxF8sIQuO8
5bhefwv4By352n0CAwEAAaNqMGgwHQYDVR0OBBYEFDEtICTpce+ratXWTXGkSvBq
HJIMMB8GA1UdIwQYMBaAFDEtICTpce+ratXWTXGkSvBqHJIMMA8GA1UdEwEB/wQF
MAMBAf8wFQYDVR0RBA4wDIIKc2hvcnQudGVzdDANBgkqhkiG9w0BAQsFAANhABYE
HHVD1zD3UDwSx5FHgAfRo7WYbII+bxLvRfGI7wKhorzxa2FFD+NU60WFI1wkLWmS
g37pSgtWfMGNY8YFXNrLW1oLSZUej4dVm0d1rNqhuL9MJYF9zzJNi1H6nR+46Q==
-----END CERTIFICATE-----
`

const shortKey = `-----BEGIN RSA PRIVATE KEY-----
MIIBzAIBAAJhAON2zjBOlKggKEDxJ46YPr2JfP6TFz7uwD44mD4wTat/JhKqh28x
pli2zkVeRB3YteHrrlrf4/FJVVqV58RP2froOYMrgmW8MHeqyli9ojEXywhC47zl
uF5/C/gHLfnafQIDAQABAmEAlXgHS5UHeGcRLIOLI9eFOtUyzrJnTxJiP0C/QfZJ
w4zcvt1R+85baeZOKyUji51Pwf0bZmEDip3hmo9OpVBT3EDca9AQJvy1gxNz+U6q
N6THaQneQ0es6Xxwp5nPPwE9AjEA/FpdpwFr1kF/hLmsH+6FH53LyXivKp1GHyHw
VMK8SsB1YfDcVozCfdogmQ0be+7HAjEA5sBblAKNggvbwOUBfsgIml9a7kljP4O7
MHsQ5w5nn/PLJln5k/Q/X9ez1M5W5XibAjEA1F9whYYKrOu+V4KyusTPQAZaZJmu
QRzO0JCNY6fnMrm5j81WgXhAjg2udV+0i54tAjBewV7ZyLKTVItJCsEybrIZsk6E
y14WFuInZmHqf9/Nry8c8JWsTAA6Ozl9ib3lPUECMQD3JE3Lh53mev9oR73QE+77
9RPwMMTatngj5jmQo+z6y+UnxetkAlfCGkFQtntET7o=
-----END RSA PRIVATE KEY-----
`

// serves tells whether a handshake of a version succeeds with a certificate.
func serves(t *testing.T, cert tls.Certificate, version uint16) bool {
	t.Helper()
	near, far := net.Pipe()
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Handshake() // the client tells
		_ = far.Close()
	}()
	err := tls.Client(near, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}).Handshake()
	_ = near.Close()
	<-ended
	return err == nil
}

// TestUsableMeansServed: Usable refuses what handshakes fail with, and nothing else but what is too large.
func TestUsableMeansServed(t *testing.T) {
	ec := func(c elliptic.Curve) crypto.Signer { return must(ecdsa.GenerateKey(c, rand.Reader)) }
	short := must(tls.X509KeyPair([]byte(shortCert), []byte(shortKey)))
	for name, p := range map[string]tls.Certificate{
		"RSA of 768 bits":  short,
		"RSA of 1024 bits": pairOf(newPair(must(rsa.GenerateKey(rand.Reader, 1024)))),
		"RSA of 2048 bits": pairOf(rsaPair()),
		"Ed25519":          pairOf(edPair()),
		"P-224":            pairOf(newPair(ec(elliptic.P224()))),
		"P-256":            pairOf(ecdsaPair()),
		"P-384":            pairOf(p384Pair()),
		"P-521":            pairOf(newPair(ec(elliptic.P521()))),
	} {
		t.Run(name, func(t *testing.T) {
			served := serves(t, p, tls.VersionTLS12) || serves(t, p, tls.VersionTLS13)
			if err := Usable(p.Leaf); (err == nil) != served {
				t.Errorf("served: %v, error %v", served, err)
			}
		})
	}
	if _, err := Parse([]byte(shortCert), []byte(shortKey)); err == nil || !strings.Contains(err.Error(), "768 bits; allowed: 1024 to 8192") {
		t.Errorf("error %v", err)
	}
	for bits, good := range map[uint]bool{1023: false, 1024: true, 8192: true, 8193: false, 16384: false} {
		leaf := &x509.Certificate{PublicKey: &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}}
		if err := Usable(leaf); (err == nil) != good {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
}

// pairOf is a pair as crypto/tls has it.
func pairOf(p *pair) tls.Certificate {
	return must(tls.X509KeyPair(p.cert, p.pkcs8))
}

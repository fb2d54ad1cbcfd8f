package admit

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"turnout/internal/keypair"
)

const certificateBlock = "CERTIFICATE"

// pemText is what a PEM field holds, cleaned: text outside of blocks is dropped.
type pemText struct {
	certificates []*x509.Certificate
	blocks       []byte   // the certificates as PEM
	keys         []byte   // private keys as PEM, in the encoding that they have
	private      any      // the first of them; nil = there is none
	others       []string // block types that are neither, but are known
	bad          error    // of the first certificate that cannot be used
	err          error    // of the first other block that cannot be used
}

// noCertificates is what is said of a field that should hold some.
const noCertificates = "data does not contain any valid RSA or ECDSA certificates"

// parse returns what keeps the certificates from being read; nil = there are some.
func (t *pemText) parse() error {
	if t.bad == nil && len(t.certificates) == 0 {
		return errors.New(noCertificates)
	}
	return t.bad
}

// readPEM reads a field. Data after the last block that can be recognised is dropped.
func readPEM(text string) pemText {
	var out pemText
	for block := range keypair.Blocks([]byte(text)) {
		at := &out.err
		if block.Type == certificateBlock {
			at = &out.bad
		}
		if err := out.addBlock(block); err != nil && *at == nil {
			*at = err
		}
	}
	return out
}

// addBlock takes one block over.
func (t *pemText) addBlock(block *pem.Block) error {
	switch block.Type {
	case certificateBlock:
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		t.certificates = append(t.certificates, c)
		t.blocks = append(t.blocks, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: block.Bytes})...)
	case "RSA PRIVATE KEY", "EC PRIVATE KEY", "ECDSA PRIVATE KEY", "PRIVATE KEY":
		private, err := privateKey(block)
		if err != nil {
			return err
		}
		t.keys = append(t.keys, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		if t.private == nil {
			t.private = private
		}
	case "EC PARAMETERS":
	case "PUBLIC KEY", "RSA PUBLIC KEY", "DSA PUBLIC KEY", "ECDSA PUBLIC KEY":
		if !slices.Contains(t.others, block.Type) {
			t.others = append(t.others, block.Type)
		}
	default:
		return fmt.Errorf("unrecognized PEM block %s", block.Type)
	}
	return nil
}

// privateKey returns the key of a block. RSA and ECDSA are allowed. The router that writes files for HAProxy encodes them anew,
// RSA as PKCS #1 and ECDSA as SEC 1, which nobody would see here: there is no file.
func privateKey(block *pem.Block) (any, error) {
	key, err := keypair.ReadKey(block.Bytes)
	if err != nil || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
		return nil, fmt.Errorf("block %s is not valid", block.Type)
	}
	switch key.(type) {
	case *keypair.Key, *rsa.PrivateKey, *ecdsa.PrivateKey:
		return key, nil
	}
	return nil, fmt.Errorf("block private key %T is not valid", key)
}

// weakSigner returns the hash of a CA-signed certificate whose signature can be forged,
// "" if there is none. Self-signed certificates are trusted by being there, so their
// signature does not matter.
func weakSigner(certificates []*x509.Certificate) string {
	for _, c := range certificates {
		if hash := weakHash(c.SignatureAlgorithm); hash != "" && !selfSigned(c) {
			return hash
		}
	}
	return ""
}

func weakHash(a x509.SignatureAlgorithm) string {
	switch a {
	case x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return "SHA1"
	case x509.MD5WithRSA:
		return "MD5"
	case x509.MD2WithRSA:
		return "MD2"
	}
	return ""
}

// selfSigned reports whether a certificate says of itself that it signed itself.
func selfSigned(c *x509.Certificate) bool {
	if string(c.RawIssuer) != string(c.RawSubject) {
		return false
	}
	if len(c.AuthorityKeyId) > 0 && len(c.SubjectKeyId) > 0 && string(c.AuthorityKeyId) != string(c.SubjectKeyId) {
		return false
	}
	switch c.SignatureAlgorithm {
	case x509.DSAWithSHA1, x509.DSAWithSHA256:
		return c.PublicKeyAlgorithm == x509.DSA
	case x509.ECDSAWithSHA1, x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
		return c.PublicKeyAlgorithm == x509.ECDSA
	case x509.PureEd25519:
		return c.PublicKeyAlgorithm == x509.Ed25519
	}
	return c.PublicKeyAlgorithm == x509.RSA
}

package tlsmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ParseVersion reads a protocol version as OpenSSL and HAProxy write it, such as "TLSv1.2".
func ParseVersion(name string) (uint16, error) {
	switch name {
	case "TLSv1.0":
		return tls.VersionTLS10, nil
	case "TLSv1.1":
		return tls.VersionTLS11, nil
	case "TLSv1.2":
		return tls.VersionTLS12, nil
	case "TLSv1.3":
		return tls.VersionTLS13, nil
	}
	return 0, errors.New("allowed: TLSv1.0, TLSv1.1, TLSv1.2, TLSv1.3")
}

// The OpenSSL names of the cipher suites of TLS 1.2 and before that crypto/tls has.
var suiteNames = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA256":     tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-RSA-AES128-SHA256":       tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-DES-CBC3-SHA":        tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA256":                 tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
	"DES-CBC3-SHA":                  tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
}

// The sets that have a name. What crypto/tls does not have is not in them, and neither are 3DES and key exchange by RSA
// outside of "old": who needs those names them.
var (
	modernSuites = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	}
	moreIntermediateSuites = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	}
	moreOldSuites = []uint16{
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA,
		tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
	}
)

// ParseCiphers reads the cipher suites of TLS 1.2 and before: "modern", "intermediate", "old", or a cipher list of OpenSSL:
// its names, keywords such as ECDHE+AESGCM, exclusions such as !kRSA; names of the IANA registry do too. unknown lists the
// items that add nothing crypto/tls has, and those that exclude what is not known. It is an error if nothing is left.
func ParseCiphers(text string) (suites []uint16, unknown []string, err error) {
	switch text {
	case "modern":
		return slices.Clone(modernSuites), nil, nil
	case "intermediate":
		return slices.Concat(modernSuites, moreIntermediateSuites), nil, nil
	case "old":
		return slices.Concat(modernSuites, moreIntermediateSuites, moreOldSuites), nil, nil
	}
	chosen, unknown := cipherList(text)
	for _, c := range chosen {
		if c.id != 0 {
			suites = append(suites, c.id)
		}
	}
	if len(suites) == 0 {
		return nil, unknown, errors.New("no cipher suite that Go has is left of it; allowed: modern, intermediate, old or a cipher list of OpenSSL")
	}
	return suites, unknown, nil
}

// SuiteName returns the OpenSSL name of a cipher suite that ParseCiphers returns.
func SuiteName(id uint16) string {
	for name, known := range suiteNames {
		if known == id {
			return name
		}
	}
	return tls.CipherSuiteName(id)
}

// CiphersLacking returns the OpenSSL names of the cipher suites that a set, "modern", "intermediate" or "old", has in the
// HAProxy router and ParseCiphers does not return: crypto/tls does not have them, or they are kept for who asks for
// them. Families that only "old" has (DSS, SEED, Camellia and the like) go by their name. Of a list it returns what else the
// keywords stand for that ParseCiphers takes.
func CiphersLacking(set string) []string {
	names := []string{"ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384"}
	if set == "modern" {
		return names
	}
	names = append(names, "DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES128-SHA256", "DHE-RSA-AES256-SHA256",
		"DHE-RSA-AES128-SHA", "DHE-RSA-AES256-SHA", "ECDHE-ECDSA-DES-CBC3-SHA", "EDH-RSA-DES-CBC3-SHA", "AES256-SHA256")
	switch set {
	case "intermediate":
		return append(names, "ECDHE-RSA-DES-CBC3-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA256", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA")
	case "old":
		return append(names, "DHE-DSS", "CAMELLIA", "SEED")
	}
	names = nil
	chosen, _ := cipherList(set)
	for _, c := range chosen {
		if c.id == 0 {
			names = append(names, c.name)
		}
	}
	return names
}

func suiteNamed(name string) (uint16, bool) {
	if id, ok := suiteNames[name]; ok {
		return id, true
	}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		// RC4 is forbidden (RFC 7465), and suites of TLS 1.3 are chosen elsewhere.
		if s.Name == name && !strings.Contains(name, "RC4") && !slices.Contains(s.SupportedVersions, tls.VersionTLS13) {
			return s.ID, true
		}
	}
	return 0, false
}

// ParseGroups reads the key exchange groups, names of OpenSSL or of the IANA registry separated by colons; case does not
// count. unknown lists the names that crypto/tls does not have. It is an error if nothing is left.
func ParseGroups(text string) (groups []tls.CurveID, unknown []string, err error) {
	return parseNames(text, "group names", groupNamed)
}

func groupNamed(name string) (tls.CurveID, bool) {
	switch strings.ToLower(name) {
	case "x25519":
		return tls.X25519, true
	case "secp256r1", "prime256v1", "p-256":
		return tls.CurveP256, true
	case "secp384r1", "p-384":
		return tls.CurveP384, true
	case "secp521r1", "p-521":
		return tls.CurveP521, true
	case "x25519mlkem768":
		return tls.X25519MLKEM768, true
	case "secp256r1mlkem768":
		return tls.SecP256r1MLKEM768, true
	case "secp384r1mlkem1024":
		return tls.SecP384r1MLKEM1024, true
	}
	return 0, false
}

// ParseSuites13 reads the cipher suites of TLS 1.3, separated by colons, and returns the names of those that crypto/tls
// offers although they are not wanted: it always offers all three of its own (RFC 8446 section B.4). unknown lists the
// names it does not have. It is an error if nothing is left.
func ParseSuites13(text string) (unwanted, unknown []string, err error) {
	all := []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
	wanted, unknown, err := parseNames(text, "cipher suites of TLS 1.3", func(name string) (string, bool) {
		return name, slices.Contains(all, name)
	})
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(wanted, name) }), unknown, nil
}

// parseNames reads names separated by colons. Of a name that comes twice the first place counts.
func parseNames[T comparable](text, allowed string, find func(string) (T, bool)) (found []T, unknown []string, err error) {
	for name := range strings.SplitSeq(text, ":") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		v, ok := find(name)
		switch {
		case !ok:
			unknown = append(unknown, name)
		case !slices.Contains(found, v):
			found = append(found, v)
		}
	}
	if len(found) == 0 {
		return nil, unknown, fmt.Errorf("allowed: %s separated by colons, one of them at least known", allowed)
	}
	return found, unknown, nil
}

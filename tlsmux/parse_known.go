package tlsmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
)

// ParseGoVersion reads a version of TLS as Go calls it.
func ParseGoVersion(s string) (uint16, error) {
	for name, version := range map[string]uint16{
		"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
	} {
		if s == name {
			return version, nil
		}
	}
	return 0, errors.New("allowed: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13")
}

// ParseKnownCiphers reads cipher suites, all of which have to be known. Those of TLS 1.3 are always there.
func ParseKnownCiphers(s string) ([]uint16, error) {
	if s == "" {
		return nil, nil
	}
	var older []string
	for name := range strings.SplitSeq(s, ":") {
		if _, unknown, err := ParseSuites13(name); err != nil || len(unknown) > 0 {
			older = append(older, name)
		}
	}
	if len(older) == 0 {
		return nil, nil
	}
	suites, unknown, err := ParseCiphers(strings.Join(older, ":"))
	if len(unknown) > 0 {
		return nil, fmt.Errorf("cipher suites are not supported: %v", unknown)
	}
	return suites, err
}

// ParseKnownGroups reads key exchange groups, all of which have to be known.
func ParseKnownGroups(s string) ([]tls.CurveID, error) {
	if s == "" {
		return nil, nil
	}
	groups, unknown, err := ParseGroups(strings.ReplaceAll(s, ",", ":"))
	if len(unknown) > 0 {
		return nil, fmt.Errorf("curves are not supported: %v", unknown)
	}
	if err != nil {
		return nil, errors.New("no valid curves found")
	}
	return groups, nil
}

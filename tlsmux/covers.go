package tlsmux

import "crypto/x509"

// Names are those a certificate is valid for: the DNS names it lists or, with none of them, its common name. It is the
// certificate, looked at from that side, and costs no memory.
type Names x509.Certificate

// Covers tells whether a host, lower-case and without port and trailing dot, is among the names. A wildcard stands for one
// whole label, the first (RFC 6125 section 6.4.3). It allocates nothing.
func (n *Names) Covers(host []byte) bool {
	if len(n.DNSNames) == 0 {
		return covers(n.Subject.CommonName, host)
	}
	for _, name := range n.DNSNames {
		if covers(name, host) {
			return true
		}
	}
	return false
}

// covers compares from the end: names of one domain differ at the start.
func covers(name string, host []byte) bool {
	if len(name) > 2 && name[0] == '*' && name[1] == '.' {
		name = name[1:]
		for len(host) > 0 && host[0] != '.' {
			host = host[1:]
			if len(host) == len(name) {
				return sameHost(name, host)
			}
		}
		return false
	}
	return len(name) == len(host) && len(name) > 0 && sameHost(name, host)
}

// sameHost compares texts of the same length; host is lower-case.
func sameHost(name string, host []byte) bool {
	for i := len(host) - 1; i >= 0; i-- {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != host[i] {
			return false
		}
	}
	return true
}

package tlsmux

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"strconv"
	"strings"
)

// MaxProxyHeader bounds a PROXY header of version 2. Headers of real senders, TLVs
// included, are a few hundred bytes; the protocol would allow 64 KiB.
const MaxProxyHeader = 4096

// Lengths of the PROXY protocol.
const (
	proxyLineMax    = 107 // of version 1 with its CRLF
	proxyFixed      = 16  // of version 2, before the addresses
	proxyAddresses4 = 12
	proxyAddresses6 = 36
	proxyUnix       = 216
	proxyTLV        = 3    // type and length of a TLV
	proxyTypeCRC32C = 0x03 // checksum of the whole header
)

// Announced is what a PROXY header says of a connection. The zero value is that of a header that announces nothing (LOCAL,
// UNKNOWN): the addresses of the socket count.
type Announced struct {
	Source      netip.AddrPort // who connected to the proxy in front
	Destination netip.AddrPort // where to
}

// ProxyError says why the first bytes of a connection are no PROXY header. The parser returns only the values declared in
// this package.
type ProxyError struct{ reason string }

func (e *ProxyError) Error() string { return "cannot read PROXY header: " + e.reason }

// What can be wrong with a PROXY header.
var (
	// ErrNoProxyHeader: the connection begins with something else.
	ErrNoProxyHeader = &ProxyError{"there is none"}
	// ErrProxyLine: a line of version 1 is not of the form of section 2.1 of the PROXY protocol, or longer than 107 bytes.
	ErrProxyLine = &ProxyError{"bad line of version 1"}
	// ErrProxyBinary: a version, command, family or length of version 2 is none of section 2.2, or contradicts another.
	ErrProxyBinary = &ProxyError{"bad header of version 2"}
	// ErrProxySize: a header of version 2 is longer than MaxProxyHeader.
	ErrProxySize = &ProxyError{"too long"}
	// ErrProxyChecksum: the CRC32c in a header of version 2 does not match it.
	ErrProxyChecksum = &ProxyError{"wrong checksum"}
)

const (
	proxyMark1 = "PROXY "
	proxyMark2 = "\r\n\r\n\x00\r\nQUIT\n"
)

// ParseProxy parses the PROXY header p begins with (version 1 or 2 of the PROXY protocol of the HAProxy project). n is its
// length, 0 while it is incomplete. Whatever cannot become a header is an error at its first byte; the error is a *ProxyError.
// It allocates nothing for version 2.
func ParseProxy(p []byte) (a Announced, n int, err error) {
	switch {
	case hasMark(p, proxyMark1):
		if len(p) <= len(proxyMark1) {
			return a, 0, nil
		}
		return parseProxyLine(p)
	case hasMark(p, proxyMark2):
		if len(p) < proxyFixed {
			return a, 0, checkProxyStart(p)
		}
		return parseProxyBinary(p)
	}
	return a, 0, ErrNoProxyHeader
}

// hasMark says whether p and mark agree as far as both go.
func hasMark(p []byte, mark string) bool {
	n := min(len(p), len(mark))
	return string(p[:n]) == mark[:n]
}

// parseProxyLine reads version 1.
func parseProxyLine(p []byte) (a Announced, n int, err error) {
	line := p[:min(len(p), proxyLineMax)]
	text := line
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		n, text = end+1, line[:end]
	}
	ended := len(text) > 0 && text[len(text)-1] == '\r'
	if ended {
		text = text[:len(text)-1]
	}
	for _, c := range text {
		if c < ' ' || c > '~' {
			return a, 0, ErrProxyLine
		}
	}
	switch {
	case n > 0 && !ended, n == 0 && len(line) == proxyLineMax:
		return a, 0, ErrProxyLine
	case n == 0:
		return a, 0, nil
	}
	if a, err = proxyWords(string(text[len(proxyMark1):])); err != nil {
		return a, 0, err
	}
	return a, n, nil
}

// proxyWords reads what follows "PROXY " in a line of version 1.
func proxyWords(text string) (a Announced, err error) {
	if text == "UNKNOWN" || strings.HasPrefix(text, "UNKNOWN ") {
		return a, nil
	}
	words := strings.Split(text, " ")
	if len(words) != 5 || words[0] != "TCP4" && words[0] != "TCP6" {
		return a, ErrProxyLine
	}
	source, ok := proxyAddress(words[0] == "TCP6", words[1], words[3])
	destination, ok2 := proxyAddress(words[0] == "TCP6", words[2], words[4])
	if !ok || !ok2 {
		return a, ErrProxyLine
	}
	return Announced{source, destination}, nil
}

// proxyAddress reads an address and a port as version 1 writes them.
func proxyAddress(six bool, addr, port string) (netip.AddrPort, bool) {
	ip, err := netip.ParseAddr(addr)
	if err != nil || ip.Is6() != six || ip.Zone() != "" {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != port {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), true
}

// checkProxyStart looks at what is there of the fixed part of version 2.
func checkProxyStart(p []byte) error {
	const command, family, length = 12, 13, 14
	if len(p) > command && p[command] != 0x20 && p[command] != 0x21 {
		return ErrProxyBinary
	}
	if len(p) > family {
		switch p[family] {
		case 0x00, 0x11, 0x21, 0x31:
		default: // datagrams, and numbers that mean nothing
			return ErrProxyBinary
		}
	}
	if len(p) > length+1 && proxyFixed+int(binary.BigEndian.Uint16(p[length:])) > MaxProxyHeader {
		return ErrProxySize
	}
	return nil
}

// parseProxyBinary reads version 2.
func parseProxyBinary(p []byte) (a Announced, n int, err error) {
	if err := checkProxyStart(p); err != nil {
		return a, 0, err
	}
	n = proxyFixed + int(binary.BigEndian.Uint16(p[14:]))
	if len(p) < n {
		return a, 0, nil
	}
	body := p[proxyFixed:n]
	if p[12] == 0x20 { // LOCAL: the receiver ignores what follows
		return a, n, nil
	}
	size := 0
	switch p[13] {
	case 0x11:
		size = proxyAddresses4
	case 0x21:
		size = proxyAddresses6
	case 0x31:
		size = proxyUnix
	}
	if len(body) < size {
		return a, 0, ErrProxyBinary
	}
	if err := checkProxyTLVs(p[:n], proxyFixed+size); err != nil {
		return a, 0, err
	}
	switch size {
	case proxyAddresses4:
		a.Source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(body[:4])), binary.BigEndian.Uint16(body[8:]))
		a.Destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(body[4:8])), binary.BigEndian.Uint16(body[10:]))
	case proxyAddresses6:
		a.Source = netip.AddrPortFrom(netip.AddrFrom16([16]byte(body[:16])).Unmap(), binary.BigEndian.Uint16(body[32:]))
		a.Destination = netip.AddrPortFrom(netip.AddrFrom16([16]byte(body[16:32])).Unmap(), binary.BigEndian.Uint16(body[34:]))
	}
	return a, n, nil
}

// checkProxyTLVs checks that the TLVs of a header fill it exactly, and its checksum if there is one.
func checkProxyTLVs(header []byte, at int) error {
	for at < len(header) {
		if len(header)-at < proxyTLV {
			return ErrProxyBinary
		}
		kind, size := header[at], int(binary.BigEndian.Uint16(header[at+1:]))
		at += proxyTLV
		if size > len(header)-at {
			return ErrProxyBinary
		}
		if kind == proxyTypeCRC32C && (size != 4 || binary.BigEndian.Uint32(header[at:]) != proxyChecksum(header, at)) {
			return ErrProxyChecksum
		}
		at += size
	}
	return nil
}

// proxyChecksum is the CRC32c of a header in which the four bytes from at on count as zero.
func proxyChecksum(header []byte, at int) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, header[:at])
	sum = crc32.Update(sum, table, []byte{0, 0, 0, 0})
	return crc32.Update(sum, table, header[at+4:])
}

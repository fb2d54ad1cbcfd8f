package tlsmux

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var proxyLineModel = regexp.MustCompile(`\APROXY (?:UNKNOWN(?: [ -~]*)?|TCP(4|6) ([0-9.]+|[0-9a-fA-F.:]+) ([0-9.]+|[0-9a-fA-F.:]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4}))\r\n`)

// proxyModel reads a whole header a second time, in the plainest way: a pattern for version 1, offsets of section 2.2 for
// version 2. n = 0: it is no header, or not a whole one.
func proxyModel(p []byte) (a Announced, n int) {
	if m := proxyLineModel.FindSubmatch(p); m != nil && len(m[0]) <= 107 {
		if len(m[1]) == 0 {
			return a, len(m[0])
		}
		for i, at := range []*netip.AddrPort{&a.Source, &a.Destination} {
			ip, err := netip.ParseAddr(string(m[2+i]))
			port, wrong := strconv.ParseUint(string(m[4+i]), 10, 16)
			if err != nil || wrong != nil || strings.Contains(string(m[2+i]), ":") != (m[1][0] == '6') {
				return Announced{}, 0
			}
			*at = netip.AddrPortFrom(ip.Unmap(), uint16(port))
		}
		return a, len(m[0])
	}
	if len(p) < 16 || string(p[:12]) != "\r\n\r\n\x00\r\nQUIT\n" {
		return a, 0
	}
	n = 16 + int(binary.BigEndian.Uint16(p[14:]))
	size, known := map[byte]int{0x00: 0, 0x11: 12, 0x21: 36, 0x31: 216}[p[13]]
	if !known || p[12] != 0x20 && p[12] != 0x21 || n > 4096 || n > len(p) {
		return a, 0
	}
	if p[12] == 0x20 {
		return a, n
	}
	if n < 16+size || !proxyTLVsModel(p[:n], 16+size) {
		return a, 0
	}
	ip := func(at, length int) netip.Addr { ip, _ := netip.AddrFromSlice(p[at : at+length]); return ip.Unmap() }
	port := func(at int) uint16 { return binary.BigEndian.Uint16(p[at:]) }
	switch p[13] {
	case 0x11:
		a = Announced{netip.AddrPortFrom(ip(16, 4), port(24)), netip.AddrPortFrom(ip(20, 4), port(26))}
	case 0x21:
		a = Announced{netip.AddrPortFrom(ip(16, 16), port(48)), netip.AddrPortFrom(ip(32, 16), port(50))}
	}
	return a, n
}

func proxyTLVsModel(header []byte, at int) bool {
	for at < len(header) {
		if at+3 > len(header) {
			return false
		}
		end := at + 3 + int(binary.BigEndian.Uint16(header[at+1:]))
		if end > len(header) {
			return false
		}
		if header[at] == 0x03 {
			zeroed := slices.Clone(header)
			clear(zeroed[at+3 : end])
			if end-at != 7 || binary.BigEndian.Uint32(header[at+3:]) != crc32.Checksum(zeroed, crc32.MakeTable(crc32.Castagnoli)) {
				return false
			}
		}
		at = end
	}
	return true
}

// FuzzParseProxy: what is taken for a header is one to a second reader, who finds the same addresses and the same end; and what
// is refused, or still undecided, is none to him. It makes no difference in which pieces it comes.
func FuzzParseProxy(f *testing.F) {
	for _, tc := range proxyHeaders {
		f.Add([]byte(tc.header))
		f.Add([]byte(tc.header + "GET / HTTP/1.1\r\n"))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		said, n, err := ParseProxy(p)
		if n < 0 || n > len(p) || n > MaxProxyHeader || err != nil && n != 0 || said.Source.IsValid() != said.Destination.IsValid() {
			t.Fatalf("%v, %d, %v of %d bytes", said, n, err, len(p))
		}
		if n == 0 && err == nil && len(p) >= MaxProxyHeader {
			t.Fatalf("still undecided after %d bytes", len(p))
		}
		if want, end := proxyModel(p); end != n || want != said {
			t.Fatalf("%q: %v, %d, %v; the model says %v, %d", p, said, n, err, want, end)
		}
		// Every shorter piece is the same header not complete yet, or the same refusal earlier.
		for i := range min(len(p), 256) {
			before, m, early := ParseProxy(p[:i])
			if m > 0 && (m != n || before != said) || early != nil && err == nil {
				t.Fatalf("%d bytes say %v, %d, %v; all %v, %d, %v", i, before, m, early, said, n, err)
			}
		}
	})
}

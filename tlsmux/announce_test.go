package tlsmux

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// proxyV2 is a header of version 2.
func proxyV2(command, family byte, body string) string {
	return proxyMark2 + string([]byte{command, family}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)))) + body
}

// tlv is one TLV of version 2.
func tlv(kind byte, value string) string {
	return string(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(value)))) + value
}

const (
	body4 = "\xc0\x00\x02\x07\xc6\x33\x64\x01\x12\x34\x01\xbb"
	body6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x12\x34\x01\xbb"
)

// checksummed completes a header whose last TLV is a zero CRC32c.
func checksummed(header string) string {
	b := []byte(header)
	binary.BigEndian.PutUint32(b[len(b)-4:], proxyChecksum(b, len(b)-4))
	return string(b)
}

var proxyHeaders = []struct {
	name, header        string
	source, destination string // "" = the header announces nothing
	err                 error
}{
	{"v1 TCP4", "PROXY TCP4 192.0.2.7 198.51.100.1 4660 443\r\n", "192.0.2.7:4660", "198.51.100.1:443", nil},
	{"v1 TCP6", "PROXY TCP6 2001:db8::7 2001:db8::1 4660 443\r\n", "[2001:db8::7]:4660", "[2001:db8::1]:443", nil},
	{"v1 mapped", "PROXY TCP6 ::ffff:192.0.2.7 ::ffff:198.51.100.1 1 2\r\n", "192.0.2.7:1", "198.51.100.1:2", nil},
	{"v1 port 0", "PROXY TCP4 192.0.2.7 198.51.100.1 0 65535\r\n", "192.0.2.7:0", "198.51.100.1:65535", nil},
	{"v1 unknown", "PROXY UNKNOWN\r\n", "", "", nil},
	{"v1 unknown with words", "PROXY UNKNOWN ffff::1 anything 1 2\r\n", "", "", nil},
	{"v1 longest", "PROXY UNKNOWN " + strings.Repeat("x", 107-16) + "\r\n", "", "", nil},
	{"v1 too long", "PROXY UNKNOWN " + strings.Repeat("x", 107-15) + "\r\n", "", "", ErrProxyLine},
	{"v1 bare LF", "PROXY TCP4 192.0.2.7 198.51.100.1 4660 443\n", "", "", ErrProxyLine},
	{"v1 bare CR", "PROXY TCP4 192.0.2.7\r198.51.100.1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 NUL", "PROXY TCP4 192.0.2.7\x00 198.51.100.1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 lower case", "proxy TCP4 192.0.2.7 198.51.100.1 4660 443\r\n", "", "", ErrNoProxyHeader},
	{"v1 two blanks", "PROXY TCP4  192.0.2.7 198.51.100.1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 blank at the end", "PROXY TCP4 192.0.2.7 198.51.100.1 4660 443 \r\n", "", "", ErrProxyLine},
	{"v1 no port", "PROXY TCP4 192.0.2.7 198.51.100.1 4660\r\n", "", "", ErrProxyLine},
	{"v1 leading zero", "PROXY TCP4 192.0.2.7 198.51.100.1 04660 443\r\n", "", "", ErrProxyLine},
	{"v1 signed port", "PROXY TCP4 192.0.2.7 198.51.100.1 +1 443\r\n", "", "", ErrProxyLine},
	{"v1 port too big", "PROXY TCP4 192.0.2.7 198.51.100.1 65536 443\r\n", "", "", ErrProxyLine},
	{"v1 family of other kind", "PROXY TCP4 2001:db8::7 2001:db8::1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 name", "PROXY TCP4 localhost 198.51.100.1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 zone", "PROXY TCP6 fe80::1%eth0 2001:db8::1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 octal", "PROXY TCP4 192.0.02.7 198.51.100.1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 UDP", "PROXY UDP4 192.0.2.7 198.51.100.1 4660 443\r\n", "", "", ErrProxyLine},
	{"v1 unknownx", "PROXY UNKNOWNX\r\n", "", "", ErrProxyLine},

	{"v2 TCP4", proxyV2(0x21, 0x11, body4), "192.0.2.7:4660", "198.51.100.1:443", nil},
	{"v2 TCP6", proxyV2(0x21, 0x21, body6), "[2001:db8::7]:4660", "[2001:db8::1]:443", nil},
	{"v2 LOCAL", proxyV2(0x20, 0x00, ""), "", "", nil},
	{"v2 LOCAL with addresses", proxyV2(0x20, 0x11, body4), "", "", nil},
	{"v2 unspecified", proxyV2(0x21, 0x00, ""), "", "", nil},
	{"v2 unix", proxyV2(0x21, 0x31, strings.Repeat("a", proxyUnix)), "", "", nil},
	{"v2 TLVs", proxyV2(0x21, 0x11, body4+tlv(0x01, "h2")+tlv(0x04, "")), "192.0.2.7:4660", "198.51.100.1:443", nil},
	{"v2 checksum", checksummed(proxyV2(0x21, 0x11, body4+tlv(0x03, "\x00\x00\x00\x00"))), "192.0.2.7:4660", "198.51.100.1:443", nil},
	{"v2 largest", proxyV2(0x21, 0x11, body4+tlv(0xea, strings.Repeat("x", MaxProxyHeader-16-12-3))), "192.0.2.7:4660", "198.51.100.1:443", nil},
	{"v2 wrong checksum", proxyV2(0x21, 0x11, body4+tlv(0x03, "abcd")), "", "", ErrProxyChecksum},
	{"v2 short checksum", proxyV2(0x21, 0x11, body4+tlv(0x03, "abc")), "", "", ErrProxyChecksum},
	{"v2 TLV longer than the header", proxyV2(0x21, 0x11, body4+"\x01\x00\x09h2"), "", "", ErrProxyBinary},
	{"v2 half a TLV", proxyV2(0x21, 0x11, body4+"\x01\x00"), "", "", ErrProxyBinary},
	{"v2 addresses too short", proxyV2(0x21, 0x11, body4[:11]), "", "", ErrProxyBinary},
	{"v2 too big", proxyV2(0x21, 0x11, body4+tlv(0xea, strings.Repeat("x", MaxProxyHeader-16-12-2))), "", "", ErrProxySize},
	{"v2 64 KiB", proxyV2(0x21, 0x11, body4+tlv(0xea, strings.Repeat("x", 60000))), "", "", ErrProxySize},
	{"v2 version 1", proxyV2(0x11, 0x11, body4), "", "", ErrProxyBinary},
	{"v2 command 2", proxyV2(0x22, 0x11, body4), "", "", ErrProxyBinary},
	{"v2 datagrams", proxyV2(0x21, 0x12, body4), "", "", ErrProxyBinary},
	{"v2 family 4", proxyV2(0x21, 0x41, body4), "", "", ErrProxyBinary},
	{"v2 other signature", "\r\n\r\n\x00\r\nQUIP\n\x21\x11\x00\x0c" + body4, "", "", ErrNoProxyHeader},

	{"HTTP", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", "", ErrNoProxyHeader},
	{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "", "", ErrNoProxyHeader},
	{"empty line", "\r\n\r\nGET / HTTP/1.1\r\n", "", "", ErrNoProxyHeader},
}

func TestParseProxy(t *testing.T) {
	for _, tc := range proxyHeaders {
		t.Run(tc.name, func(t *testing.T) {
			want := Announced{}
			if tc.source != "" {
				want = Announced{netip.MustParseAddrPort(tc.source), netip.MustParseAddrPort(tc.destination)}
			}
			// Byte by byte, as it may come; what follows is not part of it.
			const rest = "PROXY UNKNOWN\r\n"
			all := []byte(tc.header + rest)
			for i := range all {
				got, n, err := ParseProxy(all[:i+1])
				if err != nil || n > 0 {
					if !errors.Is(err, tc.err) || tc.err == nil && (n != len(tc.header) || got != want) {
						t.Fatalf("after %d bytes %v, %d, %v; want %v, %d, %v", i+1, got, n, err, want, len(tc.header), tc.err)
					}
					break
				}
				if i == len(all)-1 {
					t.Fatal("it was never decided")
				}
			}
			got, n, err := ParseProxy(all)
			if !errors.Is(err, tc.err) || tc.err == nil && (n != len(tc.header) || got != want) {
				t.Errorf("at once %v, %d, %v", got, n, err)
			}
		})
	}
}

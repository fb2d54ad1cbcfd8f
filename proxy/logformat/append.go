package logformat

import (
	"net/netip"
	"strconv"
)

// Number appends n, in hexadecimal of at least so many digits if the item asks for that.
func (i *Item) Number(b []byte, n uint64, digits int) []byte {
	if i.Hex && !i.Sample {
		return Hex(b, n, digits)
	}
	return strconv.AppendUint(b, n, 10)
}

// IP appends an address, in hexadecimal all its bytes, or nothing for an invalid one.
func (i *Item) IP(b []byte, a netip.Addr) []byte {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return b
	case !i.Hex || i.Sample:
		return a.AppendTo(b)
	case a.Is4():
		v := a.As4()
		for _, c := range v {
			b = Hex(b, uint64(c), 2)
		}
	default:
		v := a.As16()
		for _, c := range v {
			b = Hex(b, uint64(c), 2)
		}
	}
	return b
}

// Millis appends the milliseconds of a second: three digits, in hexadecimal two or more.
func (i *Item) Millis(b []byte, ms uint64) []byte {
	if i.Hex {
		return Hex(b, ms, 2)
	}
	return append(b, '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10))
}

// Hex appends n in upper-case hexadecimal with at least so many digits.
func Hex(b []byte, n uint64, digits int) []byte {
	const hexDigits = "0123456789ABCDEF"
	for digits < 16 && n>>(4*digits) != 0 {
		digits++
	}
	for digits--; digits >= 0; digits-- {
		b = append(b, hexDigits[n>>(4*digits)&15])
	}
	return b
}

// Escape puts a backslash before quotes, backslashes and closing brackets of b[from:].
func Escape(b []byte, from int) []byte {
	extra := 0
	for _, c := range b[from:] {
		if escaped(c) {
			extra++
		}
	}
	at := len(b) - 1
	for range extra {
		b = append(b, 0)
	}
	for to := len(b) - 1; to > at; to-- { // from the end: what has moved is where it belongs once both meet
		b[to] = b[at]
		if escaped(b[at]) {
			to--
			b[to] = '\\'
		}
		at--
	}
	return b
}

func escaped(c byte) bool { return c == '"' || c == '\\' || c == ']' }

// UUID appends a version 4 UUID (RFC 9562 section 5.4) of 122 random bits.
func UUID(b []byte, hi, lo uint64) []byte {
	const hexDigits = "0123456789abcdef"
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			b = append(b, '-')
		}
		if i < 16 {
			b = append(b, hexDigits[hi>>(60-4*i)&15])
		} else {
			b = append(b, hexDigits[lo>>(60-4*(i-16))&15])
		}
	}
	return b
}

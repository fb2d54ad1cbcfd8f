package clientcert

import (
	"encoding/asn1"
	"errors"
	"math/big"
)

// Tags of universal elements (X.690 section 8), with the bit of constructed ones.
const (
	tagInteger         = asn1.TagInteger
	tagBoolean         = asn1.TagBoolean
	tagEnumerated      = asn1.TagEnum
	tagOctets          = asn1.TagOctetString
	tagObject          = asn1.TagOID
	tagUTCTime         = asn1.TagUTCTime
	tagGeneralizedTime = asn1.TagGeneralizedTime
	tagSequence        = asn1.TagSequence | constructed

	constructed = 0x20
	contextual  = 0x80 // elements with a meaning of their own
)

var errEncoding = errors.New("the encoding of the list is not valid")

// der is a series of elements in DER (X.690 section 10). It is read without an allocation.
type der []byte

// next removes the first element from d and returns its tag, its content, and the whole element. It
// returns false if the element is not valid, or its tag has more than one byte. No element of a
// revocation list has such a tag.
func (d *der) next() (tag byte, content, whole der, ok bool) {
	s := *d
	if len(s) < 2 || s[0]&0x1f == 0x1f {
		return 0, nil, nil, false
	}
	head, length := 2, int(s[1])
	if length >= 0x80 {
		n := length & 0x7f
		if n == 0 || n > 4 || len(s) < 2+n || s[2] == 0 {
			return 0, nil, nil, false
		}
		length = 0
		for _, b := range s[2 : 2+n] {
			length = length<<8 | int(b)
		}
		if head += n; length < 0x80 {
			return 0, nil, nil, false
		}
	}
	if length > len(s)-head {
		return 0, nil, nil, false
	}
	*d = s[head+length:]
	return s[0], s[head : head+length], s[:head+length], true
}

// take removes an element with a tag from d and returns its content.
func (d *der) take(tag byte) (content der, ok bool) {
	if !d.begins(tag) {
		return nil, false
	}
	_, content, _, ok = d.next()
	return content, ok
}

// begins reports whether the first element of d has a tag.
func (d *der) begins(tag byte) bool { return len(*d) > 0 && (*d)[0] == tag }

// length returns the number of bytes of the first element of a prefix of d, with tag and length. It
// returns false if the prefix does not contain it.
func (d der) length() (int, bool) {
	if len(d) < 2 {
		return 0, false
	}
	if d[1] < 0x80 {
		return 2 + int(d[1]), true
	}
	n := int(d[1] & 0x7f)
	if n == 0 || n > 4 || len(d) < 2+n {
		return 0, false
	}
	length := 0
	for _, b := range d[2 : 2+n] {
		length = length<<8 | int(b)
	}
	return 2 + n + length, true
}

// magnitude removes an INTEGER from d and returns its magnitude as big.Int.Bytes does.
func (d *der) magnitude() ([]byte, bool) {
	s, ok := d.take(tagInteger)
	switch {
	case !ok || len(s) == 0 || len(s) > 1 && (s[0] == 0 && s[1] < 0x80 || s[0] == 0xff && s[1] >= 0x80):
		return nil, false
	case s[0] == 0:
		return s[1:], true
	case s[0] < 0x80:
		return s, true
	}
	n := new(big.Int).SetBytes(s)
	return n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(s)))).Bytes(), true
}

// element returns the encoding of an element.
func element(tag byte, content ...[]byte) []byte {
	n := 0
	for _, c := range content {
		n += len(c)
	}
	var out []byte
	switch {
	case n < 0x80:
		out = append(out, tag, byte(n))
	case n <= 0xff:
		out = append(out, tag, 0x81, byte(n))
	case n <= 0xffff:
		out = append(out, tag, 0x82, byte(n>>8), byte(n))
	default:
		out = append(out, tag, 0x84, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		if n <= 0xffffff {
			out = append(out[:1], 0x83, byte(n>>16), byte(n>>8), byte(n))
		}
	}
	for _, c := range content {
		out = append(out, c...)
	}
	return out
}

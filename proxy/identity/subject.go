package identity

import (
	"encoding/asn1"
	"strings"
	"time"
)

// shortNames are OpenSSL's names of the attributes that subjects are made of, by object identifier. Others are written as
// their numbers.
var shortNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
	"2.5.4.9": "street", "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.13": "description",
	"2.5.4.14": "searchGuide", "2.5.4.15": "businessCategory", "2.5.4.16": "postalAddress", "2.5.4.17": "postalCode",
	"2.5.4.18": "postOfficeBox", "2.5.4.19": "physicalDeliveryOfficeName", "2.5.4.20": "telephoneNumber",
	"2.5.4.31": "member", "2.5.4.32": "owner", "2.5.4.33": "roleOccupant", "2.5.4.34": "seeAlso",
	"2.5.4.41": "name", "2.5.4.42": "GN", "2.5.4.43": "initials", "2.5.4.44": "generationQualifier",
	"2.5.4.45": "x500UniqueIdentifier", "2.5.4.46": "dnQualifier", "2.5.4.49": "distinguishedName",
	"2.5.4.51": "houseIdentifier", "2.5.4.54": "dmdName", "2.5.4.65": "pseudonym", "2.5.4.72": "role",
	"2.5.4.97": "organizationIdentifier", "2.5.4.98": "c3", "2.5.4.99": "n3", "2.5.4.100": "dnsName",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.3": "mail", "0.9.2342.19200300.100.1.25": "DC",
	"1.2.840.113549.1.9.1": "emailAddress", "1.2.840.113549.1.9.2": "unstructuredName",
	"1.2.840.113549.1.9.8": "unstructuredAddress", "1.3.6.1.4.1.311.60.2.1.1": "jurisdictionL",
	"1.3.6.1.4.1.311.60.2.1.2": "jurisdictionST", "1.3.6.1.4.1.311.60.2.1.3": "jurisdictionC",
	"1.2.643.3.131.1.1": "INN", "1.2.643.100.1": "OGRN", "1.2.643.100.3": "SNILS",
}

// attribute of a relative distinguished name (RFC 5280 section 4.1.2.4).
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// attributes calls each for the attributes of a name in DER in the order of the certificate, until it returns false.
// What is no name has none.
func attributes(name []byte, each func(a *attribute) bool) {
	rest, ok := inside(name, asn1.TagSequence)
	for ok && len(rest) > 0 {
		var set, seq []byte
		if set, rest, ok = nextElement(rest, asn1.TagSet); !ok {
			return
		}
		for len(set) > 0 {
			if seq, set, ok = nextElement(set, asn1.TagSequence); !ok {
				return
			}
			var a attribute
			tail, err := asn1.Unmarshal(seq, &a.Type)
			if err != nil {
				return
			}
			if _, err = asn1.Unmarshal(tail, &a.Value); err != nil || !each(&a) {
				return
			}
		}
	}
}

// nextElement takes an element of the universal type tag off der and returns what it holds.
func nextElement(der []byte, tag int) (content, rest []byte, ok bool) {
	var v asn1.RawValue
	rest, err := asn1.Unmarshal(der, &v)
	if err != nil || v.Class != asn1.ClassUniversal || v.Tag != tag || !v.IsCompound {
		return nil, nil, false
	}
	return v.Bytes, rest, true
}

func inside(der []byte, tag int) ([]byte, bool) {
	content, rest, ok := nextElement(der, tag)
	return content, ok && len(rest) == 0
}

// oneLine writes a name in DER as /C=US/O=Org/CN=x: the attributes in the order of the certificate, their values byte for
// byte as they are encoded. Control characters, NUL and DEL among them, are written \xHH, as OpenSSL writes them: a
// subject must not end the field it is sent in.
func oneLine(name []byte) string {
	var b strings.Builder
	attributes(name, func(a *attribute) bool {
		number := a.Type.String()
		short, ok := shortNames[number]
		if !ok {
			short = number
		}
		b.WriteByte('/')
		b.WriteString(short)
		b.WriteByte('=')
		printable(&b, a.Value.Bytes)
		return true
	})
	return b.String()
}

// commonName is the value of the first CN of a name in DER, written like the values of oneLine.
func commonName(name []byte) string {
	var b strings.Builder
	attributes(name, func(a *attribute) bool {
		if a.Type.String() != "2.5.4.3" {
			return true
		}
		printable(&b, a.Value.Bytes)
		return false
	})
	return b.String()
}

func printable(b *strings.Builder, value []byte) {
	const digits = "0123456789ABCDEF"
	for _, c := range value {
		if c < ' ' || c == 0x7f {
			b.Write([]byte{'\\', 'x', digits[c>>4], digits[c&15]})
			continue
		}
		b.WriteByte(c)
	}
}

// moment is a time written YYMMDDhhmmssZ, as certificates write those up to 2049 (RFC 5280 section 4.1.2.5), and nothing
// for one before 1950 or after 2099.
func moment(t time.Time) string {
	t = t.UTC()
	if t.Year() < 1950 || t.Year() > 2099 {
		return ""
	}
	return t.Format("060102150405") + "Z"
}

package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"turnout/internal/testkit/testcert"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// der is ASN.1 of v.
func der(t testing.TB, v any) []byte {
	t.Helper()
	b, err := asn1.Marshal(v)
	must(t, err)
	return b
}

// value is an attribute with a string of any type.
func value(t testing.TB, oid asn1.ObjectIdentifier, tag int, s string) []byte {
	t.Helper()
	return der(t, attribute{Type: oid, Value: asn1.RawValue{Class: asn1.ClassUniversal, Tag: tag, Bytes: []byte(s)}})
}

// name puts sets of attributes together.
func name(t testing.TB, sets ...[]byte) []byte {
	t.Helper()
	var all []byte
	for _, s := range sets {
		all = append(all, der(t, asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSet, IsCompound: true, Bytes: s})...)
	}
	return der(t, asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true, Bytes: all})
}

var (
	oidC  = asn1.ObjectIdentifier{2, 5, 4, 6}
	oidO  = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidOU = asn1.ObjectIdentifier{2, 5, 4, 11}
	oidCN = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidDC = asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}
	oidMy = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 7}
)

func wide(s string) string {
	var b []byte
	for _, c := range utf16.Encode([]rune(s)) {
		b = append(b, byte(c>>8), byte(c))
	}
	return string(b)
}

// subjects are names and what they look like. HAProxy agrees with all of them but those with control characters.
func subjects(t testing.TB) []struct {
	what         string
	der          []byte
	line, common string
	ours         bool // not as HAProxy has it
} {
	utf8, printableString, ia5, t61, bmp := asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, asn1.TagT61String, asn1.TagBMPString
	return []struct {
		what         string
		der          []byte
		line, common string
		ours         bool
	}{
		{"usual", name(t, value(t, oidC, printableString, "US"), value(t, oidO, utf8, "Org"), value(t, oidCN, utf8, "x")), "/C=US/O=Org/CN=x", "x", false},
		{"other order", name(t, value(t, oidCN, utf8, "x"), value(t, oidO, utf8, "Org"), value(t, oidC, printableString, "US")), "/CN=x/O=Org/C=US", "x", false},
		{"several of a kind", name(t, value(t, oidOU, utf8, "a"), value(t, oidOU, utf8, "b"), value(t, oidCN, utf8, "first"), value(t, oidCN, utf8, "second")), "/OU=a/OU=b/CN=first/CN=second", "first", false},
		{"several in one set", name(t, append(value(t, oidCN, utf8, "x"), value(t, oidOU, utf8, "y")...)), "/CN=x/OU=y", "x", false},
		{"no common name", name(t, value(t, oidO, utf8, "Org")), "/O=Org", "", false},
		{"domain components", name(t, value(t, oidDC, ia5, "test"), value(t, oidDC, ia5, "corp"), value(t, oidCN, utf8, "x")), "/DC=test/DC=corp/CN=x", "x", false},
		{"unknown type", name(t, value(t, oidMy, utf8, "v"), value(t, oidCN, utf8, "x")), "/1.3.6.1.4.1.99999.7=v/CN=x", "x", false},
		{"separators within", name(t, value(t, oidCN, utf8, "a/O=b=c, \"d\" \\ ;")), `/CN=a/O=b=c, "d" \ ;`, `a/O=b=c, "d" \ ;`, false},
		{"UTF-8", name(t, value(t, oidCN, utf8, "Zoë Ä€")), "/CN=Zoë Ä€", "Zoë Ä€", false},
		{"Latin-1", name(t, value(t, oidCN, t61, "Zo\xeb")), "/CN=Zo\xeb", "Zo\xeb", false},
		{"empty value", name(t, value(t, oidO, utf8, ""), value(t, oidCN, utf8, "x")), "/O=/CN=x", "x", false},
		{"two bytes each", name(t, value(t, oidCN, bmp, wide("ab"))), `/CN=\x00a\x00b`, `\x00a\x00b`, true},
		{"line break", name(t, value(t, oidCN, utf8, "a\r\nx-admin: 1\x00\x7f\t")), `/CN=a\x0D\x0Ax-admin: 1\x00\x7F\x09`, `a\x0D\x0Ax-admin: 1\x00\x7F\x09`, true},
	}
}

func TestOneLine(t *testing.T) {
	for _, s := range subjects(t) {
		if got := oneLine(s.der); got != s.line {
			t.Errorf("%s: %q, want %q", s.what, got, s.line)
		}
		if got := commonName(s.der); got != s.common {
			t.Errorf("%s: common name %q, want %q", s.what, got, s.common)
		}
	}
	for _, bad := range []string{"", "0", "\x30\x02\x31", "\x31\x00", "\x30\x04\x31\x02\x30\x00", "\x30\x00tail"} {
		if got := oneLine([]byte(bad)); got != "" {
			t.Errorf("%q reads as %q", bad, got)
		}
	}
}

func TestMoment(t *testing.T) {
	for at, want := range map[time.Time]string{
		time.Date(2026, 11, 5, 7, 8, 9, 0, time.UTC):                        "261105070809Z",
		time.Date(2026, 11, 5, 7, 8, 9, 0, time.FixedZone("east", 3600)):    "261105060809Z",
		time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC):                         "500101000000Z",
		time.Date(2049, 12, 31, 23, 59, 59, 0, time.UTC):                    "491231235959Z",
		time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC):                         "500101000000Z",
		time.Date(2099, 12, 31, 23, 59, 59, 0, time.UTC):                    "991231235959Z",
		time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC):                         "",
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC):                    "",
		time.Date(1949, 12, 31, 23, 59, 59, 0, time.UTC):                    "",
		time.Date(2026, 11, 5, 7, 8, 9, 0, time.FixedZone("west", -8*3600)): "261105150809Z",
	} {
		if got := moment(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

// certificate is a self-signed one with a subject in DER.
func certificate(t testing.TB, subject []byte, change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	form := &x509.Certificate{SerialNumber: big.NewInt(0x0a1b2c), RawSubject: subject, IsCA: true, BasicConstraintsValid: true}
	if change != nil {
		change(form)
	}
	pair := testcert.Sign(t, form, nil)
	return pair.Cert, pair.Key
}

func lines(id *Identity) string {
	var b strings.Builder
	for _, f := range id.Fields {
		b.WriteString(string(f.Name) + ": " + string(f.Value) + "\n")
	}
	return b.String()
}

func TestWithoutCertificate(t *testing.T) {
	want := "x-ssl: 1\nx-ssl-client-verify: 0\nx-ssl-client-serial: \nx-ssl-client-version: \nx-ssl-client-sha1: \nx-ssl-client-dn: \n" +
		"x-ssl-client-cn: \nx-ssl-issuer: \nx-ssl-client-notbefore: \nx-ssl-client-notafter: \nx-ssl-client-der: \n"
	id := new(Rules).Of(nil)
	if got := lines(id); got != want || id.Refused || id.Certificate != nil {
		t.Errorf("got %q, refused %v", got, id.Refused)
	}
}

func TestFilter(t *testing.T) {
	ok, _ := certificate(t, name(t, value(t, oidC, asn1.TagPrintableString, "US"), value(t, oidCN, asn1.TagUTF8String, "ok")), nil)
	other, _ := certificate(t, name(t, value(t, oidCN, asn1.TagUTF8String, "other one")), nil)
	for _, c := range []struct {
		filter  string
		cert    *x509.Certificate
		refused bool
	}{
		{"CN=ok", nil, true}, // none given
		{"CN=ok", ok, false}, // the filter matches
		{"CN=ok", other, true},
		{"", nil, false},
		{"", other, false},
		{"cn=OK", ok, true},
		{"(?i)cn=OK", ok, false},
		{"^/C=US/CN=ok$", ok, false},
		{"^CN=ok", ok, true},
		{".*", nil, true}, // there is no subject to match
		{"(?:CN=ok|CN=other)", other, false},
		{"CN=other one", other, false}, // one expression, not two
		{"CN=none one", other, true},
		{"\tCN=ok\n", ok, false},
	} {
		filter, err := ParseFilter(c.filter)
		must(t, err)
		if got := (&Rules{Filter: filter}).Of(c.cert).Refused; got != c.refused {
			t.Errorf("%q: refused %v", c.filter, got)
		}
	}
}

// TestSubjectsHaveABudget checks that a client is refused if matching its certificate's subject
// exceeds the budget of a filter.
func TestSubjectsHaveABudget(t *testing.T) {
	long, _ := certificate(t, name(t, value(t, oidCN, asn1.TagUTF8String, strings.Repeat("a", 4000))), nil)
	filter, err := ParseFilter("(?:[a-z]?){1000}!")
	must(t, err)
	if id := (&Rules{Filter: filter}).Of(long); !id.Refused || !id.Undecided {
		t.Errorf("refused %t, undecided %t", id.Refused, id.Undecided)
	}
	filter, err = ParseFilter("CN=a+$")
	must(t, err)
	if id := (&Rules{Filter: filter}).Of(long); id.Refused || id.Undecided {
		t.Errorf("refused %t, undecided %t", id.Refused, id.Undecided)
	}
}

func TestFilterThatGoDoesNotHave(t *testing.T) {
	for text, want := range map[string]string{
		"CN=(?!x)": `"(?!": negative look-ahead of PCRE`, "CN=(?=x)": "look-ahead of PCRE", "(?<=O)x": "look-behind of PCRE",
		"(?<!O)x": "negative look-behind of PCRE", "(?>a)": "atomic group", `(a)\1`: "back-reference", "a++": "possessive",
		`a\Z`: `\z here`, `a\K`: "reset of the match", "(?x)a": "extended", "(?(1)a)": "condition", "(?R)": "recursion",
		"(a": `"(a": missing closing )`, "[": "missing closing ]", "*": "missing argument",
	} {
		_, err := ParseFilter(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestFieldsShareMemory: appending to one value must not write over the next.
func TestFieldsShareMemory(t *testing.T) {
	cert, _ := certificate(t, name(t, value(t, oidCN, asn1.TagUTF8String, "x")), nil)
	id := new(Rules).Of(cert)
	before := lines(id)
	for _, f := range id.Fields {
		_, _ = append(f.Name, '!'), append(f.Value, '!')
	}
	if got := lines(id); got != before {
		t.Error("values overlap")
	}
	if !bytes.Equal(id.Certificate, cert.Raw) {
		t.Error("not the certificate")
	}
}

func FuzzOneLine(f *testing.F) {
	for _, s := range subjects(f) {
		f.Add(s.der)
	}
	f.Add([]byte("\x30\x80\x00\x00"))
	attributeName := regexp.MustCompile(`^/[0-9A-Za-z.]+=`)
	f.Fuzz(func(t *testing.T, der []byte) {
		line, common := oneLine(der), commonName(der)
		for _, s := range []string{line, common} {
			for i := range len(s) {
				if s[i] < ' ' || s[i] == 0x7f {
					t.Fatalf("%q holds a control character", s)
				}
			}
			if len(s) > 64+40*len(der) { // a short name for five bytes at least, four bytes for one
				t.Fatalf("%d bytes made of %d", len(s), len(der))
			}
		}
		if line != "" && !attributeName.MatchString(line) {
			t.Fatalf("%q does not begin with an attribute", line)
		}
		if common != "" && !strings.Contains(line, "/CN="+common) {
			t.Fatalf("common name %q is not in %q", common, line)
		}
	})
}

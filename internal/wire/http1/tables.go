package http1

// The tables below are constant after the package is loaded.

// lowerToken maps the bytes of a token (RFC 9110 section 5.6.2) to lower case and
// every other byte to 0.
var lowerToken = tokenTable()

func tokenTable() (t [256]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		t[c] = c
		t[c-'a'+'A'] = c
	}
	for _, c := range []byte("0123456789!#$%&'*+-.^_`|~") {
		t[c] = c
	}
	return t
}

// Classes of bytes, bits of charClass.
const (
	classTarget = 1 << iota // visible ASCII without '#': what a request-target may hold
	classHost               // uri-host and port without ',' and '%' (RFC 3986 section 3.2.2)
	classValue              // HTAB, SP, visible ASCII, obs-text (RFC 9110 section 5.5)
	classQuoted             // qdtext (RFC 9110 section 5.6.4)
)

var charClass = classTable()

func classTable() (t [256]byte) {
	for i := range t {
		c := byte(i)
		visible := c > ' ' && c < 0x7f
		if visible && c != '#' {
			t[i] |= classTarget
		}
		if visible || c == ' ' || c == '\t' || c >= 0x80 {
			t[i] |= classValue
			if c != '"' && c != '\\' {
				t[i] |= classQuoted
			}
		}
		if lower := c | 0x20; lower >= 'a' && lower <= 'z' || c >= '0' && c <= '9' {
			t[i] |= classHost
		}
	}
	for _, c := range []byte("-._~!$&'()*+;=:[]") {
		t[c] |= classHost
	}
	return t
}

// hexDigit maps a hexadecimal digit to its value plus one, other bytes to 0.
var hexDigit = hexTable()

func hexTable() (t [256]byte) {
	for i, c := range []byte("0123456789abcdef") {
		t[c] = byte(i) + 1
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = byte(i) + 11
	}
	return t
}

func isToken(b []byte) bool {
	for _, c := range b {
		if lowerToken[c] == 0 {
			return false
		}
	}
	return len(b) > 0
}

func allOf(b []byte, class byte) bool {
	for _, c := range b {
		if charClass[c]&class == 0 {
			return false
		}
	}
	return true
}

// lower makes the ASCII letters of b lower-case in place.
func lower(b []byte) {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
}

// equalFold compares two ASCII texts without regard to case.
func equalFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if c == b[i] {
			continue
		}
		if l := c | 0x20; l != b[i]|0x20 || l < 'a' || l > 'z' {
			return false
		}
	}
	return true
}

// is compares ASCII text with a lower-case constant without regard to case.
func is(b []byte, constant string) bool {
	if len(b) != len(constant) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != constant[i] {
			return false
		}
	}
	return true
}

// trim removes blanks (OWS, RFC 9110 section 5.6.3) around b.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

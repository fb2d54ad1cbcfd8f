package http1

import (
	"bytes"
	"math"
)

// known collects, while fields are parsed, what frames and routes a message.
type known struct {
	host      []byte
	hosts     int
	length    int64  // of Content-Length, -1 before the first
	lengthAt  int    // index in the list of fields
	coding    []byte // first Transfer-Encoding
	codings   int
	upgrade   []byte // first Upgrade
	upgrades  int
	close     bool // Connection: close
	keepAlive bool // Connection: keep-alive
	upgrading bool // Connection: upgrade
	continues bool // Expect: 100-continue
	trailers  bool // TE: trailers
	response  bool // Host and Expect mean nothing
	idle      int  // seconds that Keep-Alive names; 0 = it names none
	options   [][]byte
}

// knownLengths has a bit for each length of a name that note knows.
const knownLengths = 1<<2 | 1<<4 | 1<<6 | 1<<7 | 1<<10 | 1<<14 | 1<<17

// maxOptions bounds what Connection may nominate.
const maxOptions = 64

// note learns from one field that will be number at of the list. It may shorten
// the value. keep is false for a repetition that adds nothing.
func (k *known) note(name []byte, value *[]byte, at int) (keep bool, f fault) {
	switch string(name) {
	case "host":
		return k.noteHost(*value)
	case "content-length":
		return k.noteLength(value, at)
	case "transfer-encoding":
		if k.codings == 0 {
			k.coding = *value
		}
		k.codings++
	case "connection":
		return true, k.noteConnection(*value)
	case "keep-alive":
		if k.response {
			k.idle = keepAliveTimeout(*value)
		}
	case "upgrade":
		if k.upgrades == 0 {
			k.upgrade = *value
		}
		k.upgrades++
	case "expect":
		// RFC 9110 section 10.1.1: 100-continue is the only expectation there is.
		if !k.response && !is(*value, "100-continue") {
			return false, faultExpect
		}
		k.continues = true
	case "te":
		k.noteTE(*value)
	}
	return true, faultNone
}

// noteHost checks one Host (RFC 9112 section 3.2). A repeated identical one is
// merged, as the reference does.
func (k *known) noteHost(value []byte) (keep bool, f fault) {
	if k.response {
		return true, faultNone
	}
	if k.hosts > 0 {
		if !bytes.Equal(k.host, value) {
			return false, faultHostConflict
		}
		return false, faultNone
	}
	k.hosts, k.host = 1, value
	return true, checkHost(value)
}

// checkHost says whether value may be a Host or an authority: not empty, no list,
// no userinfo, no path (RFC 9110 section 7.2, RFC 3986 section 3.2.2). Whether the
// port is a number is left to routing: an unknown host is no syntax error.
func checkHost(value []byte) fault {
	if len(value) == 0 {
		return faultHostEmpty
	}
	if allOf(value, classHost) {
		return faultNone
	}
	if bytes.IndexByte(value, '@') >= 0 {
		return faultUserinfo
	}
	return faultHostSyntax
}

// noteLength parses one Content-Length (RFC 9110 section 8.6): digits only, no
// list, no sign, within int64. Leading zeros are cut off the forwarded value.
// Repetitions of the same number are merged, others are RFC 9112 section 6.3.
func (k *known) noteLength(value *[]byte, at int) (keep bool, f fault) {
	n, ok := parseLength(*value)
	if !ok {
		return false, faultLength
	}
	if k.length >= 0 {
		if n != k.length {
			return false, faultLengthConflict
		}
		return false, faultNone
	}
	v := *value
	for len(v) > 1 && v[0] == '0' {
		v = v[1:]
	}
	*value = v
	k.length, k.lengthAt = n, at
	return true, faultNone
}

func parseLength(v []byte) (int64, bool) {
	if len(v) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range v {
		d := int64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// noteConnection reads one Connection line, a list of tokens (RFC 9110 section
// 7.6.1), and makes it lower-case: the field itself is never forwarded. A member
// that is no token means nothing.
func (k *known) noteConnection(value []byte) fault {
	lower(value)
	for len(value) > 0 {
		var member []byte
		member, value = nextMember(value)
		switch string(member) {
		case "":
		case "close":
			k.close = true
		case "keep-alive":
			k.keepAlive = true
		case "upgrade":
			k.upgrading = true
		case "te":
		default:
			if !isToken(member) || isProtected(member) {
				continue
			}
			if len(k.options) == maxOptions {
				return faultOptionCount
			}
			k.options = append(k.options, member)
		}
	}
	return faultNone
}

// noteTE looks for "trailers" in one TE line (RFC 9110 section 10.1.4).
func (k *known) noteTE(value []byte) {
	for len(value) > 0 {
		var member []byte
		member, value = nextMember(value)
		if is(member, "trailers") {
			k.trailers = true
		}
	}
}

// nextMember cuts the first member off a comma-separated list.
func nextMember(list []byte) (member, rest []byte) {
	comma := bytes.IndexByte(list, ',')
	if comma < 0 {
		return trim(list), nil
	}
	return trim(list[:comma]), list[comma+1:]
}

// chunked judges Transfer-Encoding: nothing but exactly one "chunked" is framing
// this codec vouches for (RFC 9112 sections 6.1 and 6.3).
func (k *known) chunked(minor int) (bool, fault) {
	switch {
	case k.codings == 0:
		return false, faultNone
	case minor == 0:
		return false, faultCodingVersion
	case k.length >= 0:
		return false, faultLengthCoding
	case k.codings > 1:
		return false, faultCodingList
	case is(k.coding, "chunked"):
		return true, faultNone
	case endsChunked(k.coding):
		return false, faultCodingUnknown
	}
	return false, faultCoding
}

// endsChunked says whether list is a well-formed list of codings with chunked
// once, as the last of several: understood, but not implemented.
func endsChunked(list []byte) bool {
	for members := 0; ; members++ {
		var member []byte
		member, list = nextMember(list)
		if list == nil {
			return members > 0 && is(member, "chunked")
		}
		if !isToken(member) || is(member, "chunked") {
			return false
		}
	}
}

// upgradeTo is the protocol of a well-formed upgrade (RFC 9110 section 7.8), else
// nil: one Upgrade line with one protocol, nominated by Connection, in HTTP/1.1.
func (k *known) upgradeTo(minor int) []byte {
	if !k.upgrading || k.upgrades != 1 || minor == 0 {
		return nil
	}
	protocol, version, versioned := bytes.Cut(k.upgrade, []byte("/"))
	if !isToken(protocol) || versioned && !isToken(version) {
		return nil
	}
	// These would carry HTTP past the pipeline.
	for _, name := range [...]string{"h2c", "h2", "http", "tls"} {
		if is(protocol, name) {
			return nil
		}
	}
	return k.upgrade
}

// persistent says whether the sender keeps the connection (RFC 9112 section 9.3).
func (k *known) persistent(minor int) bool {
	return !k.close && (minor > 0 || k.keepAlive)
}

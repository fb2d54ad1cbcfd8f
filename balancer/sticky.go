package balancer

import (
	"crypto/md5"
	"encoding/hex"
)

// cookie is a sticky cookie value without its hexadecimal encoding.
type cookie [md5.Size]byte

// cookieOf returns the cookie of a server identity. MD5 is not used for security here: sessions of
// the HAProxy router carry this value.
func cookieOf(id string) cookie { return md5.Sum([]byte(id)) }

// CookieValue returns the sticky cookie value of a server identity: its MD5 in lower-case
// hexadecimal digits.
func CookieValue(id string) string {
	c := cookieOf(id)
	return hex.EncodeToString(c[:])
}

// parseCookie is the inverse of CookieValue's encoding. Another letter case is another value.
func parseCookie(value []byte) (c cookie, ok bool) {
	if len(value) != hex.EncodedLen(len(c)) {
		return c, false
	}
	for _, b := range value {
		if b >= 'A' && b <= 'F' {
			return c, false
		}
	}
	_, err := hex.Decode(c[:], value)
	return c, err == nil
}

// is reports whether value is the encoding of c.
func (c *cookie) is(value []byte) bool {
	other, ok := parseCookie(value)
	return ok && other == *c
}

// fewServers is the number of servers up to which comparing each cookie is cheaper than an index.
const fewServers = 8

// sticky returns the place of the server of a cookie value, whatever its weight, -1 when there is
// none that may be chosen. The value is compared as it is: another letter case is
// another value.
func (s *set) sticky(in *Pick) int {
	at := s.roster.byCookie(in.Cookie)
	if at < 0 || s.isOut(at) || excluded(in.Exclude, s.roster.members[at]) {
		return -1
	}
	return at
}

// KnowsCookie reports that a server of the pool, whatever its weight and state, has this value of the sticky cookie.
func (p *Pool) KnowsCookie(value []byte) bool { return p.set.Load().roster.byCookie(value) >= 0 }

// InFlight returns the number of leases of the pool's servers not yet released. It looks at every server.
func (p *Pool) InFlight() int64 {
	n := int64(0)
	for _, s := range p.set.Load().slots.each {
		n += s.InFlight()
	}
	return n
}

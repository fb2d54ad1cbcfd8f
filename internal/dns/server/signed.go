package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

// signature is that of a query, verified, by which its answers are signed.
type signature struct {
	key  Key
	mac  string // of the query, then of the last message of the answer
	more bool   // messages after the first are signed with times only (RFC 8945 section 5.3.1)
	now  int64
}

// fudge is by how many seconds clocks may differ (RFC 8945 section 10).
const fudge = 300

// signed answers a query that is signed and asks for no transfer over TCP.
func (s *Server) signed(dst, message []byte, q *zone.Query, client netip.AddrPort, limit int, turn uint32, c *counters) []byte {
	query, sig, wrong := s.verify(message, c)
	if sig == nil {
		return within(dst, wrong, q, limit)
	}
	var answer []byte
	if q.Transfer() {
		answer = s.transferOverUDP(query, q, client, true)
	} else {
		answer = s.set.Load().Answer(nil, q, limit, turn)
	}
	m := new(dns.Msg)
	if err := m.Unpack(answer); err != nil {
		return zone.Refused(dst, q)
	}
	again := *sig
	out, err := sig.sign(m)
	if err == nil && len(out) > limit {
		m.Truncated, m.Answer, m.Ns, m.Extra = true, nil, nil, nil
		out, err = again.sign(m)
	}
	if err != nil {
		return zone.Refused(dst, q)
	}
	return within(dst, out, q, limit)
}

// within appends an answer if it is not too long.
func within(dst, answer []byte, q *zone.Query, limit int) []byte {
	if len(answer) > limit || len(answer) == 0 {
		return zone.Truncated(dst, q)
	}
	return append(dst, answer...)
}

// verify checks the signature of a query. If it is not right, sig is nil, and wrong is the answer.
func (s *Server) verify(message []byte, c *counters) (query *dns.Msg, sig *signature, wrong []byte) {
	query, sig, wrong = s.check(message)
	if sig == nil {
		c.badSigned.Add(1)
		return query, nil, wrong
	}
	c.signed.Add(1)
	return query, sig, nil
}

func (s *Server) check(message []byte) (query *dns.Msg, sig *signature, wrong []byte) {
	query = new(dns.Msg)
	if err := query.Unpack(message); err != nil || query.IsTsig() == nil || query.IsTsig().Algorithm == "" { // a record without data has none
		query.Extra = nil
		wrong, _ = new(dns.Msg).SetRcodeFormatError(query).Pack() // what cannot be packed is answered as truncated
		return query, nil, wrong
	}
	t := query.IsTsig()
	key, ok := s.keys.Load().find(t.Hdr.Name)
	if !ok || dns.CanonicalName(t.Algorithm) != key.Algorithm {
		return query, nil, unverified(query, t, dns.RcodeBadKey)
	}
	sig = &signature{key: key, mac: t.MAC, now: s.cfg.Now().Unix()}
	switch err := dns.TsigVerify(bytes.Clone(message), key.secret, "", false); {
	case err == nil:
		return query, sig, nil
	case errors.Is(err, dns.ErrTime):
		return query, nil, sig.late(query, t)
	default:
		return query, nil, unverified(query, t, dns.RcodeBadSig)
	}
}

// unverified is the answer to a query of which nobody knows who signed it (RFC 8945 sections 5.2.1 and 5.2.2). It is not signed.
func unverified(query *dns.Msg, t *dns.TSIG, code uint16) []byte {
	m := new(dns.Msg).SetRcode(query, dns.RcodeNotAuth)
	m.Extra = []dns.RR{&dns.TSIG{Hdr: t.Hdr, Algorithm: t.Algorithm, Fudge: t.Fudge, OrigId: query.Id, Error: code}}
	b, _ := m.Pack() // what cannot be packed is answered as truncated
	return b
}

// late is the answer to a query that was signed at another time (RFC 8945 section 5.2.3). It tells our time.
func (sig *signature) late(query *dns.Msg, t *dns.TSIG) []byte {
	m := new(dns.Msg).SetRcode(query, dns.RcodeNotAuth)
	m.Extra = []dns.RR{&dns.TSIG{
		Hdr: t.Hdr, Algorithm: t.Algorithm, TimeSigned: t.TimeSigned, Fudge: t.Fudge, OrigId: query.Id, Error: dns.RcodeBadTime,
		OtherLen: 6, OtherData: fmt.Sprintf("%012x", sig.now),
	}}
	b, _, _ := dns.TsigGenerate(m, sig.key.secret, sig.mac, false) // what cannot be packed is answered as truncated
	return b
}

// sign returns the next message of an answer, signed.
func (sig *signature) sign(m *dns.Msg) ([]byte, error) {
	m.Compress = true
	m.SetTsig(sig.key.Name, sig.key.Algorithm, fudge, sig.now)
	b, mac, err := dns.TsigGenerate(m, sig.key.secret, sig.mac, sig.more)
	return b, errors.Join(err, sig.chain(mac))
}

// chain has the next message be signed as one that follows.
func (sig *signature) chain(mac string) error {
	if mac == "" {
		return errors.New("BUG: a message is not signed")
	}
	sig.mac, sig.more = mac, true
	return nil
}

package server

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/miekg/dns"

	"turnout/internal/bound"
	"turnout/internal/dns/zone"
)

// transfers are those under way.
type transfers struct {
	room           chan struct{} // one element for each
	begun, refused atomic.Uint64
}

// mayTransfer reports whether a client may have zones; signed says that its query was, rightly.
func (s *Server) mayTransfer(client netip.Addr, signed bool) bool {
	from := func(p netip.Prefix) bool { return p.Contains(client.Unmap()) }
	keys := *s.keys.Load()
	switch {
	case len(keys) == 0 && len(s.cfg.Transfers) == 0:
		return false
	case len(keys) > 0 && !signed:
		return false
	}
	return len(s.cfg.Transfers) == 0 || slices.ContainsFunc(s.cfg.Transfers, from)
}

// transferHead answers a query for a transfer that came over UDP and is not signed.
func (s *Server) transferHead(dst, message []byte, q *zone.Query, client netip.AddrPort) []byte {
	query := new(dns.Msg)
	if query.Unpack(message) != nil {
		return zone.Refused(dst, q)
	}
	return append(dst, s.transferOverUDP(query, q, client, false)...)
}

// transferOverUDP answers IXFR with the SOA record alone, which tells the client whether to ask over TCP (RFC 1995 section 2), and refuses
// AXFR, which is over TCP only (RFC 5936 section 4.2).
func (s *Server) transferOverUDP(query *dns.Msg, q *zone.Query, client netip.AddrPort, signed bool) []byte {
	z, refusal := s.wanted(q, client, signed)
	if z == nil || q.Type != zone.TypeIXFR {
		return refusal
	}
	m := new(dns.Msg).SetReply(query)
	m.Authoritative, m.Answer = true, []dns.RR{z.SOA()}
	b, err := m.Pack()
	if err != nil {
		return refusal
	}
	return b
}

// wanted returns the zone that a query wants and may have, nil if there is none, and the answer that refuses it.
func (s *Server) wanted(q *zone.Query, client netip.AddrPort, signed bool) (*zone.Zone, []byte) {
	z, refusal := s.set.Load().Find(q, true), zone.Refused(nil, q)
	if z != nil && s.mayTransfer(client.Addr(), signed) {
		return z, refusal
	}
	s.transfers.refused.Add(1)
	if z != nil {
		s.cfg.Tell(Event{Kind: TransferRefused, Zone: z.Origin(), Serial: z.Serial(), Peer: client})
	}
	return nil, refusal
}

// transfer answers a query for a transfer that came over TCP. An error ends the connection.
func (s *Server) transfer(message []byte, q *zone.Query, client netip.AddrPort, c *counters, write func([]byte) error) error {
	query, sig := new(dns.Msg), (*signature)(nil)
	if q.Signed {
		var wrong []byte
		if query, sig, wrong = s.verify(message, c); sig == nil {
			s.transfers.refused.Add(1)
			return write(within(nil, wrong, q, maxMessage))
		}
	} else if query.Unpack(message) != nil {
		return write(zone.Refused(nil, q))
	}
	out := &outgoing{query: query, sig: sig, write: write}
	z, _ := s.wanted(q, client, sig != nil)
	if z == nil {
		return out.short(dns.RcodeRefused)
	}
	event := Event{Kind: Transferred, Zone: z.Origin(), Serial: z.Serial(), Peer: client}
	select {
	case s.transfers.room <- struct{}{}:
		defer func() { <-s.transfers.room }()
	default:
		s.cfg.Bounds.Reached(bound.NameTransfers)
		event.Kind = TransferDeferred
		s.cfg.Tell(event)
		return out.short(dns.RcodeServerFailure)
	}
	if upToDate(query, z) {
		return out.send(z.SOA())
	}
	s.transfers.begun.Add(1)
	if event.Err = out.zone(z); event.Err != nil {
		event.Kind = TransferFailed
	}
	s.cfg.Tell(event)
	return event.Err
}

// upToDate reports whether an IXFR asks for what is newer than a serial than which nothing is (RFC 1995 section 2).
func upToDate(query *dns.Msg, z *zone.Zone) bool {
	if query.Question[0].Qtype != dns.TypeIXFR || len(query.Ns) == 0 {
		return false
	}
	soa, ok := query.Ns[0].(*dns.SOA)
	return ok && !zone.After(z.Serial(), soa.Serial)
}

// transferBytes is about how many bytes of records a message of a transfer has.
const transferBytes = 16 << 10

// outgoing is the answer to a query for a transfer, while it is written.
type outgoing struct {
	query *dns.Msg
	sig   *signature // nil = the query was not signed
	write func([]byte) error
}

// zone writes all records, and the SOA record again at the end (RFC 5936 section 2.2). It is the answer to IXFR too (RFC 1995 section 4).
func (o *outgoing) zone(z *zone.Zone) error {
	var batch []dns.RR
	size := 0
	for rr := range z.Records() {
		batch = append(batch, rr)
		if size += dns.Len(rr); size < transferBytes {
			continue
		}
		if err := o.send(batch...); err != nil {
			return err
		}
		batch, size = batch[:0], 0
	}
	return o.send(append(batch, z.SOA())...)
}

// send writes a message with records.
func (o *outgoing) send(records ...dns.RR) error {
	m := new(dns.Msg).SetReply(o.query)
	m.Authoritative, m.Answer = true, records
	return o.message(m)
}

// short writes a message that has an rcode and no records.
func (o *outgoing) short(rcode int) error { return o.message(new(dns.Msg).SetRcode(o.query, rcode)) }

func (o *outgoing) message(m *dns.Msg) error {
	m.Compress = true
	var b []byte
	var err error
	if o.sig != nil {
		b, err = o.sig.sign(m)
	} else {
		b, err = m.Pack()
	}
	if err == nil && len(b) > maxMessage {
		err = errors.New("a message is too long")
	}
	if err != nil {
		return fmt.Errorf("cannot write a message: %w", err)
	}
	return o.write(b)
}

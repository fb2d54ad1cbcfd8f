package zone

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"iter"
	"net/netip"

	"github.com/miekg/dns"
)

// Records are all records of the zone in the order of a transfer, but for the SOA record at its end: SOA, NS, then each name by itself. The same zone yields the
// same order. Each record is made anew.
func (z *Zone) Records() iter.Seq[dns.RR] {
	return func(yield func(dns.RR) bool) {
		origin := z.origin.String()
		if !yield(z.SOA()) || !yieldServers(z.servers, origin, z.spec.ServerTTL, yield) || !z.yield(z.origin, z.records[z.origin], yield) {
			return
		}
		for _, name := range z.names {
			if !z.yield(name, z.records[name], yield) {
				return
			}
		}
	}
}

// SOA is the SOA record of the zone, made anew.
func (z *Zone) SOA() *dns.SOA {
	return &dns.SOA{
		Hdr: head(z.origin.String(), dns.TypeSOA, z.spec.NegativeTTL), Ns: z.primary.String(), Mbox: z.mailbox.String(), Serial: z.serial,
		Refresh: z.spec.Refresh, Retry: z.spec.Retry, Expire: z.spec.Expire, Minttl: z.spec.NegativeTTL,
	}
}

func head(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// yield yields the records of a name.
func (z *Zone) yield(owner wireName, r *records, yield func(dns.RR) bool) bool {
	name := owner.String()
	if r.target != "" && !yield(&dns.CNAME{Hdr: head(name, dns.TypeCNAME, z.spec.TTL), Target: r.target.String()}) {
		return false
	}
	if !yieldAddresses(name, z.ttl(r), r.v4, r.v6, yield) || !yieldServers(r.cut, name, z.spec.ServerTTL, yield) {
		return false
	}
	for _, s := range r.cut {
		if s.name.within(owner) && !yieldAddresses(s.name.String(), z.spec.ServerTTL, s.v4, s.v6, yield) {
			return false
		}
	}
	return true
}

func yieldServers(servers []server, name string, ttl uint32, yield func(dns.RR) bool) bool {
	for _, s := range servers {
		if !yield(&dns.NS{Hdr: head(name, dns.TypeNS, ttl), Ns: s.name.String()}) {
			return false
		}
	}
	return true
}

func yieldAddresses(name string, ttl uint32, v4, v6 []netip.Addr, yield func(dns.RR) bool) bool {
	for _, a := range v4 {
		if !yield(&dns.A{Hdr: head(name, dns.TypeA, ttl), A: a.AsSlice()}) {
			return false
		}
	}
	for _, a := range v6 {
		if !yield(&dns.AAAA{Hdr: head(name, dns.TypeAAAA, ttl), AAAA: a.AsSlice()}) {
			return false
		}
	}
	return true
}

// sum is a digest of everything but the serial.
func (z *Zone) sum() (out [32]byte) {
	h := sha256.New()
	for _, name := range []wireName{z.origin, z.primary, z.mailbox} {
		write(h, []byte(name))
	}
	for _, n := range []uint32{z.spec.Refresh, z.spec.Retry, z.spec.Expire, z.spec.TTL, z.spec.ServerTTL, z.spec.NegativeTTL} {
		_ = binary.Write(h, binary.BigEndian, n) // a hash never fails
	}
	write(h, z.apex.ns.records)
	for _, name := range append([]wireName{z.origin}, z.names...) {
		n := z.nodes[name]
		write(h, []byte(name))
		write(h, n.a)
		write(h, n.aaaa)
		write(h, n.alias)
		if n.cut {
			write(h, n.ns.records)
			write(h, n.ns.addresses)
		}
	}
	h.Sum(out[:0])
	return out
}

// write writes b so that it cannot be taken for something else.
func write(h hash.Hash, b []byte) {
	_ = binary.Write(h, binary.BigEndian, uint32(len(b)))
	_, _ = h.Write(b)
}

// Package dns answers for the names of Services, as a cluster's DNS server does:
// NAME.NAMESPACE.svc.cluster.local, each address of headless ones, named pods of those,
// and named ports by SRV. Of the world outside it knows nothing.
package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// Domain is the domain of the cluster.
const Domain = "cluster.local"

// ttl is how long an answer may be kept, in seconds: names follow their Services at once.
const ttl = 1

// Server answers queries.
type Server struct {
	services  listers.ServiceLister
	slices    discoverylisters.EndpointSliceLister
	transport []*dns.Server
}

// New makes a server that listens on port 53 of addresses, over UDP and TCP. The informers
// have to be started after it.
func New(factory informers.SharedInformerFactory, addresses ...netip.Addr) (*Server, error) {
	services, slices := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	services.Informer()
	slices.Informer()
	s := &Server{services: services.Lister(), slices: slices.Lister()}
	mux := dns.NewServeMux()
	mux.HandleFunc(Domain+".", s.answer)
	mux.HandleFunc(".", refuse)
	for _, a := range addresses {
		address := netip.AddrPortFrom(a, 53).String()
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot listen for queries of names: %w", err), s.close())
		}
		conn, err := net.ListenPacket("udp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot listen for queries of names: %w", err), listener.Close(), s.close())
		}
		s.transport = append(s.transport, &dns.Server{Listener: listener, Handler: mux}, &dns.Server{PacketConn: conn, Handler: mux})
	}
	return s, nil
}

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) {
	for _, t := range s.transport {
		go func() { _ = t.ActivateAndServe() }()
	}
	<-ctx.Done()
	_ = s.close()
}

func (s *Server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var failed error
	for _, t := range s.transport {
		failed = errors.Join(failed, t.ShutdownContext(ctx))
	}
	return failed
}

// refuse says that a name is not there: there is no world outside.
func refuse(w dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetRcode(query, dns.RcodeNameError)
	_ = w.WriteMsg(reply)
}

// answer answers for names of the cluster.
func (s *Server) answer(w dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetReply(query)
	reply.Authoritative = true
	for _, q := range query.Question {
		records, exists := s.lookup(strings.ToLower(q.Name))
		if !exists {
			reply.Rcode = dns.RcodeNameError
		}
		for _, r := range records {
			r.Header().Name = q.Name
			if r.Header().Rrtype == q.Qtype || r.Header().Rrtype == dns.TypeCNAME || q.Qtype == dns.TypeANY {
				reply.Answer = append(reply.Answer, r)
			}
		}
	}
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		size := dns.MinMsgSize
		if o := query.IsEdns0(); o != nil {
			size = int(o.UDPSize())
		}
		reply.Truncate(size)
	}
	_ = w.WriteMsg(reply)
}

// lookup returns all records of a name, which is in lower case.
func (s *Server) lookup(name string) (records []dns.RR, exists bool) {
	path, ok := strings.CutSuffix(strings.TrimSuffix(name, "."), ".svc."+Domain)
	if !ok {
		return nil, name == Domain+"." || name == "svc."+Domain+"."
	}
	parts := strings.Split(path, ".")
	n := len(parts)
	if n < 2 {
		return nil, true // a namespace has no address
	}
	service, err := s.services.Services(parts[n-1]).Get(parts[n-2])
	if err != nil {
		return nil, false
	}
	switch front := parts[:n-2]; {
	case service.Spec.Type == corev1.ServiceTypeExternalName && n == 2:
		return []dns.RR{&dns.CNAME{Hdr: header(dns.TypeCNAME), Target: dns.Fqdn(service.Spec.ExternalName)}}, true
	case n == 2:
		return addressRecords(s.addresses(service, "")), true
	case n == 3 && service.Spec.ClusterIP == corev1.ClusterIPNone:
		found := s.addresses(service, front[0])
		return addressRecords(found), len(found) > 0
	case n == 4 && strings.HasPrefix(front[0], "_") && strings.HasPrefix(front[1], "_"):
		return portRecords(service, front[0][1:], front[1][1:], strings.Join(parts[2:], ".")+".svc."+Domain+".")
	}
	return nil, false
}

// addresses returns the addresses of a Service: its own, or those of its endpoints when it
// has none; only those of the endpoint with a hostname, if that is not empty.
func (s *Server) addresses(service *corev1.Service, hostname string) []netip.Addr {
	var found []netip.Addr
	add := func(text string) {
		if a, err := netip.ParseAddr(text); err == nil {
			found = append(found, a)
		}
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		for _, text := range service.Spec.ClusterIPs {
			add(text)
		}
		return found
	}
	slices, err := s.slices.EndpointSlices(service.Namespace).List(labels.Set{discoveryv1.LabelServiceName: service.Name}.AsSelector())
	if err != nil {
		return nil
	}
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || hostname != "" && (e.Hostname == nil || *e.Hostname != hostname) {
				continue
			}
			for _, text := range e.Addresses {
				add(text)
			}
		}
	}
	return found
}

func addressRecords(addresses []netip.Addr) []dns.RR {
	var records []dns.RR
	for _, a := range addresses {
		if a.Is4() {
			records = append(records, &dns.A{Hdr: header(dns.TypeA), A: a.AsSlice()})
		} else {
			records = append(records, &dns.AAAA{Hdr: header(dns.TypeAAAA), AAAA: a.AsSlice()})
		}
	}
	return records
}

// portRecords returns where a named port of a Service is.
func portRecords(service *corev1.Service, port, protocol, target string) (records []dns.RR, exists bool) {
	for _, p := range service.Spec.Ports {
		if p.Name == port && strings.EqualFold(string(p.Protocol), protocol) {
			records = append(records, &dns.SRV{Hdr: header(dns.TypeSRV), Weight: 100, Port: uint16(p.Port), Target: target})
		}
	}
	return records, len(records) > 0
}

// header is that of a record whose name is yet to come.
func header(kind uint16) dns.RR_Header {
	return dns.RR_Header{Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

package explain

import (
	"crypto/tls"
	"net/netip"

	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// Words of findings about TLS, before there is a request and so a reason of the access log.
const (
	reasonNoCertificate = "no-certificate" // there is none for the server name
)

// handshake says what the client sees before its request, and completes what is known of it. False: TLS does not end here; i.route has the
// route then whose pod ends it, nil = nobody does.
func (i *inquiry) handshake(client *proxy.Client) bool {
	hello := i.hello()
	port := ""
	if i.port != nil {
		port = i.port.Name
		i.listenedBy(i.table.ListenerFor(port, true, hello.ServerName))
	}
	found := i.table.SNIAt(port, hello.ServerName)
	t := &TLS{ServerName: hello.ServerName}
	i.a.TLS = t
	i.host = i.in.name
	if r := found.Passthrough; r != nil {
		i.route = r
		t.Passthrough, t.Why = true, "route "+r.Namespace()+"/"+r.Name()+" passes TLS through to its pods"
		i.a.Listener.Termination = "endpoint"
		return false
	}
	switch {
	case port != "":
		t.Why = i.listenerWhy(&found)
	case found.Own:
		t.Why = "a route of the host has it"
	case found.Certificate != nil:
		t.Why = "no route of the host has a certificate of its own: it is the default one"
	default:
		t.Why = "no route of the host has a certificate, and there is no default one"
	}
	if found.Certificate != nil {
		t.Certificate = describe(found, hello.ServerName)
	}
	if tlsmux.Refuses(found, hello, i.d.StrictSNI) {
		t.Refused = true
		i.a.Outcome = Outcome{By: ByRouter, Reason: reasonNoCertificate, Text: meaning(reasonNoCertificate)}
		if found.Silent {
			i.a.Outcome.Text = "the connection is closed without a byte: " + t.Why
		}
		return false
	}
	client.Arrival = found.Arrival
	client.ServerName, client.TLSVersion = hello.ServerName, tls.VersionTLS13
	t.Clients = i.asked(found.Arrival)
	if i.d.Mandatory(found.Arrival) {
		i.a.Assumed = append(i.a.Assumed, "the client has a certificate that is trusted: without one the handshake fails")
	} else {
		client.Identity = i.d.Anonymous(found.Arrival)
	}
	if leaf := found.Certificate.Leaf; leaf != nil {
		client.Covered = (*tlsmux.Names)(leaf)
	}
	if r := found.Stream; r != nil {
		i.route = r
		return false
	}
	if i.in.http2 {
		client.Agreed = protocol.HTTP2
	}
	return true
}

// listenerWhy says why a port of a Gateway shows the certificate that it does.
func (i *inquiry) listenerWhy(found *routing.SNIDecision) string {
	l := &i.a.Listener
	switch {
	case l.Name == "":
		return "no listener of the port is for this server name"
	case found.Certificate == nil && found.Silent:
		return "no route of listener " + l.Name + " is for this server name"
	case found.Certificate == nil:
		return "listener " + l.Name + " has no certificate"
	}
	return "listener " + l.Name + " has it"
}

// asked says what the client of a connection is asked for; "" = nothing.
func (i *inquiry) asked(at *routing.Arrival) string {
	switch {
	case i.d.Mandatory(at):
		return "a certificate that is trusted"
	case at == nil || at.Auth == nil:
		return ""
	case at.Auth.Mode() == clientcert.Unverified:
		return "any certificate, or none"
	case at.Auth.Mode() == clientcert.Optional:
		return "a certificate that is trusted, or none"
	}
	return ""
}

// describe is a certificate for people.
func describe(found routing.SNIDecision, name string) *Certificate {
	leaf := found.Certificate.Leaf
	if leaf == nil {
		return &Certificate{Own: found.Own}
	}
	c := &Certificate{
		Subject: leaf.Subject.String(), Issuer: leaf.Issuer.String(), Names: append([]string{}, leaf.DNSNames...),
		NotBefore: leaf.NotBefore.UTC(), NotAfter: leaf.NotAfter.UTC(), Own: found.Own, Covers: leaf.VerifyHostname(name) == nil,
	}
	for _, ip := range leaf.IPAddresses {
		c.Names = append(c.Names, ip.String())
	}
	return c
}

// localAddress is an address of the router with a port.
func localAddress(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.IPv4Unspecified(), port)
}

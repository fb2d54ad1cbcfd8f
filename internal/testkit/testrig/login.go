package testrig

import (
	"fmt"
	"net/netip"
	"strings"

	"turnout/internal/reactor/memnet"
)

// LoginPod is a scripted HTTP/1.1 endpoint that authenticates connections, as IIS does: by NTLM in
// three steps and by Negotiate in one. A request without credentials is answered as the user of
// its connection. The messages are those of Login, not of the real protocols.
type LoginPod struct {
	Addr  netip.AddrPort
	Conns []*LoginConn
	Hold  func(c *LoginConn, credentials string) bool // responds in place of the pod; nil = never
}

// LoginConn is a connection to a LoginPod.
type LoginConn struct {
	Peer     *memnet.Peer
	User     string // the user that has logged in, "" = none
	Requests int
	nonce    string // of the login under way
	serial   int
}

// StartLoginPod starts an endpoint at 198.51.100.n:80.
func StartLoginPod(net *memnet.Network, n int) *LoginPod {
	p := &LoginPod{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80)}
	net.Accept(p.Addr, p.Accept)
	return p
}

// Accept serves a connection.
func (p *LoginPod) Accept(peer *memnet.Peer) {
	c := &LoginConn{Peer: peer, serial: len(p.Conns) + 1}
	p.Conns = append(p.Conns, c)
	(&Pod{Answer: func(_ int, request string) string {
		credentials := Credentials(request)
		if p.Hold != nil && p.Hold(c, credentials) {
			return ""
		}
		return c.Answer(credentials)
	}}).Accept(peer)
}

// Credentials returns the value of Authorization in a request head, "" without one.
func Credentials(request string) string {
	_, rest, _ := strings.Cut(request, "\r\nauthorization: ")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// Begin and Finish are the credentials of the first and the last step of a login by NTLM;
// Negotiate are those of a login by Negotiate.
const Begin = "NTLM TlRMTVNTUAABAAAA"

// Finish answers the challenge of a response to Begin.
func Finish(user, challenge string) string {
	nonce := strings.TrimPrefix(challenge, "NTLM TlRMTVNTUAACAAAA")
	return "NTLM TlRMTVNTUAADAAAA" + user + "/" + nonce
}

// Negotiate returns the credentials of a login in one step.
func Negotiate(user string) string { return "Negotiate YII/" + user }

// Answer returns the response to a request with these credentials; "" = without credentials. Its
// body is the name of the user.
func (c *LoginConn) Answer(credentials string) string {
	status, fields, user := c.Step(credentials)
	if status == 200 {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(user), user)
	}
	return "HTTP/1.1 401 Unauthorized\r\n" + fields + "Content-Length: 6\r\n\r\nlog in"
}

// Step advances the login of the connection: it returns the status and the field lines of the
// response, and the user.
func (c *LoginConn) Step(credentials string) (status int, fields, user string) {
	c.Requests++
	nonce := c.nonce
	c.nonce = ""
	switch {
	case credentials == Begin:
		c.User, c.nonce = "", fmt.Sprintf("%d.%d", c.serial, c.Requests)
		return 401, "WWW-Authenticate: NTLM TlRMTVNTUAACAAAA" + c.nonce + "\r\n", ""
	case strings.HasPrefix(credentials, Finish("", "")[:len("NTLM TlRMTVNTUAAD")]):
		who, proof, _ := strings.Cut(strings.TrimPrefix(credentials, "NTLM TlRMTVNTUAADAAAA"), "/")
		if c.User = ""; nonce != "" && proof == nonce {
			c.User = who
		}
	case strings.HasPrefix(credentials, Negotiate("")):
		c.User = strings.TrimPrefix(credentials, Negotiate(""))
		fields = "WWW-Authenticate: Negotiate oRQw\r\nPersistent-Auth: true\r\n"
	}
	if c.User == "" {
		return 401, "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n", ""
	}
	return 200, fields, c.User
}

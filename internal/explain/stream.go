package explain

import (
	"strconv"

	"turnout/proxy"
	"turnout/routing"
)

// stream has the pipeline decide about a connection to a port of TCP, or about datagrams: they go on as they come.
func (i *inquiry) stream(worker *proxy.Worker, client proxy.Client) {
	i.listenedBy(i.table.ListenerFor(i.port.Name, false, ""))
	i.route = i.table.Stream(i.port.Name)
	i.explainOthers()
	if i.route == nil {
		text := "the connection is closed without a byte: no route has the port"
		if i.port.Protocol == protocolUDP {
			text = "datagrams are dropped: no route has the port"
		}
		i.a.Outcome = Outcome{By: ByRouter, Reason: proxy.ReasonNoRoute.String(), Text: text}
		return
	}
	i.passThrough(worker, proxy.Client{Addr: client.Addr, Local: client.Local})
}

// aHello is how a ClientHello begins: enough for who reads HTTP.
var aHello = []byte("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n")

// confused says what becomes of a client that speaks TLS to a port without, or none to a port with TLS.
func (i *inquiry) confused(worker *proxy.Worker, client proxy.Client) {
	i.host = i.in.host
	i.explainOthers()
	if !i.in.secure {
		i.a.Listener.Termination = "router"
		i.a.Outcome = Outcome{By: ByRouter, Reason: ReasonScheme, Text: "the connection is closed without a byte: the port speaks TLS, and the client does not"}
		return
	}
	i.a.Listener.Termination = "none"
	in := *i.in
	in.http2, in.raw = false, aHello
	_, _, refused := in.head(&i.d)
	if refused != nil {
		client.Secure = false
		worker.Rejected(&client, refused.status, refused.detail)
		i.outcome()
	}
	i.a.Outcome.Text = "the handshake fails: the port does not speak TLS, and takes the client's first bytes for a request that breaks the grammar of HTTP"
	i.odd = "the client speaks TLS to port " + strconv.Itoa(int(i.port.Number)) + " of Gateway " + i.port.Gateway.String() + ", which does not"
}

// passedText says what becomes of a connection that a pod gets.
func passedText(r *routing.Route, in *received) string {
	switch {
	case in.scheme == schemeUDP:
		return "datagrams of this client go to the pod as they come, and those of the pod to the client"
	case r.Termination() == routing.TermPassthrough:
		return "the connection is passed through to the pod, which ends TLS and answers"
	case in.secure:
		return "TLS ends here, and what it holds goes to the pod as it comes"
	}
	return "the connection goes to the pod as it comes"
}

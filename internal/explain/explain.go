package explain

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"turnout/controller"
	"turnout/internal/server"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
)

// Deciding is what the request path decides by.
type Deciding = server.Deciding

// Config is what an Explainer goes by. Deciding is required.
type Config struct {
	// Deciding is asked once for each request.
	Deciding func() Deciding
	// Claimants are the routes that want a host, in lower case, as admission knows them, served or not; nil = nobody knows.
	Claimants func(host string) []Claimant
	// Recent are requests of a route that ended badly, the last one first; nil = nobody knows.
	Recent func(namespace, route string) []Story
	// Settings are those of a route in effect; nil = nobody knows.
	Settings func(namespace, name string) []controller.Setting
	// Gateways is what is known of them; nil = there are none.
	Gateways Gateways
	// Ignored is what of the sources of options has no effect, which is a finding of each request.
	Ignored []string
}

// Claimant is a route that wants a host, as admission knows it.
type Claimant struct {
	Candidate
	Notes []string // what of it has no effect
}

// Explainer explains requests. Any goroutine may use it.
type Explainer struct{ cfg Config }

// New checks the configuration.
func New(cfg Config) (*Explainer, error) {
	if cfg.Deciding == nil {
		return nil, errors.New("cannot make an explainer: Deciding is required")
	}
	return &Explainer{cfg: cfg}, nil
}

// panicked is a panic of the rules for a message.
type panicked struct{ v any }

func (p panicked) Error() string { return fmt.Sprint(p.v) }

// inquiry is one request on its way to an Answer.
type inquiry struct {
	x     *Explainer
	d     Deciding
	table *routing.Table
	in    *received
	a     *Answer
	run   rehearsal
	view  routing.View
	found routing.Decision
	port  *controller.GatewayPort // nil = one of OpenShift Routes
	route *routing.Route          // that gets the request or connection, nil = none
	host  string                  // of the request, lower case, without port and trailing dot
	sent  []string                // fields of the request as the pipeline gets them

	nowhere string   // why there is no port that the client could connect to; "" = there is
	trouble []string // what is wrong with the Gateway
	odd     string   // what is wrong with the request, for the port; "" = nothing
}

// Explain says what would become of a request with a table. The error says what is wrong with the query.
func (x *Explainer) Explain(table *routing.Table, q Query) (*Answer, error) {
	began := time.Now()
	in, err := q.receive()
	if err != nil {
		return nil, err
	}
	i := &inquiry{x: x, d: x.cfg.Deciding(), table: table, in: in}
	i.a = &Answer{Request: in.request, Generation: table.Generation(), Assumed: in.assumed, Candidates: []Candidate{}, Findings: []Finding{}, Explained: began.UTC()}
	i.run.now = i.d.Now
	if i.run.now == nil {
		i.run.now = func() int64 { return 0 }
	}
	i.arrive()
	i.listener()
	worker, err := i.run.worker(&i.d, table)
	if err != nil {
		return nil, err
	}
	i.ask(worker)
	i.a.Findings = append(i.a.Findings, i.findings()...)
	i.a.Took = Duration(time.Since(began))
	return i.a, nil
}

// ask has the pipeline decide what becomes of the connection, and of the request on it.
func (i *inquiry) ask(worker *proxy.Worker) {
	client := i.client()
	switch {
	case i.nowhere != "":
		i.a.Outcome = Outcome{By: ByRouter, Reason: ReasonGateway, Text: i.nowhere}
		i.host = i.in.host
		i.explainOthers()
	case i.port != nil && (i.port.Protocol == protocolTCP || i.port.Protocol == protocolUDP):
		i.stream(worker, client)
	case i.port != nil && (i.port.Protocol == protocolTLS) != i.in.secure:
		i.confused(worker, client)
	case i.in.secure && !i.handshake(&client):
		i.explainOthers()
		if i.route != nil {
			i.passThrough(worker, client)
		}
	case i.in.connection():
		i.a.Outcome = Outcome{By: ByRouter, Reason: proxy.ReasonOK.String(), Text: "TLS ends here, and requests are answered as explain says of their URLs"}
		i.explainOthers()
	default:
		i.exchange(worker, client)
	}
}

// listener says where the request comes to.
func (i *inquiry) listener() {
	l := &i.a.Listener
	l.Scheme, l.Address, l.Termination = i.in.scheme, i.d.HTTPAddr, "none"
	if i.in.secure {
		l.Address, l.Termination = i.d.HTTPSAddr, "router"
	}
	switch {
	case i.port != nil:
		i.gatewayListener()
	case i.nowhere != "":
		l.Address = ""
	}
}

// client is who sends the request.
func (i *inquiry) client() proxy.Client {
	usual := i.usual()
	if _, port, err := net.SplitHostPort(i.a.Listener.Address); err == nil {
		if n, _ := strconv.ParseUint(port, 10, 16); n != 0 {
			usual = uint16(n)
		}
	}
	client := proxy.Client{Addr: i.in.client, Local: localAddress(usual), Secure: i.in.secure}
	if i.port != nil && !client.Secure {
		client.Arrival = &routing.Arrival{Port: i.port.Name}
	}
	return client
}

// exchange has the pipeline decide about a request.
func (i *inquiry) exchange(worker *proxy.Worker, client proxy.Client) {
	h, none, refused := i.in.head(&i.d)
	if refused != nil {
		worker.Rejected(&client, refused.status, refused.detail)
		i.outcome()
		return
	}
	i.request(h, &client)
	i.run.exchange(worker, &client, h, none)
	i.route = i.served()
	i.outcome()
	i.explainOthers()
	i.explainRoute()
}

// request notes what the pipeline is going to get: it changes the head.
func (i *inquiry) request(h *proxy.Head, client *proxy.Client) {
	kept := copyHead(h)
	i.view = routing.View{
		Secure: i.in.secure, Arrival: client.Arrival, Host: kept.Authority, Path: kept.Path, Method: kept.Method, Query: kept.Query, Fields: kept.Fields,
	}
	i.found = i.table.Match(&i.view)
	i.a.MatchWork = i.view.Work()
	i.host = bareHost(kept.Authority)
	if i.port != nil && !i.in.secure {
		i.listenedBy(i.table.ListenerFor(i.port.Name, false, i.host))
	}
	i.sent = fieldsOf(kept)
	q := &i.a.Request
	q.Method, q.Fields = string(kept.Method), i.sent
	if q.URL == "" {
		q.URL = i.a.Listener.Scheme + "://" + string(kept.Authority) + redacted(string(kept.Path)+string(kept.Query))
	}
}

// served is the route that the pipeline chose, nil = none.
func (i *inquiry) served() *routing.Route {
	rec := &i.run.record
	if r := i.found.Route; r != nil && i.run.logged && r.Namespace() == rec.Namespace && r.Name() == rec.Route {
		return r
	}
	return nil
}

// outcome says how the request ends, as the access log has it.
func (i *inquiry) outcome() {
	o, rec := &i.a.Outcome, &i.run.record
	switch {
	case i.run.forwarded != nil && rec.Reason == proxy.ReasonOK:
		*o = Outcome{By: ByEndpoint, Reason: rec.Reason.String(), Text: "the pod answers"}
		return
	case i.run.logged:
		*o = Outcome{By: ByRouter, Status: rec.Status, Reason: rec.Reason.String(), Detail: rec.Detail}
	case i.run.answered != nil: // the monitor path is not logged
		*o = Outcome{By: ByRouter, Status: i.run.answered.Status, Reason: proxy.ReasonMonitor.String()}
	default: // it stands in the queue
		*o = Outcome{By: ByRouter, Status: 503, Reason: proxy.ReasonQueueTimeout.String()}
		o.Text = "all pods have as many requests as they may have; the request waits for one, and is answered 503 if none is free within the connect timeout"
		return
	}
	if i.run.answered != nil {
		for _, f := range i.run.answered.Fields {
			if string(f.Name) == "location" {
				o.Location = redacted(string(f.Value))
			}
		}
	}
	o.Text = meaning(o.Reason)
	if i.run.failed != nil {
		o.Detail = i.run.failed.Error()
	}
}

// passThrough has the pipeline decide about a connection whose TLS the pod ends.
func (i *inquiry) passThrough(worker *proxy.Worker, client proxy.Client) {
	client.ServerName = i.in.name
	relay := worker.Relay((*through)(&i.run), i.route, client)
	if relay.Admit() {
		relay.Connect()
	}
	switch {
	case i.run.endpoint != nil:
		i.a.Outcome = Outcome{By: ByEndpoint, Reason: proxy.ReasonTunnelClosed.String(), Text: passedText(i.route, i.in)}
	default:
		i.outcome()
	}
	i.explainRoute()
}

// hello is what the client's ClientHello says.
func (i *inquiry) hello() *tlsmux.Hello {
	return &tlsmux.Hello{ServerName: i.in.name, HasServerName: i.in.name != ""}
}

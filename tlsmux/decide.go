package tlsmux

import (
	"crypto/tls"

	"turnout/routing"
)

// decision is the outcome of a ClientHello.
type decision struct {
	passthrough *routing.Route // nil = TLS ends here
	strict      bool           // no certificate for the name
	silent      bool           // with strict: without an alert
	config      *tls.Config
	resumes     bool      // resumes and from: see Policy.config
	from        *snapshot // of config
}

// decide looks up the server name once. It changes nothing of the connection but e.info, e.judged
// and e.tenant.
func (e *entry) decide(hello *Hello) (d decision) {
	cfg := &e.mux.cfg
	table := cfg.Store.Load()
	found := table.SNIAt(e.port, hello.ServerName)
	e.info = Info{ServerName: hello.ServerName, HasServerName: hello.HasServerName, Generation: table.Generation()}
	if d.passthrough = found.Passthrough; d.passthrough != nil {
		return d
	}
	e.info.Certificate, e.info.Own, e.info.Arrival, e.info.Stream = found.Certificate, found.Own, found.Arrival, found.Stream
	d.silent, d.strict = found.Silent, Refuses(found, hello, cfg.StrictSNI)
	if !d.strict {
		d.config, d.from, d.resumes = cfg.Policy.config(hello, e.info.asked(), found.Stream == nil)
		e.info.AuthVersion, e.judged, e.tenant = d.from.terms.version, d.from.trust != nil, found.AuthNamespace
	}
	return d
}

// Refuses reports whether a client whose TLS ends here is refused for lack of a certificate for its
// server name. Either there is no certificate at all, or strict is set and none covers the name.
func Refuses(found routing.SNIDecision, hello *Hello, strict bool) bool {
	return found.Certificate == nil || strict && hello.HasServerName && !found.Own && !names(found.Certificate, hello.ServerName)
}

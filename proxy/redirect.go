package proxy

import "turnout/routing/redirect"

// toTLS is insecureEdgeTerminationPolicy Redirect: to the same target on https, on the standard port, for every method.
var toTLS = mustRedirect(redirect.Target{Scheme: "https"})

func mustRedirect(t redirect.Target) *redirect.Rule {
	r, err := redirect.New(t)
	if err != nil {
		panic(err) // the targets of this package are constants
	}
	return r
}

// redirect answers with a redirect.
func (ex *Exchange) redirect(r *redirect.Rule) {
	h := ex.req
	location, ok := r.Location(ex.client.Secure, withoutPort(h.Authority), h.Path, h.Query, &ex.scratch, ex.cfg.MaxRewrite, &ex.work)
	if !ok {
		failed := ex.tooMuch()
		ex.answer(failed.statusOfRules(), failed)
		return
	}
	out := &ex.local.head
	*out = Head{Status: r.Status(), Reason: redirectPhrase(r.Status()), Minor: 1, Fields: out.Fields[:0]}
	out.addField("location", location)
	if !r.Lasting() {
		out.addField("cache-control", constant("no-cache"))
	}
	ex.reply(ReasonRedirect, nil)
}

// redirectPhrase is the reason phrase of a redirect, which the log counts among its bytes as HAProxy does.
func redirectPhrase(status int) []byte {
	switch status {
	case 301:
		return constant("Moved Permanently")
	case 302:
		return constant("Found")
	case 303:
		return constant("See Other")
	case 307:
		return constant("Temporary Redirect")
	case 308:
		return constant("Permanent Redirect")
	}
	return nil
}

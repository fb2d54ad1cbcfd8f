package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"turnout/proxy"
)

// soonExpired is how long before its end a certificate is a finding.
const soonExpired = 7 * 24 * time.Hour

// findings are what is wrong, or may be: first what ends the request, then what else stands in its way, then what clients and pods see.
func (i *inquiry) findings() []Finding {
	a := i.a
	var all []Finding
	add := func(reason, format string, args ...any) {
		all = append(all, Finding{Reason: reason, Text: fmt.Sprintf(format, args...), Help: help(reason)})
	}
	if o := &a.Outcome; o.By == ByRouter && o.Reason != proxy.ReasonRedirect.String() && o.Reason != proxy.ReasonMonitor.String() {
		add(o.Reason, "%s%s", o.Text, i.why())
	}
	for _, c := range a.Candidates {
		switch c.Reason {
		case ReasonOtherShard:
			add(c.Reason, "route %s/%s does not get it here: %s", c.Namespace, c.Name, c.Text)
		case ReasonRejected, ReasonOlderClaim, ReasonWaiting, ReasonNotSelected:
			add(c.Reason, "%s %s/%s wants this host and does not have it: %s", cmp.Or(c.Kind, "route"), c.Namespace, c.Name, c.Text)
		}
	}
	i.gatewayTrouble(add)
	i.certificateFindings(add)
	i.endpointFindings(add)
	if a.Route != nil {
		for _, note := range a.Route.Notes {
			if a.TLS != nil && strings.HasPrefix(note, "certificate ") {
				continue // it is among those of the certificate
			}
			if strings.Contains(note, ": ResolvedRefs is ") {
				add(ReasonReference, "%s %s/%s: %s", a.Route.Kind, a.Route.Namespace, a.Route.Name, note)
				continue
			}
			add(reasonNote, "route %s/%s: %s", a.Route.Namespace, a.Route.Name, note)
		}
	}
	for _, text := range i.x.cfg.Ignored {
		add(reasonNote, "%s", text)
	}
	return all
}

// why says more of what ends the request.
func (i *inquiry) why() string {
	a := i.a
	switch a.Outcome.Reason {
	case proxy.ReasonNoRoute.String():
		for _, c := range a.Candidates {
			if c.Reason != "" {
				return fmt.Sprintf("; %s %s/%s does not, because %s", cmp.Or(c.Kind, "route"), c.Namespace, c.Name, c.Text)
			}
		}
		return "; no route of this host is known to the router"
	case proxy.ReasonDenied.String():
		return ", which is " + a.Request.Client
	case proxy.ReasonRateLimited.String():
		return i.exceeded()
	}
	if a.Outcome.Detail != "" {
		return " (" + a.Outcome.Detail + ")"
	}
	return ""
}

// exceeded says which limit is.
func (i *inquiry) exceeded() string {
	x := i.a.Access
	switch {
	case x == nil:
		return ""
	case x.OpenLimit > 0 && x.Open >= int64(x.OpenLimit):
		return fmt.Sprintf(": %d connections are open, and %d are too many", x.Open, x.OpenLimit)
	case x.ConnLimit > 0 && x.Connections >= int64(x.ConnLimit):
		return fmt.Sprintf(": %d connections within 3 s, and %d are too many", x.Connections, x.ConnLimit)
	}
	return fmt.Sprintf(": %d requests within 10 s, and with %d one more is too many", x.Requests, x.ReqLimit)
}

func (i *inquiry) certificateFindings(add func(reason, format string, args ...any)) {
	t := i.a.TLS
	if t == nil || t.Certificate == nil || t.Certificate.NotAfter.IsZero() {
		return
	}
	c, now := t.Certificate, time.Now()
	switch {
	case now.After(c.NotAfter):
		add(reasonExpired, "the certificate %s expired on %s: clients refuse it", c.Subject, c.NotAfter.Format(time.RFC3339))
	case now.Before(c.NotBefore):
		add(reasonNotYetValid, "the certificate %s is not valid before %s: clients refuse it", c.Subject, c.NotBefore.Format(time.RFC3339))
	case c.NotAfter.Sub(now) < soonExpired:
		add(reasonExpiring, "the certificate %s expires on %s", c.Subject, c.NotAfter.Format(time.RFC3339))
	}
	if !c.Covers && t.ServerName != "" {
		add(reasonForeign, "the certificate is for %q and not for %s: clients refuse it", c.Names, t.ServerName)
	}
}

func (i *inquiry) endpointFindings(add func(reason, format string, args ...any)) {
	for _, e := range i.a.Endpoints {
		switch e.State {
		case StateDown:
			add(reasonEndpointDown, "health checks of %s fail", e.name())
		case StateEjected:
			add(reasonEjected, "%s gets no requests for a while, because requests to it failed", e.name())
		}
	}
	reported := map[string]bool{}
	for _, s := range i.a.Recent {
		key := s.Reason + s.Endpoint
		if reported[key] || meaning(s.Reason) == "" {
			continue
		}
		reported[key] = true
		where, detail := "", ""
		if s.Endpoint != "" {
			where = " at " + s.Endpoint
		}
		if s.Detail != "" {
			detail = " (" + s.Detail + ")"
		}
		add(s.Reason, "a request failed%s %s ago: %s%s", where, time.Since(s.Start).Round(time.Second), meaning(s.Reason), detail)
	}
	if len(i.a.Recent) > 0 {
		return
	}
	for _, e := range i.a.Endpoints {
		if e.Failures > 0 && e.State == StateUp {
			add(proxy.ReasonConnect.String(), "%s could not be connected %d times", e.name(), e.Failures)
		}
	}
}

// name is what people call an endpoint.
func (e *Endpoint) name() string {
	if e.Pod != "" {
		return "pod " + e.Pod + " (" + e.Address + ")"
	}
	return e.Address
}

package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"turnout/routing"
)

// printer remembers the first error of many writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// linef prints a line with a heading, if there is anything to say.
func (p *printer) linef(heading, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		p.printf("%-15s%s\n", heading, text)
	}
}

// list prints lines under a heading.
func (p *printer) list(mark string, lines []string) {
	for _, l := range lines {
		p.linef("", "%s %s", mark, l)
	}
}

// Text writes the answer for people, in the order of the request.
func (a *Answer) Text(w io.Writer) error {
	p := &printer{w: w}
	a.print(p)
	if a.Change != nil {
		p.printf("\nWith the change:\n")
		if len(a.Difference) == 0 {
			p.printf("nothing is different for this request\n")
		}
		p.list("*", a.Difference)
		p.printf("\n")
		a.Change.print(p)
	}
	return p.err
}

func (a *Answer) print(p *printer) {
	p.linef("Request", "%s %s  %s from %s", a.Request.Method, a.Request.URL, a.Request.Protocol, a.Request.Client)
	p.linef("Answer", "%s", a.Outcome.words())
	for _, f := range a.Findings {
		p.linef("Finding", "%s: %s", f.Reason, f.Text)
		p.linef("", "see %s", f.Help)
	}
	p.linef("Listener", "%s %s, TLS ends: %s", a.Listener.Scheme, a.Listener.Address, a.Listener.Termination)
	if l := &a.Listener; l.Gateway != "" {
		p.linef("", "Gateway %s, port %d (%s)%s", l.Gateway, l.Port, l.Protocol, orNothing(", at ", strings.Join(l.Addresses, ", ")))
		if l.Name != "" {
			p.linef("", "listener %s%s", l.Name, orNothing(", for ", l.Hostname))
		}
	}
	a.printTLS(p)
	for i, c := range a.Candidates {
		heading := ""
		if i == 0 {
			heading = "Candidates"
		}
		p.linef(heading, "%s", c.words())
		p.linef("", "%s", c.DNS.words())
	}
	if a.More > 0 {
		p.linef("", "and %d more", a.More)
	}
	if a.MatchWork > 0 {
		p.linef("Match work", "%d of %d, of one namespace %d", a.MatchWork, routing.MatchWork, routing.MatchWork/2)
	}
	a.printRoute(p)
	a.printHeads(p)
	a.printEndpoints(p)
	for _, s := range a.Recent {
		p.linef("Recent", "%s", s.words())
	}
	p.list("assumed:", a.Assumed)
}

func (a *Answer) printTLS(p *printer) {
	t := a.TLS
	if t == nil {
		return
	}
	name := t.ServerName
	if name == "" {
		name = "(none)"
	}
	p.linef("Server name", "%s", name)
	if c := t.Certificate; c != nil {
		p.linef("Certificate", "%s, for %s, until %s", c.Subject, strings.Join(c.Names, " "), c.NotAfter.Format(time.RFC3339))
	}
	p.linef("", "%s", t.Why)
	p.linef("", "%s", orNothing("clients show ", t.Clients))
}

// words is the outcome as a line.
func (o *Outcome) words() string {
	var b strings.Builder
	switch {
	case o.By == ByEndpoint:
		b.WriteString("that of the pod")
	case o.Status == 0:
		b.WriteString("none: the connection ends")
	default:
		fmt.Fprintf(&b, "%d by the router", o.Status)
	}
	fmt.Fprintf(&b, " (%s): %s", o.Reason, o.Text)
	if o.Location != "" {
		b.WriteString(", to " + o.Location)
	}
	return b.String()
}

func (c *Candidate) words() string {
	host := c.Host
	if c.Wildcard {
		if _, domain, ok := strings.Cut(host, "."); ok {
			host = "*." + domain
		}
	}
	line := fmt.Sprintf("%s%s/%s (%s%s) %s", before(c.Kind, " "), c.Namespace, c.Name, host, c.Path, c.Termination)
	if len(c.Asks) > 0 {
		line = fmt.Sprintf("%s%s/%s (%s; %s) %s", before(c.Kind, " "), c.Namespace, c.Name, host, strings.Join(c.Asks, ", "), c.Termination)
	}
	if c.Won {
		return "+ " + line
	}
	return fmt.Sprintf("- %s: %s: %s", line, c.Reason, c.Text)
}

// mostAddresses is how many addresses of a Router are printed.
const mostAddresses = 4

// words is the way from the name to addresses; "" for nil.
func (d *DNS) words() string {
	if d == nil {
		return ""
	}
	name := "  DNS: " + d.Name
	if d.Target != "" {
		name += " has to be a CNAME of " + d.Target
	}
	for _, r := range d.Routers {
		shown := "no address: no replica is ready"
		if n := len(r.Addresses); n > 0 {
			shown = strings.Join(r.Addresses[:min(n, mostAddresses)], ", ")
			if n > mostAddresses {
				shown += fmt.Sprintf(" and %d more", n-mostAddresses)
			}
		}
		name += "; Router " + r.Name + ": " + shown
	}
	return name
}

func (a *Answer) printRoute(p *printer) {
	r := a.Route
	if r == nil {
		return
	}
	p.linef("Route", "%s%s/%s, %s", before(r.Kind, " "), r.Namespace, r.Name, r.Termination)
	if r.Origin != "" {
		p.linef("", "from %s", r.Origin)
	}
	p.linef("", "timeouts: server %s, tunnel %s, connect %s%s%s; X-Forwarded-*: %s", dur(r.Timeouts.Server), dur(r.Timeouts.Tunnel), dur(r.Timeouts.Connect),
		limit("whole exchange", r.Timeouts.Request), limit("one attempt", r.Timeouts.Attempt), r.Forwarded)
	r.printRule(p)
	for _, s := range r.Settings {
		if decided(s.From) {
			p.linef("", "%s %s: %s", s.Name, s.Value, s.From)
		}
	}
	if x := a.Access; x != nil {
		if x.AllowList {
			p.linef("Allow-list", "%s", map[bool]string{true: "has " + a.Request.Client, false: "does not have " + a.Request.Client}[x.Allowed])
		}
		for _, l := range []struct {
			on   int
			n    int64
			what string
		}{{x.OpenLimit, x.Open, "connections open"}, {x.ConnLimit, x.Connections, "connections within 3 s"}, {x.ReqLimit, x.Requests, "requests within 10 s"}} {
			if l.on != 0 {
				p.linef("Limit", "%d %s; %d are too many", l.n, l.what, l.on)
			}
		}
	}
}

// decided says that an annotation, a variable or an IngressController made a setting what it is, not a default, a flag or a field that every
// route has.
func decided(from string) bool {
	return strings.HasPrefix(from, "annotation ") || strings.HasPrefix(from, "IngressController ") || strings.HasPrefix(from, "--") && strings.Contains(from, " (")
}

func (a *Answer) printHeads(p *printer) {
	for _, one := range []struct {
		heading string
		*HeadChange
	}{{"To the pod", a.Forwarded}, {"To the client", a.Answered}} {
		c := one.HeadChange
		if c == nil {
			continue
		}
		p.linef(one.heading, "%s", c.Line)
		if c.Was != "" {
			p.linef("", "instead of %s", c.Was)
		}
		p.list(" ", c.Kept)
		p.list("-", c.Removed)
		p.list("+", c.Added)
	}
	if k := a.Cookie; k != nil {
		p.linef(map[bool]string{false: "Cookie", true: "Session field"}[k.Header], "%s, used: %t, set by the answer: %t%s", k.Name, k.Used, k.Sent, limit("lasts", k.Lasts))
	}
}

func (a *Answer) printEndpoints(p *printer) {
	for i, e := range a.Endpoints {
		heading, mark := "", "-"
		if i == 0 {
			heading = "Endpoints"
		}
		if e.Picked {
			mark = "+"
		}
		p.linef(heading, "%s %s%s %s, weight %d %s, %d sessions, %d requests, %d failures%s%s", mark, e.name(), orNothing(" of ", e.Backend), e.State, e.Weight, e.Share, e.Sessions, e.Requests, e.Failures, orNothing(", TLS ", e.TLS), counted(e.Private, "private connections"))
	}
	if a.MoreOf > 0 {
		p.linef("", "and %d more", a.MoreOf)
	}
	if len(a.Endpoints) > 1 {
		p.linef("", "chosen by %s; + is the one for this request now", a.Algorithm)
	}
}

// counted returns a number of things after a comma, "" for none.
func counted(n int64, things string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, things)
}

// before is text with what follows it, unless it is empty.
func before(text, next string) string {
	if text == "" {
		return ""
	}
	return text + next
}

// printRule says what a rule of the Gateway API does.
func (r *Route) printRule(p *printer) {
	p.list("takes", r.Asks)
	p.list("and", r.Filters)
	p.list("copies", r.Mirrors)
	if s := r.Retry; s != nil {
		p.linef("", "retries: %d, of statuses %v, at least %s apart", s.Attempts, s.Codes, time.Duration(s.Backoff))
	}
	for i, b := range r.Backends {
		heading := ""
		if i == 0 {
			heading = "Backends"
		}
		what := fmt.Sprintf("%d endpoints", b.Endpoints)
		if b.Status != 0 {
			what = fmt.Sprintf("requests are answered %d", b.Status)
		}
		p.linef(heading, "%s, weight %d %s, %s", b.Name, b.Weight, b.Share, what)
	}
}

func orNothing(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func dur(d Duration) string { return time.Duration(d).String() }

// words is a story as a line.
func (s *Story) words() string {
	to := s.Endpoint
	if to == "" {
		to = "no pod"
	}
	status := "no answer"
	if s.Status != 0 {
		status = fmt.Sprint(s.Status)
	}
	detail := s.Reason
	if s.Detail != "" {
		detail += " (" + s.Detail + ")"
	}
	return fmt.Sprintf("%s %s %s %s%s -> %s: %s, %s, %s, id %s", s.Start.Format(time.RFC3339), s.Why, s.Method, s.Host, s.Target, to, status, detail, dur(s.Total), s.ID)
}

// Text writes the story for people.
func (s *Story) Text(w io.Writer) error {
	p := &printer{w: w}
	p.linef("Request", "%s %s%s  %s from %s, id %s%s%s", s.Method, s.Host, s.Target, s.Protocol, s.Client, s.ID, orNothing(", unique id ", s.UniqueID), orNothing(", trace ", s.TraceID))
	p.linef("When", "%s, table %d; remembered because it is %s", s.Start.Format(time.RFC3339Nano), s.Generation, s.Why)
	if s.Route != "" {
		p.linef("Route", "%s/%s", s.Namespace, s.Route)
	} else {
		p.linef("Route", "none")
	}
	if s.Endpoint != "" {
		p.linef("Endpoint", "%s %s, after %d retries", s.Endpoint, s.Pod, s.Retries)
	}
	p.linef("Answer", "%d, %s%s: %s", s.Status, s.Reason, orNothing(" ", s.Detail), s.Meaning)
	p.linef("", "see %s", help(s.Reason))
	p.linef("Time", "%s in all: %s in the queue, %s to connect, %s to the answer", dur(s.Total), dur(s.Queue), reached(s.Connect), reached(s.Response))
	p.linef("Bytes", "%d in, %d out", s.BytesIn, s.BytesOut)
	return p.err
}

func reached(d Duration) string {
	if d < 0 {
		return "(never)"
	}
	return dur(d)
}

// Stories are several stories.
type Stories []Story

// Text writes the stories for people, a line each.
func (s Stories) Text(w io.Writer) error {
	p := &printer{w: w}
	for i := range s {
		p.printf("%s\n", s[i].words())
	}
	if len(s) == 0 {
		p.printf("no request is remembered\n")
	}
	return p.err
}

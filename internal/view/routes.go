package view

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/internal/traffic"
	"turnout/routing"
)

// Line is a route in a list.
type Line struct {
	Kind        string  `json:"kind"` // Route, also of a rule of an Ingress, or that of an object of the Gateway API
	Namespace   string  `json:"namespace"`
	Name        string  `json:"name"`
	Host        string  `json:"host"`            // the first one, if there are several
	Hosts       int     `json:"hosts,omitempty"` // how many there are, if they are several
	Path        string  `json:"path,omitempty"`
	Termination string  `json:"termination"`
	Admitted    bool    `json:"admitted"`
	Reason      string  `json:"reason,omitempty"` // why it is not admitted
	Notes       int     `json:"notes"`            // what of it has no effect, or is missing
	Rate        uint64  `json:"rate"`             // requests and connections in the last second
	Requests    uint64  `json:"requests"`         // and connections that were passed through, since the route is there
	Errors      uint64  `json:"errors"`           // of them failed
	Sessions    int64   `json:"sessions"`         // running now
	Queued      int     `json:"queued"`           // waiting for an endpoint now
	Mean        float64 `json:"meanSeconds"`      // of requests since the start; 0 = there were none
	P99         float64 `json:"p99Seconds"`       // the same; 0 = not measured for this route
	Servers     Servers `json:"servers"`
}

// Servers are endpoints of routes by what they are. One that is of several routes counts several times.
type Servers struct {
	All     int `json:"all"`
	Usable  int `json:"usable"`  // may be chosen
	Down    int `json:"down"`    // checks fail
	Ejected int `json:"ejected"` // out of the choice because requests failed
	Idle    int `json:"idle"`    // of weight 0
}

// Page is a part of a list of routes.
type Page struct {
	Total  int    `json:"total"`  // routes that the search found
	Offset int    `json:"offset"` // of the first one here
	Lines  []Line `json:"routes"`
}

// What a search may ask for.
const (
	mostLines   = 200
	mostSearch  = 256 // bytes
	usualOnPage = 50
)

// Search is which routes are wanted. The zero value is the first 50 by name.
type Search struct {
	// Text is words separated by blanks, all of which stand in NAMESPACE/NAME, a host and path, kind, termination, "rejected", or "trouble": rejected,
	// with notes, or with endpoints that are not usable.
	Text   string
	Order  string // name, rate, requests, errors, or sessions; "" = name
	Offset int
	Limit  int // 1 to 200; 0 = 50
}

// ParseSearch reads parameters as they are written: q, order, offset, limit.
func ParseSearch(get func(name string) string) (s Search, err error) {
	s = Search{Text: get("q"), Order: cmp.Or(get("order"), "name"), Limit: usualOnPage}
	if len(s.Text) > mostSearch {
		return s, errors.New("q is longer than 256 bytes")
	}
	if _, ok := orders(s.Order); !ok {
		return s, errors.New("order " + strconv.Quote(s.Order) + " is unknown, allowed: name, rate, requests, errors, sessions")
	}
	for _, n := range []struct {
		name        string
		to          *int
		least, most int
	}{{"offset", &s.Offset, 0, 1 << 30}, {"limit", &s.Limit, 1, mostLines}} {
		text := get(n.name)
		if text == "" {
			continue
		}
		if *n.to, err = strconv.Atoi(text); err != nil || *n.to < n.least || *n.to > n.most {
			return s, errors.New(n.name + " " + strconv.Quote(text) + " is not a number from " + strconv.Itoa(n.least) + " to " + strconv.Itoa(n.most))
		}
	}
	return s, nil
}

// orders is what a list is ordered by, the largest first; nil for the names.
func orders(word string) (by func(*Line) uint64, ok bool) {
	switch word {
	case "name", "":
		return nil, true
	case "rate":
		return func(l *Line) uint64 { return l.Rate }, true
	case "requests":
		return func(l *Line) uint64 { return l.Requests }, true
	case "errors":
		return func(l *Line) uint64 { return l.Errors }, true
	case "sessions":
		return func(l *Line) uint64 { return uint64(max(l.Sessions, 0)) }, true
	}
	return nil, false
}

// Routes returns the part of the list that is asked for.
func (v *Viewer) Routes(s Search) Page {
	return page(v.lines(), s, v.latencies())
}

// listed is a line and the route behind it.
type listed struct {
	Line
	hosts  []string         // all of them; nil = that of Line
	rules  []*routing.Route // none = not served
	lacks  bool             // a rule sends requests to endpoints and has none
	totals totals
}

// totals is what of a Line is the mean of several rules.
type totals struct{ took, ended uint64 }

// lines are all routes.
func (v *Viewer) lines() []listed {
	objects := v.cfg.Routes()
	in := served(v.cfg.Table(), len(objects))
	now := v.cfg.Now()
	all := make([]listed, len(objects))
	var seen seenServers
	room := make([]*routing.Route, 0, len(in.all)) // of all lists of rules
	for i := range objects {
		o := &objects[i]
		begin := len(room)
		room = in.of(o.Namespace, o.Name, o.UID, room)
		all[i] = listed{Line: line(o), hosts: o.Hosts, rules: room[begin:len(room):len(room)]}
		all[i].count(now, &seen)
	}
	return all
}

// count counts all rules of an object. Its servers count once, however many rules they are of: seen is memory for that.
func (l *listed) count(now int64, seen *seenServers) {
	if len(l.rules) > 1 {
		slices.SortFunc(l.rules, func(a, b *routing.Route) int { return cmp.Compare(a.Key().Rule, b.Key().Rule) })
		seen.few, seen.many = seen.few[:0], nil
	} else {
		seen = nil
	}
	for _, r := range l.rules {
		l.Line.count(r, now, &l.totals, seen)
		empty := r.Policy().Redirect == nil
		for p := range r.Pools {
			empty = empty && p.Len() == 0
		}
		l.lacks = l.lacks || empty
		if l.Kind != kindRoute {
			l.describe(r)
		}
	}
	if l.totals.ended > 0 {
		l.Mean = time.Duration(l.totals.took / l.totals.ended).Seconds()
	}
	if l.Hosts = len(l.hosts); l.Hosts < 2 {
		l.Hosts = 0
	}
}

// describe takes over from a rule what its object does not say: host names that it has of its listeners, and where TLS ends.
func (l *listed) describe(r *routing.Route) {
	if host := r.Host(); !slices.Contains(l.hosts, host) && len(l.hosts) < mostHosts {
		if l.hosts = append(slices.Clip(l.hosts), host); l.Host == "" {
			l.Host = host
		}
	}
	switch word := r.Termination().String(); {
	case l.Termination == "":
		l.Termination = word
	case !slices.Contains(strings.Split(l.Termination, "+"), word):
		l.Termination += "+" + word
	}
}

// route reports that the object is a route, and not a Gateway or ListenerSet.
func (l *Line) route() bool { return strings.HasSuffix(l.Kind, kindRoute) }

// kindRoute is the kind of what OpenShift's Routes and the rules of Ingresses are.
const kindRoute = "Route"

// mostHosts is how many host names of an object are searched.
const mostHosts = 1024

// seenServers are servers that were looked at: most routes have few, and for these a list is quicker than a map.
type seenServers struct {
	few  []serverKey
	many map[serverKey]struct{}
}

// again reports whether a server was seen before, and remembers it.
func (s *seenServers) again(key serverKey) bool {
	if slices.Contains(s.few, key) {
		return true
	}
	if len(s.few) < 16 {
		s.few = append(s.few, key)
		return false
	}
	if s.many == nil {
		s.many = make(map[serverKey]struct{})
	}
	_, twice := s.many[key]
	s.many[key] = struct{}{}
	return twice
}

// serverKey is by what servers of several rules of one object are the same.
type serverKey struct {
	addr    netip.AddrPort
	service string
}

func line(o *controller.Summary) Line {
	return Line{
		Kind: cmp.Or(o.Kind, kindRoute), Namespace: o.Namespace, Name: o.Name, Host: o.Host, Path: o.Path, Termination: o.Termination,
		Admitted: o.Admitted, Reason: o.Reason, Notes: o.Notes,
	}
}

// count adds what was counted of a rule. seen are the servers of other rules of the object; nil = there are none.
func (l *Line) count(r *routing.Route, now int64, sum *totals, seen *seenServers) {
	for p := range r.Pools {
		for s := range p.List {
			if seen != nil && seen.again(serverKey{s.Addr, s.Service}) {
				continue
			}
			l.countServer(&s)
		}
	}
	c := r.Counted()
	if c == nil {
		return
	}
	rate, _ := c.Sessions.Rate(now)
	l.Rate += rate
	l.Requests, l.Errors, l.Sessions = l.Requests+c.Sessions.Total(), l.Errors+c.Errors.Load(), l.Sessions+c.Sessions.Current()
	sum.took, sum.ended = sum.took+c.Took.Load(), sum.ended+c.Ended.Load()
}

// countServer counts one more.
func (l *Line) countServer(s *balancer.Listed) {
	l.Servers.All++
	if s.Usable() && s.Weight > 0 {
		l.Servers.Usable++
	}
	if s.Weight == 0 {
		l.Servers.Idle++
	}
	if s.Check != nil && s.Check.Down() {
		l.Servers.Down++
	}
	if s.Server != nil && s.Server.Ejected() {
		l.Servers.Ejected++
	}
}

// trouble reports that somebody should look at the route.
func (l *listed) trouble() bool {
	return !l.Admitted || l.Notes > 0 || l.Servers.Usable < l.Servers.All || l.lacks || l.Kind == kindRoute && l.Servers.All == 0
}

// matches reports that all words are found.
func (l *listed) matches(words []string) bool {
	for _, word := range words {
		switch {
		case word == "rejected" && !l.Admitted, word == "trouble" && l.trouble(), word == l.Termination, word == strings.ToLower(l.Kind):
		case slices.ContainsFunc(l.hosts, func(host string) bool { return strings.Contains(host, word) }):
		case strings.Contains(strings.ToLower(l.Namespace+"/"+l.Name), word), strings.Contains(strings.ToLower(l.Host+l.Path), word):
		default:
			return false
		}
	}
	return true
}

func page(all []listed, s Search, measured map[uint32]*traffic.Histogram) Page {
	if words := strings.Fields(strings.ToLower(s.Text)); len(words) > 0 {
		all = slices.DeleteFunc(all, func(l listed) bool { return !l.matches(words) })
	}
	by, _ := orders(s.Order)
	slices.SortFunc(all, func(a, b listed) int {
		if by != nil {
			if n := cmp.Compare(by(&b.Line), by(&a.Line)); n != 0 {
				return n
			}
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	p := Page{Total: len(all), Offset: min(s.Offset, len(all)), Lines: []Line{}}
	for _, l := range all[p.Offset:min(p.Offset+cmp.Or(s.Limit, usualOnPage), len(all))] {
		l.Queued = queued(l.rules)
		for _, r := range l.rules {
			if c := r.Counted(); c != nil && c.Followed.Load() != 0 {
				l.P99 = max(l.P99, quantile(measured[c.Followed.Load()], 0.99))
			}
		}
		p.Lines = append(p.Lines, l.Line)
	}
	return p
}

package view

import (
	"cmp"
	"errors"
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
	Namespace   string  `json:"namespace"`
	Name        string  `json:"name"`
	Host        string  `json:"host"`
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
	// Text is words separated by blanks, all of which stand in NAMESPACE/NAME, host and path, termination, "rejected", or "trouble": rejected,
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
	route *routing.Route // nil = not served
}

// lines are all routes.
func (v *Viewer) lines() []listed {
	in, objects := served(v.cfg.Table()), v.cfg.Routes()
	now := v.cfg.Now()
	all := make([]listed, len(objects))
	for i := range objects {
		o := &objects[i]
		all[i] = listed{line(o), in[key{o.Namespace, o.Name}]}
		if r := all[i].route; r != nil {
			all[i].count(r, now)
		}
	}
	return all
}

func line(o *controller.Summary) Line {
	return Line{
		Namespace: o.Namespace, Name: o.Name, Host: o.Host, Path: o.Path, Termination: o.Termination,
		Admitted: o.Admitted, Reason: o.Reason, Notes: o.Notes,
	}
}

// count fills in what was counted.
func (l *Line) count(r *routing.Route, now int64) {
	for p := range r.Pools {
		for s := range p.List {
			l.countServer(s)
		}
	}
	c := r.Counted()
	if c == nil {
		return
	}
	l.Rate, _ = c.Sessions.Rate(now)
	l.Requests, l.Errors, l.Sessions = c.Sessions.Total(), c.Errors.Load(), c.Sessions.Current()
	if n := c.Ended.Load(); n > 0 {
		l.Mean = time.Duration(c.Took.Load() / n).Seconds()
	}
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
func (l *Line) trouble() bool {
	return !l.Admitted || l.Notes > 0 || l.Servers.Usable < l.Servers.All || l.Servers.All == 0
}

// matches reports that all words are found.
func (l *Line) matches(words []string) bool {
	for _, word := range words {
		switch {
		case word == "rejected" && !l.Admitted, word == "trouble" && l.trouble(), word == l.Termination:
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
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	p := Page{Total: len(all), Offset: min(s.Offset, len(all)), Lines: []Line{}}
	for _, l := range all[p.Offset:min(p.Offset+cmp.Or(s.Limit, usualOnPage), len(all))] {
		if r := l.route; r != nil {
			l.Queued = queued(r)
			if c := r.Counted(); c != nil && c.Followed.Load() != 0 {
				l.P99 = quantile(measured[c.Followed.Load()], 0.99)
			}
		}
		p.Lines = append(p.Lines, l.Line)
	}
	return p
}

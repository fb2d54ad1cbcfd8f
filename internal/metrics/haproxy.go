package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/balancer"
	"turnout/internal/traffic"
)

// column is one of the columns of HAProxy's statistics that the HAProxy router exports, with what this router has in its place. The
// names, labels and type (gauge, always) are those of the HAProxy router, so that dashboards, rules and alerts keep working.
type column struct {
	number  int // in the statistics of HAProxy
	suffix  string
	help    string
	code    string // label of the answers it is about; "" = it is about something else
	unasked bool   // exported only if the list of columns has it
	highest bool   // rules of an object, and servers with the same labels, have the highest of their values, not the sum

	// What it is of each; nil = it has none.
	port    func(p *port) float64
	backend func(b *backend) float64
	server  func(s *serverRow) float64
	// Those that have it; nil = all.
	backends func(b *backend) bool
	servers  func(s *serverRow) bool
}

// milliseconds are how the HAProxy router counts time.
func milliseconds(d time.Duration) float64 { return float64(d/time.Microsecond) / 1000 }

// haproxyColumns are all columns, in their order.
func haproxyColumns() []column {
	all := append(countColumns(), stateColumns()...)
	for i, code := range [...]string{"1xx", "2xx", "3xx", "4xx", "5xx", "other"} {
		all = append(all, answers(39+i, code, (i+1)%traffic.Classes))
	}
	return append(all, []column{
		{number: 48, suffix: "http_requests_total", help: "Requests.", unasked: true, port: (*port).requests},
		latency(58, "queue", func(c *traffic.Counts) *traffic.Average { return nil }),
		latency(59, "connect", func(c *traffic.Counts) *traffic.Average { return &c.Connect }),
		latency(60, "response", func(c *traffic.Counts) *traffic.Average { return &c.Response }),
		latency(61, "total", func(c *traffic.Counts) *traffic.Average { return &c.Total }),
		{number: 79, suffix: "connections_total", help: "Connections of clients accepted.", port: func(p *port) float64 { return float64(p.sessions.Total()) }},
		{number: 85, suffix: "connections_reused_total", help: "Attempts for which a connection was open already.",
			backend: func(b *backend) float64 { return less(b.attempts(), b.stats.Fresh.Load()) },
			server:  func(s *serverRow) float64 { return less(s.attempts(), s.traffic.Fresh.Load()) }},
	}...)
}

// countColumns are those of sessions, bytes and errors.
func countColumns() []column {
	return []column{
		{number: 2, suffix: "current_queue", help: "Requests that wait for a server.",
			backend: func(b *backend) float64 { return float64(b.queue.Length) }, server: func(s *serverRow) float64 { return float64(s.queue.Length) }},
		{number: 3, suffix: "max_queue", help: "Most requests that waited at a time.", highest: true,
			backend: func(b *backend) float64 { return float64(b.queue.Most) }, server: func(s *serverRow) float64 { return float64(s.queue.Most) }},
		{number: 4, suffix: "current_sessions", help: "Connections that are open, requests and tunnels that are served.",
			port:    func(p *port) float64 { return float64(p.sessions.Current()) },
			backend: func(b *backend) float64 { return float64(b.stats.Sessions.Current()) },
			server: func(s *serverRow) float64 {
				return s.of(func(s *serverRow) float64 { return float64(s.listed.InFlight()) })
			}},
		{number: 5, suffix: "max_sessions", help: "Most sessions at a time since the start of the process.", highest: true,
			port:    func(p *port) float64 { return float64(p.sessions.Most()) },
			backend: func(b *backend) float64 { return float64(b.stats.Sessions.Most()) },
			server: func(s *serverRow) float64 {
				return s.of(func(s *serverRow) float64 { return float64(s.listed.MostInFlight()) })
			}},
		{number: 6, suffix: "limit_sessions", help: "Most sessions that there may be.", unasked: true, highest: true,
			port: func(p *port) float64 { return float64(p.most) }, server: func(s *serverRow) float64 { return float64(s.limit) },
			servers: func(s *serverRow) bool { return s.limit > 0 }},
		{number: 7, suffix: "connections_total", help: "Requests and tunnels.",
			backend: func(b *backend) float64 { return float64(b.stats.Sessions.Total()) },
			server:  func(s *serverRow) float64 { return float64(s.requests()) }},
		{number: 8, suffix: "bytes_in_total", help: "Bytes from clients, heads included.",
			port:    func(p *port) float64 { return float64(p.totals.BytesIn) },
			backend: func(b *backend) float64 { return float64(b.stats.BytesIn.Load()) },
			server:  func(s *serverRow) float64 { return float64(s.traffic.BytesIn.Load()) }},
		{number: 9, suffix: "bytes_out_total", help: "Bytes to clients, heads included.",
			port:    func(p *port) float64 { return float64(p.totals.BytesOut) },
			backend: func(b *backend) float64 { return float64(b.stats.BytesOut.Load()) },
			server:  func(s *serverRow) float64 { return float64(s.traffic.BytesOut.Load()) }},
		{number: 12, suffix: "request_errors_total", help: "Requests that could not be understood.", unasked: true,
			port: func(p *port) float64 { return float64(p.totals.Malformed) }},
		{number: 13, suffix: "connection_errors_total", help: "Attempts that could not be connected.",
			backend: func(b *backend) float64 { return float64(b.stats.ConnectErrors.Load()) },
			server: func(s *serverRow) float64 {
				return s.of(func(s *serverRow) float64 { return float64(s.listed.Failures()) })
			}},
		{number: 14, suffix: "response_errors_total", help: "Answers that broke off, were invalid or did not come in time.",
			backend: func(b *backend) float64 { return float64(b.stats.ResponseErrors.Load()) },
			server:  func(s *serverRow) float64 { return float64(s.traffic.ResponseErrors.Load()) }},
		{number: 15, suffix: "retry_warnings_total", help: "Attempts that followed another one at the same server.", unasked: true,
			backend: func(b *backend) float64 { return float64(b.stats.Retries.Load()) },
			server:  func(s *serverRow) float64 { return float64(s.traffic.Retries.Load()) }},
		{number: 16, suffix: "redispatch_warnings_total", help: "Attempts that followed another one at another server.", unasked: true,
			backend: func(b *backend) float64 { return float64(b.stats.Redispatches.Load()) },
			server:  func(s *serverRow) float64 { return float64(s.traffic.Redispatches.Load()) }},
	}
}

// stateColumns are those of servers and of what happens in a second.
func stateColumns() []column {
	checked := func(s *serverRow) bool { return s.listed.Check != nil }
	return []column{
		{number: 17, suffix: "up", help: "Whether a server may be chosen, or the route has one that may: 0 if it is down or ejected.", highest: true,
			backend: func(b *backend) float64 { return flag(b.usable()) }, server: func(s *serverRow) float64 { return flag(s.listed.Usable()) }},
		{number: 18, suffix: "weight", help: "Weight of a server, or of all of the route.",
			backend: (*backend).weight, server: func(s *serverRow) float64 { return float64(s.weight) }},
		{number: 21, suffix: "check_failures_total", help: "Health checks that failed while the server counted as up.", servers: checked,
			server: ofCheck(func(_ *serverRow, c *balancer.Check) float64 { return float64(c.Failures()) })},
		{number: 24, suffix: "downtime_seconds_total", help: "Seconds for which health checks failed.", servers: checked,
			server: ofCheck(func(s *serverRow, c *balancer.Check) float64 { return float64(c.Downtime(s.times.wall) / time.Second) })},
		{number: 33, suffix: "current_session_rate", help: "Sessions that began in the last full second.",
			port:    func(p *port) float64 { return first(p.sessions.Rate(p.now)) },
			backend: func(b *backend) float64 { return first(b.stats.Sessions.Rate(b.now)) },
			server:  func(s *serverRow) float64 { return first(s.traffic.Rate.Read(s.times.now, s.requests())) }},
		{number: 35, suffix: "max_session_rate", help: "Most sessions that began in a second.", highest: true,
			port:    func(p *port) float64 { return second(p.sessions.Rate(p.now)) },
			backend: func(b *backend) float64 { return second(b.stats.Sessions.Rate(b.now)) },
			server:  func(s *serverRow) float64 { return second(s.traffic.Rate.Read(s.times.now, s.requests())) }},
		{number: 38, suffix: "check_duration_milliseconds", help: "Time that the last health check took.", unasked: true, highest: true, servers: checked,
			server: ofCheck(func(_ *serverRow, c *balancer.Check) float64 { return milliseconds(c.Took()) })},
	}
}

// answers is the column of a class of answers.
func answers(number int, code string, class int) column {
	return column{number: number, suffix: "http_responses_total", help: "Answers by class of the status; other: the connection ended without one.", code: code,
		port:     func(p *port) float64 { return float64(p.totals.Answers[class]) },
		backend:  func(b *backend) float64 { return float64(b.stats.Answers[class].Load()) },
		server:   func(s *serverRow) float64 { return float64(s.traffic.Answers[class].Load()) },
		backends: (*backend).http, servers: func(s *serverRow) bool { return s.http },
	}
}

// latency is the column of a mean time; of is nil for the queue, of which the pool knows.
func latency(number int, what string, of func(c *traffic.Counts) *traffic.Average) column {
	return column{number: number, suffix: "http_average_" + what + "_latency_milliseconds", help: "Mean time of the last requests: " + latencies[what] + ".", highest: true,
		backend: func(b *backend) float64 {
			if mean := of(&b.stats.Counts); mean != nil {
				return milliseconds(mean.Mean(b.requests()))
			}
			return milliseconds(b.queue.Delay)
		},
		server: func(s *serverRow) float64 {
			if mean := of(&s.traffic.Counts); mean != nil {
				return milliseconds(mean.Mean(s.requests()))
			}
			return milliseconds(s.queue.Delay)
		},
		backends: func(b *backend) bool { return b.http() || what != "response" }, servers: func(s *serverRow) bool { return s.http || what != "response" },
	}
}

var latencies = map[string]string{
	"queue": "waiting for a server", "connect": "choosing and connecting a server", "response": "from the request to the head of the answer", "total": "from the request to the end",
}

// of is a value that only servers have that a request has wanted.
func (s *serverRow) of(value func(s *serverRow) float64) float64 {
	if s.listed.Server == nil {
		return 0
	}
	return value(s)
}

// ofCheck is a value that only servers have that are checked.
func ofCheck(value func(s *serverRow, c *balancer.Check) float64) func(s *serverRow) float64 {
	return func(s *serverRow) float64 {
		if s.listed.Check == nil {
			return 0
		}
		return value(s, s.listed.Check)
	}
}

// requests are all that were answered or ended without an answer.
func (p *port) requests() (n float64) {
	for _, answers := range p.totals.Answers {
		n += float64(answers)
	}
	return n
}

// weight is the sum of all servers.
func (b *backend) weight() (n float64) {
	for p := range b.Pools {
		for l := range p.List {
			n += float64(l.Weight)
		}
	}
	return n
}

func first(v, _ uint64) float64 { return float64(v) }

func second(_, v uint64) float64 { return float64(v) }

// less is a difference that is not negative: what it is made of was not read at one moment.
func less(a, b uint64) float64 { return float64(a - min(a, b)) }

// haproxyFamilies are the columns as families.
type haproxyFamilies struct {
	ports    []rowFamily[port]
	backends []rowFamily[backend]
	servers  []rowFamily[serverRow]
}

// ParseColumns reads the list of columns to be exported, numbers separated by commas.
func ParseColumns(list string) ([]int, error) {
	known := haproxyColumns()
	var numbers []int
	for item := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(item))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no number of a column of HAProxy's statistics", strings.TrimSpace(item))
		}
		if slices.ContainsFunc(known, func(c column) bool { return c.number == n }) { // others mean nothing here
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// newHAProxyFamilies makes the families of some columns; nil: those that are exported by default.
func newHAProxyFamilies(numbers []int) (f haproxyFamilies) {
	for _, c := range haproxyColumns() {
		if numbers == nil && c.unasked || numbers != nil && !slices.Contains(numbers, c.number) {
			continue
		}
		if c.port != nil {
			f.ports = addVariant(f.ports, rowFamily[port]{name: "haproxy_frontend_" + c.suffix, help: c.help, labels: []string{"frontend"},
				text: func(p *port) labelText { return p.text }}, c.code, c.port)
		}
		if c.backend != nil {
			f.backends = addVariant(f.backends, rowFamily[backend]{name: "haproxy_backend_" + c.suffix, help: c.help, has: c.backends, labels: []string{"backend", "namespace", "route"},
				text: func(b *backend) labelText { return b.text }}, c.code, combined(c.backend, nextRule, c.highest))
		}
		if c.server != nil {
			f.servers = addVariant(f.servers, rowFamily[serverRow]{name: "haproxy_server_" + c.suffix, help: c.help, has: c.servers,
				labels: []string{"server", "namespace", "route", "pod", "service"}, text: func(s *serverRow) labelText { return s.text }}, c.code, combined(c.server, func(s *serverRow) *serverRow { return s.next }, c.highest))
		}
	}
	return f
}

// addVariant adds a family, or a variant of the last one.
func addVariant[R any](all []rowFamily[R], f rowFamily[R], code string, read func(r *R) float64) []rowFamily[R] {
	if code != "" {
		f.label, f.labels = "code", append(f.labels, "code")
	}
	if last := len(all) - 1; last < 0 || all[last].name != f.name {
		all = append(all, f)
	}
	to := &all[len(all)-1]
	to.variants = append(to.variants, variant[R]{value: code, read: read})
	return all
}

// combined is the value of all rows that have the same labels.
func combined[R any](read func(r *R) float64, next func(r *R) *R, highest bool) func(r *R) float64 {
	return func(r *R) float64 {
		v := read(r)
		for r = next(r); r != nil; r = next(r) {
			if highest {
				v = max(v, read(r))
			} else {
				v += read(r)
			}
		}
		return v
	}
}

func nextRule(b *backend) *backend { return b.next }

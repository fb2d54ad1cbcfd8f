package nameserver

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"turnout/controller/shard/naming"
	"turnout/controller/shard/zones"
	"turnout/controller/source/cluster"
	"turnout/internal/access"
	"turnout/internal/dns/server"
	"turnout/internal/dns/zone"
	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/option/kubectl"
)

// Options are those of the command.
type Options struct {
	reach         cluster.Reach
	server        server.Config // Addr "": nothing is answered
	keyFile       string        // of TSIG; "" = none
	zoneDir       string        // "" = no zone files
	endpoints     string        // namespace of DNSEndpoint objects; "" = none
	zones         zones.Config
	lostAfter     time.Duration
	shutdownDelay time.Duration
	adminAddr     string
	admin         access.Options
	logLevel      zapcore.Level
	logFormat     string
}

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	var all []option.Option
	for _, group := range []struct {
		name  string
		table []option.Option
	}{
		{"Names", o.names()}, {"Answers", o.answers()}, {"Secondaries and servers of others", o.others()}, {kubectl.Group, kubectl.Settings(&o.reach)},
		{"Admin port", o.admin.Table()}, {"The process", o.process()},
	} {
		for _, s := range group.table {
			s.Group = group.name
			all = append(all, s)
		}
	}
	return all
}

func (o *Options) names() []option.Option {
	z := &o.zones
	seconds := func(flag, def string, to *uint32, help string) option.Option {
		return option.Option{Flag: flag, Def: def, Value: "TIME", Set: option.Into(to, parseSeconds), Help: help}
	}
	return []option.Option{
		{Flag: "ns", Value: "NAME[=ADDRESS,...]", Repeats: true, Set: func(s string) error {
			one, err := parseServer(s)
			z.Servers = append(z.Servers, one)
			return err
		}, Help: "a name server of the zones of Routers that name none, with its addresses if it is within one of them; the first is the primary; may be given several times"},
		{Flag: "hostmaster", Value: "NAME", Set: option.Into(&z.Mailbox, option.ParseDNSName), Help: "who is in charge, for SOA records: an address with a dot for its @; without it hostmaster in each zone"},
		seconds("negative-ttl", "30s", &z.NegativeTTL, "how long resolvers may keep that there is no such name"),
		seconds("ns-ttl", "1h", &z.ServerTTL, "how long they may keep name servers and their addresses"),
		seconds("refresh", "5m", &z.Refresh, "after which secondaries ask whether a zone has changed though nobody notified them"),
		seconds("retry", "1m", &z.Retry, "the same after a failure"),
		seconds("expire", "14d", &z.Expire, "for which they answer without having reached this server"),
		{Flag: "lost-after", Def: "2m", Value: "TIME", Set: option.Into(&o.lostAfter, option.ParseTimespec),
			Help: "a replica that has said nothing for so long is left out, unless all of its Router are silent; as spec.lostAfterSeconds of the RouteScheduler"},
	}
}

func (o *Options) answers() []option.Option {
	s := &o.server
	return []option.Option{
		{Flag: "listen", Def: ":53", Value: "HOST:PORT", Set: option.Into(&s.Addr, parseListen), Help: "where queries are answered, over UDP and TCP; none: nowhere"},
		{Flag: "answers-per-second", Def: "1000", Value: "N", Set: option.Into(&s.Rate, parseNumber),
			Help: "answers over UDP to clients of one /24 of IPv4 or /56 of IPv6; 0: any number"},
		{Flag: "slip", Def: "2", Value: "N", Set: option.Into(&s.Slip, parseNumber),
			Help: "of those beyond it one in N is sent truncated, so that real clients ask over TCP; 0: none is"},
	}
}

func (o *Options) others() []option.Option {
	s := &o.server
	return []option.Option{
		{Flag: "allow-transfer", Value: "LIST", Set: option.Into(&s.Transfers, option.ParsePrefixes),
			Help: "addresses and CIDRs, separated by commas, that zones are handed to; without it and --tsig-key-file nobody, with keys alone every client that has one"},
		{Flag: "tsig-key-file", Value: "FILE", Set: option.Into(&o.keyFile, option.ParseText),
			Help: "keys as tsig-keygen writes them; transfers have to be signed with one of them. It is read again when it changes"},
		{Flag: "notify", Value: "ADDRESS[:PORT][=KEY]", Repeats: true, Set: func(text string) error {
			one, err := parseSecondary(text)
			s.Notify = append(s.Notify, one)
			return err
		}, Help: "a secondary that is notified of changes, signed with a key if it has a name; may be given several times"},
		{Flag: "zone-dir", Value: "DIR", Set: option.Into(&o.zoneDir, option.ParseText), Help: "a folder to write zone files to, for a server of your own; serials go on from there after a restart"},
		{Flag: "dns-endpoints", Value: "NAMESPACE", Set: option.Into(&o.endpoints, cluster.ParseNamespace), Help: "write DNSEndpoint objects of external-dns to this namespace"},
	}
}

func (o *Options) process() []option.Option {
	return []option.Option{
		{Flag: "admin-addr", Def: "0.0.0.0:1936", Value: "HOST:PORT", Set: option.Into(&o.adminAddr, option.ParseListenAddr), Help: "where /healthz and /metrics are served"},
		{Flag: "shutdown-delay", Def: "5s", Value: "DURATION", Set: option.Into(&o.shutdownDelay, option.ParseDelay), Help: "for which queries are answered after SIGTERM, while /healthz/ready fails"},
		{Flag: "log-level", Def: "info", Value: "LEVEL", Set: option.Into(&o.logLevel, logging.ParseLevel), Help: "least important level that is logged: debug, info, warn or error"},
		{Flag: "log-format", Def: "auto", Value: "FORMAT", Set: option.Words(&o.logFormat, "auto", "json", "console"),
			Help: "lines of the log: json, console (for people), or auto: console when the standard error is a terminal, json otherwise"},
	}
}

// check finds options that contradict each other.
func (o *Options) check() error {
	nowhere := o.server.Addr == ""
	switch {
	case nowhere && o.zoneDir == "" && o.endpoints == "":
		return option.Usagef("--listen none without --zone-dir or --dns-endpoints: names would go nowhere")
	case nowhere && (len(o.server.Transfers) > 0 || o.keyFile != "" || len(o.server.Notify) > 0):
		return option.Usagef("--allow-transfer, --tsig-key-file and --notify need a server; --listen is none")
	case len(o.server.Notify) > 0 && o.keyFile == "" && len(o.server.Transfers) == 0:
		return option.Usagef("--notify without --allow-transfer or --tsig-key-file: nobody may have what they are notified of")
	}
	return nil
}

// Config of a Keeper, but for where names go.
func (o *Options) naming() naming.Config {
	return naming.Config{Zones: o.zones, LostAfter: o.lostAfter}
}

func parseListen(s string) (string, error) {
	if s == "none" {
		return "", nil
	}
	return option.ParseListenAddr(s)
}

// parseNumber reads a number up to a million.
func parseNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > 1e6 {
		return 0, errors.New("allowed: a whole number up to 1000000")
	}
	return int(n), nil
}

// parseSeconds reads a time as DNS has it: whole seconds, below 2³¹ of them (RFC 2181 section 8).
func parseSeconds(s string) (uint32, error) {
	d, err := option.ParseTimespec(s)
	if err != nil {
		return 0, err
	}
	if d%time.Second != 0 || d >= 1<<31*time.Second {
		return 0, errors.New("allowed: whole seconds, for example 30s or 1h")
	}
	return uint32(d / time.Second), nil
}

// parseServer reads NAME[=ADDRESS,...].
func parseServer(s string) (zone.Server, error) {
	name, addresses, given := strings.Cut(s, "=")
	one := zone.Server{Name: name}
	if name == "" || zone.ValidName(name) != nil {
		return one, errors.New("allowed: NAME or NAME=ADDRESS,ADDRESS, for example ns1.example.com=192.0.2.53")
	}
	for _, text := range option.ParseList(addresses) {
		a, err := option.ParseAddr(text)
		if err != nil {
			return one, err
		}
		one.Addresses = append(one.Addresses, a)
	}
	if given && len(one.Addresses) == 0 {
		return one, errors.New("allowed: at least one address after the =")
	}
	return one, nil
}

// parseSecondary reads ADDRESS[:PORT][=KEY].
func parseSecondary(s string) (server.Secondary, error) {
	addr, key, given := strings.Cut(s, "=")
	one := server.Secondary{Key: key}
	var err error
	if one.Addr, err = netip.ParseAddrPort(addr); err != nil {
		a, err := netip.ParseAddr(addr)
		if err != nil {
			return one, errors.New("allowed: an address with or without a port and =KEY, for example 192.0.2.53 or [2001:db8::53]:5353=secondary")
		}
		one.Addr = netip.AddrPortFrom(a, 53)
	}
	if given && key == "" {
		return one, errors.New("allowed: the name of a key after the =")
	}
	return one, nil
}

package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"turnout/internal/bound"
)

// Config is how a Server answers. Addr is required; other zero values are what they say.
type Config struct {
	Addr    string // host:port, for UDP and TCP; port 0 lets the system choose one for both
	Workers int    // goroutines that answer over UDP; 0 = GOMAXPROCS

	// Transfers are the addresses that zones are handed to. None: any, if there are Keys, else nobody.
	Transfers []netip.Prefix
	Keys      Keys        // of TSIG. If there are any, transfers have to be signed with one
	Notify    []Secondary // who is notified of changes (RFC 1996)

	// Rate is how many answers a second clients of one prefix get over UDP, /24 of IPv4 and /56 of IPv6; 0 = any number. Of those beyond
	// it one in Slip is sent as truncated, so that a client which is what it says asks over TCP; the others get nothing. Slip 0: none is sent.
	Rate, Slip int

	Limits Limits
	Bounds *bound.Counts // counts bounds that clients reach; nil = nobody does
	Tell   func(Event)   // what operators may want to know, from any goroutine; nil = nobody
	Now    func() time.Time
}

// Limits are bounds on what clients may use. Zero values are the defaults.
type Limits struct {
	Connections    int           // over TCP, at once; DefaultConnections
	ClientShare    int           // of them, of one prefix; DefaultClientShare
	Idle           time.Duration // for a whole query, and until the next; DefaultIdle
	Write          time.Duration // in which a client takes an answer, or a message of a transfer; DefaultWrite
	Transfers      int           // at once; DefaultTransfers
	MessageBytes   int           // of a query over TCP; DefaultMessageBytes
	NotifyTimeout  time.Duration // for the first attempt, doubled for each that follows; DefaultNotifyTimeout
	NotifyAttempts int           // that are made if there is no answer; DefaultNotifyAttempts
	NotifyPause    time.Duration // after the first attempt, doubled for each that follows; NotifyTimeout
}

// Defaults of Limits.
const (
	DefaultConnections    = 512
	DefaultClientShare    = 64
	DefaultIdle           = 10 * time.Second
	DefaultWrite          = 10 * time.Second
	DefaultTransfers      = 8
	DefaultMessageBytes   = 4096
	DefaultNotifyTimeout  = 2 * time.Second
	DefaultNotifyAttempts = 5
)

// Secondary is a server that is notified of changes.
type Secondary struct {
	Addr netip.AddrPort
	Key  string // name of the key that messages to it are signed with; "" = they are not
}

// EventKind is what has happened.
type EventKind uint8

// Kinds of events.
const (
	Transferred      EventKind = iota // a zone was handed to Peer
	TransferFailed                    // the same, but not to the end
	TransferRefused                   // Peer may not have Zone
	TransferDeferred                  // Peer was refused for now, because too many transfers were under way
	Notified                          // Peer knows of the change
	NotifyFailed                      // Peer does not answer, or with an error
	Panicked                          // a bug: a query was given up
)

// Event is something that has happened besides queries.
type Event struct {
	Kind   EventKind
	Zone   string
	Serial uint32
	Peer   netip.AddrPort
	Err    error // of TransferFailed, NotifyFailed and Panicked
}

// complete checks the configuration and fills in defaults.
func (cfg Config) complete() (Config, error) {
	if cfg.Rate < 0 || cfg.Slip < 0 {
		return cfg, errors.New("a rate below 0")
	}
	if _, _, err := net.SplitHostPort(cfg.Addr); err != nil {
		return cfg, fmt.Errorf("address %q is no HOST:PORT", cfg.Addr)
	}
	for _, s := range cfg.Notify {
		if _, ok := cfg.Keys.find(s.Key); s.Key != "" && !ok {
			return cfg, fmt.Errorf("there is no key %q, which %s is to be notified with", s.Key, s.Addr)
		}
	}
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Tell == nil {
		cfg.Tell = func(Event) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Limits.complete()
	return cfg, nil
}

func (l *Limits) complete() {
	number := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	duration := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	number(&l.Connections, DefaultConnections)
	number(&l.ClientShare, DefaultClientShare)
	number(&l.Transfers, DefaultTransfers)
	number(&l.MessageBytes, DefaultMessageBytes)
	number(&l.NotifyAttempts, DefaultNotifyAttempts)
	duration(&l.Idle, DefaultIdle)
	duration(&l.Write, DefaultWrite)
	duration(&l.NotifyTimeout, DefaultNotifyTimeout)
	duration(&l.NotifyPause, l.NotifyTimeout)
}

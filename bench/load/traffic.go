package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// TrafficConfig describes which URLs are asked for.
type TrafficConfig struct {
	// Hosts is how many routes exist: Host(0) to Host(Hosts-1). 0 means 1; at most MaxHosts.
	Hosts int
	// Upstreams is how many upstreams serve them: host i is served by upstream i modulo Upstreams. 0 means 1.
	Upstreams int
	// Distinct limits the URLs in use to this many, one per host, spread over all hosts. 0 means all hosts.
	Distinct int
	// Fresh gives every request a path never used before by this Traffic.
	Fresh bool
	// Upload makes every request a POST with a body of so many bytes.
	Upload int
	// Close asks for the end of the connection behind each answer.
	Close bool
	// Seed starts the random choice of hosts. 0 means 1.
	Seed uint64
}

// MaxHosts bounds TrafficConfig.Hosts: the number of a host has five digits.
const MaxHosts = 100_000

// Traffic makes requests. It is used by one goroutine; its position carries on from one Drive to the
// next, so that a fresh URL stays fresh.
type Traffic struct {
	cfg    TrafficConfig
	stride int
	random uint64
	serial uint64
	pathAt int
	hostAt int
	form   []byte
}

const (
	hostDigits = 5
	pathDigits = 10
)

// Host returns the host name of route n.
func Host(n int) string { return fmt.Sprintf("r%05d.bench.test", n) }

// NewTraffic returns the traffic that cfg describes, or an error that names the bad field.
func NewTraffic(cfg TrafficConfig) (*Traffic, error) {
	cfg.Hosts = max(cfg.Hosts, 1)
	cfg.Upstreams = max(cfg.Upstreams, 1)
	cfg.Seed = max(cfg.Seed, 1)
	if cfg.Distinct <= 0 {
		cfg.Distinct = cfg.Hosts
	}
	if cfg.Hosts > MaxHosts {
		return nil, errors.New("cannot make traffic: Hosts is above MaxHosts")
	}
	if cfg.Distinct > cfg.Hosts {
		return nil, errors.New("cannot make traffic: Distinct is above Hosts")
	}
	method, more := "GET", ""
	if cfg.Upload > 0 {
		method, more = "POST", fmt.Sprintf("Content-Length: %d\r\n", cfg.Upload)
	}
	if cfg.Close {
		more += "Connection: close\r\n"
	}
	form := method + " /items/" + strings.Repeat("0", pathDigits) + " HTTP/1.1\r\nHost: " + Host(0) +
		"\r\nUser-Agent: turnout-bench\r\nAccept: */*\r\n" + more + "\r\n" + string(uploaded(cfg.Upload))
	return &Traffic{
		cfg: cfg, stride: cfg.Hosts / cfg.Distinct, random: cfg.Seed, form: []byte(form),
		pathAt: strings.Index(form, "/items/") + len("/items/"),
		hostAt: strings.Index(form, "Host: r") + len("Host: r"),
	}, nil
}

// uploaded is the body of requests of that size.
func uploaded(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

// Next writes the next request into dst, which is reused when it is large enough, and returns it with
// the number of the upstream that has to answer. It allocates only for the first request of a dst.
func (t *Traffic) Next(dst []byte) (request []byte, upstream int) {
	if len(dst) != len(t.form) {
		dst = append(dst[:0], t.form...)
	}
	host := 0
	if t.cfg.Distinct > 1 {
		// xorshift64: cheap, and the same sequence in every run.
		t.random ^= t.random << 13
		t.random ^= t.random >> 7
		t.random ^= t.random << 17
		host = int(t.random%uint64(t.cfg.Distinct)) * t.stride
	}
	putDigits(dst[t.hostAt:t.hostAt+hostDigits], uint64(host))
	if t.cfg.Fresh {
		t.serial++
		putDigits(dst[t.pathAt:t.pathAt+pathDigits], t.serial)
	}
	return dst, host % t.cfg.Upstreams
}

// putDigits fills p with the last len(p) decimal digits of n.
func putDigits(p []byte, n uint64) {
	for i := len(p) - 1; i >= 0; i-- {
		p[i] = '0' + byte(n%10)
		n /= 10
	}
}

// upgrade asks for a WebSocket, and switching is the backend's answer; key and accept are those of RFC 6455 section 1.3.
var (
	upgrade = []byte("GET /socket HTTP/1.1\r\nHost: " + Host(0) + "\r\nUser-Agent: turnout-bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	switching = []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
)

// Message is a WebSocket's message of binary data with so many bytes, as a client sends it that masks with zeros. The backend echoes
// its bytes, which no proxy looks at.
func Message(size int) []byte {
	b := []byte{0x82, 0x80 | 127} // RFC 6455 section 5.2
	b = binary.BigEndian.AppendUint64(b, uint64(size))
	return append(append(b, 0, 0, 0, 0), uploaded(size)...)
}

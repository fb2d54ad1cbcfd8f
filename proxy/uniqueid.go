package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/field"
	"turnout/proxy/logformat"
	"turnout/routing/header"
)

// UniqueID makes an identifier for each request, by a format, and names the request
// header it is sent to endpoints in. It is shared by all workers.
type UniqueID struct {
	name    []byte // lower-case
	pieces  []idPiece
	pid     int
	host    string
	counter atomic.Uint32 // %rt
}

// UniqueIDConfig is what NewUniqueID needs.
type UniqueIDConfig struct {
	Format string // see NewUniqueID
	Header string // the request header that carries the id
	PID    int    // %pid
	Host   string // %H, the machine's name
}

// idPiece is text, or one variable.
type idPiece struct {
	logformat.Item
	kind         idKind
	lower, upper bool
	header       string
}

type idKind uint8

const (
	idText idKind = iota
	idUnknown
	idClientIP
	idClientPort
	idLocalIP
	idLocalPort
	idSeconds
	idMillis
	idDate
	idCounter
	idPID
	idHost
	idMethod
	idPath
	idQuery
	idURI
	idVersion
	idFrontend
	idRandom
	idUUID
	idHeader
)

// idVariables are the variables written %NAME.
var idVariables = map[string]idKind{
	"ci": idClientIP, "cp": idClientPort, "fi": idLocalIP, "fp": idLocalPort, "Ts": idSeconds, "ms": idMillis, "T": idDate,
	"rt": idCounter, "pid": idPID, "H": idHost, "HM": idMethod, "HP": idPath, "HQ": idQuery, "HU": idURI, "HV": idVersion,
	"f": idFrontend, "ft": idFrontend,
}

// idSamples are those written %[NAME].
var idSamples = map[string]idKind{
	"src": idClientIP, "src_port": idClientPort, "dst": idLocalIP, "dst_port": idLocalPort, "date": idSeconds, "pid": idPID,
	"hostname": idHost, "method": idMethod, "path": idPath, "query": idQuery, "url": idURI, "rand": idRandom, "uuid": idUUID,
}

// NewUniqueID compiles a format of the HAProxy router:
//
//	%ci %cp   address and port of the client     %fi %fp   of the router's side
//	%Ts %ms   seconds since 1970, milliseconds    %T        date and time, GMT
//	%rt       requests so far, over all loops     %pid %H   process id, machine
//	%HM %HP %HQ %HU %HV   method, path, query, target, version     %f %ft   front end
//	%[src] %[src_port] %[dst] %[dst_port] %[date] %[pid] %[hostname] %[method] %[path]
//	%[query] %[url] %[rand] %[uuid] %[req.hdr(NAME)], each with ,lower and ,upper
//
// "%{+X}" before a name writes numbers and addresses in hexadecimal, "%{+Q}" puts quotes
// around, "%{+E}" escapes; "%{+X}o" does so for everything after it. "%%" is a percent
// sign; runs of blanks become one. A variable that is not known here stands as "-":
// warnings has a line for each.
func NewUniqueID(cfg UniqueIDConfig) (u *UniqueID, warnings []string, err error) {
	if err := field.CheckName(field.AddRequest, cfg.Header); err != nil {
		return nil, nil, err
	}
	items, err := logformat.Parse(cfg.Format)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use unique id format: %w", err)
	}
	u = &UniqueID{name: []byte(strings.ToLower(cfg.Header)), pid: cfg.PID, host: cfg.Host}
	for _, item := range items {
		p := newIDPiece(item)
		if p.kind == idUnknown {
			warnings = append(warnings, "unique id format: "+p.Text+" is not known here and stands as -")
		}
		u.pieces = append(u.pieces, p)
	}
	return u, warnings, nil
}

func newIDPiece(item logformat.Item) idPiece {
	p := idPiece{Item: item}
	to, known := item.Case()
	p.lower, p.upper = to < 0, to > 0
	switch {
	case item.Name == "":
		return p
	case item.Sample && item.Name == "req.hdr":
		p.kind, p.header = idHeader, strings.ToLower(item.Arg)
	case item.Sample && (item.Arg == "" || item.Name == "uuid" && item.Arg == "4"):
		p.kind = idSamples[item.Name]
	case !item.Sample:
		p.kind = idVariables[item.Name]
	}
	if p.kind == idText || !known {
		p.kind = idUnknown
	}
	return p
}

// maxUniqueID bounds an id in bytes: much of it may come from the request, several times. The HAProxy router cuts it
// at 127.
const maxUniqueID = 1024

// value makes the id of the exchange's request. One that would be too long is cut.
func (u *UniqueID) value(ex *Exchange) []byte {
	b := ex.scratch.Begin(128)
	start := len(b)
	for i := range u.pieces {
		if len(b)-start > maxUniqueID {
			break
		}
		p := &u.pieces[i]
		if p.kind == idText {
			b = append(b, p.Text...)
			continue
		}
		if p.Quote && !p.Sample {
			b = append(b, '"')
		}
		from := len(b)
		if b = u.append(b, p, ex); len(b) == from {
			b = append(b, '-')
		}
		p.convert(b[from:])
		if p.Escape {
			b = logformat.Escape(b, from)
		}
		if p.Quote && !p.Sample {
			b = append(b, '"')
		}
	}
	if len(b)-start > maxUniqueID {
		b = b[:start+maxUniqueID]
		ex.w.Reached(bound.UniqueID)
	}
	return field.Trim(ex.scratch.End(b))
}

// appendSome appends as much of what a client said as an id may have.
func appendSome(b, said []byte) []byte { return append(b, said[:min(len(said), maxUniqueID)]...) }

// convert applies lower and upper in place.
func (p *idPiece) convert(b []byte) {
	for i, c := range b {
		switch {
		case p.lower:
			b[i] = lowerASCII(c)
		case p.upper && 'a' <= c && c <= 'z':
			b[i] = c - 'a' + 'A'
		}
	}
}

func (u *UniqueID) append(b []byte, p *idPiece, ex *Exchange) []byte {
	switch p.kind {
	case idClientIP:
		return p.IP(b, ex.client.Addr.Addr())
	case idClientPort:
		return p.Number(b, uint64(ex.client.Addr.Port()), 4)
	case idLocalIP:
		return p.IP(b, ex.client.Local.Addr())
	case idLocalPort:
		return p.Number(b, uint64(ex.client.Local.Port()), 4)
	case idCounter:
		if ex.cfg.Rehearse {
			return p.Number(b, uint64(u.counter.Load()+1), 4)
		}
		return p.Number(b, uint64(u.counter.Add(1)), 4)
	case idPID:
		return p.Number(b, uint64(u.pid), 4)
	case idRandom:
		return p.Number(b, ex.w.rng.Uint64()>>32, 4)
	case idUUID:
		return logformat.UUID(b, ex.w.rng.Uint64(), ex.w.rng.Uint64())
	case idHost:
		return append(b, u.host...)
	case idFrontend:
		b = append(b, ex.client.frontend()...)
		if ex.client.Secure && p.Name == "ft" {
			b = append(b, '~')
		}
		return b
	case idSeconds, idMillis, idDate:
		return p.time(b, ex.cfg.Clock.Wall())
	}
	return p.request(b, ex.req)
}

// request appends something of the request itself.
func (p *idPiece) request(b []byte, h *Head) []byte {
	switch p.kind {
	case idMethod:
		return appendSome(b, h.Method)
	case idPath:
		return appendSome(b, h.Path)
	case idQuery:
		if p.Sample && len(h.Query) > 0 {
			return appendSome(b, h.Query[1:])
		}
		return appendSome(b, h.Query)
	case idURI:
		return appendSome(b, h.Target)
	case idVersion:
		return strconv.AppendInt(append(b, "HTTP/1."...), int64(h.Minor), 10)
	case idHeader:
		for i := len(h.Fields) - 1; i >= 0; i-- {
			if string(h.Fields[i].Name) == p.header {
				return appendSome(b, header.LastElement(h.Fields[i].Value))
			}
		}
	}
	return b
}

func (p *idPiece) time(b []byte, now time.Time) []byte {
	switch p.kind {
	case idMillis:
		return p.Millis(b, uint64(now.Nanosecond()/1e6))
	case idDate:
		return now.UTC().AppendFormat(b, "02/Jan/2006:15:04:05 +0000")
	}
	return p.Number(b, uint64(now.Unix()), 4)
}

// CheckUniqueFormat returns why a text is no UniqueIDConfig.Format, nil if it is one.
func CheckUniqueFormat(s string) error {
	_, _, err := NewUniqueID(UniqueIDConfig{Format: s, Header: "x"})
	return err
}

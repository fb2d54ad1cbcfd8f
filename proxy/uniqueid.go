package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"turnout/proxy/field"
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
	text                 string // when there is no kind
	kind                 idKind
	hex, quote, escape   bool
	lower, upper, sample bool // sample: written %[...]
	header               string
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
	"hostname": idHost, "method": idMethod, "path": idPath, "query": idQuery, "url": idURI, "rand": idRandom, "rand()": idRandom,
	"uuid": idUUID, "uuid()": idUUID, "uuid(4)": idUUID,
}

// NewUniqueID compiles a format of the router this one replaces:
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
	if !header.IsName(cfg.Header) {
		return nil, nil, fmt.Errorf("invalid HTTP header name: %s", cfg.Header)
	}
	u = &UniqueID{name: []byte(strings.ToLower(cfg.Header)), pid: cfg.PID, host: cfg.Host}
	var standing idPiece // what %{...}o has set
	for s := cfg.Format; s != ""; {
		var p idPiece
		if p, s, err = nextPiece(s, &standing); err != nil {
			return nil, nil, fmt.Errorf("cannot use unique id format: %w", err)
		}
		if p.kind == idUnknown {
			warnings = append(warnings, "unique id format: "+p.text+" is not known here and stands as -")
		}
		if p.kind != idText || p.text != "" {
			u.pieces = append(u.pieces, p)
		}
	}
	return u, warnings, nil
}

// nextPiece cuts one piece off a format.
func nextPiece(s string, standing *idPiece) (p idPiece, rest string, err error) {
	if s[0] != '%' || strings.HasPrefix(s, "%%") {
		return textPiece(s)
	}
	p = *standing
	rest = s[1:]
	if strings.HasPrefix(rest, "{") {
		flags, after, ok := strings.Cut(rest[1:], "}")
		if !ok || !p.flags(flags) {
			return p, "", errors.New("flags are {Q}, {X} and {E} with + or -, separated by commas")
		}
		rest = after
	}
	if strings.HasPrefix(rest, "[") {
		inner, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			return p, "", errors.New(`"[" without "]"`)
		}
		p.sampleOf(inner)
		return p, after, nil
	}
	n := 0
	for n < len(rest) && 'a' <= rest[n]|0x20 && rest[n]|0x20 <= 'z' {
		n++
	}
	name := rest[:n]
	switch name {
	case "":
		return p, "", errors.New(`"%" without a name; the sign itself is written "%%"`)
	case "o":
		*standing = p
		return idPiece{}, strings.TrimLeft(rest[n:], " "), nil
	}
	if p.kind = idVariables[name]; p.kind == idText {
		p.kind, p.text = idUnknown, "%"+name
	}
	if name == "ft" {
		p.text = "~"
	}
	return p, rest[n:], nil
}

// textPiece cuts the text up to the next variable off.
func textPiece(s string) (p idPiece, rest string, err error) {
	var b []byte
	for s != "" {
		if s[0] == '%' {
			if !strings.HasPrefix(s, "%%") {
				break
			}
			s = s[1:]
		}
		c := s[0]
		s = s[1:]
		if c < ' ' || c == 0x7f {
			return p, "", errors.New("it has a control character")
		}
		if c == ' ' && len(b) > 0 && b[len(b)-1] == ' ' {
			continue
		}
		b = append(b, c)
	}
	return idPiece{text: string(b)}, s, nil
}

func (p *idPiece) flags(list string) bool {
	for flag := range strings.SplitSeq(list, ",") {
		on := !strings.HasPrefix(flag, "-")
		if len(flag) > 2 {
			return false
		}
		switch strings.TrimLeft(flag, "+-") {
		case "X":
			p.hex = on
		case "Q":
			p.quote = on
		case "E":
			p.escape = on
		default:
			return false
		}
	}
	return true
}

func (p *idPiece) sampleOf(inner string) {
	words := strings.Split(inner, ",")
	p.sample = true
	p.kind = idSamples[words[0]]
	if name, ok := strings.CutPrefix(words[0], "req.hdr("); ok && strings.HasSuffix(name, ")") {
		p.kind, p.header = idHeader, strings.ToLower(strings.TrimSuffix(name, ")"))
	}
	for _, w := range words[1:] {
		switch w {
		case "lower":
			p.lower, p.upper = true, false
		case "upper":
			p.lower, p.upper = false, true
		default:
			p.kind = idText
		}
	}
	if p.kind == idText {
		p.kind, p.text = idUnknown, "%["+inner+"]"
	}
}

// value makes the id of the exchange's request.
func (u *UniqueID) value(ex *Exchange) []byte {
	b := ex.scratch.Begin(128)
	for i := range u.pieces {
		p := &u.pieces[i]
		if p.kind == idText {
			b = append(b, p.text...)
			continue
		}
		if p.quote && !p.sample {
			b = append(b, '"')
		}
		from := len(b)
		if b = u.append(b, p, ex); len(b) == from {
			b = append(b, '-')
		}
		p.convert(b[from:])
		if p.escape {
			b = escapeQuotes(b, from)
		}
		if p.quote && !p.sample {
			b = append(b, '"')
		}
	}
	return field.Trim(ex.scratch.End(b))
}

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

// escapeQuotes puts a backslash before quotes, backslashes and closing brackets.
func escapeQuotes(b []byte, from int) []byte {
	for i := from; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c == ']' {
			b = append(b, 0)
			copy(b[i+1:], b[i:])
			b[i] = '\\'
			i++
		}
	}
	return b
}

func (u *UniqueID) append(b []byte, p *idPiece, ex *Exchange) []byte {
	switch p.kind {
	case idClientIP:
		return p.ip(b, ex.client.Addr.Addr())
	case idClientPort:
		return p.number(b, uint64(ex.client.Addr.Port()), 4)
	case idLocalIP:
		return p.ip(b, ex.client.Local.Addr())
	case idLocalPort:
		return p.number(b, uint64(ex.client.Local.Port()), 4)
	case idCounter:
		return p.number(b, uint64(u.counter.Add(1)), 4)
	case idPID:
		return p.number(b, uint64(u.pid), 4)
	case idRandom:
		return p.number(b, ex.w.rng.Uint64()>>32, 4)
	case idUUID:
		return appendUUID(b, ex.w.rng.Uint64(), ex.w.rng.Uint64())
	case idHost:
		return append(b, u.host...)
	case idFrontend:
		if ex.client.Secure {
			return append(append(b, "fe_sni"...), p.text...)
		}
		return append(b, "public"...)
	case idSeconds, idMillis, idDate:
		return p.time(b, ex.w.cfg.Clock.Wall())
	}
	return p.request(b, ex.req)
}

// request appends something of the request itself.
func (p *idPiece) request(b []byte, h *Head) []byte {
	switch p.kind {
	case idMethod:
		return append(b, h.Method...)
	case idPath:
		return append(b, h.Path...)
	case idQuery:
		if p.sample && len(h.Query) > 0 {
			return append(b, h.Query[1:]...)
		}
		return append(b, h.Query...)
	case idURI:
		return append(b, h.Target...)
	case idVersion:
		return strconv.AppendInt(append(b, "HTTP/1."...), int64(h.Minor), 10)
	case idHeader:
		for i := len(h.Fields) - 1; i >= 0; i-- {
			if string(h.Fields[i].Name) == p.header {
				return append(b, header.LastElement(h.Fields[i].Value)...)
			}
		}
	}
	return b
}

func (p *idPiece) time(b []byte, now time.Time) []byte {
	switch p.kind {
	case idMillis:
		ms := uint64(now.Nanosecond() / 1e6)
		if p.hex {
			return appendHex(b, ms, 2)
		}
		return append(b, '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10))
	case idDate:
		return now.UTC().AppendFormat(b, "02/Jan/2006:15:04:05 +0000")
	}
	return p.number(b, uint64(now.Unix()), 4)
}

// ip appends an address; in hexadecimal all its bytes.
func (p *idPiece) ip(b []byte, a netip.Addr) []byte {
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return b
	case !p.hex || p.sample:
		return appendIP(b, a)
	case a.Is4():
		v := a.As4()
		for _, c := range v {
			b = appendHex(b, uint64(c), 2)
		}
	default:
		v := a.As16()
		for _, c := range v {
			b = appendHex(b, uint64(c), 2)
		}
	}
	return b
}

func (p *idPiece) number(b []byte, n uint64, digits int) []byte {
	if p.hex && !p.sample {
		return appendHex(b, n, digits)
	}
	return strconv.AppendUint(b, n, 10)
}

// appendHex appends n in upper-case hexadecimal with at least so many digits.
func appendHex(b []byte, n uint64, digits int) []byte {
	const hexDigits = "0123456789ABCDEF"
	for digits < 16 && n>>(4*digits) != 0 {
		digits++
	}
	for digits--; digits >= 0; digits-- {
		b = append(b, hexDigits[n>>(4*digits)&15])
	}
	return b
}

// appendUUID appends a version 4 UUID (RFC 9562 section 5.4) of 122 random bits.
func appendUUID(b []byte, hi, lo uint64) []byte {
	const hexDigits = "0123456789abcdef"
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			b = append(b, '-')
		}
		if i < 16 {
			b = append(b, hexDigits[hi>>(60-4*i)&15])
		} else {
			b = append(b, hexDigits[lo>>(60-4*(i-16))&15])
		}
	}
	return b
}

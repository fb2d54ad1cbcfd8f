package h2frame

import (
	"unsafe"

	"turnout/internal/wire/field"
	"turnout/internal/wire/http1"
)

// Kind is what a header list is the head of.
type Kind uint8

// The kinds.
const (
	Request Kind = iota
	Response
	Trailers
)

// Limits bound one header list.
type Limits struct {
	Bytes  int // names, values and 32 for each field (RFC 9113 section 10.5.1)
	Fields int // lines; all cookies count as one
}

// Block collects a header list, field by field as HPACK emits them, and judges it. Its slices are of its own
// memory, or constants, and live until the next Reset. It may be used again and again.
type Block struct {
	Method, Scheme []byte
	Authority      []byte        // of a request: lower-case, from :authority or Host
	Path           []byte        // :path as received
	Protocol       []byte        // of an extended CONNECT (RFC 8441), else nil
	Status         int           // of a response
	Fields         []field.Field // in order; of a request "host" comes first and all cookies are one
	ContentLength  int64         // -1 without one; the field itself is not among Fields
	Fault          Fault         // the first thing that was wrong

	kind    Kind
	limits  Limits
	size    int
	lines   int
	regular bool     // a regular field has come
	pseudo  uint8    // pseudo-fields that have come
	host    []byte   // of the Host field
	cookie  int      // place of the first cookie, -1 without
	crumbs  [][]byte // the others
	memory  memory
}

// Pseudo-fields, as bits.
const (
	pseudoMethod = 1 << iota
	pseudoScheme
	pseudoAuthority
	pseudoPath
	pseudoProtocol
	pseudoStatus
)

// Reset readies b for a list.
func (b *Block) Reset(k Kind, limits Limits) {
	b.memory.reset()
	*b = Block{kind: k, limits: limits, Fields: b.Fields[:0], crumbs: b.crumbs[:0], memory: b.memory, ContentLength: -1, cookie: -1}
	if k == Request {
		b.Fields = append(b.Fields, field.Field{Name: hostName}) // its value comes with Finish
	}
}

// Release lets go of everything the list referred to, and of memory that grew large.
func (b *Block) Release() {
	clear(b.Fields)
	clear(b.crumbs)
	b.Reset(Trailers, Limits{})
	if cap(b.Fields) > keptFields {
		b.Fields = nil
	}
	if cap(b.crumbs) > keptFields {
		b.crumbs = nil
	}
}

const (
	keptBytes  = 4 << 10
	keptFields = 256
)

var (
	hostName = []byte("host")
	noBytes  = []byte{}
)

// view is s as bytes that nobody may write.
func view(s string) []byte {
	if len(s) == 0 {
		return noBytes
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// Full says that nothing more is collected: the rest need not be decoded into strings.
func (b *Block) Full() bool { return b.Fault >= FaultTooLarge }

func (b *Block) fail(f Fault) {
	if b.Fault == FaultNone {
		b.Fault = f
	}
}

// Lend says where memory for long lists comes from; nil is the collector.
func (b *Block) Lend(from Lender) { b.memory.from = from }

// AddField takes the next field, whose strings live as long as the list. Nobody writes to them.
func (b *Block) AddField(name, value []byte) {
	if b.Fault != FaultNone {
		return
	}
	if b.size += len(name) + len(value) + 32; b.size > b.limits.Bytes {
		b.Fault = FaultTooLarge
		return
	}
	switch {
	case len(name) > 0 && name[0] == ':':
		b.addPseudo(name, value)
	case !http1.ValidName(name):
		b.Fault = FaultName
	case !http1.ValidValue(value):
		b.Fault = FaultValue
	default:
		b.regular = true
		b.addField(name, value)
	}
}

func (b *Block) addPseudo(name, v []byte) {
	bit := uint8(0)
	switch string(name) {
	case ":method":
		bit, b.Method = pseudoMethod, v
	case ":scheme":
		bit, b.Scheme = pseudoScheme, v
	case ":authority":
		bit, b.Authority = pseudoAuthority, v
	case ":path":
		bit, b.Path = pseudoPath, v
	case ":protocol":
		bit, b.Protocol = pseudoProtocol, v
	case ":status":
		bit = pseudoStatus
		b.Status = parseStatus(v)
	}
	belongs := b.kind == Request && bit != pseudoStatus || b.kind == Response && bit == pseudoStatus
	switch {
	case bit == 0 || !belongs || b.regular || b.pseudo&bit != 0:
		b.Fault = FaultPseudo
	case !http1.ValidValue(v):
		b.Fault = FaultValue
	}
	b.pseudo |= bit
}

// parseStatus reads three digits; 0 is none.
func parseStatus(v []byte) int {
	n, ok := http1.ParseLength(v)
	if !ok || len(v) != 3 || n < 100 {
		return 0
	}
	return int(n)
}

func (b *Block) addField(n, v []byte) {
	switch string(n) {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		b.Fault = FaultConnection
		return
	case "te": // RFC 9113 section 8.2.2
		if b.kind == Request && string(v) != "trailers" {
			b.Fault = FaultConnection
			return
		}
	case "content-length":
		b.addLength(v)
		return
	case "host":
		if b.kind == Request {
			b.addHost(v)
			return
		}
	case "cookie":
		if b.cookie >= 0 {
			b.crumbs = append(b.crumbs, v)
			return
		}
		if b.kind != Trailers { // there it may not be
			b.cookie = len(b.Fields)
		}
	case "expect":
		if b.kind == Request && string(v) != "100-continue" {
			b.Fault = FaultExpect
			return
		}
	}
	if b.kind == Trailers && http1.IsForbiddenTrailer(n) {
		return
	}
	if b.lines++; b.lines > b.limits.Fields {
		b.Fault = FaultTooManyFields
		return
	}
	b.Fields = append(b.Fields, field.Field{Name: n, Value: v})
}

// addLength keeps the number; identical repetitions are merged (RFC 9110 section 8.6).
func (b *Block) addLength(v []byte) {
	if b.kind == Trailers {
		return
	}
	n, ok := http1.ParseLength(v)
	if !ok || b.ContentLength >= 0 && b.ContentLength != n {
		b.Fault = FaultLength
		return
	}
	b.ContentLength = n
}

func (b *Block) addHost(v []byte) {
	if b.host != nil && string(b.host) != string(v) {
		b.Fault = FaultHost
		return
	}
	b.host = v
}

// joinCookies makes all cookie fields one (RFC 9113 section 8.2.3).
func (b *Block) joinCookies() {
	first := b.Fields[b.cookie].Value
	n := len(first)
	for _, v := range b.crumbs {
		n += len("; ") + len(v)
	}
	p := append(b.memory.reserve(n), first...)
	for _, v := range b.crumbs {
		p = append(append(p, "; "...), v...)
	}
	b.Fields[b.cookie].Value = b.memory.keep(p)
}

// Finish judges the whole list and returns b.Fault. end says that no body follows.
func (b *Block) Finish(end bool) Fault {
	if b.Fault == FaultNone {
		if len(b.crumbs) > 0 {
			b.joinCookies()
		}
		switch b.kind {
		case Request:
			b.finishRequest()
		case Response:
			if b.Status == 0 || b.Status == 101 { // RFC 9113 section 8.6
				b.fail(FaultStatus)
			}
		case Trailers:
			if b.pseudo != 0 {
				b.fail(FaultPseudo)
			}
		}
	}
	if b.kind == Request && end && b.ContentLength > 0 {
		b.fail(FaultBody)
	}
	return b.Fault
}

func (b *Block) finishRequest() {
	connect := string(b.Method) == "CONNECT"
	want := uint8(pseudoMethod | pseudoScheme | pseudoPath)
	if connect && b.pseudo&pseudoProtocol == 0 {
		want = pseudoMethod | pseudoAuthority // RFC 9113 section 8.5
	}
	switch {
	case b.pseudo&want != want:
		b.fail(FaultPseudoAbsent)
	case b.pseudo&pseudoProtocol != 0 && !connect: // RFC 8441 section 4
		b.fail(FaultPseudo)
	case want == pseudoMethod|pseudoAuthority && b.pseudo&^want != 0:
		b.fail(FaultPseudo)
	case b.pseudo&pseudoProtocol != 0 && b.ContentLength >= 0: // RFC 9110 section 9.3.6: CONNECT has no content
		b.fail(FaultLength)
	case b.pseudo&pseudoPath != 0 && len(b.Path) == 0:
		b.fail(FaultPath)
	case !http1.ValidToken(b.Method):
		b.fail(FaultMethod)
	case b.pseudo&pseudoScheme != 0 && string(b.Scheme) != "http" && string(b.Scheme) != "https":
		b.fail(FaultScheme)
	case b.pseudo&pseudoPath != 0 && !b.originForm():
		b.fail(FaultTarget)
	default:
		b.finishAuthority()
	}
}

// originForm: what HTTP/1.1 calls the origin-form, or the asterisk-form of OPTIONS (RFC 9112 section 3.2).
func (b *Block) originForm() bool {
	if len(b.Path) == 1 && b.Path[0] == '*' {
		return string(b.Method) == "OPTIONS"
	}
	return b.Path[0] == '/' && http1.ValidTarget(b.Path)
}

// finishAuthority decides the host: :authority, or Host where there is none; both have to agree (RFC 9113 section 8.3.1).
func (b *Block) finishAuthority() {
	b.Authority = b.lower(b.Authority)
	if b.host != nil {
		host := b.lower(b.host)
		if b.pseudo&pseudoAuthority != 0 && string(host) != string(b.Authority) {
			b.fail(FaultHost)
			return
		}
		b.Authority = host
	}
	switch {
	case b.pseudo&pseudoAuthority == 0 && b.host == nil:
		b.fail(FaultHost)
	case !http1.ValidHost(b.Authority):
		b.fail(FaultAuthority)
	}
	b.Authority = b.withoutDefaultPort(b.Authority)
	b.Fields[0].Value = b.Authority
}

// withoutDefaultPort is an authority without the port that its scheme means anyway: gRPC clients add it, and pods know themselves without
// (RFC 9110 section 4.2.3).
func (b *Block) withoutDefaultPort(authority []byte) []byte {
	port := ":80"
	if string(b.Scheme) == "https" {
		port = ":443"
	}
	if n := len(authority) - len(port); n > 0 && string(authority[n:]) == port {
		return authority[:n]
	}
	return authority
}

// lower is v in lower case: v itself, or a copy in b's memory.
func (b *Block) lower(v []byte) []byte {
	for _, c := range v {
		if 'A' <= c && c <= 'Z' {
			own := b.copy(v)
			for i, c := range own {
				if 'A' <= c && c <= 'Z' {
					own[i] = c + 'a' - 'A'
				}
			}
			return own
		}
	}
	return v
}

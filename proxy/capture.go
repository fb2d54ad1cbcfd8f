package proxy

import (
	"slices"
	"strings"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// Captures is what of messages the access log keeps besides its own fields. It is
// immutable and shared by all workers.
type Captures struct {
	Request  []Capture // header fields of requests, as received
	Response []Capture // header fields of answers, as the endpoint sent them
	Cookie   Capture   // the first cookie whose pair begins with Name, of both; an empty Name = none
}

// Capture is one header or cookie to keep.
type Capture struct {
	Name string // lower-case for headers; for a cookie a prefix of "name=value"
	Max  int    // bytes of the value, of a cookie of its whole pair, that are kept
}

// Place says where a captured value stood.
type Place uint8

// The places, in the order of Record.Captured.
const (
	PlaceRequest Place = iota
	PlaceResponse
	PlaceRequestCookie
	PlaceResponseCookie
)

// Each calls fn for every value of Record.Captured in order.
func (c *Captures) Each(fn func(i int, p Place, name string)) {
	i := 0
	for _, r := range c.Request {
		fn(i, PlaceRequest, r.Name)
		i++
	}
	for _, r := range c.Response {
		fn(i, PlaceResponse, r.Name)
		i++
	}
	if c.Cookie.Name != "" {
		fn(i, PlaceRequestCookie, c.Cookie.Name)
		fn(i+1, PlaceResponseCookie, c.Cookie.Name)
	}
}

// Same reports that c and other, one of which may be nil, keep the same.
func (c *Captures) Same(other *Captures) bool {
	if c == nil || other == nil {
		return c == other
	}
	return slices.Equal(c.Request, other.Request) && slices.Equal(c.Response, other.Response) && c.Cookie == other.Cookie
}

func (c *Captures) count() int {
	n := len(c.Request) + len(c.Response)
	if c.Cookie.Name != "" {
		n += 2
	}
	return n
}

// captureRequest keeps what the log wants of a request before anything changes it.
func (ex *Exchange) captureRequest(h *Head) {
	c := ex.cfg.Captures
	if c == nil || ex.cfg.AccessLog == nil {
		return
	}
	clear(ex.captured)
	for i := range c.Request {
		ex.captureField(i, &c.Request[i], h)
	}
	if c.Cookie.Name != "" {
		ex.captureCookie(ex.captured[len(ex.captured)-2:], "cookie", &c.Cookie, h)
	}
}

// captureSender keeps who sent a request and where from, before anything changes it.
func (ex *Exchange) captureSender(h *Head) {
	if ex.cfg.AccessLog == nil {
		return
	}
	for i := range h.Fields {
		switch f := &h.Fields[i]; string(f.Name) {
		case "user-agent":
			ex.agent = f.Value
		case "referer":
			ex.referer = f.Value
		}
	}
}

// captureResponse keeps what the log wants of an answer, as the endpoint sent it.
func (ex *Exchange) captureResponse(h *Head) {
	c := ex.cfg.Captures
	if c == nil || ex.cfg.AccessLog == nil {
		return
	}
	for i := range c.Response {
		ex.captureField(len(c.Request)+i, &c.Response[i], h)
	}
	if c.Cookie.Name != "" {
		ex.captureCookie(ex.captured[len(ex.captured)-1:], "set-cookie", &c.Cookie, h)
	}
}

// captureField keeps the last field of a name, nothing if it takes more work than the request can
// do without.
func (ex *Exchange) captureField(i int, c *Capture, h *Head) {
	if !ex.spare(work.Fields(len(h.Fields))) {
		return
	}
	for k := len(h.Fields) - 1; k >= 0; k-- {
		if string(h.Fields[k].Name) == c.Name {
			v := h.Fields[k].Value
			v = v[:min(len(v), c.Max)]
			ex.work.Charge(work.Copied(len(v)))
			ex.captured[i] = ex.scratch.Copy(v)
			return
		}
	}
}

// captureCookie keeps the first matching pair of the fields called name in to[0].
func (ex *Exchange) captureCookie(to [][]byte, name string, c *Capture, h *Head) {
	if !ex.spare(work.Fields(len(h.Fields))) {
		return
	}
	for i := range h.Fields {
		if string(h.Fields[i].Name) != name {
			continue
		}
		if !ex.spare(work.Text(len(h.Fields[i].Value))) {
			return
		}
		for rest := h.Fields[i].Value; len(rest) > 0; {
			var pair []byte
			if pair, rest = field.NextCookie(rest); len(pair) >= len(c.Name) && string(pair[:len(c.Name)]) == c.Name {
				to[0] = ex.scratch.Copy(pair[:min(len(pair), c.Max)])
				return
			}
			if name == "set-cookie" {
				break // what follows are attributes (RFC 6265 section 4.1.1)
			}
		}
	}
}

// NewCapture makes a Capture of a header.
func NewCapture(name string, most int) Capture {
	return Capture{Name: strings.ToLower(name), Max: most}
}

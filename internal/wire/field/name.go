package field

import (
	"fmt"
	"strings"
)

// IsToken reports whether s can be a field name (RFC 9110 section 5.1), at most 1,024 bytes long.
// Any such name may be read: compared by a rule, logged, or listed for CORS.
func IsToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if ('0' > c || c > '9') && ('a' > c|0x20 || c|0x20 > 'z') && strings.IndexByte("-!#$%&'*+.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 1024
}

// Use is a way in which the router changes a field with a configured name. The zero value is
// SetRequest.
type Use uint8

// The uses.
const (
	SetRequest     Use = iota // a value replaces that of the client
	AddRequest                // another line is added to a request
	DeleteRequest             // the field is removed from requests
	ChangeResponse            // set, added or removed in responses
	Carry                     // the router writes its own value and removes the peer's
)

// CheckName returns an error if use must not change the field. It is the only table of such names,
// for header actions, modifiers of the Gateway API, session names and names in options.
func CheckName(use Use, name string) error {
	if !IsToken(name) {
		return fmt.Errorf("invalid HTTP header name: %s", name)
	}
	refuse := func(why string) error { return fmt.Errorf("header %s: %s", name, why) }
	requests := use != ChangeResponse
	lower := strings.ToLower(name)
	switch lower {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "upgrade", "te", "trailer", "http2-settings":
		return refuse("the router frames messages and ends connections itself")
	case "cdn-loop":
		if requests {
			return refuse("it says which proxies a request has passed, so that loops end")
		}
	case "via":
		if use == SetRequest || use == DeleteRequest || use == Carry {
			return refuse("it says which proxies a request has passed, so that loops end; a line can be added")
		}
	case "expect":
		if requests {
			return refuse("the router answers it itself")
		}
	case "host":
		switch use {
		case DeleteRequest:
			return refuse("a request cannot be without it")
		case AddRequest:
			return refuse("a request has one")
		}
	}
	if use == Carry {
		return checkCarried(lower, refuse)
	}
	return nil
}

// checkCarried refuses names with a meaning. Otherwise a client, a pod or another proxy would take
// the router's value for its own, or miss the value that the router removes.
func checkCarried(name string, refuse func(why string) error) error {
	const choose = "; choose a name that nothing else uses, such as x-session"
	switch twin := strings.ReplaceAll(name, "_", "-"); {
	case twin == "host" || twin == "forwarded" || strings.HasPrefix(twin, "x-forwarded-") || twin == "proxy" || strings.HasPrefix(twin, "x-ssl"):
		return refuse("requests are routed and clients are identified by it" + choose)
	case strings.HasPrefix(twin, "proxy-"), strings.HasPrefix(twin, "sec-"), strings.HasPrefix(twin, "access-control-"), strings.HasPrefix(twin, "content-"),
		strings.HasPrefix(twin, "accept"), strings.HasPrefix(twin, "if-"):
		return refuse("HTTP defines it" + choose)
	}
	switch name {
	case "age", "allow", "alt-svc", "alt-used", "authorization", "cache-control", "cookie", "date", "etag", "expect", "expires", "from", "last-modified",
		"location", "max-forwards", "origin", "pragma", "priority", "range", "referer", "refresh", "retry-after", "server", "set-cookie",
		"strict-transport-security", "traceparent", "tracestate", "user-agent", "vary", "via", "warning", "www-authenticate":
		return refuse("HTTP defines it" + choose)
	}
	return nil
}

// CarriedName is the name of a field in which the router carries a value of its own, such as that
// of a session. It is lower-case. The zero value is no name. Only NewCarriedName makes one.
type CarriedName struct{ text string }

// NewCarriedName judges a name by CheckName with Carry.
func NewCarriedName(name string) (CarriedName, error) {
	if err := CheckName(Carry, name); err != nil {
		return CarriedName{}, err
	}
	return CarriedName{strings.ToLower(name)}, nil
}

// IsSet reports whether n has a name.
func (n CarriedName) IsSet() bool { return n.text != "" }

// String returns the name, "" for none.
func (n CarriedName) String() string { return n.text }

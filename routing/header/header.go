// Package header compiles and applies header actions: lists of "set this field to
// that value", "add this field" and "delete this field", of routes (spec.httpHeaders.actions) and of
// the whole router.
//
// A value is text with expressions in it:
//
//	value      = 1*( char | "%%" | expression )     char: anything but "%" and controls
//	expression = "%" [ flags ] "[" fetch *( "," converter ) "]"
//	flags      = "{" flag *( "," flag ) "}"         flag: Q, X or E, with "+", "-" or neither
//	fetch      = "req.hdr(NAME)" | "res.hdr(NAME)" | "ssl_c_der"
//	converter  = "lower" | "base64"
//
// Lists are compiled once. Applying one allocates nothing: what it makes lies in the
// arena of the message. A message has room for a number of bytes, and the work of its request
// (work.Account) pays for each action, whatever the list.
package header

// Side says which half of an exchange a list is for: a request can be asked for its own
// fields only, and a response for its own.
type Side uint8

// The sides.
const (
	Request Side = iota
	Response
)

// Action is one entry of a list as it is configured.
type Action struct {
	Name   string
	Value  string // of a set or an addition
	Delete bool   // else it is a set
	Add    bool   // without Delete: the value is added to those that are there, as another line (RFC 9110 section 5.3)
}

// What Compile takes.
const (
	MaxValue       = 16384 // bytes of a value
	MaxExpressions = 64    // in one value
	MaxConverters  = 16    // of one expression: each base64 makes a value longer by a third
)

// Actions is a compiled list. It is immutable and may be shared by all loops.
type Actions struct {
	ops []op
}

type op struct {
	name   []byte // lower-case
	remove bool
	add    bool
	parts  []part
}

// part is a piece of a value: text, or an expression.
type part struct {
	text   []byte // when there is no fetch
	fetch  fetch
	name   []byte // lower-case, for fetchHeader
	steps  []step
	escape bool // flag E
}

type fetch uint8

const (
	fetchNone fetch = iota
	fetchHeader
	fetchCertificate
)

type step uint8

const (
	stepLower step = iota
	stepBase64
)

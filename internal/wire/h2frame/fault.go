package h2frame

// Fault says what is wrong with a header list; the zero value is nothing.
type Fault uint8

// The faults. Those without a status make the message malformed: its stream ends with PROTOCOL_ERROR (RFC 9113 section 8.1.1).
const (
	FaultNone         Fault = iota
	FaultName               // a field name that is empty, not lower-case, or holds what no name holds
	FaultValue              // CR, LF, NUL, another control character, or a blank at an end
	FaultPseudo             // an unknown, repeated or misplaced pseudo-field
	FaultPseudoAbsent       // a pseudo-field that must be there is not
	FaultConnection         // a field about the connection (RFC 9113 section 8.2.2)
	FaultPath               // an empty :path
	FaultStatus             // :status is no status
	FaultLength             // Content-Length is no number, or there are two
	FaultBody               // the body is not as long as Content-Length says
	FaultTrailer            // trailers without END_STREAM

	FaultScheme        // neither http nor https
	FaultHost          // :authority and Host disagree, or neither is there
	FaultAuthority     // an authority that is not one host with an optional port
	FaultMethod        // :method is no token
	FaultTarget        // a :path that is not the origin-form of a target, nor "*" of OPTIONS
	FaultExpect        // an expectation other than 100-continue
	FaultTooLarge      // too many bytes
	FaultTooManyFields // too many fields
)

type faultInfo struct {
	status         int
	reason, clause string
}

// faults are indexed by Fault.
var faults = [...]faultInfo{
	FaultNone:          {0, "none", ""},
	FaultName:          {0, "name", "RFC 9113 section 8.2.1"},
	FaultValue:         {0, "value", "RFC 9113 section 8.2.1"},
	FaultPseudo:        {0, "pseudo-field", "RFC 9113 section 8.3"},
	FaultPseudoAbsent:  {0, "pseudo-field-absent", "RFC 9113 section 8.3.1"},
	FaultConnection:    {0, "connection-field", "RFC 9113 section 8.2.2"},
	FaultPath:          {0, "empty-path", "RFC 9113 section 8.3.1"},
	FaultStatus:        {0, "status", "RFC 9113 section 8.3.2"},
	FaultLength:        {0, "content-length", "RFC 9110 section 8.6"},
	FaultBody:          {0, "body-length", "RFC 9113 section 8.1.1"},
	FaultTrailer:       {0, "trailer", "RFC 9113 section 8.1"},
	FaultScheme:        {400, "scheme", "RFC 9110 section 4.2"},
	FaultHost:          {400, "host", "RFC 9113 section 8.3.1"},
	FaultAuthority:     {400, "authority", "RFC 9110 section 7.2"},
	FaultMethod:        {400, "method", "RFC 9110 section 9.1"},
	FaultTarget:        {400, "target", "RFC 9113 section 8.3.1"},
	FaultExpect:        {417, "expect", "RFC 9110 section 10.1.1"},
	FaultTooLarge:      {431, "head-size", "RFC 6585 section 5"},
	FaultTooManyFields: {431, "field-count", "RFC 6585 section 5"},
}

// Status is what a client is answered, 0 when its stream is reset instead.
func (f Fault) Status() int { return faults[f].status }

// Malformed says that the stream is to be reset.
func (f Fault) Malformed() bool { return f != FaultNone && faults[f].status == 0 }

// Reason is a stable word for logs.
func (f Fault) Reason() string { return faults[f].reason }

// String is that word and the clause.
func (f Fault) String() string { return faults[f].reason + " (" + faults[f].clause + ")" }

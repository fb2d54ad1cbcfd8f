package http1

// Error is a rejection. The values this package returns are shared: compare them
// with errors.As and read them, never write to them.
type Error struct {
	Status int    // what to answer: 400, 414, 417, 431, 501 or 505 for a request; 502 for a response
	Reason string // stable short code for logs and metrics, for example "cl-te"
	Clause string // the violated clause, for example "RFC 9112 section 6.3"
}

// Error implements error.
func (e *Error) Error() string {
	return "cannot parse message: " + e.Reason + " (" + e.Clause + ")"
}

// fault is the index of a rejection; faultNone is no rejection.
type fault uint8

const (
	faultNone fault = iota
	faultIncomplete
	faultEmptyLine
	faultBareLF
	faultBareCR
	faultNUL
	faultHeadSize
	faultTargetSize
	faultFieldCount
	faultMethod
	faultRequestLine
	faultTargetChar
	faultTargetForm
	faultScheme
	faultTargetAuthority
	faultUserinfo
	faultVersion
	faultVersionUnsupported
	faultStatusLine
	faultStatusCode
	faultReasonChar
	faultLeadingSpace
	faultObsFold
	faultName
	faultNameSpace
	faultNoColon
	faultValueChar
	faultHostMissing
	faultHostEmpty
	faultHostConflict
	faultHostSyntax
	faultHostTarget
	faultLength
	faultLengthConflict
	faultLengthCoding
	faultCoding
	faultCodingList
	faultCodingUnknown
	faultCodingVersion
	faultExpect
	faultOptionCount
	faultChunkSize
	faultChunkOverflow
	faultChunkLine
	faultChunkExt
	faultChunkEnd
	faultChunkFlood
	faultTrailerSize
	faultTrailerCount
	faultCount
)

// requestErrors are the rejections with the status a client is answered.
var requestErrors = [faultCount]Error{
	faultIncomplete:         {400, "incomplete-head", "RFC 9112 section 8"},
	faultEmptyLine:          {400, "empty-line", "RFC 9112 section 2.2"},
	faultBareLF:             {400, "bare-lf", "RFC 9112 section 2.2"},
	faultBareCR:             {400, "bare-cr", "RFC 9112 section 2.2"},
	faultNUL:                {400, "nul", "RFC 9110 section 5.5"},
	faultHeadSize:           {431, "head-size", "RFC 6585 section 5"},
	faultTargetSize:         {414, "target-size", "RFC 9110 section 15.5.15"},
	faultFieldCount:         {431, "field-count", "RFC 6585 section 5"},
	faultMethod:             {400, "method", "RFC 9110 section 9.1"},
	faultRequestLine:        {400, "request-line", "RFC 9112 section 3"},
	faultTargetChar:         {400, "target-char", "RFC 9112 section 3.2"},
	faultTargetForm:         {400, "target-form", "RFC 9112 section 3.2"},
	faultScheme:             {400, "target-scheme", "RFC 9110 section 4.2"},
	faultTargetAuthority:    {400, "target-authority", "RFC 9112 section 3.2.2"},
	faultUserinfo:           {400, "userinfo", "RFC 9110 section 4.2.4"},
	faultVersion:            {400, "version", "RFC 9112 section 2.3"},
	faultVersionUnsupported: {505, "version-unsupported", "RFC 9110 section 15.6.6"},
	faultStatusLine:         {400, "status-line", "RFC 9112 section 4"},
	faultStatusCode:         {400, "status-code", "RFC 9110 section 15"},
	faultReasonChar:         {400, "reason-char", "RFC 9112 section 4"},
	faultLeadingSpace:       {400, "leading-space", "RFC 9112 section 2.2"},
	faultObsFold:            {400, "obs-fold", "RFC 9112 section 5.2"},
	faultName:               {400, "field-name", "RFC 9110 section 5.1"},
	faultNameSpace:          {400, "space-before-colon", "RFC 9112 section 5.1"},
	faultNoColon:            {400, "no-colon", "RFC 9112 section 5"},
	faultValueChar:          {400, "field-value", "RFC 9110 section 5.5"},
	faultHostMissing:        {400, "host-missing", "RFC 9112 section 3.2"},
	faultHostEmpty:          {400, "host-empty", "RFC 9110 section 4.2.1"},
	faultHostConflict:       {400, "host-conflict", "RFC 9112 section 3.2"},
	faultHostSyntax:         {400, "host-syntax", "RFC 9110 section 7.2"},
	faultHostTarget:         {400, "host-target-mismatch", "RFC 9112 section 3.2.2"},
	faultLength:             {400, "content-length", "RFC 9110 section 8.6"},
	faultLengthConflict:     {400, "content-length-conflict", "RFC 9112 section 6.3"},
	faultLengthCoding:       {400, "cl-te", "RFC 9112 section 6.3"},
	faultCoding:             {400, "transfer-encoding", "RFC 9112 section 6.3"},
	faultCodingList:         {400, "transfer-encoding-repeated", "RFC 9112 section 6.1"},
	faultCodingUnknown:      {501, "transfer-coding-unknown", "RFC 9112 section 6.1"},
	faultCodingVersion:      {400, "transfer-encoding-1.0", "RFC 9112 section 6.1"},
	faultExpect:             {417, "expect", "RFC 9110 section 10.1.1"},
	faultOptionCount:        {400, "connection-options", "RFC 9110 section 7.6.1"},
	faultChunkSize:          {400, "chunk-size", "RFC 9112 section 7.1"},
	faultChunkOverflow:      {400, "chunk-overflow", "RFC 9112 section 7.1"},
	faultChunkLine:          {400, "chunk-line", "RFC 9112 section 7.1"},
	faultChunkExt:           {400, "chunk-ext", "RFC 9112 section 7.1.1"},
	faultChunkEnd:           {400, "chunk-end", "RFC 9112 section 7.1"},
	faultChunkFlood:         {413, "chunk-flood", "RFC 9112 section 7.1.1"},
	faultTrailerSize:        {431, "trailer-size", "RFC 6585 section 5"},
	faultTrailerCount:       {431, "trailer-count", "RFC 6585 section 5"},
}

// responseErrors are the same rejections of what a server sent.
var responseErrors = withStatus(requestErrors, 502)

func withStatus(errors [faultCount]Error, status int) [faultCount]Error {
	for i := range errors {
		errors[i].Status = status
	}
	return errors
}

// request is the error of a request's fault, nil for faultNone.
func (f fault) request() error {
	if f == faultNone {
		return nil
	}
	return &requestErrors[f]
}

// response is the error of a response's fault, nil for faultNone.
func (f fault) response() error {
	if f == faultNone {
		return nil
	}
	return &responseErrors[f]
}

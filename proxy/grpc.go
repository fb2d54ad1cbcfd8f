package proxy

import (
	"strings"
	"unsafe"

	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
)

// grpc says that the client made a gRPC call, whose answers have their status in trailers (gRPC over HTTP/2).
func (ex *Exchange) grpc() bool {
	if ex.req.Spoken != protocol.HTTP2 || ex.extended() {
		return false
	}
	v := field.Get(ex.req.Fields, "content-type")
	rest, ok := strings.CutPrefix(unsafe.String(unsafe.SliceData(v), len(v)), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// answerGRPC is answer for a gRPC call: trailers only, with the code that the gRPC project gives for an HTTP status and
// the reason as the message.
func (ex *Exchange) answerGRPC(status int, reason Reason) {
	h := &ex.local.head
	*h = Head{Status: 200, Minor: 1, Spoken: protocol.HTTP2, Fields: h.Fields[:0], Close: true}
	h.addField("content-type", constant("application/grpc"))
	h.addField("grpc-status", constant(grpcCode(status)))
	h.addField("grpc-message", constant(reason.String()))
	ex.reply(reason, nil)
}

// grpcCode is the code of an HTTP status (grpc/doc/http-grpc-status-mapping.md).
func grpcCode(status int) string {
	switch status {
	case 400, 431:
		return "13" // INTERNAL
	case 401:
		return "16" // UNAUTHENTICATED
	case 403:
		return "7" // PERMISSION_DENIED
	case 404:
		return "12" // UNIMPLEMENTED
	case 429, 502, 503, 504:
		return "14" // UNAVAILABLE
	}
	return "2" // UNKNOWN
}

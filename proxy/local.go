package proxy

import "strconv"

// local is what an exchange needs to answer by itself.
type local struct {
	head Head
	tail *Head // trailers that pass the policy, made by the first ones
}

// trailers returns the head of a trailer section with fields.
func (l *local) trailers(fields []Field) *Head {
	if l.tail == nil {
		l.tail = new(Head)
	}
	*l.tail = Head{Fields: fields}
	return l.tail
}

// ErrorPage is an answer that is configured instead of one of the router's own. Nobody
// changes it once it is in use.
type ErrorPage struct {
	Status int
	Reason []byte  // phrase of the status line
	Fields []Field // lower-case names, none that frames the message
	Body   []byte
}

// DefaultNotFound is the router's own page for requests without a route, for routers
// that answer them with 404.
func DefaultNotFound() *ErrorPage {
	return &ErrorPage{Status: 404, Body: constant(page404), Fields: []Field{
		{Name: constant("pragma"), Value: constant("no-cache")},
		{Name: constant("cache-control"), Value: constant("private, max-age=0, no-cache, no-store")},
		{Name: constant("content-type"), Value: constant("text/html")},
	}}
}

// notFound is what listeners answer without a route, unless another page is configured.
var notFound = DefaultNotFound()

// noRoute answers a request that no route wants. Where a listener has the request the answer is 404, and 12 (UNIMPLEMENTED) for gRPC, as
// the Gateway API has it.
func (ex *Exchange) noRoute(h *Head) {
	page := ex.cfg.NotFound
	at := ex.client.Arrival
	switch {
	case page != nil:
	case at != nil && at.Port != "":
		page = notFound
	case ex.cfg.NotFoundOfHosts != nil && ex.table.NotFound(h.Authority):
		page = ex.cfg.NotFoundOfHosts
	}
	if page != nil {
		ex.page(page, ReasonNoRoute)
		return
	}
	ex.answer(503, ReasonNoRoute)
}

// monitored answers a load balancer that asks whether the router serves. It is not
// logged: it comes every few seconds and says nothing about anybody's application.
func (ex *Exchange) monitored(h *Head) bool {
	if ex.client.Secure || string(h.Path) != ex.cfg.MonitorPath || len(h.Query) > 0 || ex.extended() {
		return false
	}
	ex.serving()
	return true
}

// confirm answers the router itself: what answers clients answers it, up to the choice of a route. No tenant's route has a say in it.
func (ex *Exchange) confirm(h *Head) {
	ex.table = ex.cfg.Store.Load()
	_ = ex.match(h)
	ex.serving()
}

// serving says that the router serves.
func (ex *Exchange) serving() {
	out := &ex.local.head
	*out = Head{Status: 200, Minor: 1, Fields: out.Fields[:0]}
	out.addField("cache-control", constant("no-cache"))
	out.addField("content-type", constant("text/html"))
	ex.reply(ReasonMonitor, constant(pageServing))
}

// page ends the exchange with a configured answer.
func (ex *Exchange) page(p *ErrorPage, reason Reason) {
	if ex.grpc() {
		ex.answerGRPC(p.Status, reason)
		return
	}
	h := &ex.local.head
	*h = Head{Status: p.Status, Reason: p.Reason, Minor: 1, Fields: append(h.Fields[:0], p.Fields...), Close: true}
	if ex.extended() && p.Status < 300 {
		h.Status = 503
	}
	ex.retryAfter(h, reason)
	ex.reply(reason, p.Body)
}

// answer ends the exchange with a page of the router's own. A connection of HTTP/1.1 ends with it where keepsOpen does not
// say otherwise, and in any case where not the whole request has been read.
func (ex *Exchange) answer(status int, reason Reason) {
	if p := ex.cfg.Unavailable; p != nil && status == 503 {
		ex.page(p, reason)
		return
	}
	if status != 421 && ex.grpc() { // 421 is for the client's HTTP
		ex.answerGRPC(status, reason)
		return
	}
	h := &ex.local.head
	*h = Head{Status: status, Minor: 1, Fields: h.Fields[:0]}
	page := pageFor(status)
	if status == 503 {
		h.addField("pragma", constant("no-cache"))
		h.addField("cache-control", constant("private, max-age=0, no-cache, no-store"))
	} else {
		h.addField("cache-control", constant("no-cache"))
	}
	h.addField("content-type", constant("text/html"))
	ex.retryAfter(h, reason)
	if status == 405 {
		h.addField("allow", constant("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"))
	}
	h.Close = !ex.keepsOpen(status)
	ex.reply(reason, constant(page))
}

// keepsOpen says that the client may go on with its next request after a page of the router's own: it was no fault of this one
// (RFC 9112 section 9.6). After 503 it may not, as in the HAProxy router: a client whose application is not there
// does not come again at once. Neither may one that has asked for a tunnel or another protocol, and may have
// sent bytes of that ahead.
func (ex *Exchange) keepsOpen(status int) bool {
	switch status {
	case 403, 500, 502, 504:
		return ex.req.Upgrade == nil && string(ex.req.Method) != "CONNECT"
	}
	return false
}

// retryAfter tells clients of a router, or route, that has too much to do when to come back (RFC 9110 section 10.2.3), in seconds.
func (*Exchange) retryAfter(h *Head, reason Reason) {
	if reason == ReasonOverload || reason == ReasonRouteShare {
		h.addField("retry-after", constant("1"))
	}
}

func (ex *Exchange) reply(reason Reason, body []byte) {
	h := &ex.local.head
	if ex.cfg.ReasonHeader && reason != ReasonMonitor {
		h.addField(reasonField, constant(reason.String()))
	}
	// After a panic the response goes out with the fields set so far.
	s, _ := ex.responsePolicy(localSection, h)
	h.ContentLength = int64(len(body))
	if !ex.reqEnd || ex.w.draining {
		h.Close = true
	}
	h.Leaving = ex.client.outdated(ex.cfg)
	if ex.headOnly {
		body = nil
	}
	ex.answered(h.Status, false)
	ex.bytesOut = uint64(len(body))
	ex.headOut = headSize(h, versionSize+3+len(h.Reason)) + lengthSize(len(body))
	ex.account(reason)
	down := ex.down
	if len(body) == 0 {
		down.Head(s, true)
	} else {
		down.Head(s, false)
		down.Body(body)
		down.End(Section{})
	}
	ex.w.release(ex)
}

// reasonField is where answers of the router's own say why they are.
const reasonField = "x-turnout-reason"

// Refusal returns the response to a request that never became an exchange. Both results are valid
// until the next call.
func (w *Worker) Refusal(status int) (s Section, page []byte) {
	h := &w.refusal
	text, media := Page(status)
	*h = Head{Status: status, Minor: 1, Fields: h.Fields[:0], ContentLength: int64(len(text)), Close: true}
	h.addField("cache-control", constant("no-cache"))
	h.addField("content-type", constant(media))
	if w.cfg.ReasonHeader {
		h.addField(reasonField, constant(rejection(status).String()))
	}
	return Section{head: h}, constant(text)
}

// Page returns the body of a response that the router makes, and its media type.
func Page(status int) (body, contentType string) { return pageFor(status), "text/html" }

func pageFor(status int) string {
	switch status {
	case 400:
		return page400
	case 403:
		return page403
	case 404:
		return page404
	case 405:
		return page405
	case 408:
		return page408
	case 413:
		return page413
	case 414:
		return page414
	case 417:
		return page417
	case 421:
		return page421
	case 431:
		return page431
	case 500:
		return page500
	case 501:
		return page501
	case 502:
		return page502
	case 503:
		return page503
	case 504:
		return page504
	case 505:
		return page505
	case 508:
		return page508
	}
	return "<html><body><h1>" + strconv.Itoa(status) + "</h1>\n</body></html>\n"
}

const (
	pageServing = "<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n"

	page400 = "<html><body><h1>400 Bad Request</h1>\nThe request does not follow the HTTP grammar.\n</body></html>\n"
	page403 = "<html><body><h1>403 Forbidden</h1>\nThe certificate of the client is not one that may come in here.\n</body></html>\n"
	page405 = "<html><body><h1>405 Method Not Allowed</h1>\nThis method is not served here.\n</body></html>\n"
	page408 = "<html><body><h1>408 Request Timeout</h1>\nThe request did not arrive in time.\n</body></html>\n"
	page413 = "<html><body><h1>413 Content Too Large</h1>\nThe chunks of this body carry too much besides content.\n</body></html>\n"
	page414 = "<html><body><h1>414 URI Too Long</h1>\nThe request target is too long.\n</body></html>\n"
	page417 = "<html><body><h1>417 Expectation Failed</h1>\nThis expectation is not known here.\n</body></html>\n"
	page421 = "<html><body><h1>421 Misdirected Request</h1>\nThis host is not served on this connection.\n</body></html>\n"
	page431 = "<html><body><h1>431 Request Header Fields Too Large</h1>\nThe request head is too large.\n</body></html>\n"
	page500 = "<html><body><h1>500 Internal Server Error</h1>\nThe rules for this message could not be carried out.\n</body></html>\n"
	page501 = "<html><body><h1>501 Not Implemented</h1>\nThis transfer coding or protocol is not known here.\n</body></html>\n"
	page502 = "<html><body><h1>502 Bad Gateway</h1>\nThe application broke off or sent an invalid answer.\n</body></html>\n"
	page504 = "<html><body><h1>504 Gateway Timeout</h1>\nThe application did not answer in time.\n</body></html>\n"
	page505 = "<html><body><h1>505 HTTP Version Not Supported</h1>\nOnly HTTP/1.0 and HTTP/1.1 are spoken here.\n</body></html>\n"
	page508 = "<html><body><h1>508 Loop Detected</h1>\nThis request has come back to the router too often.\n</body></html>\n"

	page503 = pageHead + "Application is not available" + pageMain + `<h1>Application is not available</h1>
<p>The router works, but nothing is serving at this address right now. The usual causes:</p>
<ul>
<li><strong>The host name is not known here.</strong> No route has been admitted for it, or its name is spelled differently.</li>
<li><strong>The host exists, the path does not.</strong> Its routes cover other paths only, or another scheme (http, https).</li>
<li><strong>The route exists, no pod is running.</strong> Its service has no ready endpoint, or none could be reached.</li>
</ul>
` + pageEnd

	page404 = pageHead + "Not found" + pageMain + `<h1>Application or document not found</h1>
<p>The router works, but nothing is served at this address. The usual causes:</p>
<ul>
<li><strong>The host name is not known here.</strong> It is spelled differently, or no route has been admitted for it.</li>
<li><strong>The host exists, the path does not.</strong> Its routes cover other paths only, or another scheme (http, https).</li>
</ul>
` + pageEnd

	pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>`
	pageMain = `</title>
<style>
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #222; background: #f6f6f4 }
main { max-width: 40em; margin: 12vh auto; padding: 2em; background: #fff; border-top: 6px solid #b5452c }
h1 { margin-top: 0; font-size: 1.5em }
</style>
</head>
<body>
<main>
`
	pageEnd = `</main>
</body>
</html>
`
)

package h1

import (
	"turnout/proxy"
	"turnout/proxy/h1/wire"
)

// request is the memory of one request: its head's bytes and everything parsed
// from them. An idle connection holds none.
type request struct {
	buf       []byte
	req       wire.Request
	head      proxy.Head
	body      wire.ChunkDecoder
	remaining int64 // body bytes still to come, with Content-Length
}

// response is the same for an endpoint's answer.
type response struct {
	buf  []byte
	resp wire.Response
	head proxy.Head
	body wire.ChunkDecoder
}

// keptHead is the largest head memory that is kept for the next message.
const keptHead = 16 << 10

// parse copies one complete head and parses it.
func (r *request) parse(p []byte, lim wire.Limits) error {
	r.buf = append(r.buf[:0], p...)
	if err := wire.ParseRequest(r.buf, &r.req, lim); err != nil {
		return err
	}
	q := &r.req
	r.head = proxy.Head{
		Method: q.Method, Target: q.Target, Authority: q.Authority, Path: q.Path, Query: q.Query,
		Minor: q.Minor, Fields: q.Fields, ContentLength: q.ContentLength, Upgrade: q.Upgrade, Options: q.ConnectionOptions,
	}
	return nil
}

// parse copies one complete head and parses it as the answer to method.
func (r *response) parse(p, method []byte, lim wire.Limits) error {
	r.buf = append(r.buf[:0], p...)
	if err := wire.ParseResponse(r.buf, &r.resp, method, lim); err != nil {
		return err
	}
	s := &r.resp
	r.head = proxy.Head{
		Status: s.Status, Reason: s.Reason, Minor: s.Minor, Fields: s.Fields,
		ContentLength: s.ContentLength, Upgrade: s.Upgrade, Options: s.ConnectionOptions,
	}
	return nil
}

// keep readies the memory for another message; false when it grew too large for that.
// The pipeline appends fields: the list that grew is the one to keep.
func (r *request) keep() bool {
	r.req.Fields = r.head.Fields[:0]
	r.head = proxy.Head{}
	return cap(r.buf) <= keptHead
}

func (r *response) keep() bool {
	r.resp.Fields = r.head.Fields[:0]
	r.head = proxy.Head{}
	return cap(r.buf) <= keptHead
}

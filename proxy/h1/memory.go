package h1

import (
	"turnout/internal/spare"
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// request is the memory of one request: its head's bytes and everything parsed
// from them. An idle connection holds none.
type request struct {
	bytes     headBytes
	req       http1.Request
	head      proxy.Head
	body      http1.ChunkDecoder
	remaining int64 // body bytes still to come, with Content-Length
}

// response is the same for an endpoint's answer.
type response struct {
	bytes headBytes
	resp  http1.Response
	head  proxy.Head
	body  http1.ChunkDecoder
}

// keptHead is how large a head each message has memory for; larger ones are lent it.
const keptHead = 4 << 10

// largeHead is the memory of a large head.
type largeHead [32 << 10]byte

// headBytes are the bytes of a head.
type headBytes struct {
	small []byte
	lent  *largeHead
}

// copy keeps p, one complete head.
func (b *headBytes) copy(p []byte, large *spare.List[largeHead]) []byte {
	if len(p) <= keptHead || len(p) > len(largeHead{}) {
		b.small = append(b.small[:0], p...)
		return b.small
	}
	if b.lent == nil {
		if b.lent = large.Get(); b.lent == nil {
			b.lent = new(largeHead)
		}
	}
	return append(b.lent[:0], p...)
}

// release gives back what one message needs for a while and the next may not.
func (b *headBytes) release(large *spare.List[largeHead]) {
	if b.lent != nil {
		large.Put(b.lent)
		b.lent = nil
	}
	if cap(b.small) > keptHead {
		b.small = nil
	}
}

// parse copies one complete head and parses it.
func (r *request) parse(p []byte, large *spare.List[largeHead], lim http1.Limits) error {
	if err := http1.ParseRequest(r.bytes.copy(p, large), &r.req, lim); err != nil {
		return err
	}
	q := &r.req
	r.head = proxy.Head{
		Method: q.Method, Target: q.Target, Authority: q.Authority, Path: q.Path, Query: q.Query,
		Minor: q.Minor, Fields: q.Fields, ContentLength: q.ContentLength, Upgrade: q.Upgrade, Options: q.ConnectionOptions,
	}
	return nil
}

// bodyless reports that the request is complete with its head.
func (r *request) bodyless() bool { return r.req.Body == http1.BodyNone }

// parse copies one complete head and parses it as the answer to method.
func (r *response) parse(p, method []byte, large *spare.List[largeHead], lim http1.Limits) error {
	if err := http1.ParseResponse(r.bytes.copy(p, large), &r.resp, method, lim); err != nil {
		return err
	}
	s := &r.resp
	r.head = proxy.Head{
		Status: s.Status, Reason: s.Reason, Minor: s.Minor, Fields: s.Fields,
		ContentLength: s.ContentLength, Upgrade: s.Upgrade, Options: s.ConnectionOptions,
	}
	return nil
}

// clear readies the memory for another message. The pipeline appends fields: the list that grew is the one to keep.
func (r *request) clear(large *spare.List[largeHead]) {
	r.req.Fields = r.head.Fields[:0]
	r.head = proxy.Head{}
	r.bytes.release(large)
}

func (r *response) clear(large *spare.List[largeHead]) {
	r.resp.Fields = r.head.Fields[:0]
	r.head = proxy.Head{}
	r.bytes.release(large)
}

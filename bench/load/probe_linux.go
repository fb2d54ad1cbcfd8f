package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Probe sends one request on a new connection and returns what passed. It waits for an answer with a
// Content-Length of BodySize, at most until ctx ends. Request is empty if the backend was not asked.
func (r *Rig) Probe(ctx context.Context, addr netip.AddrPort, cfg *tls.Config, request []byte) (Exchange, error) {
	fd, rw, err := dial(addr, cfg)
	if err != nil {
		return Exchange{}, err
	}
	p := &probe{rw: rw}
	if err := r.loop.add(fd, p); err != nil {
		_ = unix.Close(fd)
		return Exchange{}, err
	}
	defer r.loop.remove(fd)
	r.backend.capture, r.backend.head = true, nil
	defer func() { r.backend.capture = false }()
	if _, err := rw.Write(request); err != nil {
		return Exchange{}, fmt.Errorf("cannot send the probe: %w", err)
	}
	for p.err == nil && !p.done() {
		if ctx.Err() != nil {
			return Exchange{}, fmt.Errorf("cannot get an answer to the probe: %w", context.Cause(ctx))
		}
		if err := r.loop.turn(20 * time.Millisecond); err != nil {
			return Exchange{}, err
		}
	}
	head, body, _ := bytes.Cut(p.in, headEnd)
	x := Exchange{Request: bytes.Clone(r.backend.head), Answer: head, Body: body}
	if !p.done() {
		return x, fmt.Errorf("cannot read the answer to the probe: %w", p.err)
	}
	return x, nil
}

// probe collects the answer to one request.
type probe struct {
	rw  io.ReadWriter
	in  []byte
	err error
}

func (p *probe) ready() {
	buf := make([]byte, maxHead)
	for p.err == nil {
		n, err := p.rw.Read(buf)
		p.in = append(p.in, buf[:n]...)
		if errors.Is(err, errAgain) {
			return
		}
		p.err = err
	}
}

func (p *probe) done() bool {
	_, body, ok := bytes.Cut(p.in, headEnd)
	return ok && len(body) >= BodySize
}

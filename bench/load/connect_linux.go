package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// ConnectProfile describes one Connect. Every connection is TLS 1.3 with AES-128-GCM and X25519, anything
// else is a failure.
type ConnectProfile struct {
	Addr netip.AddrPort // the proxy
	// TLS is copied. Its ClientSessionCache is not used.
	TLS *tls.Config
	// Certificate is the DER that the proxy must show; it is compared byte by byte and not verified, which would
	// cost the client time.
	Certificate []byte
	// Dialers is how many connections are under way at the same time, at least 1.
	Dialers int
	// Resume makes every connection but the first of each dialer, which is not counted, resume the session of
	// the one before. Without it every handshake is a full one.
	Resume bool
	// Request is sent once on every connection; the answer must be CheckAnswer's with Body. nil = none.
	Request, Body []byte
	// Warmup passes before the measured part, Measure is its length.
	Warmup, Measure time.Duration
	// Patience bounds each connection; 0 means 10 s.
	Patience time.Duration
	// Mark is called at the start (false) and at the end (true) of the measured part, while connections
	// are under way. It may be nil. Its error ends the run.
	Mark func(end bool) error
}

// Connect opens one connection after the other, each with its handshake, its request if there is one, and an
// end that both sides see, and counts those that were as the profile says.
func Connect(ctx context.Context, p ConnectProfile) (Result, error) {
	if p.Dialers < 1 || p.Measure <= 0 || p.TLS == nil {
		return Result{}, errors.New("cannot connect: neither Dialers nor Measure nor TLS may be missing")
	}
	if p.Patience <= 0 {
		p.Patience = 10 * time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &connecting{profile: p, cancel: cancel}
	dialers := make([]*dialer, p.Dialers)
	for i := range dialers {
		dialers[i] = newDialer(r)
		// The session that is resumed later; and a proxy that does not work is found now.
		if err := dialers[i].once(ctx, false); err != nil {
			return Result{}, err
		}
	}
	var group sync.WaitGroup
	for _, d := range dialers {
		group.Go(func() { d.run(ctx) })
	}
	res, err := measured(ctx, p.Warmup, p.Measure, p.Mark, r.answered.Load, 1)
	cancel()
	group.Wait()
	res.Failures, res.First = r.failures.Load(), r.first
	if res.Failures >= maxBroken {
		err = fmt.Errorf("cannot go on after %d failures, the first: %w", res.Failures, res.First)
	}
	return res, err
}

// maxBroken ends a run of Connect: each costs a handshake.
const maxBroken = 50

// connecting is the state of one Connect.
type connecting struct {
	profile  ConnectProfile
	cancel   context.CancelFunc
	answered atomic.Uint64
	failures atomic.Uint64
	once     sync.Once
	first    error // of the failures; to be read when the dialers have ended
}

// dialer makes one connection at a time.
type dialer struct {
	of     *connecting
	config *tls.Config
	in     []byte
}

func newDialer(r *connecting) *dialer {
	d := &dialer{of: r, config: r.profile.TLS.Clone(), in: make([]byte, maxHead+BodySize)}
	d.config.MinVersion, d.config.CurvePreferences = tls.VersionTLS13, []tls.CurveID{tls.X25519}
	d.config.InsecureSkipVerify = true // see check
	d.config.ClientSessionCache = nil
	if r.profile.Resume {
		d.config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	return d
}

// run makes connections until ctx ends.
func (d *dialer) run(ctx context.Context) {
	r := d.of
	for {
		err := d.once(ctx, r.profile.Resume)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			r.answered.Add(1)
			continue
		}
		r.once.Do(func() { r.first = err })
		if r.failures.Add(1) >= maxBroken {
			r.cancel()
			return
		}
	}
}

// once makes one connection, from the connect to the end of input.
func (d *dialer) once(ctx context.Context, resumed bool) error {
	p := &d.of.profile
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp4", p.Addr.String())
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	defer func() { _ = raw.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn := tls.Client(raw, d.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("cannot complete the handshake: %w", err)
	}
	if err := p.check(conn.ConnectionState(), resumed); err != nil {
		return err
	}
	if err := d.ask(conn); err != nil {
		return err
	}
	// The side that closes last has seen everything: the tickets behind the handshake, too.
	if err := errors.Join(conn.CloseWrite(), raw.(*net.TCPConn).CloseWrite()); err != nil {
		return fmt.Errorf("cannot end the connection: %w", err)
	}
	if n, err := conn.Read(d.in); n > 0 {
		return ErrExcess
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot see the end of the connection: %w", err)
	}
	return nil
}

// check tells whether the handshake was what the profile compares.
func (p *ConnectProfile) check(s tls.ConnectionState, resumed bool) error {
	if err := checkCipher(s); err != nil {
		return err
	}
	switch {
	case s.CurveID != tls.X25519:
		return fmt.Errorf("keys were exchanged with %v, want X25519", s.CurveID)
	case s.DidResume != resumed:
		return fmt.Errorf("session was resumed: %v, want %v", s.DidResume, resumed)
	case len(s.PeerCertificates) != 1 || !bytes.Equal(s.PeerCertificates[0].Raw, p.Certificate):
		return errors.New("certificate is not the site's")
	}
	return nil
}

// ask sends the request and reads the answer.
func (d *dialer) ask(conn io.ReadWriter) error {
	p := &d.of.profile
	if p.Request == nil {
		return nil
	}
	if _, err := conn.Write(p.Request); err != nil {
		return fmt.Errorf("cannot send the request: %w", err)
	}
	for have := 0; have < len(d.in); {
		n, err := conn.Read(d.in[have:])
		have += n
		if size, bad := CheckAnswer(d.in[:have], p.Body); bad != nil || size > 0 {
			return bad
		}
		if err != nil {
			return fmt.Errorf("cannot read the answer: %w", err)
		}
	}
	return ErrHead
}

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

	"turnout/bench/site"
)

// ConnectProfile describes one Connect. Every connection is TLS 1.3 with AES-128-GCM and X25519, anything
// else is a failure.
type ConnectProfile struct {
	Span

	Addr netip.AddrPort // the proxy
	// TLS is copied. Its ClientSessionCache is not used.
	TLS *tls.Config
	// Certificate is the DER that the proxy must show; it is compared byte by byte and not verified, which would
	// cost the client time.
	Certificate []byte
	// Rate is how many connections are begun per second, whenever they are due: Result has their times then. 0 = each when the one before
	// it is over.
	Rate float64
	// Dialers is how many connections are under way at the same time, at least 1.
	Dialers int
	// Resume makes every connection but the first of each dialer, which is not counted, resume the session of
	// the one before. Without it every handshake is a full one.
	Resume bool
	// Request is sent once on every connection; the answer must be CheckAnswer's with Body. nil = none.
	Request, Body []byte
}

// maxBroken ends a run of Connect: each costs a handshake.
const maxBroken = 50

// connecting is the state of one Connect.
type connecting struct {
	ConnectProfile

	cancel             context.CancelFunc
	began              time.Time
	due                atomic.Uint64 // connections that were scheduled so far
	timesMu            sync.Mutex
	times              []time.Duration
	answered, failures atomic.Uint64
	once               sync.Once
	first              error // of the failures; to be read when the dialers have ended
}

// Connect opens one connection after the other, each with its handshake, its request if there is one, and an
// end that both sides see, and counts those that were as the profile says.
func Connect(ctx context.Context, p ConnectProfile) (res Result, err error) {
	defer site.Catch(&err)
	if p.Dialers < 1 || p.Measure <= 0 || p.TLS == nil {
		site.Stopf("cannot connect: neither Dialers nor Measure nor TLS may be missing")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &connecting{ConnectProfile: p, cancel: cancel}
	m := newMeter(p.Span, 1, func() Result { return Result{Requests: r.answered.Load()} })
	r.Patience = m.Patience
	dialers := make([]*dialer, p.Dialers)
	for i := range dialers {
		dialers[i] = newDialer(r)
		// The session that is resumed later; and a proxy that does not work is found now.
		dialers[i].once(ctx, false)
	}
	r.began = time.Now()
	var group sync.WaitGroup
	for _, d := range dialers {
		group.Go(func() { d.run(ctx) })
	}
	err = site.Try(func() { res = m.wait(ctx) })
	cancel()
	group.Wait()
	res.Failures, res.First, res.Latency = r.failures.Load(), r.first, site.LatencyOf(r.times)
	if res.Failures >= maxBroken {
		err = fmt.Errorf("cannot go on after %d failures, the first: %w", res.Failures, res.First)
	}
	return res, err
}

// dialer makes one connection at a time.
type dialer struct {
	*connecting

	config *tls.Config
	in     []byte
}

func newDialer(r *connecting) *dialer {
	d := &dialer{connecting: r, config: r.TLS.Clone(), in: make([]byte, maxHead+BodySize)}
	d.config.MinVersion, d.config.CurvePreferences = tls.VersionTLS13, []tls.CurveID{tls.X25519}
	d.config.InsecureSkipVerify = true // see check
	d.config.ClientSessionCache = nil
	if r.Resume {
		d.config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	return d
}

// run makes connections until ctx ends.
func (d *dialer) run(ctx context.Context) {
	for {
		at := d.wait(ctx)
		err := site.Try(func() { d.once(ctx, d.Resume) })
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			d.answered.Add(1)
			d.note(at)
			continue
		}
		d.connecting.once.Do(func() { d.first = err })
		if d.failures.Add(1) >= maxBroken {
			d.cancel()
			return
		}
	}
}

// wait waits until the next connection is due, and returns when that was.
func (r *connecting) wait(ctx context.Context) time.Time {
	if r.Rate <= 0 {
		return time.Time{}
	}
	at := r.began.Add(time.Duration(float64(r.due.Add(1)-1) / r.Rate * float64(time.Second)))
	if early := time.Until(at); early > 0 {
		_ = site.Pause(ctx, early)
	}
	return at
}

// note keeps the time of a connection that was due then.
func (r *connecting) note(due time.Time) {
	if r.Rate > 0 {
		r.timesMu.Lock()
		r.times = append(r.times, time.Since(due))
		r.timesMu.Unlock()
	}
}

// once makes one connection, from the connect to the end of input.
func (d *dialer) once(ctx context.Context, resumed bool) {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp4", d.Addr.String())
	site.Checkf(err, "cannot connect")
	defer func() { _ = raw.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn := tls.Client(raw, d.config)
	site.Checkf(conn.HandshakeContext(ctx), "cannot complete the handshake")
	site.Check(d.check(conn.ConnectionState(), resumed))
	if d.Request != nil {
		d.ask(conn)
	}
	// The side that closes last has seen everything: the tickets behind the handshake, too.
	site.Checkf(errors.Join(conn.CloseWrite(), raw.(*net.TCPConn).CloseWrite()), "cannot end the connection")
	if n, err := conn.Read(d.in); n > 0 {
		site.Check(ErrExcess)
	} else if !errors.Is(err, io.EOF) {
		site.Checkf(err, "cannot see the end of the connection")
	}
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
func (d *dialer) ask(conn io.ReadWriter) {
	_, err := conn.Write(d.Request)
	site.Checkf(err, "cannot send the request")
	for have := 0; have < len(d.in); {
		n, err := conn.Read(d.in[have:])
		have += n
		size, bad := CheckAnswer(d.in[:have], d.Body)
		site.Check(bad)
		if size > 0 {
			return
		}
		site.Checkf(err, "cannot read the answer")
	}
	site.Check(ErrHead)
}

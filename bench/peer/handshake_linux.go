package peer

import (
	"context"
	"encoding/pem"
	"errors"

	"turnout/bench/load"
)

// dialers is how many handshakes are under way at the same time.
const dialers = 16

// driveHandshakes counts connections to p with a handshake each: full ones without a request, or resumed ones with
// one that the rig answers.
func (h *harness) driveHandshakes(ctx context.Context, rig *load.Rig, p *proxy, s *layout, resumed bool, mark func(end bool) error) (load.Result, error) {
	block, _ := pem.Decode([]byte(s.pem.Certificate))
	profile := load.ConnectProfile{
		Addr: p.addr, TLS: s.clientTLS(), Certificate: block.Bytes, Dialers: dialers, Resume: resumed,
		Warmup: h.warmup, Measure: h.measure, Mark: mark,
	}
	if !resumed {
		return load.Connect(ctx, profile)
	}
	traffic, err := load.NewTraffic(load.TrafficConfig{})
	if err != nil {
		return load.Result{}, err
	}
	profile.Request, _ = traffic.Next(nil)
	profile.Body = load.Body(0)
	var connects uint64
	var failed error
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		connects, failed = rig.Answer(done)
		close(ended)
	}()
	res, err := load.Connect(ctx, profile)
	close(done)
	<-ended
	res.Connects = connects
	return res, errors.Join(err, failed)
}

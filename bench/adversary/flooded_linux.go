package adversary

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"turnout/bench/site"
)

// floodedPod is the pod that floods are sent to. It is a process of its own behind everybody else, because its work would
// otherwise keep bystanders waiting: what is measured is what the router does about a flood.
const floodedPod = "flooded"

// inherited is the descriptor at which that process finds its listener.
const inherited = 3

// startFloodedPod starts it on a port that the system chooses.
func (r *rig) startFloodedPod(ctx context.Context) error {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	defer l.Close()
	file, err := l.File()
	if err != nil {
		return fmt.Errorf("cannot hand on a listener: %w", err)
	}
	defer file.Close()
	cmd := site.Behind(site.Self(ctx, floodedPod))
	cmd.ExtraFiles = []*os.File{file}
	r.floods = l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
	r.flood, err = site.StartProcess("the flooded pod", cmd, site.AnyCore)
	return err //nolint:wrapcheck // it says what it is about
}

// beFloodedPod is that process: it serves pages over HTTP/1.1, and over HTTP/2 without TLS, until ctx is done.
func beFloodedPod(ctx context.Context, _ []string) error {
	l, err := net.FileListener(os.NewFile(inherited, "listener"))
	if err != nil {
		return fmt.Errorf("cannot take the listener over: %w", err)
	}
	s := &http.Server{Handler: pages(), ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 250}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

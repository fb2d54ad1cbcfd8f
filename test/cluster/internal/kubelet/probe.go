package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"

	"turnout/test/cluster/internal/runtime"
)

// unhealthy says that a probe wants the container's end.
type unhealthy struct {
	kind  string // "liveness" or "startup"
	grace time.Duration
}

// startProbes starts the container's probes: startup first, then liveness until checking ends
// and readiness until alive ends. It returns what waits for their end.
func (c *container) startProbes(checking, alive context.Context, running *runtime.Running, failed chan<- unhealthy) (wait func()) {
	var probes sync.WaitGroup
	probes.Go(func() {
		if startup := c.spec.StartupProbe; startup != nil {
			up := make(chan struct{})
			probes.Go(func() {
				c.repeat(checking, running, startup, "startup", failed, func(ok bool) bool {
					if ok {
						close(up)
					}
					return ok
				})
			})
			select {
			case <-up:
			case <-alive.Done():
				return
			}
		}
		c.pod.set(func() {
			c.up = true
			c.ready = c.spec.ReadinessProbe == nil
		})
		c.markStarted()
		if liveness := c.spec.LivenessProbe; liveness != nil {
			probes.Go(func() { c.repeat(checking, running, liveness, "liveness", failed, func(bool) bool { return false }) })
		}
		if readiness := c.spec.ReadinessProbe; readiness != nil {
			c.repeat(alive, running, readiness, "readiness", nil, func(ok bool) bool {
				c.pod.set(func() { c.ready = ok })
				return false
			})
		}
	})
	return probes.Wait
}

// markStarted says that the container has started for the first time.
func (c *container) markStarted() {
	select {
	case <-c.started:
	default:
		close(c.started)
	}
}

// repeat probes until ctx ends or changed returns true. changed is called when as many results
// followed each other as the probe's threshold says; a failure is sent to failed too.
func (c *container) repeat(ctx context.Context, running *runtime.Running, p *v1.Probe, kind string, failed chan<- unhealthy, changed func(ok bool) bool) {
	if !pause(ctx, time.Duration(p.InitialDelaySeconds)*time.Second) {
		return
	}
	ticker := time.NewTicker(time.Duration(max(p.PeriodSeconds, 1)) * time.Second)
	defer ticker.Stop()
	var last bool
	for row := int32(0); ; {
		err := c.probe(ctx, running, p)
		if ctx.Err() != nil {
			return
		}
		ok := err == nil
		if !ok {
			c.event(v1.EventTypeWarning, "Unhealthy", title(kind)+" probe failed: "+err.Error())
		}
		if ok != last {
			row = 0
		}
		last = ok
		row++
		threshold := max(p.SuccessThreshold, 1)
		if !ok {
			threshold = max(p.FailureThreshold, 1)
		}
		if row == threshold {
			if changed(ok) {
				return
			}
			if !ok && failed != nil {
				failed <- unhealthy{kind: kind, grace: c.probeGrace(p)}
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func title(kind string) string { return string(kind[0]-'a'+'A') + kind[1:] }

// probeGrace is how long the container has for its end after the probe failed.
func (c *container) probeGrace(p *v1.Probe) time.Duration {
	if p.TerminationGracePeriodSeconds != nil {
		return time.Duration(*p.TerminationGracePeriodSeconds) * time.Second
	}
	return c.ordinaryGrace()
}

// probe does what the probe says once.
func (c *container) probe(ctx context.Context, running *runtime.Running, p *v1.Probe) error {
	timeout := time.Duration(max(p.TimeoutSeconds, 1)) * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case p.Exec != nil:
		var buffer tailBuffer
		err := running.Exec(ctx, p.Exec.Command, runtime.Streams{Stdout: &buffer, Stderr: &buffer})
		if code := new(runtime.ExitError); errors.As(err, &code) && len(buffer) > 0 {
			return errors.New(string(buffer.last(maxMessage)))
		}
		return err
	case p.HTTPGet != nil:
		return c.probeHTTP(ctx, p.HTTPGet)
	case p.TCPSocket != nil:
		port, err := c.port(p.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := c.pod.dial(ctx, "tcp", net.JoinHostPort(c.host(p.TCPSocket.Host), strconv.Itoa(port)))
		if err != nil {
			return err
		}
		return conn.Close()
	case p.GRPC != nil:
		return c.probeGRPC(ctx, p.GRPC)
	}
	return nil
}

// host is where a probe goes that names none.
func (c *container) host(named string) string {
	if named != "" {
		return named
	}
	return c.pod.address()
}

func (c *container) probeHTTP(ctx context.Context, action *v1.HTTPGetAction) error {
	request, err := httpprobe.NewRequestForHTTPGetAction(action, c.spec, c.pod.address(), "probe")
	if err != nil {
		return err
	}
	result, output, err := httpprobe.DoHTTPProbe(request.WithContext(ctx), c.pod.httpClient())
	if err == nil && result == probe.Failure {
		err = errors.New(output)
	}
	return err
}

// httpClient makes requests as the kubelet's probes do: each on a connection of its own, with
// any certificate, following redirects on the same host only.
func (p *pod) httpClient() *http.Client {
	return &http.Client{
		CheckRedirect: httpprobe.RedirectChecker(false),
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext:        p.dial,
		},
	}
}

func (c *container) probeGRPC(ctx context.Context, action *v1.GRPCAction) error {
	target := net.JoinHostPort(c.pod.address(), strconv.Itoa(int(action.Port)))
	conn, err := grpc.NewClient("passthrough:///"+target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent("kube-probe/standin"),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return c.pod.dial(ctx, "tcp", address) }))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	service := ""
	if action.Service != nil {
		service = *action.Service
	}
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		return err
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("service is %v", answer.GetStatus())
	}
	return nil
}

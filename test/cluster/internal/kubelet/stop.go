package kubelet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"

	"turnout/test/cluster/internal/runtime"
)

// shortestGrace is what a container has between its stop signal and SIGKILL at least, as the
// kubelet has it.
const shortestGrace = 2 * time.Second

// stop ends a container of a pod that goes on.
func (c *container) stop(running *runtime.Running, grace time.Duration) {
	deadline := time.Now().Add(grace)
	c.stopBy(running, func() (time.Time, <-chan struct{}) {
		podDeadline, moved := c.pod.killing()
		if !podDeadline.IsZero() && podDeadline.Before(deadline) {
			return podDeadline, moved
		}
		return deadline, moved
	})
}

// stopWithPod ends a container together with its pod.
func (c *container) stopWithPod(running *runtime.Running) { c.stopBy(running, c.pod.killing) }

// stopBy runs the preStop hook, sends the stop signal, and kills the container when it has
// not ended by the deadline, which may move.
func (c *container) stopBy(running *runtime.Running, deadline func() (time.Time, <-chan struct{})) {
	ended := make(chan struct{})
	hooked := ended // nil once the signal is sent
	hookCtx, stopHook := context.WithCancel(c.pod.kubelet.dying)
	defer stopHook()
	go func() {
		defer close(ended)
		if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
			return
		}
		if err := c.hook(hookCtx, running, c.spec.Lifecycle.PreStop); err != nil && hookCtx.Err() == nil {
			c.event(v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: "+err.Error())
		}
	}()
	var signalled time.Time
	for {
		at, moved := deadline()
		if !signalled.IsZero() && at.Before(signalled.Add(shortestGrace)) {
			at = signalled.Add(shortestGrace)
		}
		timer := time.NewTimer(time.Until(at))
		select {
		case <-running.Done():
			timer.Stop()
			return
		case <-c.pod.kubelet.dying.Done():
			timer.Stop()
			_ = running.Kill()
			return
		case <-hooked:
			hooked, signalled = nil, time.Now()
			_ = running.Signal(c.stopSignal())
		case <-moved:
		case <-timer.C:
			if signalled.IsZero() { // the hook took all the time
				stopHook()
				hooked, signalled = nil, time.Now()
				_ = running.Signal(c.stopSignal())
			} else {
				_ = running.Kill()
				return
			}
		}
		timer.Stop()
	}
}

// stopSignal is the signal that asks the container to end.
func (c *container) stopSignal() unix.Signal {
	name := ""
	if image, err := c.pod.kubelet.config.Images.Get(c.spec.Image); err == nil {
		name = image.Config.StopSignal
	}
	if c.spec.Lifecycle != nil && c.spec.Lifecycle.StopSignal != nil {
		name = string(*c.spec.Lifecycle.StopSignal)
	}
	if signal := unix.SignalNum(name); signal != 0 {
		return signal
	}
	return unix.SIGTERM
}

// hook does what a lifecycle handler says.
func (c *container) hook(ctx context.Context, running *runtime.Running, h *v1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		var output tailBuffer
		if err := running.Exec(ctx, h.Exec.Command, runtime.Streams{Stdout: &output, Stderr: &output}); err != nil {
			return fmt.Errorf("%w: %s", err, output.last(maxMessage))
		}
		return nil
	case h.HTTPGet != nil:
		request, err := httpprobe.NewRequestForHTTPGetAction(h.HTTPGet, c.spec, c.pod.address(), "lifecycle")
		if err != nil {
			return err
		}
		response, err := c.pod.httpClient().Do(request.WithContext(ctx))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("answered %s", response.Status)
		}
		return nil
	case h.Sleep != nil:
		pause(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
		return nil
	}
	return nil
}

// address is the pod's first address.
func (p *pod) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.network.IPs) == 0 {
		return ""
	}
	return p.network.IPs[0].String()
}

// dial connects from the node's own address.
func (p *pod) dial(ctx context.Context, proto, address string) (net.Conn, error) {
	node := p.kubelet.config.Network.HostNetwork()
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return node.Dial(ctx, proto, address)
	}
	// Names are looked up here, as sockets are made in the node's namespace by their address.
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = node.Dial(ctx, proto, net.JoinHostPort(a.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// port is a port by its number, or the name that a port of the container has.
func (c *container) port(p intstr.IntOrString) (int, error) {
	if p.Type == intstr.Int {
		return p.IntValue(), nil
	}
	for _, port := range c.spec.Ports {
		if port.Name == p.StrVal {
			return int(port.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("port %q is not one of container %s", p.StrVal, c.spec.Name)
}

package kubelet

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// live runs the containers, and returns when none runs any more.
func (p *pod) live() {
	var sidecars []*container
	// Containers that are stopped later than the others, in reverse order.
	defer func() {
		p.stopSoon()
		for _, c := range slices.Backward(sidecars) {
			c.stopNow()
			c.wait()
		}
	}()
	for _, c := range p.containers {
		if !c.init {
			break
		}
		if c.sidecar {
			sidecars = append(sidecars, c)
			c.begin(p.kubelet.dying)
			select {
			case <-c.started:
			case <-p.ending.Done():
				return
			}
			continue
		}
		if !p.initialize(c) {
			return
		}
	}
	p.set(func() { p.initialized = true })
	var mains sync.WaitGroup
	for _, c := range p.containers {
		if !c.init {
			c.begin(p.ending)
			mains.Go(c.wait)
		}
	}
	mains.Wait()
}

// initialize runs an init container until it succeeds. It returns false when the pod is to
// end instead.
func (p *pod) initialize(c *container) bool {
	c.begin(p.ending)
	c.wait()
	if p.ending.Err() != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if end := c.state.Terminated; end == nil || end.ExitCode != 0 {
		p.failed = true
		return false
	}
	return true
}

// stopSoon sets the time that containers have for their end, for a pod that ends by itself.
func (p *pod) stopSoon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deadline.IsZero() {
		p.setDeadline(time.Now().Add(p.grace()))
	}
}

// grace is how long containers have for their end. The caller holds mu.
func (p *pod) grace() time.Duration {
	if s := p.current.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return v1.DefaultTerminationGracePeriodSeconds * time.Second
}

// again tells whether a container that ended so is to be started again.
func (c *container) again(exit v1.ContainerStateTerminated) bool {
	if c.pod.ending.Err() != nil {
		return false
	}
	policy := c.pod.object().Spec.RestartPolicy
	if c.spec.RestartPolicy != nil {
		policy = v1.RestartPolicy(*c.spec.RestartPolicy)
	} else if c.init && policy == v1.RestartPolicyAlways {
		policy = v1.RestartPolicyOnFailure
	}
	switch policy {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return exit.ExitCode != 0
	}
	return true
}

// begin starts the goroutine that runs the container until ctx ends or stopNow is called.
func (c *container) begin(ctx context.Context) {
	ctx, c.stopNow = context.WithCancel(ctx)
	c.ended = make(chan struct{})
	go func() {
		defer close(c.ended)
		defer c.stopNow()
		c.supervise(ctx)
		c.pod.set(func() { c.over = true })
	}()
}

// wait waits for the end of what begin began.
func (c *container) wait() { <-c.ended }

// supervise starts the container, attends to it, and does so again as the restart policy
// says, until ctx ends.
func (c *container) supervise(ctx context.Context) {
	for attempt := 0; ; attempt++ {
		exit, ok := c.once(ctx, attempt)
		if !ok || ctx.Err() != nil || !c.again(exit) {
			return
		}
		if attempt == 0 {
			continue // the first time at once, as the kubelet does
		}
		delay := min(c.pod.kubelet.config.Backoff<<min(attempt-1, 20), c.pod.kubelet.config.MaxBackoff)
		c.pod.set(func() {
			c.last = c.state
			c.state = waiting("CrashLoopBackOff", "back-off "+delay.String()+" restarting failed container="+c.spec.Name+" pod="+c.pod.name)
		})
		c.event(v1.EventTypeWarning, "BackOff", "Back-off restarting failed container "+c.spec.Name)
		if !pause(ctx, delay) {
			c.pod.set(func() { c.state, c.last = c.last, v1.ContainerState{} })
			return
		}
	}
}

// pause waits, and returns false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func waiting(reason, message string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

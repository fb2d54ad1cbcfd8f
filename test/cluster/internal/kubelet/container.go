package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/test/cluster/internal/images"
	"turnout/test/cluster/internal/runtime"
)

// container is one of a pod, over all its restarts.
type container struct {
	pod     *pod
	spec    *v1.Container
	init    bool          // of initContainers
	sidecar bool          // an init container that goes on running
	started chan struct{} // closed when it has started for the first time

	// Set by begin.
	stopNow context.CancelFunc
	ended   chan struct{}

	// Guarded by pod.mu.
	state, last v1.ContainerState
	restarts    int32
	imageID     string
	id          string // of the running container, or of the one before
	up          bool   // has started: its startup probe has succeeded
	ready       bool   // readiness probe
	running     *runtime.Running
	logs        *runtime.Log // of the running container, or of the one that ended last
	previous    *runtime.Log // of the one before
	over        bool         // has ended for good
}

func newContainer(p *pod, spec *v1.Container, init, afterInit bool) *container {
	c := &container{pod: p, spec: spec, init: init, started: make(chan struct{})}
	c.sidecar = init && spec.RestartPolicy != nil && *spec.RestartPolicy == v1.ContainerRestartPolicyAlways
	c.state = waiting("ContainerCreating", "")
	if afterInit {
		c.state = waiting("PodInitializing", "")
	}
	return c
}

// event reports what happened to the container.
func (c *container) event(kind, reason, message string) {
	field := "spec.containers"
	if c.init {
		field = "spec.initContainers"
	}
	object := c.pod.object()
	ref := &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: object.Namespace, Name: object.Name, UID: object.UID,
		ResourceVersion: object.ResourceVersion, FieldPath: fmt.Sprintf("%s{%s}", field, c.spec.Name),
	}
	c.pod.kubelet.events.Event(ref, kind, reason, message)
}

// configError says that a container cannot be made as its pod wants it.
type configError struct{ err error }

func (e configError) Error() string { return e.err.Error() }

// once starts the container and attends to it until its end. It returns false when ctx ended
// before it could be started.
func (c *container) once(ctx context.Context, attempt int) (v1.ContainerStateTerminated, bool) {
	id := fmt.Sprintf("%s-%s-%d", c.pod.uid, c.spec.Name, attempt)
	dir := filepath.Join(c.pod.dir, "containers", fmt.Sprintf("%s-%d", c.spec.Name, attempt))
	defer func() { _ = images.Unmount(dir) }()
	log := &runtime.Log{}
	image, wanted, ok := c.create(ctx, id, dir)
	if !ok {
		return v1.ContainerStateTerminated{}, false
	}
	begun := metav1.Now()
	running, err := c.startWith(wanted, log)
	if err != nil {
		c.event(v1.EventTypeWarning, "Failed", "Error: "+err.Error())
		return c.terminated(attempt, id, v1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: begun, FinishedAt: metav1.Now()}), true
	}
	defer running.Remove()
	c.pod.set(func() {
		c.rotate(log, id, image.ID)
		c.running = running
		if attempt > 0 {
			c.restarts++
			c.keepLast()
		}
		c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: begun}}
	})
	c.event(v1.EventTypeNormal, "Started", "Container started")
	c.attend(ctx, running)
	draining, drained := context.WithTimeout(context.Background(), time.Second) // others may hold its output open
	log.Drain(draining)
	drained()
	exit := running.Exit()
	end := v1.ContainerStateTerminated{
		ExitCode: int32(exit.Code), Signal: 0, Reason: "Error",
		StartedAt: begun, FinishedAt: metav1.NewTime(exit.Finished), ContainerID: containerID(id),
	}
	switch {
	case exit.OutOfMemory && exit.Code != 0:
		end.Reason = "OOMKilled"
	case exit.Code == 0:
		end.Reason = "Completed"
	}
	end.Message = c.message(dir, log, exit.Code)
	return c.end(end), true
}

func containerID(id string) string { return "runc://" + id }

// keepLast makes a state that ended the last one. The caller holds pod.mu.
func (c *container) keepLast() {
	if c.state.Terminated != nil {
		c.last = c.state
	}
}

// rotate makes log the container's. The caller holds pod.mu.
func (c *container) rotate(log *runtime.Log, id, image string) {
	c.previous, c.logs, c.id, c.imageID = c.logs, log, id, image
}

// end writes down the end of the running container.
func (c *container) end(end v1.ContainerStateTerminated) v1.ContainerStateTerminated {
	c.pod.set(func() {
		c.state = v1.ContainerState{Terminated: &end}
		c.up, c.ready, c.running = false, false, nil
	})
	return end
}

// terminated writes down the end of a container that never ran.
func (c *container) terminated(attempt int, id string, end v1.ContainerStateTerminated) v1.ContainerStateTerminated {
	end.ContainerID = containerID(id)
	c.pod.set(func() {
		if attempt > 0 {
			c.restarts++
			c.keepLast()
		}
		c.id = id
	})
	return c.end(end)
}

// create finds out what the container is, and mounts its root file system. It tries until it
// succeeds or ctx ends, when it returns false.
func (c *container) create(ctx context.Context, id, dir string) (*images.Image, *runtime.Container, bool) {
	for tries := 0; ; tries++ {
		image, wanted, err := c.tryCreate(ctx, id, dir)
		if err == nil {
			return image, wanted, true
		}
		if ctx.Err() != nil {
			return nil, nil, false
		}
		reason := "CreateContainerError"
		var config configError
		switch {
		case errors.Is(err, images.ErrUnknown) && c.spec.ImagePullPolicy == v1.PullNever:
			reason = "ErrImageNeverPull"
		case errors.Is(err, images.ErrUnknown) && tries == 0:
			reason = "ErrImagePull"
		case errors.Is(err, images.ErrUnknown):
			reason = "ImagePullBackOff"
		case errors.As(err, &config):
			reason = "CreateContainerConfigError"
		}
		c.pod.set(func() {
			c.keepLast()
			c.state = waiting(reason, err.Error())
		})
		c.event(v1.EventTypeWarning, "Failed", "Error: "+err.Error())
		if !pause(ctx, retry) {
			return nil, nil, false
		}
	}
}

func (c *container) tryCreate(ctx context.Context, id, dir string) (*images.Image, *runtime.Container, error) {
	image, err := c.pod.kubelet.config.Images.Get(c.spec.Image)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := c.define(ctx, image, dir)
	if err != nil {
		return nil, nil, err
	}
	wanted.ID = id
	if err := errors.Join(images.Unmount(dir), os.MkdirAll(dir, 0o711)); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, messageFile), nil, 0o666); err != nil {
		return nil, nil, err
	}
	if err := os.Chmod(filepath.Join(dir, messageFile), 0o666); err != nil {
		return nil, nil, err
	}
	wanted.Root, err = image.Mount(dir)
	return image, wanted, err
}

// startWith starts the container with its output going to log.
func (c *container) startWith(wanted *runtime.Container, log *runtime.Log) (*runtime.Running, error) {
	output, err := log.Writer()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	wanted.Stdout, wanted.Stderr = output, output
	return c.pod.kubelet.runtime.Start(context.Background(), wanted)
}

// messageFile is the file, in the folder of a container, where it says why it ended.
const messageFile = "termination-log"

// Bounds of a termination message, as the kubelet has them.
const (
	maxMessage     = 4096
	maxMessageLog  = 2048
	maxMessageLine = 80
)

// message is what the container says about its end.
func (c *container) message(dir string, log *runtime.Log, code int) string {
	text, err := os.ReadFile(filepath.Join(dir, messageFile))
	if err != nil {
		return err.Error()
	}
	if len(text) == 0 && code != 0 && c.spec.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError {
		var tail tailBuffer
		_ = log.Read(context.Background(), &tail, runtime.ReadOptions{Tail: maxMessageLine})
		text = tail.last(maxMessageLog)
	}
	return string(text[:min(len(text), maxMessage)])
}

// tailBuffer keeps what is written to it.
type tailBuffer []byte

func (b *tailBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b tailBuffer) last(n int) []byte { return b[max(len(b)-n, 0):] }

// attend watches the running container until it has ended: its hooks, its probes, and its end
// when ctx ends or a probe wants it.
func (c *container) attend(ctx context.Context, running *runtime.Running) {
	alive, ended := context.WithCancel(context.Background()) // ends with the container
	defer ended()
	go func() {
		<-running.Done()
		ended()
	}()
	if c.spec.Lifecycle != nil && c.spec.Lifecycle.PostStart != nil {
		if err := c.hook(alive, running, c.spec.Lifecycle.PostStart); err != nil && alive.Err() == nil {
			c.event(v1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: "+err.Error())
			c.stop(running, c.ordinaryGrace())
			return
		}
	}
	checking, stopChecking := context.WithCancel(alive)
	defer stopChecking()
	unhealthy := make(chan unhealthy, 2)
	wait := c.startProbes(checking, alive, running, unhealthy)
	defer wait()
	defer ended()
	select {
	case <-running.Done():
	case u := <-unhealthy:
		stopChecking()
		c.event(v1.EventTypeNormal, "Killing", fmt.Sprintf("Container %s failed %s probe, will be restarted", c.spec.Name, u.kind))
		c.stop(running, u.grace)
	case <-ctx.Done():
		stopChecking()
		if c.pod.kubelet.dying.Err() != nil {
			_ = running.Kill()
			return
		}
		c.event(v1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
		c.stopWithPod(running)
	}
}

// ordinaryGrace is how long the container has for its end by its pod.
func (c *container) ordinaryGrace() time.Duration {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return c.pod.grace()
}

package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/test/cluster/internal/network"
	"turnout/test/cluster/internal/runtime"
	"turnout/test/cluster/internal/volumes"
)

// pod is one that runs on this node, from its first sight to its end.
type pod struct {
	kubelet         *Kubelet
	namespace, name string
	uid             types.UID
	dir             string
	containers      []*container // init containers first

	// Owned by run, and set before containers start.
	network network.Pod
	volumes *volumes.Set
	pause   *runtime.Pause // nil unless the containers share a process namespace

	ending  context.Context // ends when the pod must stop
	end     context.CancelFunc
	refresh chan struct{} // a volume may have changed
	changed chan struct{} // the status may have changed
	deleted chan struct{} // closed when the object is to be deleted, or is gone

	mu            sync.Mutex
	current       *v1.Pod       // newest version of the object
	prepared      bool          // has addresses and volumes
	initialized   bool          // init containers have done their work
	failed        bool          // an init container has failed for good
	finished      bool          // nothing runs, and nothing will
	vanished      bool          // the object is gone
	deadline      time.Time     // when containers that stop are killed; zero before
	deadlineMoved chan struct{} // closed when deadline changes
}

func newPod(k *Kubelet, object *v1.Pod) *pod {
	p := &pod{
		kubelet: k, namespace: object.Namespace, name: object.Name, uid: object.UID,
		dir:     filepath.Join(k.config.Dir, "pods", string(object.UID)),
		current: object,
		refresh: make(chan struct{}, 1), changed: make(chan struct{}, 1), deleted: make(chan struct{}),
		deadlineMoved: make(chan struct{}),
	}
	p.ending, p.end = context.WithCancel(k.dying)
	for i := range object.Spec.InitContainers {
		spec := &object.Spec.InitContainers[i]
		p.containers = append(p.containers, newContainer(p, spec, true, false))
	}
	for i := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, &object.Spec.Containers[i], false, len(object.Spec.InitContainers) > 0))
	}
	p.update(object)
	return p
}

// object is the newest version of the pod's object.
func (p *pod) object() *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// update takes a new version of the object.
func (p *pod) update(object *v1.Pod) {
	p.mu.Lock()
	p.current = object
	if object.DeletionTimestamp != nil {
		grace := time.Duration(0)
		if s := object.DeletionGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		p.setDeadline(time.Now().Add(grace))
		p.beDeleted()
	}
	p.mu.Unlock()
	p.touch()
	p.refreshVolumes() // labels and annotations may be in them
}

// vanish takes that the object is gone.
func (p *pod) vanish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vanished = true
	p.setDeadline(time.Now())
	p.beDeleted()
}

// beDeleted begins the end. The caller holds mu.
func (p *pod) beDeleted() {
	select {
	case <-p.deleted:
	default:
		close(p.deleted)
	}
	p.end()
}

// setDeadline sets when containers are killed, unless that is to be earlier already. The
// caller holds mu.
func (p *pod) setDeadline(t time.Time) {
	if !p.deadline.IsZero() && !t.Before(p.deadline) {
		return
	}
	p.deadline = t
	close(p.deadlineMoved)
	p.deadlineMoved = make(chan struct{})
}

// killing returns when containers that stop are killed, and what is closed when that moves.
func (p *pod) killing() (time.Time, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deadline, p.deadlineMoved
}

// touch says that the status may have changed.
func (p *pod) touch() { notify(p.changed) }

// refreshVolumes says that the contents of a volume may have changed.
func (p *pod) refreshVolumes() { notify(p.refresh) }

// notify makes one pending message of any number.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// set changes state that the status is made of.
func (p *pod) set(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	p.touch()
}

// running returns the containers that run now.
func (p *pod) running() (running []*runtime.Running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		if c.running != nil {
			running = append(running, c.running)
		}
	}
	return running
}

// run is the life of the pod.
func (p *pod) run() {
	defer p.end()
	reporting, stopReporting := context.WithCancel(p.kubelet.dying)
	var reporter sync.WaitGroup
	reporter.Go(func() { p.report(reporting) })
	if p.prepare() {
		updating, stopUpdating := context.WithCancel(p.ending)
		var updater sync.WaitGroup
		updater.Go(func() { p.updateVolumes(updating) })
		p.live()
		stopUpdating()
		updater.Wait()
	}
	p.free()
	stopReporting()
	reporter.Wait()
	if p.kubelet.dying.Err() != nil {
		return
	}
	p.set(func() { p.finished = true })
	p.writeStatus(p.kubelet.dying)
	select {
	case <-p.deleted:
		p.deleteObject()
	case <-p.kubelet.dying.Done():
	}
}

// retry is how long to wait before something that failed is tried again.
const retry = 300 * time.Millisecond

// prepare gives the pod its addresses and volumes. It tries until the pod is to end.
func (p *pod) prepare() bool {
	for {
		reason, err := p.tryPrepare()
		if err == nil {
			p.set(func() { p.prepared = true })
			return true
		}
		if p.ending.Err() != nil {
			return false
		}
		p.kubelet.events.Event(p.object(), v1.EventTypeWarning, reason, err.Error())
		select {
		case <-time.After(retry):
		case <-p.refresh:
		case <-p.ending.Done():
			return false
		}
	}
}

// tryPrepare returns the reason of an event besides its error.
func (p *pod) tryPrepare() (string, error) {
	object := p.object()
	if err := os.MkdirAll(p.dir, 0o711); err != nil {
		return "FailedCreatePodSandBox", err
	}
	if p.network.Netns == "" {
		if err := p.connect(object); err != nil {
			return "FailedCreatePodSandBox", err
		}
	}
	if p.volumes == nil {
		// A field of the pod's own addresses may be in a volume.
		set, err := volumes.New(p.ending, volumes.Config{Client: p.kubelet.client, Allocatable: p.kubelet.capacity}, filepath.Join(p.dir, "volumes"), p.withAddresses())
		if err != nil {
			return "FailedMount", err
		}
		p.volumes = set
	}
	if share := object.Spec.ShareProcessNamespace; share != nil && *share && p.pause == nil {
		pause, err := runtime.StartPause()
		if err != nil {
			return "FailedCreatePodSandBox", err
		}
		p.pause = pause
	}
	if err := p.writeNames(object); err != nil {
		return "FailedCreatePodSandBox", err
	}
	return "", nil
}

// connect joins the pod to the network.
func (p *pod) connect(object *v1.Pod) error {
	if object.Spec.HostNetwork {
		p.set(func() { p.network = p.kubelet.config.Network.HostNetwork() })
		return nil
	}
	joined, err := p.kubelet.config.Network.Add(string(p.uid), hostPorts(object)...)
	if err != nil {
		return err
	}
	p.set(func() { p.network = joined })
	return nil
}

// hostPorts are the ports of the node that lead to the pod.
func hostPorts(object *v1.Pod) []network.HostPort {
	var list []network.HostPort
	for _, c := range append(append([]v1.Container(nil), object.Spec.InitContainers...), object.Spec.Containers...) {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				list = append(list, network.HostPort{HostPort: uint16(port.HostPort), ContainerPort: uint16(port.ContainerPort), Protocol: string(port.Protocol)})
			}
		}
	}
	return list
}

// free gives back what prepare got.
func (p *pod) free() {
	var errs []error
	if p.pause != nil {
		p.pause.Stop()
	}
	if p.volumes != nil {
		errs = append(errs, p.volumes.Close())
	}
	if p.network.Netns != "" && !p.object().Spec.HostNetwork {
		errs = append(errs, p.kubelet.config.Network.Remove(string(p.uid)))
	}
	if err := errors.Join(append(errs, os.RemoveAll(p.dir))...); err != nil && p.kubelet.dying.Err() == nil {
		p.kubelet.events.Event(p.object(), v1.EventTypeWarning, "FailedKillPod", err.Error())
	}
}

// updateVolumes writes volumes again when something changed, and tokens in time.
func (p *pod) updateVolumes(ctx context.Context) {
	wait := untilToken(p.volumes.NextToken())
	for {
		timer := time.NewTimer(wait)
		select {
		case <-p.refresh:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
		err := p.volumes.Refresh(ctx, p.withAddresses())
		wait = untilToken(p.volumes.NextToken())
		if err != nil && ctx.Err() == nil {
			p.kubelet.events.Event(p.object(), v1.EventTypeWarning, "FailedMount", err.Error())
			wait = min(wait, time.Second) // an object may be back, or the API server
		}
	}
}

// untilToken is how long to wait for the time of the next token: a while when there is none,
// and not at once, so that an API server that refuses tokens is not asked without end.
func untilToken(next time.Time) time.Duration {
	if next.IsZero() {
		return time.Hour
	}
	return max(time.Until(next), retry)
}

// deleteObject removes the object of a pod that has ended. One with the same name that came
// after it stays.
func (p *pod) deleteObject() {
	p.mu.Lock()
	vanished := p.vanished
	p.mu.Unlock()
	for !vanished && p.kubelet.dying.Err() == nil {
		zero := int64(0)
		err := p.kubelet.client.CoreV1().Pods(p.namespace).Delete(p.kubelet.dying, p.name, metav1.DeleteOptions{
			GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.uid},
		})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		select {
		case <-time.After(retry):
		case <-p.kubelet.dying.Done():
		}
	}
}

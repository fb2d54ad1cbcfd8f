// Package scheduler binds pods to nodes. It knows the rules that say where a pod may
// run, but for volumes and resources; of the nodes that are left it takes the one with the
// fewest pods of the same owner, then the fewest pods. It evicts nobody.
package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// again is when pods that could not be bound for a failure of the API are tried again.
const again = time.Second

// Scheduler binds the pods that ask for the default scheduler.
type Scheduler struct {
	client     kubernetes.Interface
	nodes      listers.NodeLister
	pods       listers.PodLister
	namespaces listers.NamespaceLister
	events     record.EventRecorder
	changed    chan struct{} // holds one element when something may be possible that was not

	// Owned by Run: nodes of pods that were bound and of which the lister does not know yet.
	assumed map[types.UID]string
}

// New makes a scheduler. The informers have to be started after it.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, events record.EventRecorder) (*Scheduler, error) {
	core := factory.Core().V1()
	s := &Scheduler{
		client: client, nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), namespaces: core.Namespaces().Lister(),
		events: events, changed: make(chan struct{}, 1), assumed: map[types.UID]string{},
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.wake() }, UpdateFunc: func(any, any) { s.wake() }, DeleteFunc: func(any) { s.wake() },
	}
	for _, informer := range []cache.SharedIndexInformer{core.Nodes().Informer(), core.Pods().Informer(), core.Namespaces().Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("cannot watch for the scheduler: %w", err)
		}
	}
	return s, nil
}

func (s *Scheduler) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run binds pods until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	retry := time.NewTimer(again)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-retry.C:
		}
		if err := s.round(ctx); err != nil {
			retry.Reset(again)
		}
	}
}

// round tries each pod that has no node.
func (s *Scheduler) round(ctx context.Context) error {
	pods, err := s.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("cannot list pods: %w", err)
	}
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("cannot list nodes: %w", err)
	}
	w := s.world(nodes, pods)
	var failed error
	for _, p := range pending(pods, s.assumed) {
		if err := s.schedule(ctx, w, p); err != nil {
			failed = err
		}
	}
	return failed
}

// pending returns the pods to bind: those of high priority first, then the oldest.
func pending(pods []*corev1.Pod, assumed map[types.UID]string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, p := range pods {
		if p.Spec.NodeName == "" && assumed[p.UID] == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
			p.Spec.SchedulerName == corev1.DefaultSchedulerName && !ended(p) {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b *corev1.Pod) int {
		return cmp.Or(-cmp.Compare(priority(a), priority(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// ended reports whether nothing of the pod runs any more.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// schedule binds p, or says why not.
func (s *Scheduler) schedule(ctx context.Context, w *world, p *corev1.Pod) error {
	node, why := w.choose(p)
	if node == nil {
		return s.refuse(ctx, p, why)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
	err := s.client.CoreV1().Pods(p.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or bound by somebody else: an event tells
	}
	if err != nil {
		return fmt.Errorf("cannot bind pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	s.assumed[p.UID] = node.Name
	w.add(node.Name, p)
	s.events.Eventf(p, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", p.Namespace, p.Name, node.Name)
	return nil
}

// refuse writes why p has no node, unless it is written already.
func (s *Scheduler) refuse(ctx context.Context, p *corev1.Pod, why string) error {
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
		LastTransitionTime: metav1.Now(), ObservedGeneration: p.Generation,
	}
	p = p.DeepCopy()
	for i, c := range p.Status.Conditions {
		if c.Type != condition.Type {
			continue
		}
		if c.Status == condition.Status && c.Message == why {
			return nil
		}
		p.Status.Conditions = slices.Delete(p.Status.Conditions, i, i+1)
		break
	}
	p.Status.Conditions = append(p.Status.Conditions, condition)
	_, err := s.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // an event tells
	}
	if err != nil {
		return fmt.Errorf("cannot write that pod %s/%s has no node: %w", p.Namespace, p.Name, err)
	}
	s.events.Event(p, corev1.EventTypeWarning, "FailedScheduling", why)
	return nil
}

// world is what is where, as far as known.
func (s *Scheduler) world(nodes []*corev1.Node, pods []*corev1.Pod) *world {
	w := &world{nodes: nodes, pods: map[string][]*corev1.Pod{}, namespace: s.namespaceLabels}
	slices.SortFunc(w.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	known := map[types.UID]bool{}
	for _, p := range pods {
		node := p.Spec.NodeName
		if node != "" {
			delete(s.assumed, p.UID)
		} else {
			node = s.assumed[p.UID]
		}
		known[p.UID] = true
		if node != "" && !ended(p) {
			w.add(node, p)
		}
	}
	for uid := range s.assumed {
		if !known[uid] {
			delete(s.assumed, uid)
		}
	}
	return w
}

// namespaceLabels returns the labels of a namespace, none when it is not known.
func (s *Scheduler) namespaceLabels(name string) labels.Set {
	ns, err := s.namespaces.Get(name)
	if err != nil {
		return nil
	}
	return ns.Labels
}

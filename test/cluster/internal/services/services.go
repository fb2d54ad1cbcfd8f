// Package services makes Services reachable: it is kube-proxy and the cloud's load
// balancers in one, for all nodes. Services of type LoadBalancer get an address of their
// own, at which they are served on the ports of the Service.
//
// Clients of a cluster address are seen by pods as they are. Those of a load balancer or
// node port are seen as a node, unless externalTrafficPolicy is Local.
package services

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"turnout/test/cluster/internal/nat"
)

// Node is a node at whose addresses node ports are served.
type Node struct {
	Name      string
	Addresses []netip.Addr // one of each family, IPv4 first
}

// Config is what New needs.
type Config struct {
	Client    kubernetes.Interface
	Factory   informers.SharedInformerFactory // started after New
	NAT       *nat.Table
	Nodes     []Node         // at least one
	Balancers []netip.Prefix // where load balancers get their addresses, IPv4 first
	Events    record.EventRecorder
}

// Controller keeps the translation of addresses in line with Services and EndpointSlices.
type Controller struct {
	cfg      Config
	services listers.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	queue    workqueue.TypedRateLimitingInterface[string] // of namespace/name

	// Owned by Run.
	addresses *addresses
	applied   map[string]map[nat.Frontend]*nat.Backends // by namespace/name
}

// New makes a controller.
func New(cfg Config) (*Controller, error) {
	c := &Controller{
		cfg: cfg, services: cfg.Factory.Core().V1().Services().Lister(), slices: cfg.Factory.Discovery().V1().EndpointSlices().Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Second)),
		applied: map[string]map[nat.Frontend]*nat.Backends{},
	}
	c.addresses = newAddresses(cfg.Balancers, c.queue.Add)
	informer := cfg.Factory.Core().V1().Services().Informer()
	if _, err := informer.AddEventHandler(c.handler(func(o any) string {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
		if err != nil {
			return ""
		}
		return key
	})); err != nil {
		return nil, fmt.Errorf("cannot watch Services: %w", err)
	}
	if _, err := cfg.Factory.Discovery().V1().EndpointSlices().Informer().AddEventHandler(c.handler(serviceOf)); err != nil {
		return nil, fmt.Errorf("cannot watch EndpointSlices: %w", err)
	}
	return c, nil
}

// handler enqueues what key makes of objects.
func (c *Controller) handler(key func(any) string) cache.ResourceEventHandler {
	add := func(o any) {
		if k := key(o); k != "" {
			c.queue.Add(k)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(before, after any) { add(before); add(after) }, DeleteFunc: add}
}

// serviceOf returns the Service that a slice belongs to, nothing when there is none.
func serviceOf(o any) string {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelServiceName] == "" {
		return ""
	}
	return slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
}

// Run works until ctx ends. The informers have to be started and in sync.
func (c *Controller) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	for {
		first, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		// All that is waiting becomes one change of the rules.
		keys := []string{first}
		for range c.queue.Len() {
			key, shutdown := c.queue.Get()
			if shutdown {
				return
			}
			keys = append(keys, key)
		}
		err := c.sync(ctx, keys)
		for _, key := range keys {
			if err != nil {
				c.queue.AddRateLimited(key)
			} else {
				c.queue.Forget(key)
			}
			c.queue.Done(key)
		}
	}
}

// plan is what one Service needs.
type plan struct {
	frontends map[nat.Frontend]*nat.Backends
	service   *corev1.Service
	balancers []netip.Addr
	outdated  bool // the status of the Service does not have balancers
}

// sync brings the rules into line with some Services. Addresses of load balancers are written
// after they can be used.
func (c *Controller) sync(ctx context.Context, keys []string) error {
	changes := map[nat.Frontend]*nat.Backends{}
	plans := map[string]plan{}
	var failed error
	for _, key := range keys {
		p, err := c.plan(key)
		if err != nil {
			failed = err
			continue
		}
		plans[key] = p
		for f := range c.applied[key] {
			if p.frontends[f] == nil && changes[f] == nil {
				changes[f] = nil
			}
		}
		maps.Copy(changes, p.frontends)
	}
	if err := c.cfg.NAT.Apply(ctx, changes); err != nil {
		return err
	}
	for key, p := range plans {
		c.applied[key] = p.frontends
		if len(p.frontends) == 0 {
			delete(c.applied, key)
		}
		if !p.outdated {
			continue
		}
		if err := c.report(ctx, p.service, p.balancers); err != nil {
			failed = err
		}
	}
	return failed
}

// plan says what a Service needs.
func (c *Controller) plan(key string) (plan, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return plan{}, fmt.Errorf("cannot find a Service: %w", err)
	}
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		delete(c.addresses.waiting, key)
		c.addresses.free(key)
		return plan{}, nil
	}
	if err != nil {
		return plan{}, fmt.Errorf("cannot read Service %s: %w", key, err)
	}
	balancers, outdated, err := c.balance(key, service)
	if err != nil {
		return plan{}, err
	}
	slices, err := c.slices.EndpointSlices(namespace).List(labels.Set{discoveryv1.LabelServiceName: name}.AsSelector())
	if err != nil {
		return plan{}, fmt.Errorf("cannot list the EndpointSlices of %s: %w", key, err)
	}
	t := translation{nodes: c.cfg.Nodes, service: service, slices: slices, result: map[nat.Frontend]*nat.Backends{}}
	for i := range service.Spec.Ports {
		t.port(&service.Spec.Ports[i], balancers)
	}
	return plan{frontends: t.result, service: service, balancers: balancers, outdated: outdated}, nil
}

// isBalanced reports whether s is to get an address of a load balancer.
func isBalanced(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil && s.DeletionTimestamp == nil
}

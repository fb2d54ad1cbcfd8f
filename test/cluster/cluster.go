// Package cluster is a cluster to test in: etcd, kube-apiserver and
// kube-controller-manager for real, and in place of everything that a node does, code of
// its own. It has no kubelet program, no container runtime but runc and no network but
// that of the sandbox that it runs in (package sandbox), with which it vanishes.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"turnout/test/cluster/internal/controlplane"
	"turnout/test/cluster/internal/dns"
	"turnout/test/cluster/internal/network"
	"turnout/test/cluster/internal/node"
	"turnout/test/cluster/internal/scheduler"
	"turnout/test/cluster/internal/services"
	"turnout/test/cluster/pki"
)

// The address of the DNS server, as a Service, and where it listens.
var (
	dnsService  = network.Pair{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:96::a")}
	dnsListener = network.Pair{netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("fd00::4")}
)

// Node is a node of the cluster.
type Node struct {
	Name   string
	Labels map[string]string // beside those that each node has
	Taints []corev1.Taint
}

// Config is what Start needs.
type Config struct {
	Dir      string // for data; memory is best
	Logs     string // for logs that outlive the run
	Programs string // folder of kube-apiserver and kube-controller-manager
	// Nodes run pods. Without any there are no controllers, no scheduler and no Services
	// that lead anywhere either: only etcd and the API server.
	Nodes []Node
	// Manifests are files and folders whose objects are made before Start returns.
	Manifests []string
	// Names are further names and addresses under which the API server is reached.
	Names []string
	// APIArgs are further arguments of kube-apiserver.
	APIArgs []string
}

// Component is one program of the control plane, which can be stopped, killed, paused and
// started again.
type Component = controlplane.Component

// Pod is a network namespace with its addresses.
type Pod = network.Pod

// Cluster is a running cluster.
type Cluster struct {
	Admin                  *rest.Config // may do everything, without a limit of its own
	CA                     *pki.CA      // of the API server
	Etcd, API, Controllers *Component

	cfg     Config
	plane   *controlplane.ControlPlane
	client  kubernetes.Interface
	fabric  *network.Fabric // nil without nodes
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start starts a cluster and waits until objects can be made. It has to be called inside a
// sandbox, once. The cluster runs until Stop, or until the process ends.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	for _, a := range []netip.Addr{controlplane.EtcdAddress, controlplane.APIAddress} {
		if err := network.AddLocal(a); err != nil {
			return nil, err
		}
	}
	plane, err := controlplane.New(controlplane.Config{
		Dir: cfg.Dir, Logs: cfg.Logs, Programs: cfg.Programs, Names: cfg.Names, APIArgs: cfg.APIArgs,
		Services: network.Services.Strings(), Pods: network.Pods.Strings(),
	})
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(plane.Admin)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	c := &Cluster{
		Admin: plane.Admin, CA: plane.CA, Etcd: plane.Etcd, API: plane.API, Controllers: plane.Controllers,
		cfg: cfg, plane: plane, client: client,
	}
	background, stop := context.WithCancel(context.Background())
	c.stop = stop
	if err := c.start(ctx, background); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// start starts everything. What goes on ends with background.
func (c *Cluster) start(ctx, background context.Context) error {
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	if err := c.API.Start(ctx); err != nil {
		return err
	}
	if len(c.cfg.Nodes) > 0 {
		if err := c.startNodes(ctx, background); err != nil {
			return err
		}
	}
	for _, path := range c.cfg.Manifests {
		if err := c.Apply(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// startNodes starts controllers, nodes and what serves them.
func (c *Cluster) startNodes(ctx, background context.Context) error {
	var err error
	if err = c.Controllers.Start(ctx); err != nil {
		return err
	}
	if c.fabric, err = network.NewFabric(ctx); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(background))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	factory := informers.NewSharedInformerFactory(c.client, 0)
	var nodes []services.Node
	for _, n := range c.cfg.Nodes {
		host, err := c.startNode(ctx, background, n)
		if err != nil {
			return err
		}
		nodes = append(nodes, services.Node{Name: n.Name, Addresses: host.IPs})
	}
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "stand-in"})
	schedule, err := scheduler.New(c.client, factory, events)
	if err != nil {
		return err
	}
	proxy, err := services.New(services.Config{
		Client: c.client, Factory: factory, NAT: c.fabric.NAT, Nodes: nodes, Balancers: network.Balancers[:], Events: events,
	})
	if err != nil {
		return err
	}
	for _, a := range dnsListener {
		if err := network.AddLocal(a); err != nil {
			return err
		}
	}
	names, err := dns.New(factory, dnsListener[:]...)
	if err != nil {
		return err
	}
	factory.StartWithContext(background)
	factory.WaitForCacheSyncWithContext(ctx)
	for _, run := range []func(context.Context){schedule.Run, proxy.Run, names.Run} {
		c.goRun(background, run)
	}
	return errors.Join(c.installDNS(ctx), c.waitForControllers(ctx))
}

// goRun runs something until background ends; Stop waits for it.
func (c *Cluster) goRun(background context.Context, run func(context.Context)) {
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		run(background)
	}()
}

// startNode makes a node and keeps it alive.
func (c *Cluster) startNode(ctx, background context.Context, n Node) (Pod, error) {
	net, err := c.fabric.Node(n.Name)
	if err != nil {
		return Pod{}, err
	}
	podRange := net.PodRange()
	spec := node.Spec{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Addresses: net.HostNetwork().IPs, PodRanges: podRange[:]}
	// The namespace of leases is made by the API server some time after it is ready.
	err = poll(ctx, time.Minute, func(ctx context.Context) error { return node.Register(ctx, c.client, spec) })
	if err != nil {
		return Pod{}, err
	}
	c.goRun(background, func(ctx context.Context) { node.Run(ctx, c.client, spec) })
	return net.HostNetwork(), nil
}

// Client returns the network namespace of a client outside of the cluster, with addresses
// of its own, which is made when the name is new.
func (c *Cluster) Client(name string) (Pod, error) { return c.fabric.Client(name) }

// Node returns the network namespace of a node, which pods with hostNetwork share.
func (c *Cluster) Node(name string) (Pod, error) {
	net, err := c.fabric.Node(name)
	if err != nil {
		return Pod{}, err
	}
	return net.HostNetwork(), nil
}

// Audit returns what a user has asked the API server, oldest first.
func (c *Cluster) Audit(user string) ([]auditv1.Event, error) { return c.plane.Audit(user) }

// Kubeconfig writes a configuration that uses a token, and returns its path. Without a
// token it is the administrator's.
func (c *Cluster) Kubeconfig(name, token string) (string, error) {
	path := filepath.Join(c.cfg.Dir, name+".kubeconfig")
	return path, c.WriteKubeconfig(path, c.Admin.Host, token)
}

// WriteKubeconfig writes a configuration that uses a token at an address of the API
// server. Without a token it is the administrator's.
func (c *Cluster) WriteKubeconfig(path, server, token string) error {
	if token == "" {
		token = c.Admin.BearerToken
	}
	return c.plane.Kubeconfig(path, server, token)
}

// Stop ends everything in order. It may be left out: what runs ends with the process.
func (c *Cluster) Stop() error {
	c.stop()
	c.running.Wait()
	var failed error
	for _, part := range []*Component{c.Controllers, c.API, c.Etcd} {
		failed = errors.Join(failed, part.End())
	}
	return failed
}

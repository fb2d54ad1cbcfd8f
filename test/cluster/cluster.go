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
	"turnout/test/cluster/internal/images"
	"turnout/test/cluster/internal/network"
	"turnout/test/cluster/internal/scheduler"
	"turnout/test/cluster/internal/services"
	"turnout/test/cluster/pki"
)

// The address of the DNS server, as a Service, and where it listens.
var (
	dnsService  = network.Pair{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:96::a")}
	dnsListener = network.Pair{netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("fd00::4")}
)

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
	// ControllerArgs are further arguments of kube-controller-manager; of two that set the same the last counts.
	ControllerArgs []string
}

// EtcdURL is where etcd listens for clients, in the network namespace of the sandbox.
func EtcdURL() string { return controlplane.EtcdURL() }

// Component is one program of the control plane, which can be stopped, killed, paused and
// started again.
type Component = controlplane.Component

// Pod is a network namespace with its addresses.
type Pod = network.Pod

// Images is a store of images.
type Images = images.Store

// Cluster is a running cluster.
type Cluster struct {
	Admin                  *rest.Config // may do everything, without a limit of its own
	CA                     *pki.CA      // of the API server
	Etcd, API, Controllers *Component

	// Images are what pods run. Start adds none.
	Images *Images

	cfg        Config
	plane      *controlplane.ControlPlane
	client     kubernetes.Interface
	fabric     *network.Fabric // nil without nodes
	background context.Context // ends with Stop
	stop       context.CancelFunc
	running    sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*runningNode
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
		Dir: cfg.Dir, Logs: cfg.Logs, Programs: cfg.Programs, Names: cfg.Names, APIArgs: cfg.APIArgs, ControllerArgs: cfg.ControllerArgs,
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
		Images: images.New(filepath.Join(cfg.Dir, "images")), cfg: cfg, plane: plane, client: client, nodes: map[string]*runningNode{},
	}
	c.background, c.stop = context.WithCancel(context.Background())
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	if err := c.API.Start(ctx); err != nil {
		return err
	}
	if len(c.cfg.Nodes) > 0 {
		if err := c.startNodes(ctx); err != nil {
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
func (c *Cluster) startNodes(ctx context.Context) error {
	var err error
	if err = c.Controllers.Start(ctx); err != nil {
		return err
	}
	if c.fabric, err = network.NewFabric(ctx); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(c.background))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	factory := informers.NewSharedInformerFactory(c.client, 0)
	var nodes []services.Node
	for _, n := range c.cfg.Nodes {
		if err := c.StartNode(ctx, n); err != nil {
			return err
		}
		nodes = append(nodes, services.Node{Name: n.Name, Addresses: c.nodes[n.Name].network.HostNetwork().IPs})
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
	factory.StartWithContext(c.background)
	factory.WaitForCacheSyncWithContext(ctx)
	for _, run := range []func(context.Context){schedule.Run, proxy.Run, names.Run} {
		c.goRun(c.background, run)
	}
	return errors.Join(c.installDNS(ctx), c.waitForControllers(ctx))
}

// goRun runs something until ctx ends; Stop waits for it.
func (c *Cluster) goRun(ctx context.Context, run func(context.Context)) {
	c.running.Go(func() { run(ctx) })
}

// Client returns the network namespace of a client outside of the cluster, with addresses
// of its own, which is made when the name is new.
func (c *Cluster) Client(name string) (Pod, error) { return c.fabric.Client(name) }

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
	for name, n := range c.nodes {
		if n.err != nil {
			failed = errors.Join(failed, fmt.Errorf("node %s: %w", name, n.err))
		}
	}
	for _, part := range []*Component{c.Controllers, c.API, c.Etcd} {
		failed = errors.Join(failed, part.End())
	}
	return failed
}

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"turnout/test/cluster/internal/kubelet"
	"turnout/test/cluster/internal/network"
	"turnout/test/cluster/internal/node"
	"turnout/test/cluster/sandbox"
)

// Node is a node of the cluster.
type Node struct {
	Name   string
	Labels map[string]string // beside those that each node has
	Taints []corev1.Taint
}

// runningNode is a node that was started.
type runningNode struct {
	network *network.Network
	kubelet *kubelet.Kubelet
	stop    context.CancelFunc // ends heartbeats and the kubelet
	ended   chan struct{}      // closed when no container of it runs any more
	err     error              // how the kubelet ended; valid after ended
}

// StartNode starts a node that is new, or that was killed: it comes back with the same
// addresses and without containers. Node ports are served only at the nodes that Start began with.
func (c *Cluster) StartNode(ctx context.Context, n Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.nodes[n.Name]; before != nil {
		select {
		case <-before.ended:
		default:
			return fmt.Errorf("cannot start node %s: it runs", n.Name)
		}
	}
	net, err := c.fabric.Node(n.Name)
	if err != nil {
		return err
	}
	k, err := c.newKubelet(n.Name, net)
	if err != nil {
		return fmt.Errorf("cannot make the kubelet of node %s: %w", n.Name, err)
	}
	podRange := net.PodRange()
	spec := node.Spec{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Addresses: net.HostNetwork().IPs, PodRanges: podRange[:]}
	// The namespace of leases is made by the API server some time after it is ready.
	err = poll(ctx, time.Minute, func(ctx context.Context) error { return node.Register(ctx, c.client, spec) })
	if err != nil {
		return err
	}
	running := &runningNode{network: net, kubelet: k, ended: make(chan struct{})}
	var alive context.Context
	alive, running.stop = context.WithCancel(c.background)
	c.nodes[n.Name] = running
	c.goRun(alive, func(ctx context.Context) { node.Run(ctx, c.client, spec) })
	c.goRun(alive, func(ctx context.Context) {
		defer close(running.ended)
		defer running.stop() // a node without a kubelet is silent
		running.err = k.Run(ctx)
	})
	return nil
}

// newKubelet makes what runs the pods of a node.
func (c *Cluster) newKubelet(name string, net *network.Network) (*kubelet.Kubelet, error) {
	hosts := []string{name}
	for _, a := range net.HostNetwork().IPs {
		hosts = append(hosts, a.String())
	}
	pair, err := c.CA.Issue(hosts...)
	if err != nil {
		return nil, err
	}
	serving, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(c.CA.Cert))
	return kubelet.New(kubelet.Config{
		Node: name, Admin: c.Admin, Network: net, DNS: dnsService[:], Dir: filepath.Join(c.cfg.Dir, "nodes", name),
		Cgroup: sandbox.Cgroup(), Images: c.Images, Serving: serving, ClientCA: clients,
	})
}

// KillNode ends a node without the knowledge of anybody: its containers are dead, its
// kubelet is silent. The control plane finds out some seconds later.
func (c *Cluster) KillNode(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil {
		return fmt.Errorf("there is no node %s", name)
	}
	n.kubelet.Kill()
	<-n.ended
	return nil
}

// Node returns the network namespace of a node, which pods with hostNetwork share.
func (c *Cluster) Node(name string) (Pod, error) {
	net, err := c.fabric.Node(name)
	if err != nil {
		return Pod{}, err
	}
	return net.HostNetwork(), nil
}

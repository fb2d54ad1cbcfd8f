// Package network is the network of the cluster: it gives pods, nodes and clients a
// namespace each, with an IPv4 and an IPv6 address that all others reach.
//
// Every namespace has one link to the sandbox that the cluster runs in, which routes
// between them all and so is the network's fabric. Control plane and tests are in the
// sandbox itself. Addresses of Services are translated there too (package services).
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"turnout/test/cluster/internal/nat"
)

// HostPort is a port of the node that leads to one of a pod.
type HostPort struct {
	HostPort, ContainerPort uint16
	Protocol                string // TCP or UDP; empty is TCP
}

// Fabric connects the namespaces of a sandbox. There is at most one.
type Fabric struct {
	// NAT is where addresses of Services lead.
	NAT *nat.Table

	mu      sync.Mutex
	nodes   map[string]*Network
	clients map[string]Pod
	links   int // how many were made, for their names
}

// NewFabric makes the sandbox that the calling process is in a router for nodes, pods and
// Services.
func NewFabric(ctx context.Context) (*Fabric, error) {
	for path, value := range map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1",
		// Answers may come over another link than the one that their destination is on.
		"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
		// A pod that reaches itself through a Service sends to the link that it came from.
		"ipv4/conf/all/send_redirects": "0", "ipv4/conf/default/send_redirects": "0",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", path), []byte(value), 0o644); err != nil {
			return nil, fmt.Errorf("cannot set up the sandbox as a router: %w", err)
		}
	}
	for _, a := range Outside {
		if err := AddLocal(a); err != nil {
			return nil, err
		}
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("cannot find the loopback interface: %w", err)
	}
	// A route must exist before an address is translated. What is not translated never gets through.
	for _, r := range []Range{Services, Balancers} {
		for i, prefix := range r {
			route := &netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: ipNet(prefix), Src: Outside[i].AsSlice(), Scope: netlink.SCOPE_LINK}
			if err := netlink.RouteReplace(route); err != nil {
				return nil, fmt.Errorf("cannot route %v: %w", prefix, err)
			}
		}
	}
	table, err := nat.New(ctx, append(Services[:], Balancers[:]...))
	if err != nil {
		return nil, err
	}
	return &Fabric{NAT: table, nodes: map[string]*Network{}, clients: map[string]Pod{}}, nil
}

// AddLocal makes an address one of the sandbox itself. It may be one already.
func AddLocal(a netip.Addr) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find the loopback interface: %w", err)
	}
	if err := netlink.AddrReplace(loopback, &netlink.Addr{IPNet: host(a), Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("cannot add address %v: %w", a, err)
	}
	return nil
}

// Node returns the network of the node of that name, which it makes when it is new.
func (f *Fabric) Node(name string) (*Network, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[name]; n != nil {
		return n, nil
	}
	number := len(f.nodes) + 1
	host, _, err := f.join("node-"+name, Nodes.At(number))
	if err != nil {
		return nil, fmt.Errorf("cannot connect node %s: %w", name, err)
	}
	n := &Network{fabric: f, host: host, pods: pods(number), numbers: newPool(pods(number).Size()), members: map[string]member{}}
	f.nodes[name] = n
	return n, nil
}

// Client returns the namespace of a client outside of the cluster, with an address that
// nobody else has. It makes it when the name is new.
func (f *Fabric) Client(name string) (Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.clients[name]; ok {
		return c, nil
	}
	if len(f.clients) == Clients.Size() {
		return Pod{}, fmt.Errorf("cannot connect client %s: all %d addresses are in use", name, Clients.Size())
	}
	c, _, err := f.join("client-"+name, Clients.At(len(f.clients)+1))
	if err != nil {
		return Pod{}, fmt.Errorf("cannot connect client %s: %w", name, err)
	}
	f.clients[name] = c
	return c, nil
}

// join makes a namespace and its link, whose name it returns. The caller holds mu.
func (f *Fabric) join(name string, addresses Pair) (Pod, string, error) {
	path, err := newNamespace(name)
	if err != nil {
		return Pod{}, "", err
	}
	f.links++
	link := fmt.Sprintf("to%d", f.links)
	if err := connect(link, path, addresses); err != nil {
		return Pod{}, "", errors.Join(err, removeNamespace(path))
	}
	return Pod{Netns: path, IPs: addresses[:]}, link, nil
}

// Network is the network of one node: its own namespace and those of its pods.
type Network struct {
	fabric *Fabric
	host   Pod
	pods   Range

	numbers *pool             // of addresses; guarded by fabric.mu
	members map[string]member // by pod UID; guarded by fabric.mu
}

// member is a pod that was added.
type member struct {
	pod    Pod
	link   string
	number int
	ports  []HostPort
}

// HostNetwork is the node's own namespace and addresses, which pods with hostNetwork share.
func (n *Network) HostNetwork() Pod { return n.host }

// PodRange is what the node's pods get addresses of.
func (n *Network) PodRange() Range { return n.pods }

// Add makes the namespace of a pod and connects it. It returns the same one when the pod
// was added before.
func (n *Network) Add(uid string, ports ...HostPort) (Pod, error) {
	n.fabric.mu.Lock()
	defer n.fabric.mu.Unlock()
	if m, ok := n.members[uid]; ok {
		return m.pod, nil
	}
	m, err := n.add(uid, ports)
	if err != nil {
		return Pod{}, fmt.Errorf("cannot connect pod %s: %w", uid, err)
	}
	n.members[uid] = m
	return m.pod, nil
}

// add does what Add does for a new pod. The caller holds fabric.mu.
func (n *Network) add(uid string, ports []HostPort) (member, error) {
	number, err := n.numbers.takeNumber()
	if err != nil {
		return member{}, err
	}
	m := member{number: number, ports: ports}
	if m.pod, m.link, err = n.fabric.join("pod-"+uid, n.pods.At(number)); err != nil {
		n.numbers.give(number)
		return member{}, err
	}
	ctx := context.Background() // a call of a program that takes milliseconds
	err = n.fabric.NAT.AddHairpin(ctx, Pair(m.pod.IPs), Pair(n.host.IPs))
	if err == nil {
		err = n.fabric.NAT.Apply(ctx, n.hostPorts(m))
	}
	if err != nil {
		return member{}, errors.Join(err, n.remove(ctx, m))
	}
	return m, nil
}

// hostPorts says where the ports of the node lead to that belong to m.
func (n *Network) hostPorts(m member) map[nat.Frontend]*nat.Backends {
	changes := map[nat.Frontend]*nat.Backends{}
	for _, port := range m.ports {
		protocol := nat.Protocol(strings.ToLower(cmp.Or(port.Protocol, "TCP")))
		for family, node := range n.host.IPs {
			front := nat.Frontend{Address: netip.AddrPortFrom(node, port.HostPort), Protocol: protocol}
			changes[front] = &nat.Backends{Endpoints: []netip.AddrPort{netip.AddrPortFrom(m.pod.IPs[family], port.ContainerPort)}}
		}
	}
	return changes
}

// Remove disconnects a pod and forgets its namespace. A pod that is not there is no error.
func (n *Network) Remove(uid string) error {
	n.fabric.mu.Lock()
	defer n.fabric.mu.Unlock()
	m, ok := n.members[uid]
	if !ok {
		return nil
	}
	delete(n.members, uid)
	if err := n.remove(context.Background(), m); err != nil {
		return fmt.Errorf("cannot disconnect pod %s: %w", uid, err)
	}
	return nil
}

// remove undoes add. The caller holds fabric.mu.
func (n *Network) remove(ctx context.Context, m member) error {
	ports := n.hostPorts(m)
	for front := range ports {
		ports[front] = nil
	}
	n.numbers.give(m.number)
	return errors.Join(n.fabric.NAT.Apply(ctx, ports), n.fabric.NAT.RemoveHairpin(ctx, Pair(m.pod.IPs)), disconnect(m.link), removeNamespace(m.pod.Netns))
}

package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Everybody reaches a Service at all its addresses, over both families, and all its pods answer.
func TestServiceAddresses(t *testing.T) {
	namespace := newNamespace(t)
	s := expose(t, namespace, "echo", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer })
	pods := deploy(t, namespace, "echo", 2)
	client, err := shared.Client("visitor")
	if err != nil {
		t.Fatal(err)
	}
	node, err := shared.Node("two")
	if err != nil {
		t.Fatal(err)
	}
	places := []struct {
		name      string
		addresses []netip.Addr
		port      int
		keeps     bool // the client's address
	}{
		{"cluster address", []netip.Addr{netip.MustParseAddr(s.Spec.ClusterIPs[0]), netip.MustParseAddr(s.Spec.ClusterIPs[1])}, 80, true},
		{"load balancer", balanced(t, s), 80, false},
		{"node port", node.IPs, int(s.Spec.Ports[0].NodePort), false},
	}
	for _, from := range []struct {
		name string
		dial dialer
		ips  []netip.Addr
	}{
		{"a client", client.Dial, client.IPs},
		{"a pod", netOf(t, &pods[0]).Dial, netOf(t, &pods[0]).IPs},
		{"the sandbox", (&net.Dialer{}).DialContext, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}},
	} {
		for _, place := range places {
			for family, to := range place.addresses {
				t.Run(fmt.Sprintf("%s to %s %v", from.name, place.name, to), func(t *testing.T) {
					answered := map[string]bool{}
					eventually(t, func(ctx context.Context) error {
						pod, seen, err := get(ctx, from.dial, to, place.port)
						if err != nil {
							return err
						}
						// Whoever reaches itself cannot see its own address.
						if own := from.ips[family].String(); place.keeps != (seen == own) && pod != pods[0].Name {
							t.Errorf("seen as %s, own address is %s", seen, own)
						}
						if answered[pod] = true; len(answered) < len(pods) {
							return fmt.Errorf("only %v answered", answered)
						}
						return nil
					})
				})
			}
		}
	}
}

package services

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addresses gives out the addresses of load balancers, in turn.
type addresses struct {
	ranges []netip.Prefix
	last   []netip.Addr // given out, by range
	owners map[netip.Addr]string

	waiting map[string]bool  // Services whose address another one has
	again   func(key string) // called when it may be free
}

func newAddresses(ranges []netip.Prefix, again func(key string)) *addresses {
	a := &addresses{ranges: ranges, owners: map[netip.Addr]string{}, waiting: map[string]bool{}, again: again}
	for _, r := range ranges {
		a.last = append(a.last, r.Masked().Addr())
	}
	return a
}

// contains reports whether an address may be given out.
func (a *addresses) contains(address netip.Addr) bool {
	return slices.ContainsFunc(a.ranges, func(p netip.Prefix) bool { return p.Contains(address) })
}

// claim gives an address to a Service. It reports whether that has it now.
func (a *addresses) claim(address netip.Addr, key string) bool {
	if owner, taken := a.owners[address]; !a.contains(address) || taken && owner != key {
		return false
	}
	a.owners[address] = key
	return true
}

// assign gives a Service some address of a family.
func (a *addresses) assign(f corev1.IPFamily, key string) (netip.Addr, error) {
	for i, r := range a.ranges {
		if family(r.Addr()) != f {
			continue
		}
		for range len(a.owners) + 1 {
			a.last[i] = a.last[i].Next()
			if !r.Contains(a.last[i]) {
				a.last[i] = r.Masked().Addr().Next()
			}
			if a.claim(a.last[i], key) {
				return a.last[i], nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("no address of %s is left for Service %s", f, key)
}

// free takes back what a Service has, but for the addresses to keep.
func (a *addresses) free(key string, keep ...netip.Addr) {
	freed := false
	for address, owner := range a.owners {
		if owner == key && !slices.Contains(keep, address) {
			delete(a.owners, address)
			freed = true
		}
	}
	if !freed {
		return
	}
	for waiting := range a.waiting {
		a.again(waiting)
	}
}

// balance returns the addresses of the load balancer of a Service, one per family: those
// of the status if they are good, or the one that the Service asks for. outdated says that
// the status has to be written.
func (c *Controller) balance(key string, s *corev1.Service) (wanted []netip.Addr, outdated bool, err error) {
	delete(c.addresses.waiting, key)
	if !isBalanced(s) {
		c.addresses.free(key)
		return nil, s.Spec.LoadBalancerClass == nil && len(s.Status.LoadBalancer.Ingress) > 0, nil
	}
	var has []netip.Addr
	for _, in := range s.Status.LoadBalancer.Ingress {
		if address, err := netip.ParseAddr(in.IP); err == nil {
			has = append(has, address)
		}
	}
	asked, askedErr := netip.ParseAddr(s.Spec.LoadBalancerIP)
	for _, f := range s.Spec.IPFamilies {
		if askedErr == nil && family(asked) == f {
			if !c.addresses.claim(asked, key) {
				c.addresses.waiting[key] = true
				c.cfg.Events.Eventf(s, corev1.EventTypeWarning, "AddressNotUsable", "address %v is not in %v or another Service has it", asked, c.cfg.Balancers)
				continue
			}
			wanted = append(wanted, asked)
			continue
		}
		if i := slices.IndexFunc(has, func(a netip.Addr) bool { return family(a) == f && c.addresses.claim(a, key) }); i >= 0 {
			wanted = append(wanted, has[i])
			continue
		}
		address, err := c.addresses.assign(f, key)
		if err != nil {
			return nil, false, err
		}
		wanted = append(wanted, address)
	}
	c.addresses.free(key, wanted...)
	return wanted, !slices.Equal(has, wanted) || len(has) != len(s.Status.LoadBalancer.Ingress), nil
}

// report writes the addresses of a load balancer.
func (c *Controller) report(ctx context.Context, s *corev1.Service, wanted []netip.Addr) error {
	s = s.DeepCopy()
	s.Status.LoadBalancer.Ingress = nil
	mode := corev1.LoadBalancerIPModeVIP
	for _, address := range wanted {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: address.String(), IPMode: &mode})
	}
	_, err := c.cfg.Client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the address of Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

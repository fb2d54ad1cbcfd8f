package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/ingress"
)

// IngressOutcome is what became of an Ingress that this router serves.
type IngressOutcome struct {
	Served   bool              // some rule of it is in the table
	Problems []ingress.Problem // what cannot be served
}

// IngressReporter brings what became of Ingresses to where others can see it. The controller calls it from one goroutine; no method blocks.
// Objects are read-only on both sides.
type IngressReporter interface {
	// Report passes on what an Ingress is now and what became of it, after the table that the outcome speaks of has been published.
	Report(object *networkingv1.Ingress, outcome IngressOutcome)
	// Withdraw tells that the router does not serve an Ingress.
	Withdraw(object *networkingv1.Ingress)
	// Forget tells that an Ingress is deleted.
	Forget(object *networkingv1.Ingress)
}

// IngressManager is who writes the status of Ingresses, for the API server: an entry of managedFields says that it was this program.
const IngressManager = "turnout-ingress"

// IngressManaged returns the entry of managedFields that says that the status of an Ingress is as this program wrote it, nil without one.
func IngressManaged(o *networkingv1.Ingress) []metav1.ManagedFieldsEntry {
	for i := range o.ManagedFields {
		if f := &o.ManagedFields[i]; f.Manager == IngressManager && f.Subresource == "status" {
			return []metav1.ManagedFieldsEntry{{Manager: IngressManager, Subresource: "status"}}
		}
	}
	return nil
}

// loadBalancer returns addresses and host names as the status of an Ingress has them.
func loadBalancer(addresses []string) (list []networkingv1.IngressLoadBalancerIngress) {
	for _, text := range addresses {
		if _, err := netip.ParseAddr(text); err == nil {
			list = append(list, networkingv1.IngressLoadBalancerIngress{IP: text})
		} else {
			list = append(list, networkingv1.IngressLoadBalancerIngress{Hostname: text})
		}
	}
	return list
}

// sameAddresses compares two statuses; ports do not count, which this router does not write.
func sameAddresses(a, b []networkingv1.IngressLoadBalancerIngress) bool {
	return slices.EqualFunc(a, b, func(x, y networkingv1.IngressLoadBalancerIngress) bool {
		return x.IP == y.IP && x.Hostname == y.Hostname
	})
}

// What the API allows in an Event.
const (
	mostEventName    = 253
	mostEventMessage = 1024
)

// eventOf returns the Event about a problem of an Ingress.
func eventOf(o *networkingv1.Ingress, p ingress.Problem, router string, now time.Time) *corev1.Event {
	return EventOf(o, p.Reason, p.Message, ingress.Controller, cmp.Or(router, "turnout"), now)
}

// EventOf returns an Event of type Warning about an Ingress, made by an instance of a component. Its name follows from what it says, so that of several
// processes one makes it.
func EventOf(o *networkingv1.Ingress, reason, message, component, instance string, now time.Time) *corev1.Event {
	sum := sha256.Sum256([]byte(string(o.UID) + "\x00" + reason + "\x00" + message))
	tail := "." + hex.EncodeToString(sum[:8])
	if len(message) > mostEventMessage {
		message = strings.ToValidUTF8(message[:mostEventMessage-3], "") + "..."
	}
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: o.Namespace, Name: strings.TrimRight(o.Name[:min(len(o.Name), mostEventName-len(tail))], ".-") + tail},
		InvolvedObject:      corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
		Type:                corev1.EventTypeWarning,
		Reason:              reason,
		Message:             message,
		Count:               1,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Source:              corev1.EventSource{Component: component},
		ReportingController: component,
		ReportingInstance:   instance,
	}
}

package gateway

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/endpoints"
	"turnout/controller/source"
)

// Objects is what is known of a cluster. All classes are in it, also those of other controllers; of the others those that nobody refers to may be left
// out. Objects are read-only once they are in it: one that changes is set anew. It belongs to one goroutine, and to one Judge. Keys of
// classes, and of namespaces, have no namespace.
type Objects struct {
	Installed Installed
	Unknown   Table[*metav1.Status] // kinds that the cluster does not know, by name

	Classes      Table[*gatewayv1.GatewayClass]
	Gateways     Table[*gatewayv1.Gateway]
	ListenerSets Table[*gatewayv1.ListenerSet]
	HTTPRoutes   Table[*gatewayv1.HTTPRoute]
	GRPCRoutes   Table[*gatewayv1.GRPCRoute]
	TLSRoutes    Table[*gatewayv1.TLSRoute]
	TCPRoutes    Table[*gatewayv1.TCPRoute]
	UDPRoutes    Table[*gatewayv1.UDPRoute]
	Grants       Table[*gatewayv1.ReferenceGrant]
	Policies     Table[*gatewayv1.BackendTLSPolicy]

	Namespaces Table[labels.Set]        // labels by name
	Services   Table[*Service]          // by name; one that has endpoint slices only may be there too
	Secrets    Table[*corev1.Secret]    // those of Result.Secrets
	ConfigMaps Table[*corev1.ConfigMap] // those of Result.ConfigMaps
	Assigned   Table[*Assigned]         // by Gateway: what it got; without an entry it waits for addresses
}

// Installed says which resources of the Gateway API there are. The zero value says that it is not known.
type Installed struct {
	Version string // the annotation gateway.networking.k8s.io/bundle-version, such as v1.6.3
	Channel string // the annotation gateway.networking.k8s.io/channel: standard or experimental
}

// Service is a Service with its endpoints.
type Service struct {
	Object *corev1.Service // nil = there are only slices
	Slices []endpoints.Slice
}

// Assigned is what became of a Gateway outside of its object: its addresses and its sockets.
type Assigned struct {
	Addresses []gatewayv1.GatewayStatusAddress // that it has; each has a type
	// Reason is why it has not all that it asks for: AddressNotAssigned, AddressNotUsable, NoResources or Pending. "" = it has.
	Reason  gatewayv1.GatewayConditionReason
	Message string // for people; without a Reason, what there is to say although nothing lacks
	// Unavailable are the ports that could not be opened, by the name of Port.Name, and why.
	Unavailable map[string]string
}

// Equal reports whether a and b say the same.
func (a *Assigned) Equal(b *Assigned) bool {
	return a.Reason == b.Reason && a.Message == b.Message && maps.Equal(a.Unavailable, b.Unavailable) &&
		slices.EqualFunc(a.Addresses, b.Addresses, func(x, y gatewayv1.GatewayStatusAddress) bool { return *x.Type == *y.Type && x.Value == y.Value })
}

// Table is objects of one kind by name, and which of them changed since the Judge looked. The zero value is empty.
type Table[T any] struct {
	all     map[source.Key]T
	changed map[source.Key]struct{}
}

// Set puts an object in the place of the one of its key.
func (t *Table[T]) Set(key source.Key, object T) {
	if t.all == nil {
		t.all = make(map[source.Key]T)
	}
	t.all[key] = object
	t.touch(key)
}

// Delete takes an object out, if it is there.
func (t *Table[T]) Delete(key source.Key) {
	if _, ok := t.all[key]; !ok {
		return
	}
	delete(t.all, key)
	t.touch(key)
}

// Get returns an object, the zero value if there is none.
func (t *Table[T]) Get(key source.Key) T { return t.all[key] }

// All are all objects, in no order.
func (t *Table[T]) All() iter.Seq2[source.Key, T] { return maps.All(t.all) }

// Len is the number of objects.
func (t *Table[T]) Len() int { return len(t.all) }

func (t *Table[T]) touch(key source.Key) {
	if t.changed == nil {
		t.changed = make(map[source.Key]struct{})
	}
	t.changed[key] = struct{}{}
}

// takeChanged returns which objects changed since the last call.
func (t *Table[T]) takeChanged() keys {
	changed := t.changed
	t.changed = nil
	return changed
}

// keys are some objects of a kind.
type keys map[source.Key]struct{}

// has reports whether an object is among them.
func (k keys) has(key source.Key) bool {
	_, ok := k[key]
	return ok
}

// meets reports whether some object is among both.
func (k keys) meets(o keys) bool {
	if len(k) > len(o) {
		k, o = o, k
	}
	for key := range k {
		if _, ok := o[key]; ok {
			return true
		}
	}
	return false
}

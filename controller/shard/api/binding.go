package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RouteBinding says that a Router serves a Route. The scheduler makes it, in the namespace of the route and owned by it. A route on several
// Routers, or on its way from one to another, has several.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=rb,categories=turnout
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.router`
// +kubebuilder:selectablefield:JSONPath=`.spec.dns`
// +kubebuilder:selectablefield:JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="Route",type=string,JSONPath=`.spec.routeName`
// +kubebuilder:printcolumn:name="Router",type=string,JSONPath=`.spec.router`
// +kubebuilder:printcolumn:name="DNS",type=string,JSONPath=`.spec.dns`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RouteBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RouteBindingSpec `json:"spec"`
	// +optional
	Status RouteBindingStatus `json:"status,omitempty"`
}

// RouteBindingSpec is which Router serves which Route.
//
// +kubebuilder:validation:XValidation:rule="self.routeNamespace == oldSelf.routeNamespace && self.routeName == oldSelf.routeName && self.routeUID == oldSelf.routeUID && self.router == oldSelf.router && self.dns == oldSelf.dns && self.target == oldSelf.target",message="a binding cannot be changed, only made to leave: delete it, and the scheduler makes another"
// +kubebuilder:validation:XValidation:rule="self.leaving || !oldSelf.leaving",message="a binding that leaves does not come back: delete it, and the scheduler makes another"
type RouteBindingSpec struct {
	// RouteNamespace is the namespace of the Route, which is that of the binding.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	RouteNamespace string `json:"routeNamespace"`
	// RouteName is the name of the Route.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RouteName string `json:"routeName"`
	// RouteUID tells the Route from another that had the same name before.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	RouteUID string `json:"routeUID"`
	// Router is the name of the Router that serves the Route.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Router string `json:"router"`
	// DNS is the host of the Route: the one that it asks for, or the name that the system has given it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DNS string `json:"dns"`
	// Target is the name that the system has given the Route, to which a domain of the user's own may point. Empty when no Router with a
	// domain has had the Route yet.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target"`
	// Leaving is set when the Route has moved: the Router goes on serving it until nobody asks any more, but is not in its DNS.
	// +optional
	// +kubebuilder:default=false
	Leaving bool `json:"leaving"`
}

// BindingPhase sums a RouteBinding up.
//
// +kubebuilder:validation:Enum=Pending;Serving;Leaving
type BindingPhase string

// Phases of a RouteBinding.
const (
	BindingPending BindingPhase = "Pending" // not all ready replicas of the Router serve it yet
	BindingServing BindingPhase = "Serving"
	BindingLeaving BindingPhase = "Leaving"
)

// RouteBindingStatus is what is known of a RouteBinding.
type RouteBindingStatus struct {
	// Phase is Pending until all ready replicas of the Router serve it, Serving, or Leaving. DNS has those that are Serving.
	// +optional
	Phase BindingPhase `json:"phase,omitempty"`
	// Conditions are Valid (Route and Router exist) and Served.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RouteBindingList is a list of RouteBindings.
//
// +kubebuilder:object:root=true
type RouteBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RouteBinding `json:"items"`
}

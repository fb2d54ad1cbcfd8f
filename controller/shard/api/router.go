package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Router is a shard: replicas that serve the same routes at the same addresses, under one DNS domain. The scheduler binds routes to it; a
// replica that was started with --router NAME serves what is bound.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=turnout
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.dns.domain`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Routes",type=integer,JSONPath=`.status.routesBound`
// +kubebuilder:printcolumn:name="Capacity",type=integer,JSONPath=`.spec.capacity.routes`
// +kubebuilder:printcolumn:name="Moving",type=integer,JSONPath=`.status.moving`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of a Router is at most 63 characters long: it is part of the names of its RouteBindings"
type Router struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RouterSpec `json:"spec,omitempty"`
	// +optional
	Status RouterStatus `json:"status,omitempty"`
}

// RouterSpec is what an administrator wants of a Router.
type RouterSpec struct {
	// Description is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// DNS is the zone of this Router. Without it the Router gets no names from turnout dns, and routes that ask for no host cannot be bound to it.
	// +optional
	DNS *RouterDNS `json:"dns,omitempty"`
	// RouteSelector selects routes by their labels; without it all. Strategies choose among the Routers that select a route.
	// +optional
	RouteSelector *metav1.LabelSelector `json:"routeSelector,omitempty"`
	// NamespaceSelector selects routes by the labels of their namespaces; without it all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Capacity is how much the Router takes. When it is lowered below what is bound, routes are moved to other Routers.
	// +optional
	Capacity *RouterCapacity `json:"capacity,omitempty"`
	// Taints keep routes away: NoSchedule binds no further routes, Drain also moves those that are bound to other Routers.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=16
	Taints []RouterTaint `json:"taints,omitempty"`
	// Addresses are where clients reach the Router, such as those of a load balancer in front of it. Without any they are the addresses
	// of its ready replicas.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a))",message="an address is an IPv4 or IPv6 address, such as 192.0.2.7"
	Addresses []string `json:"addresses,omitempty"`
	// Replicas is how many pods the scheduler keeps for this Router: 1 if only podTemplate is given. Without both the pods are somebody
	// else's. For a DaemonSet the nodes decide.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
	// PodTemplate is the PodTemplate object that the pods are made of. Without it, and with replicas, it is the one that the scheduler was
	// given as the default.
	// +optional
	PodTemplate *PodTemplateReference `json:"podTemplate,omitempty"`
	// Workload is what keeps the pods.
	// +optional
	// +kubebuilder:default=Deployment
	Workload Workload `json:"workload,omitempty"`
}

// RouterDNS is the zone of a Router.
type RouterDNS struct {
	// Domain is the zone, such as shard1.apps.example.com. Each route has the name NAMESPACE-NAME below it. It cannot be changed: names of
	// routes would break.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=190
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the domain of a Router cannot be changed, because names of routes would break: make another Router and drain this one"
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$`
	Domain string `json:"domain"`
	// NameServers are the servers of the zone, for its NS records.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=13
	NameServers []NameServer `json:"nameServers,omitempty"`
	// TTLSeconds is how long resolvers may keep an answer. A route that is moved is served by both Routers for longer than that.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`
}

// NameServer is one authoritative server of a zone.
type NameServer struct {
	// Name is its host name, such as ns1.apps.example.com.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$`
	Name string `json:"name"`
	// Addresses are published with the zone if the name is within it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a))",message="an address is an IPv4 or IPv6 address, such as 192.0.2.7"
	Addresses []string `json:"addresses,omitempty"`
}

// RouterCapacity is how much a Router takes. Zero values are no limit.
type RouterCapacity struct {
	// Routes is the largest number of routes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Routes int32 `json:"routes,omitempty"`
	// RequestsPerSecond is the load that strategies count as full.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
}

// TaintEffect is what a taint does.
//
// +kubebuilder:validation:Enum=NoSchedule;Drain
type TaintEffect string

// Effects of taints.
const (
	TaintNoSchedule TaintEffect = "NoSchedule" // no further routes
	TaintDrain      TaintEffect = "Drain"      // no further routes, and the others move away
)

// RouterTaint keeps routes away from a Router.
type RouterTaint struct {
	// Key says why, such as maintenance.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Key string `json:"key"`
	// Effect is NoSchedule or Drain.
	// +required
	Effect TaintEffect `json:"effect"`
}

// PodTemplateReference names a PodTemplate.
type PodTemplateReference struct {
	// Namespace is where the PodTemplate is and the pods run.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name is that of the PodTemplate.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Workload is the kind of object that keeps the pods of a Router.
//
// +kubebuilder:validation:Enum=Deployment;DaemonSet
type Workload string

// Workloads.
const (
	WorkloadDeployment Workload = "Deployment"
	WorkloadDaemonSet  Workload = "DaemonSet"
)

// RouterPhase sums a Router up.
//
// +kubebuilder:validation:Enum=Pending;Ready;Draining;Lost
type RouterPhase string

// Phases of a Router.
const (
	RouterPending  RouterPhase = "Pending"  // no replica has been ready yet
	RouterReady    RouterPhase = "Ready"    // at least one replica is
	RouterDraining RouterPhase = "Draining" // its routes move away
	RouterLost     RouterPhase = "Lost"     // no replica has said anything for longer than the grace time
)

// RouterStatus is what is known of a Router.
type RouterStatus struct {
	// Phase is Pending until a replica is ready, Ready, Draining while a taint moves its routes away, or Lost.
	// +optional
	Phase RouterPhase `json:"phase,omitempty"`
	// ReadyReplicas is how many replicas serve.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// RoutesBound is how many routes are bound, without those that leave.
	// +optional
	RoutesBound int32 `json:"routesBound"`
	// Moving is how many of its bindings are on the way to it or from it.
	// +optional
	Moving int32 `json:"moving"`
	// Addresses are the active ones, which are in DNS.
	// +optional
	// +listType=set
	Addresses []string `json:"addresses,omitempty"`
	// Replicas have each an entry, which the replica writes itself.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Replicas []ReplicaStatus `json:"replicas,omitempty"`
	// Conditions are Valid (its spec can be used), Available (a replica is ready) and, of what the scheduler keeps, Deployed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is that of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ReplicaStatus is what a replica of a Router says of itself.
type ReplicaStatus struct {
	// Name is that of the pod, or of the host.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Ready is whether it serves.
	// +required
	Ready bool `json:"ready"`
	// Addresses are where clients reach it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Addresses []string `json:"addresses,omitempty"`
	// ObservedBindings is the resource version of the RouteBindings that it serves; resource versions grow.
	// +optional
	ObservedBindings string `json:"observedBindings,omitempty"`
	// Routes is how many routes it serves.
	// +optional
	Routes int32 `json:"routes"`
	// RequestsPerSecond is the mean of the last minute.
	// +optional
	RequestsPerSecond int32 `json:"requestsPerSecond"`
	// Leaving are bindings, as NAMESPACE/NAME, that leave the Router and that clients may still ask for on connections that they have kept. There may be
	// more than are named.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	Leaving []string `json:"leaving,omitempty"`
	// Renewed is when the replica last said so, by its own clock. Only changes of it count.
	// +required
	Renewed metav1.MicroTime `json:"renewed"`
}

// RouterList is a list of Routers.
//
// +kubebuilder:object:root=true
type RouterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Router `json:"items"`
}

// Conditions of Routers, RouteBindings and RouteSchedulers.
const (
	// ConditionValid is False when the spec cannot be used; the message says what to do.
	ConditionValid = "Valid"
	// ConditionAvailable is True while a replica of the Router is ready.
	ConditionAvailable = "Available"
	// ConditionDeployed is of the Deployment or DaemonSet that is kept for a Router.
	ConditionDeployed = "Deployed"
	// ConditionServed is True of a binding that all ready replicas of its Router serve.
	ConditionServed = "Served"
	// ConditionHeld is True of a RouteScheduler that moves nothing, because what it sees cannot be trusted.
	ConditionHeld = "Held"
)

// Annotations that the scheduler owns on Routes. Users cannot set them: deploy/crd has the admission policy.
const (
	AnnotationPhase   = "turnout.router/phase"   // new or scheduled
	AnnotationDNS     = "turnout.router/dns"     // the name of the route in DNS: that of spec.host, or the system's
	AnnotationTarget  = "turnout.router/target"  // the system's name, which a custom domain points to
	AnnotationRouters = "turnout.router/routers" // names of Routers that serve it, with commas
	AnnotationMessage = "turnout.router/message" // why it is not bound, or not where it should be
)

// Annotations returns those that the scheduler owns on Routes.
func Annotations() []string {
	return []string{AnnotationPhase, AnnotationDNS, AnnotationTarget, AnnotationRouters, AnnotationMessage}
}

// HostGenerated is an annotation on Routes whose host the API server of OpenShift has made up: they have asked for none.
const HostGenerated = "openshift.io/host.generated"

// LabelPrefix and the name of a Router are a label that the scheduler puts on the Routes that are bound to the Router: its replicas watch no others.
const LabelPrefix = "bound.turnout.router/"

// Values of AnnotationPhase.
const (
	RoutePhaseNew       = "new"
	RoutePhaseScheduled = "scheduled"
)

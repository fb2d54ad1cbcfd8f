package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RouteScheduler says how routes are bound to Routers. The scheduler reads the one named default; without it routes are bound round robin.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=turnout
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.strategy`
// +kubebuilder:printcolumn:name="Bound",type=integer,JSONPath=`.status.bound`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="Moving",type=integer,JSONPath=`.status.moving`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.status.conditions[?(@.type=="Held")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="there is one RouteScheduler, named default"
type RouteScheduler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec RouteSchedulerSpec `json:"spec,omitempty"`
	// +optional
	Status RouteSchedulerStatus `json:"status,omitempty"`
}

// StrategyKind is a way to choose a Router.
//
// +kubebuilder:validation:Enum=RoundRobin;Label;LeastRoutes;LeastRequests;ConsistentHash;Spread;CEL;Webhook
type StrategyKind string

// Strategies.
const (
	StrategyRoundRobin     StrategyKind = "RoundRobin"
	StrategyLabel          StrategyKind = "Label"
	StrategyLeastRoutes    StrategyKind = "LeastRoutes"
	StrategyLeastRequests  StrategyKind = "LeastRequests"
	StrategyConsistentHash StrategyKind = "ConsistentHash"
	StrategySpread         StrategyKind = "Spread"
	StrategyCEL            StrategyKind = "CEL"
	StrategyWebhook        StrategyKind = "Webhook"
)

// RouteSchedulerSpec is how routes are bound.
//
// +kubebuilder:validation:XValidation:rule="self.strategy != 'CEL' || has(self.cel)",message="strategy CEL needs cel.expression"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'Webhook' || has(self.webhook)",message="strategy Webhook needs webhook.url"
type RouteSchedulerSpec struct {
	// Strategy chooses among the Routers whose selectors, taints and capacity permit a route. RoundRobin takes them in turn. Label does so among
	// those with a selector, and has no other for a route that none selects. LeastRoutes and LeastRequests take the one with the least load
	// for its capacity. ConsistentHash has few routes move when Routers come and go. Spread binds each route to several Routers. CEL
	// takes the one with the highest score of an expression. Webhook asks a server.
	// +optional
	// +kubebuilder:default=RoundRobin
	Strategy StrategyKind `json:"strategy,omitempty"`
	// Routers is on how many Routers strategy Spread binds a route.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Routers int32 `json:"routers,omitempty"`
	// CEL is for strategy CEL.
	// +optional
	CEL *CELStrategy `json:"cel,omitempty"`
	// Webhook is for strategy Webhook.
	// +optional
	Webhook *WebhookStrategy `json:"webhook,omitempty"`
	// Rebalance asks for bindings to be spread evenly again, once per value: write another text, such as today's date, to ask again.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Rebalance string `json:"rebalance,omitempty"`
	// LostAfterSeconds is for how long no replica of a Router may say anything before its routes are moved to others. Replicas do so every 10 s.
	// +optional
	// +kubebuilder:default=120
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	LostAfterSeconds int32 `json:"lostAfterSeconds,omitempty"`
	// WritesPerSecond is how fast the scheduler writes at most.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	WritesPerSecond int32 `json:"writesPerSecond,omitempty"`
	// AllowSharedHosts permits routes of several namespaces to have the same host with different paths.
	// +optional
	AllowSharedHosts bool `json:"allowSharedHosts,omitempty"`
}

// CELStrategy is an expression of the Common Expression Language.
type CELStrategy struct {
	// Expression is of route (namespace, name, host, labels, namespaceLabels) and router (name, labels, routes, requestsPerSecond, capacity). It is a
	// number, of which the highest wins, or true or false.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// WebhookStrategy is a server that chooses.
type WebhookStrategy struct {
	// URL gets a POST for each route; docs/sharding.md has the documents that are sent and expected.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (self.startsWith('http://') || self.startsWith('https://'))",message="a URL with http or https, such as https://chooser.example.com/"
	URL string `json:"url"`
	// CABundle is PEM certificates of the authorities that the server is verified against; without it, those of the system.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// TimeoutSeconds is of one question.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// RouteSchedulerStatus is what the scheduler does.
type RouteSchedulerStatus struct {
	// Leader is the replica of the scheduler that writes.
	// +optional
	Leader string `json:"leader,omitempty"`
	// Bound is how many routes have a Router.
	// +optional
	Bound int32 `json:"bound"`
	// Waiting is how many have none, and are tried again.
	// +optional
	Waiting int32 `json:"waiting"`
	// Moving is how many bindings are on their way.
	// +optional
	Moving int32 `json:"moving"`
	// Rebalanced is the value of spec.rebalance that has been carried out.
	// +optional
	Rebalanced string `json:"rebalanced,omitempty"`
	// Conditions are Valid (the strategy can be used) and Held (nothing is moved, and why).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is that of the spec that counts.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// RouteSchedulerList is a list of RouteSchedulers.
//
// +kubebuilder:object:root=true
type RouteSchedulerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RouteScheduler `json:"items"`
}

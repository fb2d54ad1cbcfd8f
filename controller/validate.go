package controller

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	routev1 "github.com/openshift/api/route/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/routing"
)

// Report is what Validate found.
type Report struct {
	Problems  []source.Problem // about files and documents, in path order
	Routes    []RouteReport    // by namespace and name
	Gateways  []GatewayReport  // objects of the Gateway API that are ours, by namespace, name and kind, with the conditions that say what is wrong
	Ingresses []IngressNote    // by namespace and name
	Files     int              // manifest files read
	Objects   int              // objects in them that can be used
	places    places
}

// RouteReport is what became of one route.
type RouteReport struct {
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	Host        string   `json:"host"`
	Path        string   `json:"path,omitempty"`
	Termination string   `json:"termination"` // "http", "edge", "reencrypt", "passthrough", or as written when it is none of them
	Admitted    bool     `json:"admitted"`
	Reason      string   `json:"reason,omitempty"` // why it is not admitted
	Message     string   `json:"message,omitempty"`
	Servers     int      `json:"servers"` // endpoints it can be served from
	Notes       []string `json:"notes,omitempty"`
	Origin      string   `json:"origin,omitempty"` // file and document
	// Ingress is the NAMESPACE/NAME of the Ingress that has it as a rule; "" = it is a Route.
	Ingress string `json:"ingress,omitempty"`
	// Certificate is what clients see; nil = TLS does not end here, or the route is not served. Validate leaves it out.
	Certificate *CertificateReport `json:"certificate,omitempty"`
	// Check is how its servers are checked; nil = the route is not served.
	Check *CheckReport `json:"check,omitempty"`
	// Settings are those in effect; nil = the route is not served. Validate leaves them out.
	Settings []Setting `json:"settings,omitempty"`
	// Shard is how it is bound; nil = the router is no replica of a Router. Lists leave it out.
	Shard *ShardReport `json:"shard,omitempty"`
}

// IngressNote is what is to be said of an Ingress besides its rules, which are among the routes.
type IngressNote struct {
	Ingress      source.Key
	Origin       string // file and document
	Reason, Text string
}

// Failed reports whether a file or document cannot be used, or a route or an object of the Gateway API is rejected.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Problems, func(p source.Problem) bool { return p.Severity == source.Error }) ||
		r.rejected() > 0
}

// Validate says what a router with these options would make of manifests. Nothing is served. Ports of Gateways are judged as in a cluster, where
// each has a Service of its own and so none has a port that Routes have. It fails when options cannot be used.
func Validate(options Options, content *folder.Content) (*Report, error) {
	options.KeepWithoutSecret, options.Gateways.Own = true, nil
	report, _, err := validate(options, content)
	return report, err
}

// validate is Validate, with the controller that has made the table.
func validate(options Options, content *folder.Content) (*Report, *Controller, error) {
	c, _, err := Offline(options, routing.Options{}, content.Events)
	if err != nil {
		return nil, nil, err
	}
	report := &Report{Problems: content.Problems, Files: content.Files, Objects: len(content.Events), places: places{texts: content.Texts}}
	for v := range c.views.each(c.views.keys(source.Key{})) {
		report.Routes = append(report.Routes, c.routeReport(&v, c.cfg.Clock()))
	}
	for _, v := range c.views.gateways.ours() {
		of := v.report()
		of.Conditions = v.wrong()
		report.Gateways = append(report.Gateways, of)
	}
	report.Problems = append(report.Problems, unjudged(&options, content.Events)...)
	report.Ingresses = c.state.ingressNotes(content.Events)
	return report, c, nil
}

// unjudged says of which objects of the Gateway API nothing is said, and why.
func unjudged(options *Options, events []source.Event) (all []source.Problem) {
	classes := make(map[gatewayv1.ObjectName]bool)
	for i := range events {
		if events[i].Kind == source.GatewayClass {
			classes[gatewayv1.ObjectName(events[i].Key.Name)] = true
		}
	}
	add := func(e *source.Event, reason string) {
		p := source.Problem{Object: e.Kind.String() + " " + e.Key.String(), Severity: source.Warning, Reason: reason}
		p.File, p.Document, _ = source.ParseOrigin(e.Origin)
		all = append(all, p)
	}
	for i := range events {
		e := &events[i]
		switch gateway, _ := e.Object.(*gatewayv1.Gateway); {
		case options.Gateways.Controller == "" && source.GatewayClass <= e.Kind && e.Kind <= source.BackendTLSPolicy:
			add(e, "objects of the Gateway API are judged with --gateway-api only")
			return all // once is enough
		case gateway != nil && !classes[gateway.Spec.GatewayClassName]:
			add(e, fmt.Sprintf("spec.gatewayClassName: there is no GatewayClass %s here: nothing is said of the Gateway and its routes", gateway.Spec.GatewayClassName))
		}
	}
	return all
}

func (c *Controller) routeReport(v *view, now time.Time) RouteReport {
	r := routeLine(v)
	r.Notes, r.Check = v.explain(now), c.checkReport(v)
	return r
}

// routeLine is a report that costs little.
func routeLine(v *view) RouteReport {
	k := v.kept
	r := RouteReport{Namespace: k.key.Namespace, Name: k.key.Name, Path: k.path, Termination: routing.TermNone.String(), Servers: v.servers, Origin: v.origin}
	if v.rule != nil {
		r.Ingress = v.rule.Of.String()
	}
	if k.tls != nil {
		r.Termination = string(k.tls.Termination)
	}
	if v.status == nil {
		return r
	}
	r.Host = v.status.Host
	for _, c := range v.status.Conditions {
		if c.Type == routev1.RouteAdmitted {
			r.Admitted, r.Reason, r.Message = c.Status == corev1.ConditionTrue, c.Reason, c.Message
		}
	}
	return r
}

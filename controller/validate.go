package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/routing"
)

// Report is what Validate found.
type Report struct {
	Problems  []source.Problem // about files and documents, in path order
	Routes    []RouteReport    // by namespace and name
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

// Failed reports whether a file or document cannot be used or a route is rejected.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Problems, func(p source.Problem) bool { return p.Severity == source.Error }) ||
		slices.ContainsFunc(r.Routes, func(r RouteReport) bool { return !r.Admitted })
}

// Validate says what a router with these options would make of manifests. Nothing is served. It fails when options cannot be used.
func Validate(options Options, content *folder.Content) (*Report, error) {
	options.KeepWithoutSecret = true
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
	report.Ingresses = c.state.ingressNotes(content.Events)
	return report, c, nil
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

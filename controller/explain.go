package controller

import (
	"crypto/tls"
	"fmt"
	"math"
	"slices"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/internal/keypair"
	"turnout/routing"
)

// CertificateReport is the certificate that clients see who name the host of a route.
type CertificateReport struct {
	Source    string    `json:"source"` // where it comes from: a field of the route, a secret, another route, the default
	Subject   string    `json:"subject"`
	Issuer    string    `json:"issuer"`
	Serial    string    `json:"serial"` // hexadecimal
	Names     []string  `json:"names"`  // subject alternative names: hosts and addresses
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	DaysLeft  int       `json:"daysLeft"` // whole days until NotAfter; below zero when it is over
	Warnings  []string  `json:"warnings,omitempty"`
}

// CheckReport is how the servers of a route are checked.
type CheckReport struct {
	Kind     string   `json:"kind"`     // "tcp": a connect, "tls": and a handshake, "http": and a request
	Interval string   `json:"interval"` // between two checks of a server
	Path     string   `json:"path,omitempty"`
	Host     string   `json:"host,omitempty"`
	Statuses string   `json:"statuses,omitempty"` // of a server that is well, such as "200-399"
	Running  bool     `json:"running"`            // false: fewer than two servers could be chosen, so none is checked
	Down     []string `json:"down,omitempty"`     // addresses of the servers whose checks fail
}

// Explain returns what became of one route, of its certificate and of its servers' checks. The bool is false when there is no such route. Any
// goroutine may call it.
func (c *Controller) Explain(namespace, name string) (*RouteReport, bool) {
	v, ok := c.views.routeView(namespace, name)
	if !ok {
		return nil, false
	}
	now := c.cfg.Clock()
	report := c.routeReport(&v, now)
	report.Certificate, report.Settings, report.Shard = c.certificateReport(&v, now), c.effective(&v), v.shard
	return &report, true
}

// served is the route in the table, nil without one.
func (c *Controller) served(v *view) *routing.Route {
	k := v.kept
	return c.cfg.Store.Load().Route(routing.RouteKey{Namespace: k.key.Namespace, Name: k.key.Name, UID: string(k.uid)})
}

// checkReport is nil where nothing is served.
func (c *Controller) checkReport(v *view) *CheckReport {
	r := c.served(v)
	if r == nil {
		return nil
	}
	cfg, checks := r.Pool().Config(), r.Pool().Checks()
	report := &CheckReport{Kind: "tcp", Interval: cfg.Check.String()}
	asks := cfg.HTTPCheck.Asks() && (len(checks) == 0 || slices.ContainsFunc(checks, func(c *balancer.Check) bool { return c.HTTP().Asks() }))
	switch {
	case asks:
		h := cfg.HTTPCheck.Request()
		report.Kind, report.Path, report.Host, report.Statuses = "http", h.Path, h.Host, fmt.Sprintf("%d-%d", h.Least, h.Most)
	case r.Termination() == routing.TermReencrypt:
		report.Kind = "tls"
	}
	for _, check := range checks {
		report.Running = true
		if check.Down() {
			report.Down = append(report.Down, check.Endpoint().Addr().String())
		}
	}
	return report
}

// certificateReport is nil where clients see no certificate of this router.
func (c *Controller) certificateReport(v *view, now time.Time) *CertificateReport {
	table := c.cfg.Store.Load()
	r := c.served(v)
	if r == nil || r.Termination() != routing.TermEdge && r.Termination() != routing.TermReencrypt {
		return nil
	}
	shown := table.SNI(r.Host())
	if shown.Certificate == nil || shown.Certificate.Leaf == nil {
		return nil
	}
	report := describeCertificate(shown.Certificate, now)
	switch {
	case r.Certificate() == shown.Certificate:
		report.Source = "spec.tls.certificate"
		if secret := c.state.externalName(v.kept.tls); secret != "" {
			report.Source = fmt.Sprintf("secret %q", secret)
		}
	case shown.Own:
		report.Source = "another route"
		report.Warnings = append(report.Warnings, "another route of the same host decides about its certificate")
	default:
		report.Source = "default certificate"
	}
	valid := validityOf(keypair.LeafOf(shown.Certificate.Leaf), r.Host(), v.kept.policy == routev1.WildcardPolicySubdomain)
	report.Warnings = append(report.Warnings, valid.notes(now)...)
	return report
}

func describeCertificate(c *tls.Certificate, now time.Time) *CertificateReport {
	leaf := c.Leaf
	names := append([]string{}, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return &CertificateReport{
		Subject: leaf.Subject.String(), Issuer: leaf.Issuer.String(), Serial: fmt.Sprintf("%X", leaf.SerialNumber), Names: names,
		NotBefore: leaf.NotBefore.UTC(), NotAfter: leaf.NotAfter.UTC(), DaysLeft: int(math.Floor(leaf.NotAfter.Sub(now).Hours() / 24)),
	}
}

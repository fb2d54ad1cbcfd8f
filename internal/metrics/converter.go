package metrics

import "net/http"

// Converter is what a process that makes Routes of Ingresses counts. The zero value is one of several that does not lead.
type Converter struct {
	Leading                           bool
	Ingresses, Routes, Failing        int
	Classless, Unmanaged              []ConvertedObject
	Created, Updated, Deleted, Failed uint64
}

// ConvertedObject is an Ingress or a Route. Host is that of a Route.
type ConvertedObject struct{ Namespace, Name, Host string }

// NewConverter returns what answers scrapes of a converter. read is called by each.
func NewConverter(read func() Converter) (http.Handler, error) {
	return processHandler(converterFamilies(), read)
}

func converterFamilies() families[Converter] {
	type C = Converter
	return families[C]{
		gauge("turnout_ingress_to_route_leading", "1 in the process that converts, 0 in the others.", func(c C, send send) { send(flag(c.Leading)) }),
		gauge("turnout_ingress_to_route_ingresses", "Ingresses that are converted.", number(func(c C) int { return c.Ingresses })),
		gauge("turnout_ingress_to_route_routes", "Routes of Ingresses.", number(func(c C) int { return c.Routes })),
		gauge("turnout_ingress_to_route_failing", "Ingresses whose last conversion failed.", number(func(c C) int { return c.Failing })),
		counter("turnout_ingress_to_route_writes_total", "Routes that were written since this process leads.", func(c C, send send) {
			send(float64(c.Created), "create")
			send(float64(c.Updated), "update")
			send(float64(c.Deleted), "delete")
		}, "write"),
		counter("turnout_ingress_to_route_failures_total", "Conversions that failed since this process leads.", number(func(c C) uint64 { return c.Failed })),
		gauge("openshift_ingress_to_route_controller_ingress_without_class_name", "1 for each Ingress that names no class.", func(c C, send send) {
			for _, o := range c.Classless {
				send(1, o.Name, o.Namespace)
			}
		}, "name", "namespace"),
		gauge("openshift_ingress_to_route_controller_route_with_unmanaged_owner", "1 for each Route whose Ingress is not there or not converted.", func(c C, send send) {
			for _, o := range c.Unmanaged {
				send(1, o.Name, o.Namespace, o.Host)
			}
		}, "name", "namespace", "host"),
	}
}

package controller

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"turnout/controller/source"
)

// Finding is one thing that Validate has to say, wherever it was found.
type Finding struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"` // of the file, from 1; 0 = not known
	Severity  string `json:"severity"`       // "error", "warning", "rejected" or "note"
	Namespace string `json:"namespace,omitempty"`
	Route     string `json:"route,omitempty"`  // name
	Object    string `json:"object,omitempty"` // kind, namespace and name, if it is not of a route
	Reason    string `json:"reason,omitempty"` // a stable word
	Text      string `json:"text"`
	host      string // and path
}

// Findings are all that is wrong: what flags and variables have, then files, then Ingresses, routes and objects of the Gateway API by namespace and name.
func (r *Report) Findings(warnings []string) []Finding {
	all := []Finding{}
	for _, warning := range warnings {
		all = append(all, Finding{Severity: "warning", Text: warning})
	}
	for _, p := range r.Problems {
		all = append(all, Finding{File: p.File, Line: r.places.line(p.File, p.Document, p.Object, p.Reason), Severity: p.Severity.String(), Object: p.Object, Text: p.Reason})
	}
	for i := range r.Ingresses {
		n := &r.Ingresses[i]
		file, document, _ := source.ParseOrigin(n.Origin)
		object := source.Ingress.String() + " " + n.Ingress.String()
		all = append(all, Finding{File: file, Line: r.places.line(file, document, object, n.Text), Severity: "note", Object: object, Reason: n.Reason, Text: n.Text})
	}
	for i := range r.Routes {
		route := &r.Routes[i]
		file, document, _ := source.ParseOrigin(route.Origin)
		object := source.Route.String() + " " + source.Key{Namespace: route.Namespace, Name: route.Name}.String()
		if route.Ingress != "" {
			object = source.Ingress.String() + " " + route.Ingress
		}
		add := func(severity, reason, text string) {
			all = append(all, Finding{
				File: file, Line: r.places.line(file, document, object, text), Severity: severity, Namespace: route.Namespace, Route: route.Name, Reason: reason, Text: text,
				host: route.Host + route.Path,
			})
		}
		if !route.Admitted {
			add("rejected", route.Reason, route.Message)
			continue
		}
		for _, note := range route.Notes {
			add("note", "", note)
		}
	}
	for i := range r.Gateways {
		all = append(all, r.ofGateway(&r.Gateways[i])...)
	}
	return all
}

// ofGateway is what is wrong with an object of the Gateway API, in the words of its status.
func (r *Report) ofGateway(of *GatewayReport) (all []Finding) {
	object := of.object()
	file, document, _ := source.ParseOrigin(of.Origin)
	said := of.Accepted
	for i := range of.Conditions {
		c := &of.Conditions[i]
		f := Finding{File: file, Line: r.places.line(file, document, object, c.Message), Severity: "note", Namespace: of.Namespace, Object: object, Reason: c.Reason, Text: c.Message}
		if !said && c.Reason == of.Reason && c.Message == of.Message {
			f.Severity, said = "rejected", true
		}
		if c.Of != "" {
			f.Text = c.Of + ": " + f.Text
		}
		all = append(all, f)
	}
	return all
}

// asks is what an object asks for, as a line says it.
func (r *GatewayReport) asks() (text string) {
	switch {
	case len(r.Listeners) > 0:
		text = " (" + strings.Join(r.Listeners, "; ") + ")"
	case len(r.Hosts) > 0:
		text = " (" + strings.Join(r.Hosts, ", ") + ")"
	}
	if len(r.Parents) > 0 {
		text += " of " + strings.Join(r.Parents, ", ")
	}
	return text
}

// object is kind, namespace and name.
func (r *GatewayReport) object() string {
	key := source.Key{Namespace: r.Namespace, Name: r.Name}
	return r.Kind + " " + key.String()
}

// String returns the finding as one line, with its place as compilers write it.
func (f *Finding) String() string {
	place := ""
	if f.File != "" {
		place = f.File + ": "
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d: ", f.File, f.Line)
		}
	}
	switch {
	case f.Severity == "rejected" && f.Object == "":
		return fmt.Sprintf("%srejected: %s/%s (%s): %s: %s", place, f.Namespace, f.Route, f.host, f.Reason, f.Text)
	case f.Route != "":
		return fmt.Sprintf("%s%s: %s/%s: %s", place, f.Severity, f.Namespace, f.Route, f.Text)
	case f.Object != "" && f.Reason != "":
		return fmt.Sprintf("%s%s: %s: %s: %s", place, f.Severity, f.Object, f.Reason, f.Text)
	case f.Object != "":
		return fmt.Sprintf("%s%s: %s: %s", place, f.Severity, f.Object, f.Text)
	}
	return place + f.Severity + ": " + f.Text
}

// Place says where in a file something of an object stands that a text names, by the origin of the object: "" and 0 for one that is in no file. object is "Kind namespace/name".
func (r *Report) Place(origin, object, text string) (file string, line int) {
	file, document, ok := source.ParseOrigin(origin)
	if !ok {
		return "", 0
	}
	return file, r.places.line(file, document, object, text)
}

// Print writes what is wrong first, that of flags and variables before that of manifests, each with file and line, then, unless quiet, a
// line per route that is served, then the sums.
func (r *Report) Print(w io.Writer, warnings []string, quiet bool) error {
	p := printer{w: w}
	for _, f := range r.Findings(warnings) {
		p.printf("%s\n", f.String())
	}
	if quiet {
		return p.err
	}
	for i := range r.Routes {
		if route := &r.Routes[i]; route.Admitted {
			p.printf("ok: %s/%s (%s) %s, %d servers%s\n", route.Namespace, route.Name, route.Host+route.Path, route.Termination, route.Servers, asked(route.Check))
		}
	}
	for i := range r.Gateways {
		if g := &r.Gateways[i]; g.Accepted {
			p.printf("ok: %s%s\n", g.object(), g.asks())
		}
	}
	p.printf("%d files, %d objects, %d routes, %d rejected, %d problems\n", r.Files, r.Objects, len(r.Routes), r.rejected(), len(r.Problems))
	return p.err
}

func (r *Report) rejected() (n int) {
	for i := range r.Routes {
		if !r.Routes[i].Admitted {
			n++
		}
	}
	for i := range r.Gateways {
		if !r.Gateways[i].Accepted {
			n++
		}
	}
	return n
}

// PrintJSON writes the report as one JSON object; quiet leaves the routes out.
func (r *Report) PrintJSON(w io.Writer, warnings []string, quiet bool) error {
	out := struct {
		Files    int             `json:"files"`
		Objects  int             `json:"objects"`
		Rejected int             `json:"rejected"`
		Findings []Finding       `json:"findings"`
		Routes   []RouteReport   `json:"routes,omitempty"`
		Gateways []GatewayReport `json:"gateways,omitempty"`
	}{r.Files, r.Objects, r.rejected(), r.Findings(warnings), r.Routes, r.Gateways}
	if quiet {
		out.Routes, out.Gateways = nil, nil
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(out)
}

// asked tells what checks of servers ask for, "" for those without a request.
func asked(c *CheckReport) string {
	if c == nil || c.Kind != "http" {
		return ""
	}
	return fmt.Sprintf(", checked by GET %s, host %s, statuses %s", c.Path, c.Host, c.Statuses)
}

// printer remembers the first error of many writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
